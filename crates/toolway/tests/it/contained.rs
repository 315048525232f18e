//! A bug in a step of the supervisor, or in what the embedding program lends it, costs that step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use toolway::{Clock, ClockReading, Host, HostOptions};
use toolway_types::ConnectionState;

use crate::support::*;

/// A clock that panics whenever it is looked at.
#[derive(Default)]
struct Clumsy(AtomicUsize);

impl Clock for Clumsy {
    fn read(&self) -> ClockReading {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("on purpose")
    }
}

#[tokio::test(start_paused = true)]
async fn a_bug_in_the_supervisor_is_contained() {
    let home = Home::new();
    let clock = Arc::new(Clumsy::default());
    let options = HostOptions {
        in_process: vec![(name("old"), legacy_server())],
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    let looks = clock.0.load(Ordering::SeqCst);
    assert_eq!(looks, 3, "it goes on after each of them");
    echo(&host, "old", "x").await.expect("calls go on");
    let state = host.reconnect("old").await.expect("a known server");
    assert!(matches!(state, ConnectionState::Connected(_)), "{state:?}");
    assert_eq!(host.snapshot().panics, 3);
    echo(&host, "old", "x").await.expect("the new one works");
    host.shutdown().await;
}
