//! What is remembered, for how long, and by how many writers.

use std::fs;

use toolway_files::state_file::now;
use toolway_testkit::ScannedFolder;

use super::{NeedsAuthMemory, id};

#[tokio::test]
async fn a_server_is_remembered_for_a_quarter_of_an_hour_by_all() {
    let home = ScannedFolder::new();
    let path = home.path().join("state/needs-auth.json");
    let memory = NeedsAuthMemory::new(&path);
    assert_eq!(memory.since("a", "d").await, None);
    memory.remember("a", "d").await;
    memory.remember("b", "d").await;
    let other = NeedsAuthMemory::new(&path);
    assert!(other.since("a", "d").await.is_some());
    assert_eq!(other.since("a", "changed").await, None, "another server");
    other.forget("a", "d").await;
    assert_eq!(memory.since("a", "d").await, None);
    assert!(memory.since("b", "d").await.is_some());

    // Time passes: the line becomes older, or comes from a clock that was set back.
    for (since, is_known) in [
        (now() - 14 * 60, true),
        (now() - 16 * 60, false),
        (now() + 3600, false),
        (0, false),
        (u64::MAX, false),
    ] {
        let line =
            serde_json::json!({ "servers": { id("b", "d"): { "server": "b", "since": since } } });
        fs::write(&path, line.to_string()).unwrap();
        assert_eq!(memory.since("b", "d").await.is_some(), is_known, "{since}");
    }
}

#[tokio::test]
async fn a_damaged_file_says_nothing_and_is_replaced() {
    let home = ScannedFolder::new();
    let path = home.path().join("needs-auth.json");
    for damaged in ["", "{", "[]", "{\"servers\": 1}"] {
        fs::write(&path, damaged).unwrap();
        let memory = NeedsAuthMemory::new(&path);
        assert_eq!(memory.since("a", "d").await, None);
        memory.remember("a", "d").await;
        assert!(memory.since("a", "d").await.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_take_turns_and_the_file_stays_small() {
    let home = ScannedFolder::new();
    let memory = NeedsAuthMemory::new(home.path().join("needs-auth.json"));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let memory = memory.clone();
        writers.spawn(async move {
            for number in 0..10 {
                memory.remember(&format!("{writer}-{number}"), "d").await;
            }
        });
    }
    writers.join_all().await;
    for writer in 0..8 {
        for number in 0..10 {
            let server = format!("{writer}-{number}");
            assert!(memory.since(&server, "d").await.is_some(), "{server}");
        }
    }
}
