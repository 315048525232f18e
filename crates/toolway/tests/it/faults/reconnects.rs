//! REL-03 with real servers: connecting again and again leaves nothing behind. (A thousand times,
//! with figures: `examples/reconnects.rs`.)

use toolway_testkit::{Usage, alone};

use super::*;

#[tokio::test]
async fn rel_03_a_hundred_reconnects_leave_memory_descriptors_and_processes_flat() {
    let name = "rel_03_a_hundred_reconnects_leave_memory_descriptors_and_processes_flat";
    // What other tests use is not counted.
    if !alone(&format!("faults::reconnects::{name}")) {
        return;
    }
    for (way, peer) in peers(&script("again")) {
        let check = LeakCheck::begin();
        let home = Home::new();
        let host = host(&home, &json!({ "again": peer.entry(&check) }));
        connected(&host, "again").await;
        let again = async |times: usize| {
            for _ in 0..times {
                let state = host.reconnect("again").await.expect("a known server");
                assert_eq!(state.as_str(), "connected", "{way}");
            }
            echoes(&host, "again").await;
            Usage::take()
        };
        // Pools and caches fill up first.
        let before = again(20).await;
        let after = again(100).await;
        assert!(
            after.resident <= before.resident + 4096,
            "{way}: {before:?}, {after:?}"
        );
        assert!(
            after.descriptors <= before.descriptors + 1,
            "{way}: {before:?}, {after:?}"
        );
        assert_eq!(after.children, before.children, "{way}");
        let processes = check.canary().processes().len();
        assert_eq!(processes, usize::from(way == "stdio"), "{way}");
        host.shutdown().await;
        drop(peer);
        check.assert_clean().await;
    }
}
