//! Servers that rest when nobody uses them, and are woken when somebody does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use toolway::toolway_rows::StateRow;
use toolway::{
    AgentSpec, AttachOptions, CallError, CallOptions, Caller, CallerKind, CompletionReference,
    ConnectionPool, Consent, Host, HostEvent, HostOptions, InProcessServer, LogLevel, LogNews,
    PermissionAnswer, PermissionQuestion, Prompter, ServerSnapshot, ToolRequest, ToolTarget,
    ViewSpec,
};
use toolway_testkit::{Script, ScriptedServer};
use toolway_types::ConnectionState;

use crate::support::*;
use crate::{http, offered};

/// How long servers of these tests may go unused.
const IDLE: Duration = Duration::from_mins(1);
/// Not long enough to rest.
const SHORT: Duration = Duration::from_secs(40);
/// Time enough to be seen unused for as long as servers may be.
const LONG: Duration = Duration::from_secs(75);

/// How often a server was started, and how many of it run.
#[derive(Default, Clone)]
pub(crate) struct Starts {
    all: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
}

struct Runs(Arc<AtomicUsize>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Starts {
    pub(crate) fn all(&self) -> usize {
        self.all.load(Ordering::SeqCst)
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    fn of(&self, server: InProcessServer) -> InProcessServer {
        let starts = self.clone();
        Arc::new(move |end| {
            starts.all.fetch_add(1, Ordering::SeqCst);
            starts.running.fetch_add(1, Ordering::SeqCst);
            let runs = Runs(Arc::clone(&starts.running));
            let serving = server(end);
            Box::pin(async move {
                let _runs = runs;
                serving.await;
            })
        })
    }
}

pub(crate) fn counted(server: InProcessServer) -> (InProcessServer, Starts) {
    let starts = Starts::default();
    (starts.of(server), starts)
}

fn resting_host<const N: usize>(home: &Home, servers: [(&str, InProcessServer); N]) -> Host {
    let in_process = servers.map(|(server, object)| (name(server), object));
    let options = HostOptions {
        in_process: in_process.into(),
        rest_after: Some(IDLE),
        ..home.options()
    };
    Host::start(home.plan(&json!({})), options)
}

fn tools(host: &Host) -> Vec<String> {
    let snapshot = host.snapshot();
    snapshot
        .catalog
        .tools()
        .map(|tool| tool.name.clone())
        .collect()
}

fn typed() -> CallOptions {
    CallOptions::new(Consent::Typed)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_nobody_uses_rests_and_is_offered_all_the_same() {
    let home = Home::new();
    let (server, starts) = counted(legacy_server());
    let host = resting_host(&home, [("s", server)]);
    host.settled().await;
    let offered = tools(&host);
    let mut events = host.subscribe();
    let counts = shown(&host, "s").counts;
    tokio::time::sleep(SHORT).await;
    assert!(!shown(&host, "s").is_resting());
    tokio::time::sleep(SHORT).await;
    let resting = shown(&host, "s");
    assert!(resting.is_resting());
    assert_eq!(resting.state, ConnectionState::Pending { attempt: 1 });
    assert!(!resting.is_pending(), "nothing is on its way");
    assert_eq!(resting.counts, counts);
    assert_eq!(starts.running(), 0);
    assert_eq!(tools(&host), offered);
    let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    assert!(
        matches!(
            &*told,
            [HostEvent::StateChanged {
                to: ConnectionState::Pending { .. },
                ..
            }]
        ),
        "nothing that is offered changed: {told:?}"
    );
    // Neither of these waits for it.
    host.settled().await;
    host.ready("s").await;

    let outcome = host.call(request("s", "echo", "hello"), typed()).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(matches!(
        shown(&host, "s").state,
        ConnectionState::Connected(_)
    ));
    assert_eq!((starts.all(), starts.running()), (2, 1));
    tokio::time::sleep(LONG).await;
    assert!(shown(&host, "s").is_resting(), "it rests again");
    host.shutdown().await;
}

async fn rests(host: &Host, server: &str) {
    tokio::time::sleep(LONG).await;
    assert!(
        shown(host, server).is_resting(),
        "{:?}",
        shown(host, server)
    );
}

fn is_connected(host: &Host, server: &str) -> bool {
    matches!(shown(host, server).state, ConnectionState::Connected(_))
}

#[tokio::test(start_paused = true)]
async fn nothing_rests_where_nobody_says_so() {
    let home = Home::new();
    let host = home.host([("s", legacy_server())]);
    host.settled().await;
    tokio::time::sleep(Duration::from_hours(24)).await;
    assert!(is_connected(&host, "s"));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_in_flight_keeps_its_server_awake() {
    let home = Home::new();
    let host = resting_host(&home, [("s", legacy_server())]);
    host.settled().await;
    let options = CallOptions {
        timeout: Some(Duration::from_hours(1)),
        ..typed()
    };
    let call = host.start_call(request("s", "mute", ""), options);
    let call = call.expect("there is room");
    tokio::time::sleep(3 * LONG).await;
    assert!(is_connected(&host, "s"));
    assert!(host.cancel(call.id));
    rests(&host, "s").await;
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_use_keeps_a_server_awake_for_its_time() {
    let home = Home::new();
    let (server, starts) = counted(modern_server());
    let host = resting_host(&home, [("s", server)]);
    host.settled().await;
    for _ in 0..5 {
        tokio::time::sleep(SHORT).await;
        echo(&host, "s", "x").await.expect("an answer");
    }
    assert_eq!(starts.all(), 1);
    rests(&host, "s").await;
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_followed_resource_keeps_its_server_awake() {
    let home = Home::new();
    let (server, _) = offered::library();
    let host = resting_host(&home, [("s", server)]);
    host.settled().await;
    rests(&host, "s").await;
    let followed = host.subscribe_resource(&name("s"), "note://1").await;
    let followed = followed.expect("it is woken, and agrees");
    tokio::time::sleep(3 * LONG).await;
    assert!(is_connected(&host, "s"));
    drop(followed);
    rests(&host, "s").await;
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn callers_that_come_together_wake_a_server_once() {
    let home = Home::new();
    let (server, starts) = counted(legacy_server());
    let host = resting_host(&home, [("s", server)]);
    host.settled().await;
    for round in 2..5 {
        rests(&host, "s").await;
        let clients: Vec<_> = (0..10)
            .map(|_| {
                host.attach(
                    Caller::new(CallerKind::Client, "c"),
                    AttachOptions::default(),
                )
            })
            .collect();
        let calls = clients
            .iter()
            .map(|it| it.call(request("s", "echo", "x"), typed()));
        for outcome in join_all(calls).await {
            outcome.expect("an answer");
        }
        assert_eq!(starts.all(), round);
    }
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn whatever_is_asked_of_a_server_that_rests_wakes_it() {
    let home = Home::new();
    let (library, _) = offered::library();
    let host = resting_host(&home, [("books", library), ("tools", legacy_server())]);
    host.settled().await;
    let books = &name("books");
    let exposed = |tool: &str, arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        ToolRequest::new(ToolTarget::Exposed(tool.to_owned()), arguments)
    };
    rests(&host, "books").await;
    rests(&host, "tools").await;

    let called = host
        .call(exposed("mcp__tools__echo", json!({})), typed())
        .await;
    called.expect("a call by the name that models see");
    rests(&host, "tools").await;
    let called = host
        .call(exposed("mcp__tools__gone", json!({})), typed())
        .await;
    assert!(
        matches!(called, Err(CallError::Unknown { .. })),
        "{called:?}"
    );
    assert!(
        is_connected(&host, "tools"),
        "a name that begins with its own"
    );
    rests(&host, "tools").await;
    let both = vec![request("tools", "echo", "1"), request("tools", "echo", "2")];
    for outcome in host.call_all(both, typed()).await {
        outcome.expect("a batch");
    }
    rests(&host, "tools").await;
    let call = host
        .start_call(request("tools", "echo", ""), typed())
        .expect("room");
    let called = host.collect(call.id).await.expect("it ended");
    called.expect("a call in the background");

    let read = host.read_resource(books, "note://1").await;
    read.expect("a resource");
    rests(&host, "books").await;
    let read = exposed(
        "ReadMcpResource",
        json!({ "server": "books", "uri": "note://1" }),
    );
    let read = host.call(read, typed()).await.expect("an answer");
    assert!(!read.is_error, "{read:?}");
    rests(&host, "books").await;
    let prompt = host
        .get_prompt(books, "about", serde_json::Map::new())
        .await;
    prompt.expect("a prompt");
    rests(&host, "books").await;
    let reference = CompletionReference::Prompt("about".to_owned());
    let found = host
        .complete(books, &reference, "a", "", &BTreeMap::new())
        .await;
    assert_eq!(found.expect("a completion").values.len(), 1);
    rests(&host, "books").await;
    let skills = host.skills(books).await.expect("a plain one");
    assert_eq!(skills.skills.len(), 1);
    rests(&host, "books").await;
    let other = host.pass_on_other(books, "made/up", None, &typed()).await;
    assert!(other.is_err(), "it does not know it: {other:?}");
    assert!(is_connected(&host, "books"));
    rests(&host, "books").await;
    let told = host
        .pass_on_notice(books, "notifications/made/up", None, &typed())
        .await;
    told.expect("a notification");
    rests(&host, "books").await;
    host.wake(&[name("books")]).await;
    assert!(!shown(&host, "books").is_resting());
    host.ready("books").await;
    assert!(is_connected(&host, "books"));
    assert!(shown(&host, "tools").is_resting(), "it was not named");
    host.wake(&[]).await;
    host.settled().await;
    assert!(is_connected(&host, "tools"));
    rests(&host, "tools").await;
    let state = host.reconnect("tools").await.expect("a known server");
    assert!(matches!(state, ConnectionState::Connected(_)), "{state:?}");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_changed_while_a_server_rested_is_announced_and_counts() {
    let home = Home::new();
    let starts = Starts::default();
    let seen = starts.clone();
    let server = scripted(move |message, _| match message["method"].as_str() {
        Some("tools/list") if seen.all() > 1 => {
            Reply::Result(json!({ "tools": [tool("echo"), tool("new")] }))
        }
        _ => legacy(message),
    });
    let host = resting_host(&home, [("s", starts.of(server))]);
    host.settled().await;
    rests(&host, "s").await;
    assert_eq!(tools(&host), ["mcp__s__echo", "mcp__s__mute"]);
    let mut events = host.subscribe();
    // It does not have it any more: nothing is sent by what is remembered.
    let gone = host.call(request("s", "mute", ""), typed()).await;
    assert!(matches!(gone, Err(CallError::Unknown { .. })), "{gone:?}");
    assert_eq!(tools(&host), ["mcp__s__echo", "mcp__s__new"]);
    let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    let is_told = |event: &HostEvent| matches!(event, HostEvent::CatalogChanged { .. });
    assert!(told.iter().any(is_told), "{told:?}");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_two_hosts_share_ends_when_it_rests_in_both() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let (server, starts) = counted(legacy_server());
    let host = || {
        let options = HostOptions {
            in_process: vec![(name("s"), Arc::clone(&server))],
            connections: pool.clone(),
            rest_after: Some(IDLE),
            ..home.options()
        };
        Host::start(home.plan(&json!({})), options)
    };
    let (one, other) = (host(), host());
    one.settled().await;
    other.settled().await;
    tokio::time::sleep(SHORT).await;
    echo(&other, "s", "x").await.expect("an answer");
    tokio::time::sleep(SHORT).await;
    assert!(shown(&one, "s").is_resting());
    assert!(is_connected(&other, "s"));
    assert_eq!((starts.all(), starts.running()), (1, 1));
    rests(&other, "s").await;
    assert_eq!(starts.running(), 0);
    assert!(pool.is_empty());
    for host in [&one, &other] {
        echo(host, "s", "x").await.expect("an answer");
    }
    assert_eq!((starts.all(), starts.running()), (2, 1));
    rests(&one, "s").await;
    one.shutdown().await;
    other.shutdown().await;
    assert!(pool.is_empty());
    assert_eq!(starts.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn views_rest_by_themselves_and_leave_nothing_behind() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let (server, starts) = counted(legacy_server());
    let options = HostOptions {
        in_process: vec![(name("s"), server), (name("t"), legacy_server())],
        connections: pool.clone(),
        rest_after: Some(IDLE),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    rests(&host, "s").await;
    let view = host.view(ViewSpec::default()).await;
    view.settled().await;
    assert_eq!(starts.all(), 2, "nothing is kept of it, so the view asks");
    assert!(shown(&host, "s").is_resting());
    tokio::time::sleep(LONG).await;
    let is_resting = || {
        view.snapshot()
            .server("s")
            .is_some_and(ServerSnapshot::is_resting)
    };
    assert!(is_resting());
    assert!(pool.is_empty());
    view.wake(&[name("s")]).await;
    view.settled().await;
    assert!(!is_resting());
    let only_t = ViewSpec {
        servers: Some(vec![name("t")]),
        ..ViewSpec::default()
    };
    host.change_view(&view, only_t).await;
    tokio::time::sleep(SHORT).await;
    assert_eq!(starts.running(), 0, "nobody sees it any more");
    drop(view);
    host.shutdown().await;
    assert!(pool.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_entry_says_how_long_its_server_may_be_idle() {
    let home = Home::new();
    let servers = |idle: Value| {
        home.plan(&json!({
            "usual": { "type": "sdk" },
            "busy": { "type": "sdk", "idle": "never" },
            "said": { "type": "sdk", "idle": idle },
        }))
    };
    let (said, starts) = counted(legacy_server());
    let options = HostOptions {
        in_process: vec![
            (name("usual"), legacy_server()),
            (name("busy"), legacy_server()),
            (name("said"), said),
        ],
        rest_after: Some(IDLE),
        ..home.options()
    };
    let host = Host::start(servers(json!(600)), options);
    host.settled().await;
    rests(&host, "usual").await;
    assert!(is_connected(&host, "said"));
    // Nothing is connected anew because of another time.
    let changes = host.apply(servers(json!(30))).await;
    assert_eq!(changes.kept.len(), 3, "{changes:?}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(shown(&host, "said").is_resting());
    assert_eq!(starts.all(), 1);
    host.apply(servers(json!("never"))).await;
    host.settled().await;
    assert!(is_connected(&host, "said"), "it may not rest any more");
    tokio::time::sleep(Duration::from_hours(24)).await;
    assert!(is_connected(&host, "said"));
    assert!(is_connected(&host, "busy"));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_definition_changes_while_it_rests_is_asked_again() {
    let home = Home::new();
    let plan = |timeout: u32| home.plan(&json!({ "s": { "type": "sdk", "timeout": timeout } }));
    let (server, starts) = counted(legacy_server());
    let options = HostOptions {
        in_process: vec![(name("s"), server)],
        rest_after: Some(IDLE),
        ..home.options()
    };
    let host = Host::start(plan(5000), options);
    host.settled().await;
    rests(&host, "s").await;
    host.apply(plan(5000)).await;
    assert!(shown(&host, "s").is_resting(), "it is the same");
    let changes = host.apply(plan(6000)).await;
    assert_eq!(changes.replaced, [name("s")]);
    host.settled().await;
    assert!(is_connected(&host, "s"));
    assert_eq!(starts.all(), 2);
    rests(&host, "s").await;
    host.apply(home.plan(&json!({ "s": { "type": "sdk", "disabled": true } })))
        .await;
    let off = shown(&host, "s");
    assert!(!off.is_resting());
    assert_eq!(off.state.as_str(), "disabled");
    assert!(tools(&host).is_empty());
    host.apply(plan(6000)).await;
    host.settled().await;
    echo(&host, "s", "x").await.expect("it is back");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_wake_has_failed_and_is_tried_again_by_a_later_call() {
    let home = Home::new();
    let is_broken = Arc::new(AtomicBool::new(false));
    let broken = Arc::clone(&is_broken);
    let server = scripted(move |message, _| {
        if broken.load(Ordering::SeqCst) {
            Reply::Gone
        } else {
            legacy(message)
        }
    });
    let host = resting_host(&home, [("s", server)]);
    host.settled().await;
    rests(&host, "s").await;
    is_broken.store(true, Ordering::SeqCst);
    let outcome = echo(&host, "s", "x").await;
    assert!(
        matches!(outcome, Err(CallError::Unavailable { .. })),
        "{outcome:?}"
    );
    failure(&host, "s");
    assert!(!shown(&host, "s").is_resting());
    is_broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(SHORT).await;
    echo(&host, "s", "x").await.expect("tried once more");
    rests(&host, "s").await;
    host.shutdown().await;
}

/// Says yes after longer than a server may be idle.
struct Ponders;

impl Prompter for Ponders {
    fn ask<'a>(&'a self, _: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async {
            tokio::time::sleep(2 * LONG).await;
            PermissionAnswer::Yes
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_to_rest_while_a_person_thinks_is_woken_by_their_yes() {
    let home = Home::new();
    let (server, starts) = counted(legacy_server());
    let (library, _) = offered::library();
    let options = HostOptions {
        in_process: vec![(name("s"), server), (name("books"), library)],
        prompter: Some(Arc::new(Ponders)),
        rest_after: Some(IDLE),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    let asked = CallOptions::new(Consent::Prompt);
    let outcome = host.call(request("s", "echo", "x"), asked.clone()).await;
    assert_eq!(text_of(&outcome.expect("an answer")), "x");
    assert_eq!(starts.all(), 2);
    host.wake(&[]).await;
    host.settled().await;
    let read = host
        .read_resource_as(&name("books"), "note://9", &asked)
        .await;
    read.expect("a resource");
    host.wake(&[]).await;
    host.settled().await;
    let followed = host
        .subscribe_resource_as(&name("books"), "note://9", &asked)
        .await;
    followed.expect("a subscription");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn who_listens_to_a_log_hears_it_again_when_the_server_is_awake() {
    let home = Home::new();
    let server = scripted(|message, speaker| {
        if message["method"] == "tools/call" {
            let params = json!({ "level": "info", "data": "called" });
            speaker.say(&json!({
                "jsonrpc": "2.0", "method": "notifications/message", "params": params,
            }));
        }
        legacy(message)
    });
    let host = resting_host(&home, [("s", server)]);
    host.settled().await;
    let s = name("s");
    let mut early = host.logs(&s, LogLevel::Info).expect("a log");
    rests(&host, "s").await;
    assert!(
        host.hears_log(&s, &early),
        "listening keeps nothing awake, and goes on"
    );
    let mut late = host.logs(&s, LogLevel::Info).expect("a log");
    assert!(shown(&host, "s").is_resting(), "nor does it wake anything");
    echo(&host, "s", "x").await.expect("an answer");
    for stream in [&mut early, &mut late] {
        assert!(host.hears_log(&s, stream));
        assert!(matches!(stream.next().await, LogNews::Message(_)));
    }
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rows_say_that_a_server_rests_and_nothing_where_it_does_not() {
    let home = Home::new();
    let host = resting_host(&home, [("s", legacy_server())]);
    host.settled().await;
    let row = || serde_json::to_string(&StateRow::from(&shown(&host, "s"))).expect("JSON");
    assert!(!row().contains("resting"), "{}", row());
    rests(&host, "s").await;
    assert_eq!(
        row(),
        r#"{"server":"s","state":"pending","resting":true,"attempt":null,"error":null,"reason":null,"protocolVersion":null,"tools":2,"resources":0,"prompts":0}"#
    );
    let facts = shown(&host, "s").facts().cloned();
    assert_eq!(facts.expect("they are known").server_info["name"], "legacy");
    host.shutdown().await;
}

#[tokio::test]
async fn an_instance_of_a_callers_own_keeps_its_server_awake() {
    let (home, pool) = (Home::new(), ConnectionPool::default());
    let mut entry = ScriptedServer::new(Script::default()).entry();
    entry["share"] = "session".into();
    let options = HostOptions {
        connections: pool.clone(),
        rest_after: Some(IDLE),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({ "s": entry })), options);
    host.settled().await;
    let ada = host.attach(
        Caller::new(CallerKind::Agent, "ada"),
        AttachOptions::default(),
    );
    let called = ada.call(request("s", "echo", "x"), typed()).await;
    called.expect("an answer");
    assert_eq!(pool.len(), 2);
    tokio::time::pause();
    tokio::time::sleep(3 * LONG).await;
    assert!(is_connected(&host, "s"));
    assert_eq!(pool.len(), 2);
    drop(ada);
    rests(&host, "s").await;
    assert!(pool.is_empty());
    tokio::time::resume();
    host.shutdown().await;
}

#[tokio::test]
async fn of_a_hundred_servers_whose_offers_are_kept_none_is_started_before_it_is_needed() {
    let home = Home::new();
    let server = http::Server::start(|message, _| http::reply(message, legacy(message))).await;
    let entries = |timeout: u32| {
        let entry = |number: usize| {
            let url = format!("{}?n={number}", server.url);
            let entry = json!({ "type": "http", "url": url, "timeout": timeout });
            (format!("s{number:02}"), entry)
        };
        json!((0..100).map(entry).collect::<serde_json::Map<_, _>>())
    };
    let options = |rest_after| HostOptions {
        catalog_memory: Some(home.path().join("catalogue")),
        rest_after,
        ..home.options()
    };
    let first = Host::start(home.plan(&entries(5000)), options(None));
    first.settled().await;
    assert_eq!(tools(&first).len(), 200);
    first.shutdown().await;
    let before = server.methods().len();

    let host = Host::start(home.plan(&entries(5000)), options(Some(IDLE)));
    host.settled().await;
    assert_eq!(tools(&host).len(), 200);
    let snapshot = host.snapshot();
    assert!(snapshot.servers.iter().all(|server| server.is_resting()));
    // What these servers offer is known, whatever else their entries say.
    let changes = host.apply(home.plan(&entries(6000))).await;
    assert_eq!(changes.replaced.len(), 100);
    assert!(shown(&host, "s00").is_resting());
    let view = host.view(ViewSpec::default()).await;
    view.settled().await;
    assert_eq!(
        server.methods().len(),
        before,
        "nobody was asked for anything"
    );
    let target = ToolTarget::Exposed("mcp__s07__echo".to_owned());
    let outcome = host
        .call(ToolRequest::new(target, serde_json::Map::new()), typed())
        .await;
    outcome.expect("an answer");
    let lists = |method: &&String| *method == "tools/list";
    let since = server.methods().split_off(before);
    assert_eq!(since.iter().filter(lists).count(), 1, "{since:?}");
    let spec = AgentSpec {
        required: vec![name("s08")],
        ..AgentSpec::default()
    };
    let agent = host.agent(Caller::new(CallerKind::Agent, "a"), spec).await;
    agent.expect("what it requires is woken").detach().await;
    let mut moved = entries(6000);
    moved["s09"]["url"] = format!("{}?moved", server.url).into();
    host.apply(home.plan(&moved)).await;
    host.settled().await;
    assert!(is_connected(&host, "s09"), "nothing is known of it");
    let awake = host.snapshot();
    let awake = awake.servers.iter().filter(|server| !server.is_resting());
    assert_eq!(awake.count(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn what_a_server_listed_is_kept_when_it_goes_to_rest() {
    let home = Home::new();
    let server = http::Server::start(|message, _| http::reply(message, legacy(message))).await;
    let plan = || home.plan(&json!({ "s": { "type": "http", "url": server.url } }));
    let options = || HostOptions {
        catalog_memory: Some(home.path().join("catalogue")),
        rest_after: Some(IDLE),
        ..home.options()
    };
    let host = Host::start(plan(), options());
    host.settled().await;
    assert!(is_connected(&host, "s"), "nothing is known of it yet");
    tokio::time::pause();
    rests(&host, "s").await;
    // Time goes on by itself only when no file is being written.
    tokio::time::sleep(SHORT).await;
    tokio::time::resume();
    let before = server.methods().len();
    let view = host.view(ViewSpec::default()).await;
    view.settled().await;
    let next = Host::start(plan(), options());
    next.settled().await;
    for snapshot in [view.snapshot(), next.snapshot()] {
        assert!(snapshot.server("s").is_some_and(ServerSnapshot::is_resting));
        assert_eq!(snapshot.catalog.tools().count(), 2);
    }
    assert_eq!(server.methods().len(), before);
    next.shutdown().await;
    host.shutdown().await;
}
