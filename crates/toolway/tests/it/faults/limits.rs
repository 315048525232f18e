//! A machine that runs out of something: REL-20.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use toolway_testkit::Usage;

use super::*;

/// Lowers this process's own limit on descriptors until the value is dropped.
struct FewDescriptors(Rlimit);

impl FewDescriptors {
    fn at_most(limit: usize) -> Self {
        let before = getrlimit(Resource::Nofile);
        let current = u64::try_from(limit).ok();
        let lowered = Rlimit {
            current,
            maximum: before.maximum,
        };
        setrlimit(Resource::Nofile, lowered).expect("a limit can be lowered");
        Self(before)
    }
}

impl Drop for FewDescriptors {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.0).expect("and raised again");
    }
}

#[tokio::test]
async fn rel_20_without_descriptors_new_work_fails_and_old_work_goes_on() {
    let remote = ListeningServer::start(ScriptedServer::new(script("remote")), Way::Http);
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
        // One is left: not enough for a process or a connection.
        let _few = FewDescriptors::at_most(Usage::take().descriptors + 1);
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
        let outcomes = Outcomes::new();
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
