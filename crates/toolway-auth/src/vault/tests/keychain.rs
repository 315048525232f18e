//! REL-28: a keychain that works, is locked, is silent, or is not there at all.

use std::time::{Duration, Instant};

use tokio::net::UnixListener;

use toolway_testkit::ScannedFolder;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;

use super::child;
use super::secret_service::SecretService;

/// The message of a keychain that does not answer.
const SILENT: &str = "the keychain does not answer; start it anew, or set TOOLWAY_VAULT=file to \
                      do without it";

#[tokio::test]
async fn the_keychain_is_used_when_it_answers() {
    let home = ScannedFolder::new();
    let service = SecretService::start(home.path());
    let folder = home.path().join("vault");
    let steps = format!(
        "trouble;backend;write a {MARK}-1;write a {MARK}-2;write b x;read a;remove b;read b"
    );
    let said = child::start(&folder, Some(&service.address), &steps);
    assert_eq!(
        said.until_its_end().await,
        [
            "none",
            "keychain",
            "written",
            "written",
            "written",
            marked!("", "-2"),
            "true",
            "nothing"
        ]
    );
    assert_eq!(service.len(), 1);
    assert!(!folder.join("secrets").exists(), "nothing lies in a file");
    // It outlives the process, and another one finds it.
    let said = child::start(&folder, Some(&service.address), "read a");
    assert_eq!(said.until_its_end().await, [marked!("", "-2")]);
    // Without the keychain it is an error, and not as if there had been nothing.
    let said = child::start(&folder, Some(&service.address), "file;read a");
    assert_eq!(
        said.until_its_end().await,
        [
            "the login of `a` is in the keychain: the keychain is not used, because \
          TOOLWAY_VAULT=file says so"
        ]
    );
}

#[tokio::test]
async fn plain_text_is_written_past_the_keychain_and_only_when_it_was_asked_for() {
    let home = ScannedFolder::new();
    let service = SecretService::start(home.path());
    let folder = home.path().join("vault");
    let said = child::start(&folder, Some(&service.address), "write a 1;write b 2");
    assert_eq!(said.until_its_end().await, ["written", "written"]);
    let steps = marked!("plain;backend;read a;write a ", "-3;read a;read b");
    let said = child::start(&folder, Some(&service.address), steps);
    assert_eq!(
        said.until_its_end().await,
        ["plain-file", "1", "written", marked!("", "-3"), "2"]
    );
    assert_eq!(service.len(), 1, "it lies in one place only");
    // A process without that option moves it back into the keychain.
    let said = child::start(
        &folder,
        Some(&service.address),
        marked!("read a;write a ", "-4;read a"),
    );
    assert_eq!(
        said.until_its_end().await,
        [marked!("", "-3"), "written", marked!("", "-4")]
    );
    assert_eq!(service.len(), 2);
    let files = std::fs::read_dir(folder.join("secrets")).unwrap();
    for file in files {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(MARK), "{text}");
    }
}

#[tokio::test]
async fn rel_28_a_silent_bus_is_given_up_and_the_file_is_used() {
    let home = ScannedFolder::new();
    let path = home.path().join("bus");
    // Accepts by its backlog, and never replies.
    let _bus = UnixListener::bind(&path).unwrap();
    let address = format!("unix:path={}", path.display());
    let folder = home.path().join("vault");
    let begun = Instant::now();
    let said = child::start(
        &folder,
        Some(&address),
        "read a;write a 1;read a;backend;trouble",
    );
    assert_eq!(
        said.until_its_end().await,
        ["nothing", "written", "1", "file-with-key", "Silent"]
    );
    // It had three seconds once, not at every step; the rest is a busy machine's.
    assert!(begun.elapsed() < Duration::from_mins(1));
    let said = child::start(&folder, Some(&address), "only;write b 1");
    assert_eq!(
        said.until_its_end().await,
        [format!(
            "the login of `b` cannot be saved: {SILENT}; or allow the encrypted file"
        )]
    );
}

#[tokio::test]
async fn rel_28_a_locked_keychain_opens_no_window() {
    let home = ScannedFolder::new();
    let service = SecretService::start(home.path());
    let folder = home.path().join("vault");
    let said = child::start(&folder, Some(&service.address), "write a 1");
    assert_eq!(said.until_its_end().await, ["written"]);
    service.set(|state| state.locked = true);
    let steps = "read a;write b 2;read b;backend;trouble";
    let said = child::start(&folder, Some(&service.address), steps);
    let said = said.until_its_end().await;
    assert!(
        said[0].starts_with("the login of `a` is in the keychain: the keychain is locked; unlock"),
        "{said:?}"
    );
    assert_eq!(said[1..], ["written", "2", "file-with-key", "Locked"]);
    service.set(|state| {
        assert_eq!(state.windows, 0);
        state.locked = false;
    });
    // What went into the file meanwhile is found there, and moves when it is saved again.
    let steps = "read a;read b;write b 3;read b";
    let said = child::start(&folder, Some(&service.address), steps);
    assert_eq!(said.until_its_end().await, ["1", "2", "written", "3"]);
    assert_eq!(service.len(), 2);
    let left = std::fs::read_dir(folder.join("secrets")).unwrap();
    let left = left.filter(|entry| entry.as_ref().unwrap().file_name().len() == 32);
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn rel_28_no_keychain_at_all() {
    let home = ScannedFolder::new();
    let nowhere = format!("unix:path={}", home.path().join("nowhere").display());
    let folder = home.path().join("vault");
    let said = child::start(&folder, Some(&nowhere), "write a 1;read a;backend;trouble");
    let said = said.until_its_end().await;
    assert_eq!(said[..3], ["written", "1", "file-with-key"]);
    assert!(said[3].starts_with("Absent"), "{said:?}");
}

#[tokio::test]
async fn rel_28_a_keychain_that_falls_silent_does_not_look_empty() {
    let home = ScannedFolder::new();
    let service = SecretService::start(home.path());
    let folder = home.path().join("vault");
    let said = child::start(&folder, Some(&service.address), "write a 1");
    assert_eq!(said.until_its_end().await, ["written"]);
    service.set(|state| state.silent = true);
    let said = child::start(&folder, Some(&service.address), "read a;write a 2;read a");
    assert_eq!(
        said.until_its_end().await,
        [
            &format!("the login of `a` is in the keychain: {SILENT}"),
            "written",
            "2"
        ]
    );
}
