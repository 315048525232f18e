//! Servers that rest when nobody uses them, and are woken when somebody does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use toolway::{
    CallOptions, ConnectionPool, Consent, Host, HostEvent, HostOptions, InProcessServer, ViewSpec,
};
use toolway_types::ConnectionState;

use crate::support::*;

/// How long servers of these tests may go unused.
const IDLE: Duration = Duration::from_secs(60);
/// Time enough to be seen unused for that long.
const LONG: Duration = Duration::from_secs(75);

/// How often a server was started, and how many of it run.
#[derive(Default, Clone)]
struct Starts {
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
    fn all(&self) -> usize {
        self.all.load(Ordering::SeqCst)
    }

    fn running(&self) -> usize {
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

fn counted(server: InProcessServer) -> (InProcessServer, Starts) {
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
    tokio::time::sleep(IDLE - Duration::from_secs(1)).await;
    assert!(!shown(&host, "s").is_resting());
    tokio::time::sleep(LONG - IDLE).await;
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
