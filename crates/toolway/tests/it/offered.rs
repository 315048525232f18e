//! What a server offers beside its tools, held against rules and hooks like a call (SEC-59).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use toolway::audit::{AuditLine, DecidedBy, read_last};
use toolway::config::HookEvent;
use toolway::{
    Audit, Builtin, BuiltinAnswer, CallError, CallFault, CallOptions, CompletionReference, Consent,
    HookInput, HookReply, Host, HostOptions, InProcessServer, LibraryHook, RefusedBy, SkillError,
    SubscribeError, ToolOutcome, ToolRequest, ToolTarget,
};
use toolway_config::{Flags, Plan};
use toolway_types::ToolKey;

use crate::support::*;

/// The methods that a server was asked for.
pub(crate) type Heard = Arc<Mutex<Vec<String>>>;

/// A server that offers everything but tools, and what it was asked.
pub(crate) fn library() -> (InProcessServer, Heard) {
    let heard = Heard::default();
    let notes = Arc::clone(&heard);
    let server = scripted(move |message, _| {
        let method = message["method"].as_str().unwrap_or_default();
        notes.lock().expect("no panic").push(method.to_owned());
        match method {
            "initialize" => Reply::Result(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {
                    "resources": { "subscribe": true }, "prompts": {}, "completions": {},
                },
                "serverInfo": { "name": "library", "version": "1" },
                "instructions": "read everything",
            })),
            "resources/list" => Reply::Result(json!({ "resources": [
                { "uri": "note://1", "name": "one" },
                { "uri": "skill://s/SKILL.md", "name": "s" },
            ] })),
            "resources/templates/list" => Reply::Result(json!({ "resourceTemplates": [
                { "uriTemplate": "note://{number}", "name": "any" },
            ] })),
            "resources/read" => {
                let uri = &message["params"]["uri"];
                Reply::Result(json!({ "contents": [{ "uri": uri, "text": "hello" }] }))
            }
            "prompts/list" => Reply::Result(json!({ "prompts": [{ "name": "about" }] })),
            "prompts/get" => Reply::Result(json!({ "messages": [] })),
            "completion/complete" => Reply::Result(json!({ "completion": { "values": ["one"] } })),
            "resources/subscribe" => Reply::Result(json!({})),
            method if method.starts_with("notifications/") => Reply::Silence,
            _ => Reply::Error(-32601),
        }
    });
    (server, heard)
}

/// A plan with these permissions in the person's own settings.
pub(crate) fn ruled(home: &Home, permissions: &Value) -> Plan {
    let settings = home.path().join("home/.config/toolway/settings.json");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
    let text = json!({ "permissions": permissions }).to_string();
    std::fs::write(settings, text).expect("settings");
    home.plan_of(&Flags::default(), &[])
}

struct Stage {
    host: Host,
    heard: Heard,
    home: Home,
}

impl Stage {
    async fn new(permissions: &Value, hooks: Vec<LibraryHook>) -> Self {
        let home = Home::new();
        let (server, heard) = library();
        let (other, _) = library();
        let options = HostOptions {
            in_process: vec![(name("e"), server), (name("other"), other)],
            audit: Some(Audit::in_directory(home.path().join("audit"))),
            hooks,
            ..home.options()
        };
        let host = Host::start(ruled(&home, permissions), options);
        host.settled().await;
        heard.lock().expect("no panic").clear();
        Self { host, heard, home }
    }

