//! Taking turns among tasks and processes, and hearing of each other.

use std::time::Duration;

use toolway_testkit::ScannedFolder;

use super::{child, file_vault, login};
use crate::vault::VaultError;

/// Long enough for a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn processes_take_turns_and_lose_nothing() {
    let home = ScannedFolder::new();
    let children: Vec<_> = (0..6)
        .map(|_| child::start(home.path(), None, "file;count a 10"))
        .collect();
    for child in children {
        assert_eq!(child.until_its_end().await, ["counted"]);
    }
    let vault = file_vault(home.path());
    assert_eq!(vault.read(&login("a")).await.unwrap(), Some("60".into()));
}

#[tokio::test]
async fn a_holder_is_waited_for_and_its_death_frees_the_key() {
    let home = ScannedFolder::new();
    let mut holder = child::start(home.path(), None, "file;hold a");
    assert_eq!(holder.says().await.as_deref(), Some("held"));
    let (vault, key) = (file_vault(home.path()), login("a"));
    for _ in 0..3 {
        let short = vault.lock_within(&key, Duration::from_millis(50));
        let error = short.await.unwrap_err();
        assert!(matches!(error, VaultError::Busy { .. }), "{error}");
    }
    // Another key is free.
    let other = vault.lock(&login("b")).await.unwrap();
    drop(other);
    let waiting = vault.lock_within(&key, PATIENCE);
    let killing = async {
        // The other side of the lock may be told before or while it is waited for.
        tokio::task::yield_now().await;
        holder.child.kill().await.unwrap();
    };
    let (guard, ()) = tokio::join!(waiting, killing);
    drop(guard.unwrap());
}

#[tokio::test]
async fn one_who_gave_up_holds_nothing() {
    let home = ScannedFolder::new();
    let mut holder = child::start(home.path(), None, "file;hold a");
    assert_eq!(holder.says().await.as_deref(), Some("held"));
    let (vault, key) = (file_vault(home.path()), login("a"));
    let short = vault.lock_within(&key, Duration::from_millis(50));
    assert!(short.await.is_err());
    holder.child.kill().await.unwrap();
    // Its thread gets the lock now and must give it back: another vault is another process to
    // the kernel.
    let other = file_vault(home.path());
    drop(other.lock_within(&login("a"), PATIENCE).await.unwrap());
    drop(vault.lock_within(&login("a"), PATIENCE).await.unwrap());
}

#[tokio::test]
async fn tasks_get_a_key_in_the_order_of_asking() {
    let home = ScannedFolder::new();
    let vault = file_vault(home.path());
    let first = vault.lock(&login("a")).await.unwrap();
    let order = std::sync::Mutex::new(Vec::new());
    let one = async {
        let _guard = vault.lock(&login("a")).await.unwrap();
        order.lock().unwrap().push(1);
    };
    let two = async {
        let _guard = vault.lock(&login("a")).await.unwrap();
        order.lock().unwrap().push(2);
    };
    let three = async {
        drop(first);
        let _guard = vault.lock(&login("a")).await.unwrap();
        order.lock().unwrap().push(3);
    };
    tokio::join!(biased; one, two, three);
    assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
}

#[tokio::test]
async fn what_another_process_saves_is_heard() {
    let home = ScannedFolder::new();
    let vault = file_vault(home.path());
    let mut changes = vault.changes();
    let other = child::start(home.path(), None, "file;write a 1");
    tokio::time::timeout(PATIENCE, changes.changed())
        .await
        .unwrap()
        .unwrap();
    // The list is written last, so what it tells of is there.
    assert_eq!(vault.read(&login("a")).await.unwrap(), Some("1".into()));
    assert_eq!(other.until_its_end().await, ["written"]);
    changes.mark_unchanged();
    vault.remove(&login("a")).await.unwrap();
    tokio::time::timeout(PATIENCE, changes.changed())
        .await
        .unwrap()
        .unwrap();
}
