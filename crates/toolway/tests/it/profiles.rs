//! Profiles through a whole host: what they hide is not there, and what they say only narrows.

use serde_json::{Map, Value, json};
use toolway::audit::{AuditLine, DecidedBy, read_last};
use toolway::{
    AttachOptions, Attached, Audit, CallError, CallFault, CallOptions, Caller, CallerKind, Consent,
    Host, HostOptions, InProcessServer, RefusedBy, ToolOutcome, ToolRequest, ToolTarget, ViewSpec,
};
use toolway_config::{Flags, Plan, Profile};
use toolway_types::ToolKey;

use crate::support::{Home, Reply, legacy, name, scripted, tool};

/// A server with a tool for each of these, by what it says of itself, and a resource and a prompt.
fn shop(tools: &'static [(&'static str, Option<bool>)]) -> InProcessServer {
    scripted(move |message, _| match message["method"].as_str() {
        Some("initialize") => Reply::Result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
            "serverInfo": { "name": "shop", "version": "1" },
            "instructions": "ask for the price first",
        })),
        Some("tools/list") => {
            let listed = tools.iter().map(|(name, reads)| {
                let mut tool = tool(name);
                if let Some(reads) = reads {
                    tool["annotations"] = json!({ "readOnlyHint": reads });
                }
                tool
            });
            Reply::Result(json!({ "tools": listed.collect::<Vec<_>>() }))
        }
        Some("tools/call") => {
            let text = &message["params"]["name"];
            Reply::Result(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        Some("resources/list") => Reply::Result(json!({ "resources": [
            { "uri": "note://1", "name": "one" },
        ] })),
        Some("resources/read") => {
            let uri = &message["params"]["uri"];
            Reply::Result(json!({ "contents": [{ "uri": uri, "text": "hello" }] }))
        }
        Some("prompts/list") => Reply::Result(json!({ "prompts": [{ "name": "about" }] })),
        Some("prompts/get") => Reply::Result(json!({ "messages": [] })),
        _ => legacy(message),
    })
}

const TOOLS: &[(&str, Option<bool>)] = &[
    ("buy", Some(false)),
    ("look", Some(true)),
    ("price", Some(true)),
    ("say", None),
];

/// Two spellings of one name, and a third.
const ALIKE: &[(&str, Option<bool>)] = &[("get.item", None), ("get_item", None), ("other", None)];

struct Stage {
    home: Home,
    host: Host,
    plan: Plan,
}

impl Stage {
    /// A host with these settings of the user, and the servers `shop`, `my shop` and `alike`.
    async fn new(settings: &Value) -> Self {
        let home = Home::new();
        let place = home.path().join("home/.config/toolway/settings.json");
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        std::fs::write(place, settings.to_string()).expect("settings");
        let plan = home.plan_of(&Flags::default(), &[]);
        assert!(plan.diagnoses.is_empty(), "{:?}", plan.diagnoses);
        let options = HostOptions {
            in_process: vec![
                (name("shop"), shop(TOOLS)),
                (name("my shop"), shop(TOOLS)),
                (name("alike"), shop(ALIKE)),
            ],
            audit: Some(Audit::in_directory(home.path().join("audit"))),
            ..home.options()
        };
        let host = Host::start(plan.clone(), options);
        host.settled().await;
        Self { home, host, plan }
    }

    async fn client(&self, profile: &str) -> Attached {
        self.client_of(self.plan.profile(profile).expect("a profile"))
            .await
    }

    async fn client_of(&self, profile: &Profile) -> Attached {
        let view = self.host.view(ViewSpec::of_profile(profile)).await;
        view.settled().await;
        let options = AttachOptions {
            view: Some(view),
            consent: Some(profile.mode.into()),
            ..AttachOptions::default()
        };
        self.host
            .attach(Caller::new(CallerKind::Client, "editor"), options)
    }

    async fn decided(self) -> Vec<Option<DecidedBy>> {
        self.host.shutdown().await;
        let read = read_last(&self.home.path().join("audit"), 100, |_| true);
        let (lines, _) = read.expect("readable").expect("calls were written down");
        let by = lines.into_iter().filter_map(|line| match line {
            AuditLine::Call(record) => Some(record.by),
            AuditLine::Lost { .. } => None,
        });
        by.collect()
    }
}

/// Every tool that the client is shown, those that are found by searching too.
fn shown(client: &Attached) -> Vec<String> {
    let snapshot = client.snapshot();
    let tools = snapshot.catalog.tools();
    tools.map(|tool| tool.name.clone()).collect()
}

async fn call(client: &Attached, target: ToolTarget) -> Result<ToolOutcome, CallError> {
    let options = CallOptions::new(Consent::Delegated);
    client
        .call(ToolRequest::new(target, Map::new()), options)
        .await
}

