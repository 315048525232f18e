//! Servers that are lost come back, by themselves or when asked, and leave nothing behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast;
use tokio::time::Instant;
use toolway::{
    CallError, CallFault, CallOptions, Consent, Host, HostEvent, HostOptions, InProcessServer,
    RetryFirst,
};
use toolway_testkit::alone;
use toolway_types::{ConnectionState, FailureKind};

use crate::support::*;

/// Every state that a server goes through, as far as it was told.
pub(crate) async fn until_failed(
    events: &mut broadcast::Receiver<HostEvent>,
    server: &str,
) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let HostEvent::StateChanged { server: of, to, .. } =
            events.recv().await.expect("the host runs")
        else {
            continue;
        };
        if of.as_str() != server {
            continue;
        }
        let failed = matches!(to, ConnectionState::Failed(_));
        seen.push(match to {
            ConnectionState::Pending { attempt } => format!("pending {attempt}"),
            other => other.as_str().to_owned(),
        });
        if failed {
            return seen;
        }
    }
}

/// Connects, and ends as soon as it has been called this often.
pub(crate) fn mortal(calls: usize) -> (InProcessServer, Arc<AtomicUsize>) {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let server: InProcessServer = Arc::new(move |end| {
        counted.fetch_add(1, Ordering::SeqCst);
        let seen = AtomicUsize::new(0);
        scripted(move |message, _| match message["method"].as_str() {
            Some("tools/call") if seen.fetch_add(1, Ordering::SeqCst) == calls => Reply::Gone,
            _ => legacy(message),
        })(end)
    });
    (server, starts)
}

/// Lists its tools and ends.
fn shooting_star() -> InProcessServer {
    scripted(|message, speaker| {
        if message["method"] == "tools/list" {
            let tools = json!({ "tools": [tool("echo")] });
            speaker.say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": tools }));
            return Reply::Gone;
        }
        legacy(message)
    })
}

