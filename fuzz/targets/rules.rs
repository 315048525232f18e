//! Fuzz target: permission rules.
//!
//! Owns the promises of `toolway_config::permission` for any rule, readable or not, and any call:
//! reading never fails, a rule denies whatever it would allow, adding a deny never widens, an
//! exposed name is a rule for its tool and for no other, and deciding takes little time.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use toolway_config::permission::{PermissionDecision, ToolHints, Permissions, CallSubject};
use toolway_types::{Origin, Scope, ServerName, ToolKey};

/// The most processor time for all decisions of one input of 4 KiB.
const LIMIT: Duration = Duration::from_secs(5);

// One byte of choices, then parts separated by 0xFF, which no text has: rule, server, tool,
// arguments, second rule, second server, second tool.
fuzz_target!(|data: &[u8]| {
    let Some((choices, data)) = data.split_first() else {
        return;
    };
    let parts: Vec<String> = data
        .split(|byte| *byte == 0xFF)
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect();
    let part = |index: usize| parts.get(index).map_or("", String::as_str);
    let began = processor_time();
    let Some(key) = key(part(1), part(2)) else {
        // Reading alone must hold as well.
        for scope in Scope::ALL {
            let _ = decide_by("deny", part(0), scope);
        }
        return;
    };
    let arguments: Option<Map<String, Value>> = serde_json::from_str(part(3)).ok();
    let subject = subject(&key, arguments.as_ref(), *choices);
    check_one_rule(part(0), &subject);
    check_more_rules(part(0), part(4), &subject);
    check_identity(&key);
    if let Some(other) = self::key(part(5), part(6))
        && other != key
    {
        check_one_tool(part(0), &key, &other);
        check_one_tool(&key.exposed_apart(), &key, &other);
    }
    let taken = processor_time() - began;
    assert!(taken < LIMIT, "deciding took {taken:?}");
});

fn key(server: &str, tool: &str) -> Option<ToolKey> {
    Some(ToolKey::new(ServerName::new(server).ok()?, tool))
}

fn subject<'a>(
    key: &'a ToolKey,
    arguments: Option<&'a Map<String, Value>>,
    choices: u8,
) -> CallSubject<'a> {
    let mut subject = CallSubject::tool(key);
    if let Some(arguments) = arguments {
        subject = subject.with_arguments(arguments);
    }
    if choices & 1 != 0 {
        let claim = |bit: u8| (choices & bit != 0).then_some(choices & 0x80 != 0);
        subject = subject.with_hints(ToolHints {
            read_only: claim(2),
            destructive: claim(4),
            idempotent: claim(8),
            open_world: claim(16),
        });
    }
    if choices & 32 != 0 {
        subject = subject.shown_as(&key.tool);
    }
    subject
}

fn here() -> Origin {
    Origin::file("settings.json", 1)
}

fn read(value: &Value, scope: Scope) -> Permissions {
    let (permissions, found) = Permissions::parse(value, &here(), scope);
    for diagnosis in found {
        assert!(diagnosis.hint.is_some(), "{diagnosis:?}");
    }
    permissions
}

fn decide_by(list: &str, rule: &str, scope: Scope) -> Permissions {
    read(&json!({ list: [rule] }), scope)
}

fn is_allow(decision: &PermissionDecision) -> bool {
    matches!(decision, PermissionDecision::Allow { .. })
}

fn is_deny(decision: &PermissionDecision) -> bool {
    matches!(decision, PermissionDecision::Deny { .. })
}

fn strictness(decision: &PermissionDecision) -> u8 {
    match decision {
        PermissionDecision::Allow { .. } => 0,
        PermissionDecision::Ask { .. } => 1,
        PermissionDecision::Deny { .. } => 2,
        PermissionDecision::Unreadable { .. } => 3,
    }
}

/// What a rule allows it would also deny, and it would be asked about.
fn check_one_rule(rule: &str, subject: &CallSubject<'_>) {
    for scope in [Scope::User, Scope::Managed] {
        let allowed = is_allow(&decide_by("allow", rule, scope).decide(subject));
        let denied = decide_by("deny", rule, scope).decide(subject);
        let asked = decide_by("ask", rule, scope).decide(subject);
        assert!(!is_allow(&denied) && !is_allow(&asked) && !is_deny(&asked));
        if allowed {
            assert!(is_deny(&denied), "`{rule}` allows but does not deny");
            assert!(matches!(asked, PermissionDecision::Ask { rule: Some(_) }));
        }
        assert_eq!(denied, decide_by("deny", rule, scope).decide(subject));
    }
    // Whoever wrote the repository has no say.
    let foreign = decide_by("allow", rule, Scope::Project);
    assert!(foreign.is_empty());
}

/// A deny beside other rules never widens, in one file or in another.
fn check_more_rules(one: &str, other: &str, subject: &CallSubject<'_>) {
    for mode in ["default", "bypass"] {
        let before = read(&json!({ "allow": [one], "defaultMode": mode }), Scope::User);
        let both = json!({ "allow": [one], "deny": [other], "defaultMode": mode });
        let after = read(&both, Scope::User).decide(subject);
        assert!(strictness(&after) >= strictness(&before.decide(subject)));
        let deny = decide_by("deny", other, Scope::Local);
        let apart = is_deny(&deny.decide(subject));
        let merged = Permissions::merged([before, deny]).decide(subject);
        assert_eq!(is_deny(&merged), apart);
        assert_eq!(strictness(&merged), strictness(&after));
    }
}

/// The name a person sees works as a rule, whatever it was made from.
fn check_identity(key: &ToolKey) {
    let rule = key.exposed_apart();
    let allowed = decide_by("allow", &rule, Scope::User).decide_tool(key);
    assert!(is_allow(&allowed), "`{rule}` does not allow {key:?}");
    let denied = decide_by("deny", &rule, Scope::User).decide_tool(key);
    assert!(is_deny(&denied), "`{rule}` does not deny {key:?}");
}

/// An allow that names a tool, without wildcard, is for one tool at most.
fn check_one_tool(rule: &str, one: &ToolKey, other: &ToolKey) {
    let Some((_, tool)) = rule
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
    else {
        return;
    };
    if tool.is_empty() || rule.contains('*') {
        return;
    }
    let allow = decide_by("allow", rule, Scope::User);
    let both = is_allow(&allow.decide_tool(one)) && is_allow(&allow.decide_tool(other));
    assert!(!both, "`{rule}` allows {one:?} and {other:?}");
}

/// Of this thread: others on the machine must not make a finding.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanoseconds)
}
