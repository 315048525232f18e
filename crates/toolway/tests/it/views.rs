//! Views, agents and shared connections: what a caller sees is its own, what is equal is shared, and
//! what was claimed ends with whoever claimed it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolway::{
    AgentSpec, AttachOptions, Attached, CallError, CallOptions, Caller, CallerKind, ConnectionPool,
    Consent, Host, HostOptions, ServerObstacle, ToolOutcome, ToolRequest, ToolTarget, ViewSpec,
};
use toolway_config::{Permissions, Plan};
use toolway_testkit::{Script, ScriptedServer, SpokenEras};
use toolway_types::{Origin, Scope, ServerName, ToolKey};

use crate::support::{Home, name};

fn entry() -> Value {
    ScriptedServer::new(Script::default()).entry()
}

fn drama(speaks: SpokenEras) -> Value {
    let script = Script {
        drama: true,
        speaks,
        ..Script::default()
    };
    ScriptedServer::new(script).entry()
}

/// The same entry with one more member.
fn with(mut entry: Value, key: &str, value: Value) -> Value {
    entry[key] = value;
    entry
}

fn rules(settings: &Value) -> Permissions {
    let origin = Origin::Program;
    let (rules, faults) = Permissions::parse(&settings["permissions"], &origin, Scope::User);
    assert!(faults.is_empty(), "{faults:?}");
    rules
}

async fn host(home: &Home, servers: &Value, pool: &ConnectionPool) -> Host {
    let options = HostOptions {
        connections: pool.clone(),
        ..home.options()
    };
    let host = Host::start(home.plan(servers), options);
    host.settled().await;
    host
}

fn caller(name: &str) -> Caller {
    Caller::new(CallerKind::Agent, name)
}

fn request(server: &str, tool: &str, arguments: &Value) -> ToolRequest {
    let target = ToolTarget::Key(ToolKey::new(name(server), tool));
    ToolRequest::new(target, arguments.as_object().cloned().unwrap_or_default())
}

async fn echo(attached: &Attached, server: &str, text: &str) -> Result<ToolOutcome, CallError> {
    let request = request(server, "echo", &json!({ "text": text }));
    attached
        .call(request, CallOptions::new(Consent::Typed))
        .await
}

fn names(attached: &Attached) -> Vec<String> {
    let snapshot = attached.snapshot();
    let servers = snapshot.servers.iter();
    servers.map(|server| server.name.to_string()).collect()
}

async fn becomes(pool: &ConnectionPool, len: usize) {
    for _ in 0..500 {
        if pool.len() == len {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} connections, not {len}", pool.len());
}

#[tokio::test]
async fn equal_servers_of_two_hosts_are_one_connection_until_the_last_lets_go() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let servers = json!({ "s": entry() });
    let first = host(&home, &servers, &pool).await;
    let second = host(&home, &servers, &pool).await;
    assert_eq!(pool.len(), 1);
    for host in [&first, &second] {
        echo(host, "s", "both").await.expect("an answer");
    }
    first.shutdown().await;
    echo(&second, "s", "still").await.expect("an answer");
    // An order of one is heard by all who hold the connection.
    second.reconnect("s").await.expect("known");
    echo(&second, "s", "again").await.expect("an answer");
    second.shutdown().await;
    assert!(pool.is_empty());
}

#[tokio::test]
async fn an_order_of_one_host_reaches_the_calls_of_the_other() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let servers = json!({ "s": entry() });
    let first = host(&home, &servers, &pool).await;
    let second = host(&home, &servers, &pool).await;
    for _ in 0..5 {
        first.reconnect("s").await.expect("known");
        echo(&second, "s", "after it").await.expect("an answer");
    }
    drop(first);
    echo(&second, "s", "alone").await.expect("an answer");
    second.shutdown().await;
    assert!(pool.is_empty());
}

#[tokio::test]
async fn two_definitions_of_one_name_never_meet() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let other = with(entry(), "env", json!({ "SECRET_OF_B": "x" }));
    let first = host(&home, &json!({ "github": entry() }), &pool).await;
    let second = host(&home, &json!({ "github": other }), &pool).await;
    assert_eq!(pool.len(), 2);
    first.shutdown().await;
    assert_eq!(pool.len(), 1);
    echo(&second, "github", "x").await.expect("an answer");
    second.shutdown().await;
}

