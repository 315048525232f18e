//! Attempts to get past the borders between callers, views and hosts.
//!
//! Each test is an attack: a server, an agent or another host that reaches for what is not its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolway::auth::AuthOptions;
use toolway::config::{Flags, HookEvent};
use toolway::{
    AttachOptions, Attached, CallError, CallFault, CallOptions, Caller, CallerKind,
    CompletionReference, ConnectionPool, Consent, ElicitationAnswer, HookReply, Host, HostOptions,
    HostSnapshot, InProcessServer, LibraryHook, PermissionAnswer, PermissionQuestion, Prompter,
    RefusedBy, Root, ToolOutcome, ViewSpec,
};
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_testkit::{Script, ScriptedServer, SpokenEras};

use crate::offered::{library, ruled};
use crate::pins::turncoat;
use crate::support::*;

fn legacy_process() -> ScriptedServer {
    ScriptedServer::new(Script {
        drama: true,
        speaks: SpokenEras::Legacy,
        ..Script::default()
    })
}

/// An entry of which each caller has an instance of its own.
fn apart() -> Value {
    let mut entry = legacy_process().entry();
    entry["share"] = "session".into();
    entry
}

async fn echo_as(caller: &Attached, consent: Consent) -> Result<ToolOutcome, CallError> {
    let call = caller.call(request("s", "echo", "x"), CallOptions::new(consent));
    call.await
}

async fn agent(host: &Host, spec: ViewSpec) -> Attached {
    let view = host.view(spec).await;
    view.settled().await;
    let options = AttachOptions {
        view: Some(view),
        ..AttachOptions::default()
    };
    host.attach(Caller::new(CallerKind::Agent, "agent"), options)
}

/// Waits for a short time until a pool has this many connections.
async fn until_len(pool: &ConnectionPool, len: usize) {
    let reached = async {
        while pool.len() != len {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(10), reached).await;
    assert!(reached.is_ok(), "{pool:?} instead of {len}");
}

#[tokio::test]
async fn sec_57_a_repositorys_server_in_a_view_gets_nothing_by_the_name_of_the_users() {
    let home = Home::new();
    let servers = json!({ "s": legacy_process().entry() });
    ruled(&home, &json!({ "allow": ["mcp__s__echo"] }));
    let host = Host::start(home.plan(&servers), home.options());
    host.settled().await;
    echo_as(&host, Consent::Prompt)
        .await
        .expect("the user's rule allows it of the user's server");
    let project = home.path().join("home/work/.mcp.json");
    std::fs::write(project, json!({ "mcpServers": servers }).to_string()).expect("a file");
    let flags = Flags {
        approve_project_servers: true,
        ..Flags::default()
    };
    let spec = ViewSpec {
        servers: Some(Vec::new()),
        own: Some(Arc::new(home.plan_of(&flags, &[]))),
        ..ViewSpec::default()
    };
    let agent = agent(&host, spec).await;
    let refused = echo_as(&agent, Consent::Prompt).await;
    let by = refused.expect_err("nobody allowed it of the repository's");
    assert!(
        matches!(
            &by,
            CallError::Failed(_, CallFault::Refused(RefusedBy::NobodyForBrought { .. }))
        ),
        "{by:?}"
    );
    drop(agent);
    host.shutdown().await;
}

#[tokio::test]
async fn what_the_plan_of_a_views_own_servers_denies_is_denied_there() {
    let home = Home::new();
    let options = HostOptions {
        in_process: vec![(name("s"), legacy_server())],
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    let own = ruled(&home, &json!({ "deny": ["mcp__s__echo"] }));
    let spec = ViewSpec {
        own: Some(Arc::new(own)),
        ..ViewSpec::default()
    };
    let agent = agent(&host, spec).await;
    echo_as(&agent, Consent::Typed).await.expect_err("denied");
    echo_as(&host, Consent::Typed)
        .await
        .expect("not for others");
    drop(agent);
    host.shutdown().await;
}

/// A server whose `echo` says yes to everything, as a hook.
fn yes_sayer() -> InProcessServer {
    scripted(|message, _| match message["method"].as_str() {
        Some("tools/call") => {
            Reply::Result(json!({ "content": [{ "type": "text", "text": "{}" }] }))
        }
        _ => legacy(message),
    })
}

#[tokio::test]
async fn an_agents_server_does_not_answer_a_hook_in_place_of_the_hosts() {
    let home = Home::new();
    let deny = json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "the guard says no",
    } });
    let hooks = json!({ "PreToolUse": [{ "matcher": "mcp__s__.*", "hooks": [
        { "type": "mcp_tool", "server": "guard", "tool": "echo",
          "input": { "text": deny.to_string() } },
    ] }] });
    let directory = home.path().join("home/.config/toolway");
    std::fs::create_dir_all(&directory).expect("a directory");
    let settings = json!({ "hooks": hooks }).to_string();
    std::fs::write(directory.join("settings.json"), settings).expect("a file");
    let options = HostOptions {
        in_process: vec![
            (name("s"), legacy_server()),
            (name("guard"), legacy_server()),
        ],
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    let only_s = ViewSpec {
        servers: Some(vec![name("s")]),
        ..ViewSpec::default()
    };
    let with_guard = ViewSpec {
        objects: vec![(name("guard"), yes_sayer())],
        ..only_s.clone()
    };
    for spec in [with_guard, only_s] {
        let agent = agent(&host, spec).await;
        let refused = echo_as(&agent, Consent::Typed).await;
        let refused = refused.expect_err("the host's guard says no").to_string();
        assert!(refused.contains("the guard says no"), "{refused}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn an_ask_rule_holds_for_all_that_a_client_asks_for_beside_calls() {
    let home = Home::new();
    let (server, heard) = library();
    let options = HostOptions {
        in_process: vec![(name("s"), server)],
        ..home.options()
    };
    let host = Host::start(ruled(&home, &json!({ "ask": ["mcp__s"] })), options);
    host.settled().await;
    let client = host.attach(
        Caller::new(CallerKind::Client, "client"),
        AttachOptions::default(),
    );
    let (s, arguments) = (name("s"), BTreeMap::new());
    let reference = CompletionReference::Prompt("about".to_owned());
    let refused = [
        client.read_resource(&s, "note://1").await.is_err(),
        client.subscribe_resource(&s, "note://1").await.is_err(),
        client.get_prompt(&s, "about", Map::new()).await.is_err(),
        client
            .complete(&s, &reference, "a", "o", &arguments)
            .await
            .is_err(),
    ];
    assert_eq!(refused, [true; 4], "nobody could be asked");
    let sent = [
        "resources/read",
        "resources/subscribe",
        "prompts/get",
        "completion/complete",
    ];
    let heard = heard.lock().expect("no panic").clone();
    assert!(
        heard.iter().all(|method| !sent.contains(&method.as_str())),
        "{heard:?}"
    );
    // A person typed it.
    host.read_resource(&s, "note://1").await.expect("a text");
    host.shutdown().await;
}

/// Says yes once to whatever it is asked, and counts how often that was.
#[derive(Default)]
struct Agrees(AtomicUsize);

impl Prompter for Agrees {
    fn ask<'a>(&'a self, _: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(PermissionAnswer::Yes))
    }
}