async fn by_key(client: &Attached, server: &str, tool: &str) -> Result<ToolOutcome, CallError> {
    call(client, ToolTarget::Key(ToolKey::new(name(server), tool))).await
}

async fn by_name(client: &Attached, tool: &str) -> Result<ToolOutcome, CallError> {
    call(client, ToolTarget::Exposed(tool.to_owned())).await
}

fn assert_unknown(outcome: Result<ToolOutcome, CallError>, what: &str) {
    let Err(CallError::Unknown { suggestions, .. }) = outcome else {
        panic!("{what}: {outcome:?}");
    };
    let hidden = |name: &String| name.contains("buy") || name.contains("say");
    assert!(!suggestions.iter().any(hidden), "{what}: {suggestions:?}");
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> RefusedBy {
    match outcome {
        Err(CallError::Failed(_, CallFault::Refused(by))) => by,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_tool_outside_of_a_profile_is_neither_shown_nor_called_by_name_or_key() {
    let stage = Stage::new(&json!({ "profiles": {
        "few": { "tools": ["mcp__shop__look", "mcp__shop__p*"] },
    } }))
    .await;
    let client = stage.client("few").await;
    assert_eq!(shown(&client), ["mcp__shop__look", "mcp__shop__price"]);
    assert_eq!(client.snapshot().catalog.left_out().count(), 0);
    by_key(&client, "shop", "look").await.expect("an answer");
    by_name(&client, "mcp__shop__price")
        .await
        .expect("an answer");
    for tool in ["buy", "say", "never"] {
        assert_unknown(by_key(&client, "shop", tool).await, tool);
        assert_unknown(by_name(&client, &format!("mcp__shop__{tool}")).await, tool);
    }
    assert_unknown(by_key(&client, "my shop", "look").await, "another server's");
    // The owner has them as ever.
    by_key(&stage.host, "shop", "buy").await.expect("an answer");
}

#[tokio::test]
async fn what_is_not_named_of_a_server_is_not_offered_beside_its_tools_either() {
    let stage = Stage::new(&json!({ "profiles": {
        "tool": { "tools": ["mcp__shop__look"] },
        "whole": { "tools": ["mcp__shop"] },
        "notes": { "tools": ["mcp__shop__look", "mcp__shop__ReadMcpResource"] },
    } }))
    .await;
    let shop = name("shop");
    for (profile, reads, prompts) in [
        ("tool", false, false),
        ("whole", true, true),
        ("notes", true, false),
    ] {
        let client = stage.client(profile).await;
        let read = client.read_resource(&shop, "note://1").await;
        assert_eq!(read.is_ok(), reads, "{profile}: {read:?}");
        let prompt = client.get_prompt(&shop, "about", Map::new()).await;
        assert_eq!(prompt.is_ok(), prompts, "{profile}: {prompt:?}");
        let snapshot = client.snapshot();
        assert_eq!(
            snapshot.catalog.prompts().count(),
            usize::from(prompts),
            "{profile}"
        );
        let said = snapshot.catalog.instructions.of(&shop);
        assert_eq!(said.is_some(), prompts, "{profile}");
        let warnings = &snapshot.server("shop").expect("shown").warnings;
        assert!(
            warnings.is_empty(),
            "nobody is told what is hidden: {warnings:?}"
        );
    }
}

#[tokio::test]
async fn sec_31_a_tool_has_the_same_name_in_every_view() {
    let stage = Stage::new(&json!({ "profiles": {
        "one": { "tools": ["mcp__alike__get.item"] },
    } }))
    .await;
    let of_owner: Vec<_> = shown(&stage.host);
    let client = stage.client("one").await;
    let [only] = &shown(&client)[..] else {
        panic!("{:?}", shown(&client));
    };
    assert!(of_owner.contains(only), "{only}: {of_owner:?}");
    // The spelling of the hidden one is not free for its look-alike.
    assert_unknown(by_key(&client, "alike", "get_item").await, "hidden");
    by_name(&client, only).await.expect("an answer");
}

#[tokio::test]
async fn a_pattern_may_be_spelled_as_models_see_the_tool() {
    let stage = Stage::new(&json!({ "profiles": {
        "seen": { "tools": ["mcp__my_shop__look"] },
    } }))
    .await;
    let client = stage.client("seen").await;
    assert_eq!(shown(&client), ["mcp__my_shop__look"]);
    by_name(&client, "mcp__my_shop__look")
        .await
        .expect("an answer");
}

#[tokio::test]
async fn sec_34_read_only_has_the_tools_that_say_so_and_still_obeys_rules() {
    let stage = Stage::new(&json!({
        "permissions": { "deny": ["mcp__shop__price"] },
        "profiles": { "reader": { "servers": ["shop"], "readOnly": true } },
    }))
    .await;
    let client = stage.client("reader").await;
    assert_eq!(shown(&client), ["mcp__shop__look", "mcp__shop__price"]);
    by_key(&client, "shop", "look").await.expect("an answer");
    assert_unknown(
        by_key(&client, "shop", "buy").await,
        "it says that it writes",
    );
    assert_unknown(by_key(&client, "shop", "say").await, "it says nothing");
    // That it only reads permits nothing.
    let by = refusal(by_key(&client, "shop", "price").await);
    assert!(
        matches!(&by, RefusedBy::Rule { rule, .. } if rule == "mcp__shop__price"),
        "{by:?}"
    );
    // Resources and prompts are reads.
    let shop = name("shop");
    client.read_resource(&shop, "note://1").await.expect("read");
    client
        .get_prompt(&shop, "about", Map::new())
        .await
        .expect("rendered");
}

#[tokio::test]
async fn rules_of_a_profile_deny_and_ask_beside_those_of_the_settings() {
    let stage = Stage::new(&json!({
        "permissions": { "allow": ["mcp__shop"] },
        "profiles": { "careful": {
            "permissions": { "deny": ["mcp__shop__buy"], "ask": ["mcp__shop__say"] },
        } },
    }))
    .await;
    let client = stage.client("careful").await;
    let by = refusal(by_key(&client, "shop", "buy").await);
    assert!(
        matches!(&by, RefusedBy::Rule { rule, .. } if rule == "mcp__shop__buy"),
        "{by:?}"
    );
    let by = refusal(by_key(&client, "shop", "say").await);
    assert!(
        matches!(&by, RefusedBy::NobodyToAsk { rule: Some(_) }),
        "{by:?}"
    );
    by_key(&client, "shop", "look").await.expect("allowed");
}

#[tokio::test]
async fn servers_that_a_profile_does_not_name_are_not_there() {
    let stage = Stage::new(&json!({ "profiles": {
        "one": { "servers": ["my shop", "nowhere"] },
    } }))
    .await;
    let client = stage.client("one").await;
    let snapshot = client.snapshot();
    let servers: Vec<_> = snapshot
        .servers
        .iter()
        .map(|it| it.name.to_string())
        .collect();
    assert_eq!(servers, ["my shop"]);
    let called = by_key(&client, "shop", "look").await;
    assert!(
        matches!(called, Err(CallError::Unavailable { .. })),
        "{called:?}"
    );
    let read = client.read_resource(&name("shop"), "note://1").await;
    assert!(
        matches!(read, Err(CallError::Unavailable { .. })),
        "{read:?}"
    );
}

#[tokio::test]
async fn the_mode_of_a_profile_says_who_answers_where_no_rule_does() {
    let profiles = json!({
        "client": {}, "ask": { "mode": "ask" }, "bypass": { "mode": "bypass" },
    });
    let stage = Stage::new(&json!({ "profiles": profiles })).await;
    for profile in ["client", "ask", "bypass"] {
        let mode = stage.plan.profile(profile).expect("a profile").mode;
        let client = stage.client(profile).await;
        let key = ToolTarget::Key(ToolKey::new(name("shop"), "say"));
        let request = ToolRequest::new(key, Map::new());
        let called = client.call(request, CallOptions::new(mode.into())).await;
        assert_eq!(called.is_ok(), profile != "ask", "{profile}: {called:?}");
    }
    let by = stage.decided().await;
    assert_eq!(
        by,
        [
            Some(DecidedBy::Caller),
            Some(DecidedBy::Nobody),
            Some(DecidedBy::Mode)
        ]
    );
}

#[tokio::test]
async fn sec_14_bypass_is_nobodys_where_it_is_forbidden() {
    let stage = Stage::new(&json!({ "permissions": { "disableBypass": true } })).await;
    // Also for a profile that no file says.
    let profile = Profile {
        mode: toolway_config::ProfileMode::Bypass,
        ..Profile::default()
    };
    let client = stage.client_of(&profile).await;
    let key = ToolTarget::Key(ToolKey::new(name("shop"), "say"));
    let request = ToolRequest::new(key, Map::new());
    let called = client.call(request, CallOptions::new(profile.mode.into()));
    let by = refusal(called.await);
    assert!(
        matches!(&by, RefusedBy::NobodyToAsk { rule: None }),
        "{by:?}"
    );
}

#[tokio::test]
async fn a_view_keeps_its_boundaries_when_the_plan_changes() {
    let stage = Stage::new(&json!({ "profiles": {
        "few": { "tools": ["mcp__shop__look"] },
    } }))
    .await;
    let client = stage.client("few").await;
    stage
        .host
        .apply(stage.home.plan(&json!({ "late": { "type": "sdk" } })))
        .await;
    client.settled().await;
    assert_eq!(shown(&client), ["mcp__shop__look"]);
    assert_unknown(by_key(&client, "shop", "buy").await, "hidden");
}