#[tokio::test]
async fn a_view_has_the_servers_it_names_and_the_rules_only_narrow() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let servers = json!({ "a": entry(), "b": entry() });
    let host = host(&home, &servers, &pool).await;
    let spec = ViewSpec {
        servers: Some(vec![name("a")]),
        rules: Some(rules(&json!({ "permissions": {
            "deny": ["mcp__a__echo"],
            "allow": ["mcp__a"],
            "defaultMode": "bypassPermissions",
        } }))),
        ..ViewSpec::default()
    };
    let view = host.view(spec).await;
    view.settled().await;
    assert_eq!(pool.len(), 2, "the view shares the host's");
    let options = AttachOptions {
        view: Some(view),
        ..AttachOptions::default()
    };
    let narrow = host.attach(caller("narrow"), options);
    assert_eq!(names(&narrow), ["a"]);
    assert_eq!(names(&host), ["a", "b"]);
    let refused = echo(&narrow, "a", "x").await.expect_err("denied");
    assert!(refused.to_string().contains("refused"), "{refused}");
    echo(&narrow, "b", "x").await.expect_err("not in its view");
    echo(&host, "a", "x").await.expect("the owner's own rules");
    // What it allows to itself counts for nothing.
    let tool = request("a", "add", &json!({ "a": 1, "b": 2 }));
    let asked = narrow.call(tool, CallOptions::new(Consent::Prompt)).await;
    asked.expect_err("nobody was asked, and no rule of the host allows it");
    host.shutdown().await;
}

#[tokio::test]
async fn a_view_follows_the_plan_of_its_host() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let host = host(&home, &json!({ "a": entry() }), &pool).await;
    let spec = ViewSpec {
        servers: Some(vec![name("a"), name("late")]),
        ..ViewSpec::default()
    };
    let view = host.view(spec).await;
    let options = AttachOptions {
        view: Some(view),
        ..AttachOptions::default()
    };
    let attached = host.attach(caller("follower"), options);
    assert_eq!(names(&attached), ["a"]);
    let servers = json!({ "late": entry(), "other": entry() });
    host.apply(home.plan(&servers)).await;
    attached.settled().await;
    assert_eq!(names(&attached), ["late"]);
    echo(&attached, "late", "x").await.expect("an answer");
    becomes(&pool, 2).await;
    host.shutdown().await;
    assert!(pool.is_empty());
}

fn own(home: &Home, servers: &Value) -> Arc<Plan> {
    Arc::new(home.plan(servers))
}

#[tokio::test]
async fn an_agents_own_servers_end_with_it() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let host = host(&home, &json!({ "shared": entry(), "s": entry() }), &pool).await;
    let mine = with(entry(), "env", json!({ "WHOSE": "the agent's" }));
    let spec = || AgentSpec {
        view: ViewSpec {
            servers: Some(vec![name("shared"), name("s")]),
            // Also under a name that the host has.
            own: Some(own(&home, &json!({ "mine": entry(), "s": mine }))),
            ..ViewSpec::default()
        },
        required: vec![name("mine"), name("shared"), name("s")],
        ..AgentSpec::default()
    };
    let agent = host.agent(caller("one"), spec()).await.expect("it starts");
    assert_eq!(pool.len(), 4);
    assert_eq!(names(&agent), ["mine", "s", "shared"]);
    assert_eq!(names(&host), ["s", "shared"]);
    echo(&agent, "mine", "x").await.expect("an answer");
    // A second one with equal servers has them for itself: what one did there is not the other's.
    let twin = host.agent(caller("two"), spec()).await.expect("it starts");
    assert_eq!(pool.len(), 6);
    agent.detach().await;
    assert_eq!(pool.len(), 4);
    echo(&twin, "mine", "x").await.expect("an answer");
    // Dropped, nobody waits, and they end all the same.
    drop(twin);
    becomes(&pool, 2).await;
    host.shutdown().await;
}

#[tokio::test]
async fn an_agents_own_servers_are_not_kept_where_others_are() {
    let home = Home::new();
    let pool = ConnectionPool::keeping(std::time::Duration::from_mins(15));
    let session = with(entry(), "share", json!("session"));
    let servers = json!({ "shared": entry(), "apart": session });
    let host = host(&home, &servers, &pool).await;
    let spec = AgentSpec {
        view: ViewSpec {
            own: Some(own(&home, &json!({ "mine": entry() }))),
            ..ViewSpec::default()
        },
        required: vec![name("mine"), name("shared")],
        ..AgentSpec::default()
    };
    let agent = host.agent(caller("one"), spec).await.expect("it starts");
    echo(&agent, "mine", "x").await.expect("an answer");
    // An instance for this caller alone.
    echo(&agent, "apart", "x").await.expect("an answer");
    assert_eq!(pool.len(), 4);
    agent.detach().await;
    becomes(&pool, 2).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_view_keeps_its_own_servers_when_the_host_reloads() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let host = host(&home, &json!({ "shared": entry() }), &pool).await;
    let spec = AgentSpec {
        view: ViewSpec {
            own: Some(own(&home, &json!({ "mine": entry(), "shared": entry() }))),
            ..ViewSpec::default()
        },
        required: vec![name("mine"), name("shared")],
        ..AgentSpec::default()
    };
    let agent = host.agent(caller("one"), spec).await.expect("it starts");
    let before = agent.snapshot().servers.len();
    // Equal to the host's of that name, and nevertheless its own.
    assert_eq!(pool.len(), 3);
    let epoch = |agent: &toolway::Attached| agent.snapshot().catalog.revision;
    let revision = epoch(&agent);
    host.apply(home.plan(&json!({ "other": entry() }))).await;
    assert_eq!(agent.snapshot().servers.len(), before + 1);
    echo(&agent, "mine", "x")
        .await
        .expect("the same connection");
    echo(&agent, "shared", "x").await.expect("its own stays");
    assert!(epoch(&agent) >= revision);
    agent.detach().await;
    host.shutdown().await;
}