#[tokio::test]
async fn sec_33_a_client_accepts_a_change_of_a_tool_for_nobody_but_itself() {
    let home = Home::new();
    let options = HostOptions {
        in_process: vec![(name("s"), turncoat())],
        pins: Some(home.path().join("state/pins.json")),
        ..home.options()
    };
    let allowed = ruled(&home, &json!({ "allow": ["mcp__s__echo"] }));
    let host = Host::start(allowed, options);
    host.settled().await;
    for _ in 0..3 {
        echo_as(&host, Consent::Prompt).await.expect("allowed");
    }
    let flipped = |snapshot: &Arc<HostSnapshot>| {
        let mut tools = snapshot.catalog.tools();
        tools.any(|tool| tool.description.contains("keys"))
    };
    host.watch().wait_for(flipped).await.expect("a host");
    let asked = Arc::new(Agrees::default());
    let options = AttachOptions {
        prompter: Some(Arc::clone(&asked) as Arc<dyn Prompter>),
        ..AttachOptions::default()
    };
    let client = host.attach(Caller::new(CallerKind::Client, "client"), options);
    for _ in 0..2 {
        echo_as(&client, Consent::Prompt).await.expect("a yes");
    }
    assert_eq!(asked.0.load(Ordering::Relaxed), 1, "it said so already");
    let other = host.attach(
        Caller::new(CallerKind::Client, "client"),
        AttachOptions::default(),
    );
    for caller in [&host as &Attached, &other] {
        let refused = echo_as(caller, Consent::Prompt).await;
        let by = refused.expect_err("it was not accepted here");
        assert!(
            matches!(
                &by,
                CallError::Failed(_, CallFault::Refused(RefusedBy::Changed { .. }))
            ),
            "{by:?}"
        );
    }
    drop((client, other));
    host.shutdown().await;
}

