//! Callers that are hosts themselves and ask their own person: what no rule speaks of runs, and
//! whatever wants somebody asked here still does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolway::audit::{AuditLine, DecidedBy, read_last};
use toolway::call::{PermissionAnswer, PermissionQuestion};
use toolway::config::HookEvent;
use toolway::{
    AttachOptions, Attached, Audit, CallError, CallFault, CallOptions, Caller, CallerKind,
    CompletionReference, Consent, HookDecision, HookReply, Host, HostOptions, LibraryHook,
    Prompter, RefusedBy, ToolOutcome,
};
use toolway_config::{Flags, Plan};

use crate::offered::library;
use crate::pins::turncoat;
use crate::support::{Home, legacy_server, name, request};

/// Says this, and counts how often it is asked.
struct Person {
    says: PermissionAnswer,
    asked: AtomicUsize,
}

impl Prompter for Person {
    fn ask<'a>(&'a self, _: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(self.says.clone()))
    }
}

/// A host with an audit, and a client of it that asks its own person.
struct Stage {
    home: Home,
    host: Host,
    client: Attached,
    person: Arc<Person>,
}

/// The settings of the user, and those of the organisation.
fn plan(home: &Home, own: &Value, managed: Option<&Value>) -> Plan {
    let write = |place: &str, settings: &Value| {
        let place = home.path().join(place);
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        std::fs::write(place, settings.to_string()).expect("settings");
    };
    write("home/.config/toolway/settings.json", own);
    if let Some(managed) = managed {
        write("system/managed-settings.json", managed);
    }
    home.plan_of(&Flags::default(), &[])
}

impl Stage {
    async fn new(permissions: &Value, says: PermissionAnswer) -> Self {
        let home = Home::new();
        let plan = plan(&home, &json!({ "permissions": permissions }), None);
        let (library, _) = library();
        let options = HostOptions {
            in_process: vec![
                (name("s"), legacy_server()),
                (name("turncoat"), turncoat()),
                (name("library"), library),
            ],
            pins: Some(home.path().join("state/pins.json")),
            ..home.options()
        };
        Self::with(home, plan, options, says).await
    }

    async fn with(home: Home, plan: Plan, options: HostOptions, says: PermissionAnswer) -> Self {
        let options = HostOptions {
            audit: Some(Audit::in_directory(home.path().join("audit"))),
            ..options
        };
        let host = Host::start(plan, options);
        host.settled().await;
        let person = Arc::new(Person {
            says,
            asked: AtomicUsize::new(0),
        });
        let options = AttachOptions {
            prompter: Some(Arc::clone(&person) as Arc<dyn Prompter>),
            consent: Some(Consent::Delegated),
            ..AttachOptions::default()
        };
        let client = host.attach(Caller::new(CallerKind::Client, "editor"), options);
        Self {
            home,
            host,
            client,
            person,
        }
    }

    async fn call(&self, server: &str) -> Result<ToolOutcome, CallError> {
        let options = CallOptions::new(Consent::Delegated);
        self.client
            .call(request(server, "echo", "x"), options)
            .await
    }

    fn asked(&self) -> usize {
        self.person.asked.load(Ordering::Relaxed)
    }