    /// Everything that can be asked of the server beside calls, by what it is called in rules.
    async fn everything(&self) -> Vec<(&'static str, Result<(), CallError>)> {
        let (host, e) = (&self.host, name("e"));
        let about = CompletionReference::Prompt("about".to_owned());
        let context = BTreeMap::new();
        let read = json!({ "server": "e", "uri": "note://1" });
        let listed = json!({ "server": "e" });
        let skills = match host.skills(&e).await {
            Err(SkillError::Call(error)) => Err(error),
            other => panic!("{other:?}"),
        };
        let followed = match host.subscribe_resource(&e, "note://1").await {
            Err(SubscribeError::Call(error)) => Err(error),
            other => panic!("{other:?}"),
        };
        vec![
            (
                "ReadMcpResource",
                host.read_resource(&e, "note://1").await.map(drop),
            ),
            ("ReadMcpResource", followed),
            (
                "ReadMcpResource",
                self.call("ReadMcpResource", read).await.map(drop),
            ),
            (
                "ListMcpResources",
                self.call("ListMcpResources", listed).await.map(drop),
            ),
            (
                "GetMcpPrompt",
                host.get_prompt(&e, "about", Map::new()).await.map(drop),
            ),
            (
                "CompleteMcpArgument",
                host.complete(&e, &about, "x", "o", &context)
                    .await
                    .map(drop),
            ),
            ("ListMcpSkills", skills),
        ]
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutcome, CallError> {
        self.call_as(tool, arguments, Consent::Typed).await
    }

    async fn call_as(
        &self,
        tool: &str,
        arguments: Value,
        consent: Consent,
    ) -> Result<ToolOutcome, CallError> {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object")
        };
        let request = ToolRequest::new(ToolTarget::Exposed(tool.to_owned()), arguments);
        self.host.call(request, CallOptions::new(consent)).await
    }

    /// What the server was asked since it was connected.
    fn asked(&self) -> Vec<String> {
        self.heard.lock().expect("no panic").clone()
    }
}

/// A hook that says this of what goes by these names, and what it was told.
fn guard(matcher: &str, reply: HookReply) -> (LibraryHook, Arc<Mutex<Vec<HookInput>>>) {
    let told = Arc::<Mutex<Vec<HookInput>>>::default();
    let notes = Arc::clone(&told);
    let hook = LibraryHook::new("guard", HookEvent::PreToolUse, matcher, move |input| {
        notes.lock().expect("no panic").push(input);
        std::future::ready(Ok(reply.clone()))
    });
    (hook.expect("a matcher"), told)
}