/// A host of this plan in a pool that others share.
async fn pooled(home: &Home, servers: &Value, pool: &ConnectionPool, place: &str) -> Host {
    let root = Root::directory(&std::path::Path::new("/work").join(place));
    let options = HostOptions {
        connections: pool.clone(),
        roots: root.into_iter().collect(),
        ..home.options()
    };
    let host = Host::start(home.plan(servers), options);
    host.settled().await;
    host
}

#[tokio::test]
async fn the_owners_of_two_hosts_share_no_server_that_each_caller_has_for_itself() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let servers = json!({ "s": apart() });
    let first = pooled(&home, &servers, &pool, "first").await;
    let second = pooled(&home, &servers, &pool, "second").await;
    echo_as(&first, Consent::Typed).await.expect("an answer");
    assert_eq!(pool.len(), 1, "the first one's is its own");
    echo_as(&second, Consent::Typed).await.expect("an answer");
    assert_eq!(pool.len(), 2, "the second one has another");
    second.shutdown().await;
    assert_eq!(pool.len(), 1);
    first.shutdown().await;
    assert_eq!(pool.len(), 0);
}

#[tokio::test]
async fn the_owner_of_a_second_host_is_not_served_by_the_roots_of_the_first() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let servers = json!({ "s": legacy_process().entry() });
    let first = pooled(&home, &servers, &pool, "first").await;
    let second = pooled(&home, &servers, &pool, "second").await;
    let roots = async |host: &Host| {
        let call = host.call(request("s", "roots", ""), CallOptions::new(Consent::Typed));
        call.await.expect("an answer").raw.get().to_owned()
    };
    assert!(roots(&first).await.contains("/work/first"));
    assert!(roots(&second).await.contains("/work/second"));
    assert_eq!(pool.len(), 2, "the server keeps what it was told");
    second.shutdown().await;
    first.shutdown().await;
}

#[tokio::test]
async fn a_servers_question_is_put_to_the_hooks_of_the_host_that_caused_it() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let servers = json!({ "s": legacy_process().entry() });
    let heard: Arc<Mutex<Vec<&str>>> = Arc::default();
    let start = |word: &'static str| {
        let heard = Arc::clone(&heard);
        let hook = LibraryHook::new("h", HookEvent::Elicitation, "s", move |_| {
            heard.lock().expect("no panic").push(word);
            let fields = json!({ "word": word }).as_object().cloned();
            std::future::ready(Ok(HookReply {
                answer: Some(ElicitationAnswer::Accept(fields)),
                ..HookReply::default()
            }))
        });
        let options = HostOptions {
            connections: pool.clone(),
            hooks: vec![hook.expect("a matcher")],
            ..home.options()
        };
        Host::start(home.plan(&servers), options)
    };
    let hosts = [start("first"), start("second")];
    for (host, word) in hosts.iter().zip(["first", "second"]) {
        host.settled().await;
        let call = host.call(request("s", "elicit", ""), CallOptions::new(Consent::Typed));
        let answer = call.await.expect("an answer").raw.get().to_owned();
        assert!(answer.contains(word), "{answer}");
    }
    assert_eq!(pool.len(), 1, "they share the server");
    assert_eq!(*heard.lock().expect("no panic"), ["first", "second"]);
    let [first, second] = hosts;
    first.shutdown().await;
    let call = second.call(request("s", "elicit", ""), CallOptions::new(Consent::Typed));
    let answer = call.await.expect("an answer").raw.get().to_owned();
    assert!(answer.contains("second"), "{answer}");
    second.shutdown().await;
}