fn patient(home: &Home, servers: Vec<(&str, InProcessServer)>) -> Host {
    let options = HostOptions {
        in_process: servers
            .into_iter()
            .map(|(server, object)| (name(server), object))
            .collect(),
        retry_first: RetryFirst::Backoff,
        ..home.options()
    };
    Host::start(home.plan(&json!({})), options)
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_server_that_is_coming_back() {
    let (server, starts) = mortal(1);
    let home = Home::new();
    let host = home.host([("phoenix", server)]);
    echo(&host, "phoenix", "one").await.expect("an answer");
    let lost = echo(&host, "phoenix", "two").await;
    assert!(
        matches!(lost, Err(CallError::Failed(_, CallFault::Transport { .. }))),
        "{lost:?}"
    );
    let started = Instant::now();
    let outcome = echo(&host, "phoenix", "three").await.expect("an answer");
    assert_eq!(text_of(&outcome), "three");
    assert_eq!(starts.load(Ordering::SeqCst), 2, "nothing was sent twice");
    let waited = started.elapsed();
    assert!(waited >= Duration::from_millis(500) && waited <= Duration::from_secs(1));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_name_that_models_see_waits_too() {
    let (server, _) = mortal(0);
    let home = Home::new();
    let host = home.host([("phoenix", server)]);
    host.settled().await;
    let exposed = || {
        let mut request = request("phoenix", "mute", "x");
        request.target = toolway::ToolTarget::Exposed("mcp__phoenix__echo".to_owned());
        request
    };
    let options = || CallOptions::new(Consent::Typed);
    host.call(exposed(), options())
        .await
        .expect_err("it dies of it");
    let mut snapshots = host.watch();
    let pending = snapshots
        .wait_for(|snapshot| snapshot.servers[0].is_pending())
        .await;
    drop(pending.expect("it is lost"));
    let outcome = host.call(exposed(), options()).await;
    // The tool was found once the server was back; it dies of being called again.
    assert!(matches!(
        outcome,
        Err(CallError::Failed(_, CallFault::Transport { .. }))
    ));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_wait_longer_than_it_may_take() {
    let home = Home::new();
    let host = patient(&home, vec![("hung", hung_server())]);
    let limit = Duration::from_secs(4);
    let options = CallOptions {
        timeout: Some(limit),
        ..CallOptions::new(Consent::Typed)
    };
    let started = Instant::now();
    let outcome = host.call(request("hung", "echo", "x"), options).await;
    assert!(
        matches!(outcome, Err(CallError::Failed(_, CallFault::TimedOut { after, .. })) if after == limit)
    );
    assert_eq!(started.elapsed(), limit);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rel_04_a_server_that_never_gets_up_is_tried_five_times() {
    let home = Home::new();
    let dead = scripted(|_, _| Reply::Gone);
    let host = patient(&home, vec![("dead", dead)]);
    let mut events = host.subscribe();
    let started = Instant::now();
    assert_eq!(
        until_failed(&mut events, "dead").await,
        ["pending 2", "pending 3", "pending 4", "pending 5", "failed"]
    );
    let took = started.elapsed();
    assert!(
        took >= Duration::from_secs(15) && took <= Duration::from_secs(30),
        "{took:?}"
    );
    assert_eq!(failure(&host, "dead").kind, FailureKind::Closed);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rel_04_a_server_that_gets_up_and_falls_is_not_started_for_ever() {
    let home = Home::new();
    let host = home.host([("star", shooting_star()), ("old", legacy_server())]);
    let mut events = host.subscribe();
    let started = Instant::now();
    let seen = until_failed(&mut events, "star").await;
    let expected: Vec<String> = (1..=5)
        .flat_map(|attempt| ["connected".to_owned(), format!("pending {attempt}")])
        .chain(["connected".to_owned(), "failed".to_owned()])
        .collect();
    assert_eq!(seen, expected);
    assert!(started.elapsed() <= Duration::from_mins(1));
    echo(&host, "old", "x").await.expect("nobody else noticed");

    // It stays failed until somebody asks.
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(shown(&host, "star").state.as_str(), "failed");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_the_start_does_not_wait_for_what_was_there_and_fell() {
    let home = Home::new();
    let host = home.host([("star", shooting_star()), ("old", legacy_server())]);
    let started = Instant::now();
    host.settled().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    host.ready("star").await;
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rel_04_a_server_that_dies_after_ten_messages_fails_and_comes_back_when_asked() {
    let (server, starts) = mortal(10);
    let home = Home::new();
    let host = home.host([("ten", server)]);
    let mut lost = 0;
    let outcome = loop {
        match echo(&host, "ten", "x").await {
            Ok(_) => {}
            Err(CallError::Failed(_, CallFault::Transport { .. })) => lost += 1,
            Err(other) => break other,
        }
    };
    assert!(
        matches!(outcome, CallError::Unavailable { .. }),
        "{outcome:?}"
    );
    assert_eq!((lost, starts.load(Ordering::SeqCst)), (6, 6));
    let state = host.reconnect("ten").await.expect("a known server");
    assert_eq!(state.as_str(), "connected");
    echo(&host, "ten", "x").await.expect("an answer");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_stood_for_a_while_starts_a_new_count() {
    let (server, _) = mortal(0);
    let home = Home::new();
    let host = home.host([("steady", server)]);
    for _ in 0..20 {
        host.ready("steady").await;
        tokio::time::sleep(Duration::from_secs(61)).await;
        echo(&host, "steady", "x").await.expect_err("it dies of it");
        let mut snapshots = host.watch();
        let lost = snapshots
            .wait_for(|snapshot| snapshot.servers[0].is_pending())
            .await;
        let state = &lost.expect("it is lost").servers[0].state;
        assert_eq!(*state, ConnectionState::Pending { attempt: 1 });
    }
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_first_connection_fails_at_once_unless_told_otherwise() {
    let home = Home::new();
    let host = home.host([("dead", scripted(|_, _| Reply::Gone))]);
    let started = Instant::now();
    host.settled().await;
    assert_eq!(failure(&host, "dead").kind, FailureKind::Closed);
    assert_eq!(started.elapsed(), Duration::ZERO);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_get_better_is_not_tried_again() {
    let home = Home::new();
    let plan = home.plan(&json!({
        "absent": { "command": "toolway-test-no-such-program" },
        "nobody": { "type": "sdk" },
    }));
    let options = HostOptions {
        retry_first: RetryFirst::Backoff,
        ..home.options()
    };
    let host = Host::start(plan, options);
    let mut events = host.subscribe();
    assert_eq!(until_failed(&mut events, "absent").await, ["failed"]);
    host.settled().await;
    assert_eq!(failure(&host, "nobody").kind, FailureKind::Spawn);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_has_a_failed_server_tried_once_more_but_not_all_the_time() {
    let up = Arc::new(AtomicBool::new(false));
    let starts = Arc::new(AtomicUsize::new(0));
    let (is_up, counted) = (Arc::clone(&up), Arc::clone(&starts));
    let server = scripted(move |message, _| {
        if message["method"] == "server/discover" {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        if is_up.load(Ordering::SeqCst) {
            legacy(message)
        } else {
            Reply::Gone
        }
    });
    let home = Home::new();
    let host = home.host([("moody", server)]);
    host.settled().await;
    for _ in 0..10 {
        let refused = echo(&host, "moody", "x").await;
        assert!(matches!(refused, Err(CallError::Unavailable { .. })));
    }
    assert_eq!(starts.load(Ordering::SeqCst), 1, "it failed a moment ago");
    tokio::time::sleep(Duration::from_secs(31)).await;
    let calls = (0..10).map(|_| echo(&host, "moody", "x"));
    for refused in futures_util::future::join_all(calls).await {
        assert!(matches!(refused, Err(CallError::Unavailable { .. })));
    }
    assert_eq!(starts.load(Ordering::SeqCst), 2, "one attempt for all");
    up.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(31)).await;
    echo(&host, "moody", "x").await.expect("it is back");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn reconnecting_ends_the_old_session_first_and_is_shared() {
    let living = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let starts = Arc::new(AtomicUsize::new(0));
    let server = census(&living, &most, &starts);
    let home = Home::new();
    let host = home.host([("old", server)]);
    host.settled().await;
    let reconnects = (0..5).map(|_| host.reconnect("old"));
    for state in futures_util::future::join_all(reconnects).await {
        assert_eq!(state.expect("a known server").as_str(), "connected");
    }
    assert_eq!(most.load(Ordering::SeqCst), 1, "never two at a time");
    let starts = starts.load(Ordering::SeqCst);
    assert!((2..=6).contains(&starts), "{starts}");
    assert!(host.reconnect("nobody").await.is_err());
    host.shutdown().await;
    assert_eq!(living.load(Ordering::SeqCst), 0);
}

/// A server that counts how many of it live.
fn census(
    living: &Arc<AtomicUsize>,
    most: &Arc<AtomicUsize>,
    starts: &Arc<AtomicUsize>,
) -> InProcessServer {
    struct Life(Arc<AtomicUsize>);
    impl Drop for Life {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let (living, most, starts) = (Arc::clone(living), Arc::clone(most), Arc::clone(starts));
    let inner = legacy_server();
    Arc::new(move |end| {
        let now = living.fetch_add(1, Ordering::SeqCst) + 1;
        most.fetch_max(now, Ordering::SeqCst);
        starts.fetch_add(1, Ordering::SeqCst);
        let life = Life(Arc::clone(&living));
        let served = inner(end);
        Box::pin(async move {
            served.await;
            drop(life);
        })
    })
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .map(Iterator::count)
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn rel_03_a_thousand_reconnects_leave_nothing_behind() {
    // Other tests open files meanwhile.
    if !alone("healing::rel_03_a_thousand_reconnects_leave_nothing_behind") {
        return;
    }
    let living = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let starts = Arc::new(AtomicUsize::new(0));
    let home = Home::new();
    let counted = census(&living, &most, &starts);
    let host = home.host([("again", counted), ("hung", hung_server())]);
    host.settled().await;
    let files = open_files();
    for _ in 0..1000 {
        assert_eq!(
            host.reconnect("again").await.expect("known").as_str(),
            "connected"
        );
    }
    for _ in 0..1000 {
        // Half a minute of silence each.
        assert_eq!(
            host.reconnect("hung").await.expect("known").as_str(),
            "failed"
        );
    }
    assert_eq!(starts.load(Ordering::SeqCst), 1001);
    assert_eq!(
        most.load(Ordering::SeqCst),
        1,
        "each was gone before the next"
    );
    assert_eq!(open_files(), files);
    host.shutdown().await;
    assert_eq!(living.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn rel_08_one_hung_server_does_not_keep_nine_waiting() {
    let home = Home::new();
    let hung = [("a-hung".to_owned(), hung_server())];
    let fast = (0..9).map(|number| (format!("fast-{number}"), legacy_server()));
    let host = home.host_of(hung.into_iter().chain(fast));
    let started = Instant::now();
    let mut snapshots = host.watch();
    let all = snapshots.wait_for(|snapshot| snapshot.catalog.tools().count() == 18);
    drop(all.await.expect("the tools of the nine"));
    assert_eq!(started.elapsed(), Duration::ZERO);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rel_08_eighty_healthy_servers_are_there_while_twenty_bad_ones_are_trying() {
    let home = Home::new();
    // The bad ones come first, by name and so by turn.
    let bad = (0..20).map(|number| {
        let server = match number % 2 {
            0 => hung_server(),
            _ => scripted(|_, _| Reply::Gone),
        };
        (format!("a-bad-{number}"), server)
    });
    let healthy = (0..80).map(|number| (format!("healthy-{number}"), legacy_server()));
    let in_process = bad
        .chain(healthy)
        .map(|(server, object)| (name(&server), object))
        .collect();
    let options = HostOptions {
        in_process,
        retry_first: RetryFirst::Backoff,
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    let started = Instant::now();
    for number in 0..80 {
        host.ready(&format!("healthy-{number}")).await;
    }
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "{:?}",
        started.elapsed()
    );
    let snapshot = host.snapshot();
    assert_eq!(snapshot.catalog.tools().count(), 160);
    let trying = |server: &&Arc<toolway::ServerSnapshot>| server.is_pending();
    assert_eq!(snapshot.servers.iter().filter(trying).count(), 20);
    host.settled().await;
    let failed = |server: &&Arc<toolway::ServerSnapshot>| server.state.as_str() == "failed";
    assert_eq!(host.snapshot().servers.iter().filter(failed).count(), 20);
    assert_eq!(
        host.snapshot().catalog.tools().count(),
        160,
        "nobody else noticed"
    );
    host.shutdown().await;
}