fn listed(outcome: &ToolOutcome) -> Vec<String> {
    let raw: Value = serde_json::from_str(outcome.raw.get()).expect("JSON");
    let resources = raw["structuredContent"]["resources"].as_array().cloned();
    let templates = raw["structuredContent"]["resourceTemplates"]
        .as_array()
        .cloned();
    let all = resources.into_iter().chain(templates).flatten();
    all.map(|one| one["server"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn sec_59_a_rule_that_denies_a_server_denies_all_that_it_offers() {
    for rule in ["mcp__e", "mcp__e__*", "MCP__E"] {
        let stage = Stage::new(&json!({ "deny": [rule] }), Vec::new()).await;
        for (what, outcome) in stage.everything().await {
            let Err(CallError::Failed(
                ToolKey { server, tool },
                CallFault::Refused(RefusedBy::Rule { rule: by, .. }),
            )) = &outcome
            else {
                panic!("{rule}: {what}: {outcome:?}");
            };
            assert_eq!(
                (server.as_str(), tool.as_str(), by.as_str()),
                ("e", what, rule)
            );
        }
        assert_eq!(stage.asked(), [] as [&str; 0], "{rule}");
        // What is listed for everybody leaves it out, and says so.
        let all = stage
            .call("ListMcpResources", json!({}))
            .await
            .expect("a list");
        assert_eq!(listed(&all), ["other", "other", "other"]);
        let snapshot = stage.host.snapshot();
        assert!(
            snapshot
                .catalog
                .prompts()
                .all(|prompt| prompt.key.server.as_str() == "other")
        );
        let sections = &snapshot.catalog.instructions.sections;
        assert!(
            sections
                .iter()
                .all(|section| section.server.as_str() == "other")
        );
        let warnings = snapshot.server("e").expect("a server").warnings.join("\n");
        assert!(
            warnings.contains(&format!("the rule `{rule}`")),
            "{warnings}"
        );
    }
}

#[tokio::test]
async fn sec_59_a_rule_can_speak_of_one_thing_that_a_server_offers() {
    let rules =
        json!({ "deny": ["mcp__e__ReadMcpResource(uri:note://1)", "mcp__e__GetMcpPrompt"] });
    let stage = Stage::new(&rules, Vec::new()).await;
    let e = name("e");
    assert!(stage.host.read_resource(&e, "note://1").await.is_err());
    stage
        .host
        .read_resource(&e, "note://2")
        .await
        .expect("another resource");
    let other = name("other");
    stage
        .host
        .read_resource(&other, "note://1")
        .await
        .expect("another server's");
    assert!(
        stage
            .host
            .get_prompt(&e, "about", Map::new())
            .await
            .is_err()
    );
    stage
        .host
        .get_prompt(&other, "about", Map::new())
        .await
        .expect("another server's");
    assert_eq!(stage.asked(), ["resources/read"]);
}

#[tokio::test]
async fn sec_59_hooks_about_a_servers_tools_see_all_that_is_asked_of_it() {
    for matcher in ["mcp__e__.*", "mcp__e", "mcp__e__*"] {
        let (hook, told) = guard(matcher, HookReply::deny("not today"));
        let stage = Stage::new(&json!({}), vec![hook]).await;
        let mut expected = Vec::new();
        for (what, outcome) in stage.everything().await {
            assert!(
                matches!(
                    &outcome,
                    Err(CallError::Failed(
                        _,
                        CallFault::Refused(RefusedBy::Hook { .. })
                    ))
                ),
                "{matcher}: {what}: {outcome:?}"
            );
            expected.push(what.to_owned());
        }
        assert_eq!(stage.asked(), [] as [&str; 0], "{matcher}");
        let told = told.lock().expect("no panic").clone();
        let mut names: Vec<_> = told
            .iter()
            .filter_map(|input| input.tool_name.clone())
            .collect();
        names.sort();
        expected.sort();
        assert_eq!(names, expected, "{matcher}");
        assert!(told.iter().all(|input| input.server == "e"), "{told:?}");
        let read = told
            .iter()
            .find(|input| input.tool_name.as_deref() == Some("ReadMcpResource"));
        let input = read
            .and_then(|input| input.tool_input.clone())
            .expect("an input");
        assert_eq!(
            Value::Object(input),
            json!({ "server": "e", "uri": "note://1" })
        );
    }
}

#[tokio::test]
async fn sec_59_a_hook_cannot_lead_a_read_to_a_server_that_a_rule_denies() {
    let rewritten = json!({ "server": "e", "uri": "note://1" });
    let reply = HookReply {
        updated_input: rewritten.as_object().cloned(),
        ..HookReply::default()
    };
    let (hook, _) = guard("mcp__other", reply);
    let stage = Stage::new(&json!({ "deny": ["mcp__e"] }), vec![hook]).await;
    let arguments = json!({ "server": "other", "uri": "note://1" });
    let outcome = stage.call("ReadMcpResource", arguments).await;
    assert!(
        matches!(outcome, Err(CallError::Failed(_, CallFault::Refused(_)))),
        "{outcome:?}"
    );
    assert_eq!(stage.asked(), [] as [&str; 0]);
}

#[tokio::test]
async fn sec_59_what_a_hook_rewrites_is_what_is_read() {
    let rewritten = json!({ "server": "e", "uri": "note://2" });
    let reply = HookReply {
        updated_input: rewritten.as_object().cloned(),
        ..HookReply::default()
    };
    let (hook, _) = guard("mcp__e", reply);
    let stage = Stage::new(&json!({}), vec![hook]).await;
    let read = stage
        .host
        .read_resource(&name("e"), "note://1")
        .await
        .expect("a text");
    assert_eq!(read.result.contents[0].uri, "note://2");
}

#[tokio::test]
async fn sec_59_a_tool_of_the_program_that_reads_resources_gets_around_no_rule() {
    let reads = Builtin::new("Peek", "peeks", json!({ "type": "object" }), async |call| {
        let uri = call.text("uri").unwrap_or_default().to_owned();
        match call.host.read_resource(&name("e"), &uri).await {
            Ok(raw) => BuiltinAnswer::text(raw.get()),
            Err(error) => BuiltinAnswer::error(error.to_string()),
        }
    });
    let reads = reads.expect("a tool").without_asking();
    for (rules, runs) in [
        (json!({}), true),
        (json!({ "deny": ["mcp__e"] }), false),
        (json!({ "ask": ["mcp__e"] }), false),
    ] {
        let home = Home::new();
        let (server, heard) = library();
        let options = HostOptions {
            in_process: vec![(name("e"), server)],
            builtins: vec![reads.clone()],
            ..home.options()
        };
        let host = Host::start(ruled(&home, &rules), options);
        host.settled().await;
        let request = ToolRequest::new(
            ToolTarget::Exposed("Peek".to_owned()),
            Map::from_iter([("uri".to_owned(), "note://7".into())]),
        );
        let outcome = host.call(request, CallOptions::new(Consent::Prompt)).await;
        let outcome = outcome.expect("an answer");
        assert_eq!(!outcome.is_error, runs, "{rules}: {}", text_of(&outcome));
        let read = heard
            .lock()
            .expect("no panic")
            .iter()
            .any(|one| one == "resources/read");
        assert_eq!(read, runs, "{rules}");
    }
}

#[tokio::test]
async fn sec_34_an_address_that_no_server_lists_is_asked_about_like_a_tool() {
    let stage = Stage::new(&json!({}), Vec::new()).await;
    let of = |uri: &str| json!({ "server": "e", "uri": uri });
    let read = |uri: &str| stage.call_as("ReadMcpResource", of(uri), Consent::Prompt);
    read("note://1").await.expect("what is listed");
    let carried = read("note://the-person-s-secret").await;
    assert!(
        matches!(
            &carried,
            Err(CallError::Failed(
                _,
                CallFault::Refused(RefusedBy::NobodyToAsk { .. })
            ))
        ),
        "{carried:?}"
    );
    assert_eq!(stage.asked(), ["resources/read"]);
    for rule in [
        "mcp__e__ReadMcpResource(uri:note://*)",
        "mcp__e",
        "ReadMcpResource",
    ] {
        let stage = Stage::new(&json!({ "allow": [rule] }), Vec::new()).await;
        let outcome = stage
            .call_as("ReadMcpResource", of("note://7"), Consent::Prompt)
            .await;
        assert!(outcome.is_ok(), "{rule}: {outcome:?}");
    }
    // An ask rule asks for what is listed as well.
    let stage = Stage::new(&json!({ "ask": ["mcp__e"] }), Vec::new()).await;
    let outcome = stage
        .call_as("ReadMcpResource", of("note://1"), Consent::Prompt)
        .await;
    assert!(
        matches!(outcome, Err(CallError::Failed(_, CallFault::Refused(_)))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn what_is_read_of_a_server_stands_in_the_audit() {
    let stage = Stage::new(&json!({}), Vec::new()).await;
    stage
        .host
        .read_resource(&name("e"), "note://1")
        .await
        .expect("a text");
    let directory = stage.home.path().join("audit");
    stage.host.shutdown().await;
    let (lines, _) = read_last(&directory, 1, |_| true)
        .expect("a file")
        .expect("lines");
    let Some(AuditLine::Call(record)) = lines.first() else {
        panic!("{lines:?}");
    };
    assert_eq!(record.server.as_deref(), Some("e"));
    assert_eq!(record.tool, "ReadMcpResource");
    assert_eq!(record.by, Some(DecidedBy::BuiltIn));
    assert!(record.received.is_some_and(|size| size > 0), "{record:?}");
}