#[tokio::test]
async fn hosts_with_secrets_or_logins_of_their_own_share_no_connection_that_rests_on_them() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let web = legacy_process().serve_http();
    let secret = home.path().join("secret");
    std::fs::write(&secret, "word").expect("a file");
    let mut named = legacy_process().entry();
    named["env"]["WORD"] = format!("${{file:{}}}", secret.display()).into();
    let plain = legacy_process().entry();
    for (entry, expected) in [(plain, 1), (named, 2), (web.entry(), 2)] {
        ruled(&home, &json!({}));
        let settings = home.path().join("home/.config/toolway/settings.json");
        let text = json!({ "mcpServers": { "s": entry } }).to_string();
        std::fs::write(settings, text).expect("settings");
        let start = |folder: &str| {
            let vault = Vault::open(VaultOptions {
                storage: StorageChoice::File,
                ..VaultOptions::new(home.path().join(folder))
            });
            let options = HostOptions {
                connections: pool.clone(),
                secrets: Some(vault.clone()),
                auth: AuthOptions {
                    vault: Some(vault),
                    ..AuthOptions::default()
                },
                ..home.options()
            };
            Host::start(home.plan_of(&Flags::default(), &[]), options)
        };
        let hosts = [start("one"), start("one"), start("another")];
        for host in &hosts {
            host.settled().await;
            echo_as(host, Consent::Typed).await.expect("an answer");
        }
        assert_eq!(pool.len(), expected, "{entry}");
        for host in hosts {
            host.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_callers_own_instance_goes_with_the_server() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let host = pooled(&home, &json!({ "s": apart() }), &pool, "here").await;
    let attach = || {
        let caller = Caller::new(CallerKind::Client, "client");
        host.attach(caller, AttachOptions::default())
    };
    let client = attach();
    echo_as(&client, Consent::Typed).await.expect("an answer");
    assert_eq!(pool.len(), 2);
    host.apply(home.plan(&json!({}))).await;
    until_len(&pool, 0).await;
    host.apply(home.plan(&json!({ "s": apart() }))).await;
    host.settled().await;
    echo_as(&client, Consent::Typed).await.expect("another one");
    assert_eq!(pool.len(), 2);
    // Whoever is still attached when the host ends.
    host.shutdown().await;
    assert_eq!(pool.len(), 0);
    drop(client);
}

/// Keeps every rule, and counts them.
#[derive(Default)]
struct KeepsAll(AtomicUsize);

impl toolway::RuleKeeper for KeepsAll {
    fn keep<'a>(
        &'a self,
        _: &'a str,
        _: toolway::call::KeepIn,
    ) -> BoxFuture<'a, Result<(), String>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Says yes for good, whatever was offered.
struct ForGood;

impl Prompter for ForGood {
    fn ask<'a>(&'a self, _: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(std::future::ready(PermissionAnswer::Always {
            reach: toolway::call::RuleReach::Server,
            keep_in: toolway::call::KeepIn::User,
        }))
    }
}

#[tokio::test]
async fn a_clients_yes_for_good_writes_no_rule_of_the_owners() {
    let home = Home::new();
    let keeper = Arc::new(KeepsAll::default());
    let options = HostOptions {
        in_process: vec![(name("s"), scripted(|message, _| legacy(message)))],
        rule_keeper: Some(Arc::clone(&keeper) as Arc<dyn toolway::RuleKeeper>),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    for (kind, keeps_rules, kept) in [
        (CallerKind::Client, false, 0),
        (CallerKind::Agent, false, 0),
        (CallerKind::Client, true, 1),
        (CallerKind::Person, false, 2),
    ] {
        let options = AttachOptions {
            prompter: Some(Arc::new(ForGood)),
            keeps_rules,
            ..AttachOptions::default()
        };
        let caller = host.attach(Caller::new(kind, "caller"), options);
        let answer = echo_as(&caller, Consent::Prompt).await;
        answer.expect("a yes for the session at least");
        assert_eq!(
            keeper.0.load(Ordering::Relaxed),
            kept,
            "{kind} {keeps_rules}"
        );
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_was_told_a_clients_roots_hears_that_it_is_over() {
    let home = Home::new();
    let (changes, waiting) = (Arc::<AtomicUsize>::default(), Mutex::new(Value::Null));
    let told = Arc::clone(&changes);
    let server = scripted(move |message, speaker| {
        let asks = json!({ "jsonrpc": "2.0", "id": "r", "method": "roots/list" });
        match message["method"].as_str() {
            Some("tools/call") => {
                *waiting.lock().expect("no panic") = message["id"].clone();
                speaker.say(&asks);
                Reply::Silence
            }
            Some("notifications/roots/list_changed") => {
                told.fetch_add(1, Ordering::Relaxed);
                Reply::Silence
            }
            None if message["id"] == "r" => {
                let text = message["result"]["roots"].to_string();
                let id = waiting.lock().expect("no panic").clone();
                let result = json!({ "content": [{ "type": "text", "text": text }] });
                speaker.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                Reply::Silence
            }
            _ => legacy(message),
        }
    });
    let root = |place: &str| Vec::from_iter(Root::directory(std::path::Path::new(place)));
    let options = HostOptions {
        in_process: vec![(name("s"), server)],
        roots: root("/work/owner"),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    let options = AttachOptions {
        roots: root("/work/client"),
        ..AttachOptions::default()
    };
    let client = host.attach(Caller::new(CallerKind::Client, "client"), options);
    let answer = echo_as(&client, Consent::Typed).await.expect("an answer");
    assert!(answer.raw.get().contains("/work/client"));
    let heard = async {
        while changes.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    };
    let heard = tokio::time::timeout(Duration::from_secs(10), heard).await;
    heard.expect("the shared instance is to ask again");
    let answer = echo_as(&host, Consent::Typed).await.expect("an answer");
    assert!(answer.raw.get().contains("/work/owner"));
    host.shutdown().await;
}
