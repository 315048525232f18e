//! A machine that runs out of something: REL-20.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use toolway_testkit::alone;

use super::*;

/// Leaves this process no descriptor to open until the value is dropped.
struct NoDescriptors {
    before: Rlimit,
    /// The limit is on numbers, not on a count: whatever is free below is taken.
    _taken: Vec<File>,
}

impl NoDescriptors {
    fn left() -> Self {
        let before = getrlimit(Resource::Nofile);
        let open = || File::open("/dev/null").expect("one is left");
        let highest = std::fs::read_dir("/proc/self/fd")
            .expect("descriptors are listed")
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .max()
            .expect("some are open");
        let mut taken = vec![open()];
        while taken.last().is_some_and(|last| last.as_raw_fd() < highest) {
            taken.push(open());
        }
        let last = taken.last().map_or(highest, AsRawFd::as_raw_fd);
        let lowered = Rlimit {
            current: u64::try_from(last + 1).ok(),
            maximum: before.maximum,
        };
        setrlimit(Resource::Nofile, lowered).expect("a limit can be lowered");
        Self {
            before,
            _taken: taken,
        }
    }
}

impl Drop for NoDescriptors {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.before).expect("and raised again");
    }
}

#[tokio::test]
async fn rel_20_without_descriptors_new_work_fails_and_old_work_goes_on() {
    // Other tests would have none left either.
    if !alone("faults::limits::rel_20_without_descriptors_new_work_fails_and_old_work_goes_on") {
        return;
    }
    let remote = ListeningServer::start(
        ScriptedServer::new(script("remote")),
        ListeningTransport::Http,
    );
    let check = LeakCheck::begin();
    let home = Home::new();
    let entry = |name: &str| ScriptedServer::new(script(name)).entry_with_env([check.env()]);
    let servers = json!({ "old": entry("old"), "other": entry("other"), "remote": remote.entry() });
    let host = Host::start(home.plan(&servers), home.options());
    for server in ["old", "other", "remote"] {
        connected(&host, server).await;
        echoes(&host, server).await;
    }
    {
        // What the old process of `other` gives back is not enough for a new one.
        let _none = NoDescriptors::left();
        let refused = host.reconnect("other").await.expect("a known server");
        assert!(
            matches!(
                refused,
                ConnectionState::Failed(_) | ConnectionState::Pending { .. }
            ),
            "{refused:?}"
        );
        for _ in 0..10 {
            echoes(&host, "old").await;
        }
        // Many at once over one pooled connection: the rest fail, typed, and nothing hangs.
        let outcomes = RequestLedger::new();
        futures_util::future::join_all((0..20).map(|_| async {
            let ticket = outcomes.accept();
            let limit = Duration::from_secs(5);
            let outcome = call_within(&host, limit, "remote", "slow", json!({ "ms": 100 })).await;
            outcomes.settle(ticket, word(&outcome));
        }))
        .await;
        outcomes.assert_each_exactly_once();
        let tally = outcomes.tally();
        assert!(!tally.contains_key("timed out"), "{tally:?}");
        assert!(
            tally.contains_key("transport"),
            "no call was refused: {tally:?}"
        );
    }
    // There are descriptors again: everything recovers.
    let state = host.reconnect("other").await.expect("a known server");
    assert_eq!(state.as_str(), "connected");
    for server in ["old", "other"] {
        echoes(&host, server).await;
    }
    recovers(&host, "remote").await;
    host.shutdown().await;
    drop(remote);
    check.assert_clean().await;
}