    /// Who decided each call, once all of them are written down.
    async fn decided(self) -> Vec<Option<DecidedBy>> {
        drop(self.client);
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

fn refusal(outcome: Result<ToolOutcome, CallError>) -> RefusedBy {
    match outcome {
        Err(CallError::Failed(_, CallFault::Refused(by))) => by,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_no_rule_speaks_of_runs_and_the_audit_says_who_let_it() {
    let stage = Stage::new(&json!({}), PermissionAnswer::No).await;
    stage.call("s").await.expect("nothing is against it");
    assert_eq!(stage.asked(), 0);
    assert_eq!(stage.decided().await, [Some(DecidedBy::Caller)]);
}

#[tokio::test]
async fn a_rule_that_allows_is_still_who_let_it_run() {
    let rules = json!({ "allow": ["mcp__s__echo"] });
    let stage = Stage::new(&rules, PermissionAnswer::No).await;
    stage.call("s").await.expect("allowed");
    let by = stage.decided().await;
    assert!(
        matches!(&by[..], [Some(DecidedBy::Rule { rule, .. })] if rule == "mcp__s__echo"),
        "{by:?}"
    );
}

#[tokio::test]
async fn a_rule_that_denies_refuses_and_nobody_is_asked() {
    let stage = Stage::new(&json!({ "deny": ["mcp__s"] }), PermissionAnswer::Yes).await;
    let by = refusal(stage.call("s").await);
    assert!(
        matches!(&by, RefusedBy::Rule { rule, .. } if rule == "mcp__s"),
        "{by:?}"
    );
    assert_eq!(stage.asked(), 0);
}

#[tokio::test]
async fn a_rule_that_asks_asks_and_without_somebody_to_ask_refuses() {
    let rules = json!({ "ask": ["mcp__s"] });
    let stage = Stage::new(&rules, PermissionAnswer::Yes).await;
    stage.call("s").await.expect("a yes");
    assert_eq!(stage.asked(), 1);
    let alone = AttachOptions {
        consent: Some(Consent::Delegated),
        ..AttachOptions::default()
    };
    let alone = stage
        .host
        .attach(Caller::new(CallerKind::Client, "alone"), alone);
    let options = CallOptions::new(Consent::Delegated);
    let by = refusal(alone.call(request("s", "echo", "x"), options).await);
    assert!(
        matches!(by, RefusedBy::NobodyToAsk { rule: Some(_) }),
        "{by:?}"
    );
    drop(alone);
    let by = stage.decided().await;
    assert_eq!(by, [Some(DecidedBy::Person), Some(DecidedBy::Nobody)]);
    let stage = Stage::new(&rules, PermissionAnswer::No).await;
    let by = refusal(stage.call("s").await);
    assert_eq!(by, RefusedBy::Person { reason: None });
}

#[tokio::test]
async fn a_hook_that_wants_somebody_asked_has_them_asked() {
    let home = Home::new();
    let asks = HookReply {
        decision: Some(HookDecision::Ask),
        ..HookReply::default()
    };
    let hook = LibraryHook::new("guard", HookEvent::PreToolUse, "mcp__s__.*", move |_| {
        std::future::ready(Ok(asks.clone()))
    });
    let options = HostOptions {
        in_process: vec![(name("s"), legacy_server())],
        hooks: vec![hook.expect("a matcher")],
        ..home.options()
    };
    let plan = plan(&home, &json!({}), None);
    let stage = Stage::with(home, plan, options, PermissionAnswer::Yes).await;
    stage.call("s").await.expect("a yes");
    assert_eq!(stage.asked(), 1);
    assert_eq!(stage.decided().await, [Some(DecidedBy::Person)]);
}

#[tokio::test]
async fn sec_33_a_tool_that_changed_asks_although_the_caller_asks_its_own_person() {
    let stage = Stage::new(&json!({}), PermissionAnswer::No).await;
    for _ in 0..3 {
        stage.call("turncoat").await.expect("as it was");
    }
    let flipped = |snapshot: &Arc<toolway::HostSnapshot>| {
        let mut tools = snapshot.catalog.tools();
        tools.any(|tool| tool.description.contains("keys"))
    };
    stage
        .client
        .watch()
        .wait_for(flipped)
        .await
        .expect("it flips");
    let by = refusal(stage.call("turncoat").await);
    assert_eq!(by, RefusedBy::Person { reason: None });
    assert_eq!(stage.asked(), 1);
    // Its yes or no is its own: the owner is asked as well.
    let owner = stage.host.call(
        request("turncoat", "echo", "x"),
        CallOptions::new(Consent::Typed),
    );
    assert!(matches!(refusal(owner.await), RefusedBy::Changed { .. }));
}

/// What a client asks of a server beside calls, none of it free.
async fn beside_calls(client: &Attached) -> Vec<(&'static str, Result<(), CallError>)> {
    let library = name("library");
    let about = CompletionReference::Prompt("about".to_owned());
    let unlisted = "note://7";
    let followed = match client.subscribe_resource(&library, unlisted).await {
        Ok(_) => Ok(()),
        Err(toolway::SubscribeError::Call(error)) => Err(error),
        Err(other) => panic!("{other}"),
    };
    let read = client.read_resource(&library, unlisted).await.map(drop);
    let prompt = client.get_prompt(&library, "about", Map::new()).await;
    let completed = client
        .complete(&library, &about, "x", "o", &BTreeMap::new())
        .await;
    vec![
        ("follow", followed),
        ("read", read),
        ("prompt", prompt.map(drop)),
        ("complete", completed.map(drop)),
    ]
}

#[tokio::test]
async fn resources_prompts_and_completion_are_left_to_the_caller_as_well() {
    let stage = Stage::new(&json!({}), PermissionAnswer::No).await;
    for (what, outcome) in beside_calls(&stage.client).await {
        outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    assert_eq!(stage.asked(), 0);
    let by = stage.decided().await;
    assert!(by.iter().all(|by| *by == Some(DecidedBy::Caller)), "{by:?}");
    let rules = json!({ "ask": ["mcp__library"] });
    let stage = Stage::new(&rules, PermissionAnswer::No).await;
    for (what, outcome) in beside_calls(&stage.client).await {
        let Err(CallError::Failed(_, CallFault::Refused(RefusedBy::Person { .. }))) = outcome
        else {
            panic!("{what}: {outcome:?}");
        };
    }
    assert_eq!(stage.asked(), 4);
}

#[tokio::test]
async fn sec_59_a_rule_about_skills_asks_a_client_and_not_the_owner_who_typed() {
    let rules = json!({ "ask": ["mcp__library__ListMcpSkills"] });
    let stage = Stage::new(&rules, PermissionAnswer::No).await;
    let skills = stage.client.skills(&name("library")).await;
    assert!(skills.is_err(), "{skills:?}");
    assert_eq!(stage.asked(), 1);
    let skills = stage.host.skills(&name("library")).await;
    skills.expect("typed");
}

/// A classifier that notes what it is asked, and denies.
fn classifier(home: &Home) -> Value {
    let notes = home.path().join("classified");
    json!(format!(
        "sh -c 'cat >> {} && echo {{\\\"decision\\\":\\\"deny\\\"}}'",
        notes.display()
    ))
}

#[tokio::test]
async fn in_mode_auto_only_an_organisations_classifier_is_asked() {
    for managed in [false, true] {
        let home = Home::new();
        let auto = json!({ "permissions": {
            "defaultMode": "auto", "classifier": classifier(&home),
        } });
        let plan = if managed {
            plan(&home, &json!({}), Some(&auto))
        } else {
            plan(&home, &auto, None)
        };
        let options = HostOptions {
            in_process: vec![(name("s"), legacy_server())],
            ..home.options()
        };
        let notes = home.path().join("classified");
        let stage = Stage::with(home, plan, options, PermissionAnswer::Yes).await;
        let outcome = stage.call("s").await;
        assert_eq!(stage.asked(), 0);
        assert_eq!(notes.exists(), managed, "{outcome:?}");
        if managed {
            assert!(matches!(refusal(outcome), RefusedBy::Classifier { .. }));
        } else {
            outcome.expect("left to the caller");
            assert_eq!(stage.decided().await, [Some(DecidedBy::Caller)]);
        }
    }
}

#[tokio::test]
async fn sec_57_a_rule_for_another_server_of_that_name_does_not_count_for_a_repositorys() {
    let home = Home::new();
    let rules = json!({ "permissions": { "allow": ["mcp__s"] } });
    std::fs::create_dir_all(home.path().join("home/work")).expect("a folder");
    let server = toolway_testkit::ScriptedServer::new(toolway_testkit::Script::default()).entry();
    let brought = json!({ "mcpServers": { "s": server } });
    std::fs::write(home.path().join("home/work/.mcp.json"), brought.to_string()).expect("a file");
    plan(&home, &rules, None);
    let flags = Flags {
        approve_project_servers: true,
        ..Flags::default()
    };
    let plan = home.plan_of(&flags, &[]);
    let options = home.options();
    let stage = Stage::with(home, plan, options, PermissionAnswer::No).await;
    stage.call("s").await.expect("no rule is against it");
    assert_eq!(stage.decided().await, [Some(DecidedBy::Caller)]);
}
