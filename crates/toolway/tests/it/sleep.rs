//! The machine sleeps and wakes, or the program is stopped and goes on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolway::{Clock, ClockReading, Host, HostEvent, HostOptions, InProcessServer, RetryFirst};
use toolway_types::ConnectionState;

use crate::support::*;

/// Clocks that the test sets.
struct Hands(Mutex<ClockReading>);

impl Hands {
    fn new() -> Arc<Self> {
        let start = Duration::from_secs(1_000);
        Arc::new(Self(Mutex::new(ClockReading {
            boot: start,
            awake: start,
        })))
    }

    /// The machine sleeps for an hour.
    fn sleep(&self) {
        self.0.lock().expect("no panic").boot += Duration::from_hours(1);
    }

    /// The program is stopped for a minute.
    fn stop(&self) {
        let mut reading = self.0.lock().expect("no panic");
        reading.boot += Duration::from_mins(1);
        reading.awake += Duration::from_mins(1);
    }
}

impl Clock for Hands {
    fn read(&self) -> ClockReading {
        *self.0.lock().expect("no panic")
    }
}

fn start(home: &Home, hands: &Arc<Hands>, servers: Vec<(&str, InProcessServer)>) -> Host {
    let options = HostOptions {
        in_process: servers
            .into_iter()
            .map(|(server, object)| (name(server), object))
            .collect(),
        clock: Arc::clone(hands) as Arc<dyn Clock>,
        retry_first: RetryFirst::Backoff,
        ..home.options()
    };
    Host::start(home.plan(&json!({})), options)
}

/// A server that counts its handshakes and answers nothing while it is deaf.
fn hard_of_hearing(
    answers: fn(&serde_json::Value) -> Reply,
) -> (InProcessServer, Arc<AtomicBool>, Arc<AtomicUsize>) {
    let (deaf, starts) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let (is_deaf, counted) = (Arc::clone(&deaf), Arc::clone(&starts));
    let server: InProcessServer = Arc::new(move |end| {
        counted.fetch_add(1, Ordering::SeqCst);
        // A new connection hears again.
        is_deaf.store(false, Ordering::SeqCst);
        let is_deaf = Arc::clone(&is_deaf);
        scripted(move |message, _| {
            if is_deaf.load(Ordering::SeqCst) {
                return Reply::Silence;
            }
            answers(message)
        })(end)
    });
    (server, deaf, starts)
}

#[tokio::test(start_paused = true)]
async fn rel_13_after_a_sleep_the_living_stay_and_the_dead_come_back_at_once() {
    for doze in [Hands::sleep, Hands::stop] {
        let home = Home::new();
        let hands = Hands::new();
        let (old, old_deaf, old_starts) = hard_of_hearing(legacy);
        let (new, new_deaf, new_starts) = hard_of_hearing(modern);
        let (well, _, well_starts) = hard_of_hearing(legacy);
        let (fit, _, fit_starts) = hard_of_hearing(modern);
        let servers = vec![("old", old), ("new", new), ("well", well), ("fit", fit)];
        let host = start(&home, &hands, servers);
        host.settled().await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        let before = host.snapshot();

        old_deaf.store(true, Ordering::SeqCst);
        new_deaf.store(true, Ordering::SeqCst);
        doze(&hands);
        let started = Instant::now();
        let mut snapshots = host.watch();
        let back = snapshots.wait_for(|snapshot| {
            snapshot.servers.iter().all(|server| !server.is_pending())
                && old_starts.load(Ordering::SeqCst) == 2
                && new_starts.load(Ordering::SeqCst) == 2
        });
        drop(back.await.expect("both come back"));
        // A look at the clocks every five seconds, and five seconds for an answer.
        assert!(
            started.elapsed() <= Duration::from_secs(10),
            "{:?}",
            started.elapsed()
        );
        assert_eq!(well_starts.load(Ordering::SeqCst), 1, "it answered");
        assert_eq!(fit_starts.load(Ordering::SeqCst), 1, "it answered");
        assert!(host.snapshot().catalog.revision > before.catalog.revision);
        for server in ["old", "new", "well", "fit"] {
            echo(&host, server, "x").await.expect("an answer");
        }
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn rel_13_a_sleep_ends_the_wait_and_gives_a_failed_server_another_chance() {
    let home = Home::new();
    let hands = Hands::new();
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let server = scripted(move |message, _| {
        if is_up.load(Ordering::SeqCst) {
            legacy(message)
        } else {
            Reply::Gone
        }
    });
    let host = start(&home, &hands, vec![("away", server)]);
    // While it waits for the last attempt, which is at least eight seconds away.
    let mut snapshots = host.watch();
    let last = ConnectionState::Pending { attempt: 5 };
    let waiting = snapshots.wait_for(|snapshot| snapshot.servers[0].state == last);
    drop(waiting.await.expect("the host runs"));
    let mut events = host.subscribe();
    hands.sleep();
    let started = Instant::now();
    let first = ConnectionState::Pending { attempt: 1 };
    loop {
        let event = events.recv().await.expect("the host runs");
        if matches!(event, HostEvent::StateChanged { to, .. } if to == first) {
            break;
        }
    }
    assert!(
        started.elapsed() <= Duration::from_secs(5),
        "at the next look"
    );

    host.settled().await;
    assert!(matches!(
        shown(&host, "away").state,
        ConnectionState::Failed(_)
    ));
    // Failed for good, but the network may be another one now.
    up.store(true, Ordering::SeqCst);
    hands.sleep();
    let back = snapshots.wait_for(|snapshot| snapshot.catalog.tools().next().is_some());
    drop(back.await.expect("it is tried again"));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn time_that_merely_passes_wakes_nobody() {
    let home = Home::new();
    let hands = Hands::new();
    let (server, deaf, starts) = hard_of_hearing(legacy);
    let host = start(&home, &hands, vec![("old", server)]);
    host.settled().await;
    deaf.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(starts.load(Ordering::SeqCst), 1);
    host.shutdown().await;
}
