//! Many writers of one file: no change is lost, and none waits for ever.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::edit::file::take_lock;
use crate::edit::{EditError, edit};

/// Names the file a child process adds entries to.
const FILE: &str = "TOOLWAY_EDIT_TEST_FILE";
/// Names the child's entries.
const WRITER: &str = "TOOLWAY_EDIT_TEST_WRITER";
/// Says how many entries the child adds.
const COUNT: &str = "TOOLWAY_EDIT_TEST_COUNT";

const WRITERS: usize = 50;
const ADDS: usize = 20;

/// Makes `command` run [`child_writer`] of this test program, in a process of its own.
pub(super) fn as_child(command: &mut Command, file: &Path, writer: &str, count: usize) {
    command
        .args([
            "edit::tests::writers::child_writer",
            "--exact",
            "--ignored",
            "--test-threads=1",
        ])
        .env(FILE, file)
        .env(WRITER, writer)
        .env(COUNT, count.to_string())
        .stdout(Stdio::null());
}

#[test]
#[ignore = "the process that rel_17 and rel_18 start many times"]
#[expect(
    clippy::disallowed_methods,
    reason = "a test process has no other way to take arguments"
)]
fn child_writer() {
    let (Ok(file), Ok(writer), Ok(count)) = (
        std::env::var(FILE),
        std::env::var(WRITER),
        std::env::var(COUNT),
    ) else {
        return;
    };
    add_entries(Path::new(&file), &writer, count.parse().unwrap());
}

fn add_entries(file: &Path, writer: &str, count: usize) {
    for index in 0..count {
        let name = format!("{writer}-{index}");
        let done = edit(file, |document| {
            document.set(
                &["mcpServers", &name],
                &json!({"command": "true", "args": [name]}),
            )
        })
        .unwrap();
        assert!(done.changed);
    }
}

fn assert_all_there(file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.starts_with("// kept\n{"), "{}", &text[..40]);
    let value = crate::json::syntax_tree::parse(&text)
        .unwrap()
        .unwrap()
        .to_value();
    assert_eq!(value["unknown"], json!([1, 2]));
    let found: BTreeSet<String> = value["mcpServers"]
        .as_object()
        .map(|map| map.keys().cloned().collect())
        .unwrap();
    let expected: BTreeSet<String> = (0..WRITERS)
        .flat_map(|writer| (0..ADDS).map(move |index| format!("w{writer}-{index}")))
        .collect();
    assert_eq!(found, expected);
}

fn shared_file(home: &Path) -> std::path::PathBuf {
    let file = home.join("settings.json");
    fs::write(&file, "// kept\n{\n  \"unknown\": [1, 2]\n}\n").unwrap();
    file
}

#[test]
fn rel_17_fifty_threads_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let file = shared_file(home.path());
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let file = &file;
            scope.spawn(move || add_entries(file, &format!("w{writer}"), ADDS));
        }
    });
    assert_all_there(&file);
}

#[test]
fn rel_17_fifty_processes_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let file = shared_file(home.path());
    let children: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            as_child(&mut command, &file, &format!("w{writer}"), ADDS);
            command.spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_all_there(&file);
}

#[test]
fn a_lock_that_is_never_released_is_named() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("settings.json");
    let holder = File::open(home.path()).unwrap();
    holder.lock().unwrap();
    let error = take_lock(&file, Duration::from_millis(20)).unwrap_err();
    assert!(
        matches!(&error, EditError::Locked { path } if *path == file),
        "{error}"
    );
    drop(holder);
    assert!(
        edit(&file, |document| document.set(&["a"], &Value::Null))
            .unwrap()
            .changed
    );
}