#[tokio::test]
async fn an_agent_without_what_it_requires_does_not_start_and_says_which_and_why() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let servers = json!({ "ok": entry(), "gone": { "command": "/no/such/program" } });
    let host = host(&home, &servers, &pool).await;
    let spec = AgentSpec {
        view: ViewSpec {
            own: Some(own(&home, &json!({ "mine": entry() }))),
            ..ViewSpec::default()
        },
        required: ["ok", "gone", "absent", "mine"].map(name).to_vec(),
        ..AgentSpec::default()
    };
    let refused = host.agent(caller("needy"), spec).await;
    let error = refused.map(drop).expect_err("two are not there");
    let missing: Vec<&ServerName> = error.obstacles.iter().map(|(name, _)| name).collect();
    assert_eq!(missing, [&name("gone"), &name("absent")]);
    assert_eq!(error.obstacles[1].1, ServerObstacle::Missing);
    let words = error.to_string();
    assert!(
        words.starts_with("the agent `needy` does not start: "),
        "{words}"
    );
    assert!(words.contains("`gone` failed: "), "{words}");
    assert!(
        words.ends_with("its server `absent` is not configured"),
        "{words}"
    );
    assert_eq!(pool.len(), 2, "what it had of its own is gone");
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_is_shared_by_nobody_has_an_instance_for_each_caller() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let servers = json!({ "s": with(entry(), "share", json!("session")) });
    let host = host(&home, &servers, &pool).await;
    let [ada, bob] = ["same", "same"].map(|it| host.attach(caller(it), AttachOptions::default()));
    for _ in 0..2 {
        echo(&ada, "s", "x").await.expect("an answer");
        echo(&bob, "s", "x").await.expect("an answer");
        echo(&host, "s", "x").await.expect("an answer");
    }
    assert_eq!(pool.len(), 3);
    drop(ada);
    becomes(&pool, 2).await;
    echo(&bob, "s", "x").await.expect("an answer");
    host.shutdown().await;
    drop(bob);
    becomes(&pool, 0).await;
}

#[tokio::test]
async fn callers_with_other_roots_do_not_share_a_server_that_asks_for_roots() {
    use toolway::Root;
    let root = |place: &str| {
        let root = Root::directory(&std::path::Path::new("/work").join(place));
        Vec::from_iter(root)
    };
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let options = HostOptions {
        connections: pool.clone(),
        roots: root("host"),
        ..home.options()
    };
    let servers = json!({ "s": drama(SpokenEras::Legacy) });
    let host = Host::start(home.plan(&servers), options);
    host.settled().await;
    let attach = |place: &str| {
        let options = AttachOptions {
            roots: root(place),
            ..AttachOptions::default()
        };
        host.attach(caller(place), options)
    };
    let callers = [attach("host"), attach("x"), attach("x"), attach("y")];
    let ask = async |attached: &Attached| {
        let options = CallOptions::new(Consent::Typed);
        let outcome = attached.call(request("s", "roots", &json!({})), options);
        let outcome = outcome.await.expect("an answer");
        outcome.raw.get().to_owned()
    };
    // The first question shows that it asks.
    assert!(ask(&callers[0]).await.contains("/work/host"));
    assert_eq!(pool.len(), 1);
    for (attached, place) in callers.iter().zip(["host", "x", "x", "y"]) {
        let said = ask(attached).await;
        assert!(said.contains(&format!("/work/{place}")), "{place}: {said}");
    }
    assert_eq!(pool.len(), 3, "equal roots share");
    drop(callers);
    becomes(&pool, 1).await;
    host.shutdown().await;
}
