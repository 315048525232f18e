//! Calls written down by a host: who let them run, who refused them, and those given up.

use std::sync::Arc;

use serde_json::json;
use toolway::audit::{self, AuditLine, CallEnd, CallRecord, DecidedBy, RecordedDecision};
use toolway::{
    AttachOptions, Audit, CallOptions, Caller, CallerKind, Consent, Host, HostOptions, ToolRequest,
    ToolTarget,
};
use toolway_config::{Environment, Flags};
use toolway_testkit::{Script, ScriptedServer};
use toolway_types::{ServerName, ToolKey};

use crate::support::Home;

fn request(tool: &str, arguments: &serde_json::Value) -> ToolRequest {
    let server = ServerName::new("s").expect("a name");
    ToolRequest::new(
        ToolTarget::Key(ToolKey::new(server, tool)),
        arguments.as_object().cloned().unwrap_or_default(),
    )
}

fn calls(audit: &Audit) -> Vec<CallRecord> {
    let read = audit::read_last(audit.directory(), 100, |_| true).expect("a file");
    let (lines, _) = read.expect("calls were written down");
    let calls = lines.into_iter().filter_map(|line| match line {
        AuditLine::Call(record) => Some(*record),
        AuditLine::Lost { .. } => None,
    });
    calls.collect()
}

#[tokio::test]
async fn who_decided_stands_in_the_audit_and_so_do_calls_that_were_given_up() {
    let home = Home::new();
    let audit = Audit::in_directory(home.path().join("audit"));
    let user = home.path().join("home");
    let settings = json!({
        "permissions": { "allow": ["mcp__s__echo"], "deny": ["mcp__s__slow"] },
        "mcpServers": { "s": ScriptedServer::new(Script::default()).entry() },
    });
    std::fs::create_dir_all(user.join(".config/toolway")).expect("a config home");
    std::fs::write(
        user.join(".config/toolway/settings.json"),
        settings.to_string(),
    )
    .expect("settings");
    let vars = [
        ("HOME".to_owned(), user.display().to_string()),
        ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
    ];
    let environment =
        Environment::new(vars.into(), user.clone()).with_system_dir(home.path().join("system"));
    let plan = toolway_config::plan(&environment, &Flags::default());
    let options = HostOptions {
        audit: Some(audit.clone()),
        ..home.options()
    };
    let host = Arc::new(Host::start(plan, options));
    host.settled().await;
    let model = Caller::new(CallerKind::Agent, "model");
    let model = host.attach(model, AttachOptions::default());
    let options = || CallOptions::new(Consent::Prompt);
    let echo = request("echo", &json!({ "text": "x" }));
    model.call(echo, options()).await.expect("a rule allows it");
    let denied = model
        .call(request("slow", &json!({ "ms": 1 })), options())
        .await;
    denied.expect_err("a rule denies it");
    let unasked = model.call(request("hang", &json!({})), options()).await;
    unasked.expect_err("nobody can be asked");
    {
        let hang = host.call(
            request("hang", &json!({})),
            CallOptions::new(Consent::Typed),
        );
        let given_up = tokio::time::timeout(std::time::Duration::from_millis(50), hang).await;
        given_up.expect_err("it never answers");
    }
    Arc::into_inner(host)
        .expect("the only one")
        .shutdown()
        .await;
    let told: Vec<_> = calls(&audit)
        .into_iter()
        .map(|call| (call.who, call.tool, call.decision, call.by, call.outcome))
        .collect();
    let model = || Some("model".to_owned());
    let [allowed, denied, unasked, given_up] = told.try_into().expect("four calls");
    assert_eq!((allowed.0, allowed.1.as_str()), (model(), "echo"));
    assert_eq!(
        (allowed.2, allowed.4),
        (Some(RecordedDecision::Allowed), CallEnd::Answered)
    );
    assert!(matches!(allowed.3, Some(DecidedBy::Rule { rule, .. }) if rule == "mcp__s__echo"));
    assert_eq!(
        (denied.2, denied.4),
        (Some(RecordedDecision::Refused), CallEnd::Refused)
    );
    assert!(matches!(denied.3, Some(DecidedBy::Rule { rule, .. }) if rule == "mcp__s__slow"));
    assert_eq!(
        (unasked.2, unasked.3),
        (Some(RecordedDecision::Refused), Some(DecidedBy::Nobody))
    );
    assert_eq!(
        (given_up.3, given_up.4),
        (Some(DecidedBy::Typed), CallEnd::Cancelled)
    );
}
