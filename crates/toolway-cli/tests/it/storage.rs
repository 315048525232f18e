//! REL-19: a disk that is full, read-only or broken. What is being written fails with a clear
//! word or is left out with a notice; what was there stays, nothing half-written does, and calls
//! go on.
//!
//! A full disk is a tmpfs in a namespace of its own; a broken one is strace that lets a system
//! call fail. Neither touches this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, Script, ScriptedServer, TempHome};

use crate::support::{program, servers, toolway};

/// Lays the disk over `$DISK`, runs the program, and keeps a copy of what the disk holds then.
const ON_A_DISK: &str = r#"
set -e
cp -a "$DISK/." "$SEED"
mount -t tmpfs -o size=128k,mode=0700 none "$DISK"
cp -a "$SEED/." "$DISK"
if [ "$STATE" = full ]; then
    dd if=/dev/zero of="$DISK/ballast" bs=1k 2>/dev/null || true
else
    mount -o remount,ro "$DISK"
fi
code=0
"$@" || code=$?
rm -f "$DISK/ballast" 2>/dev/null || true
cp -a "$DISK/." "$AFTER"
exit $code
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disk {
    Full,
    ReadOnly,
}

impl Disk {
    const ALL: [Disk; 2] = [Disk::Full, Disk::ReadOnly];

    fn word(self) -> &'static str {
        match self {
            Disk::Full => "full",
            Disk::ReadOnly => "read-only",
        }
    }

    /// What the system says.
    fn complaint(self) -> &'static str {
        match self {
            Disk::Full => "No space left on device",
            Disk::ReadOnly => "Read-only file system",
        }
    }

    /// What a person can do about it.
    fn advice(self) -> &'static str {
        match self {
            Disk::Full => "make room on the disk",
            Disk::ReadOnly => "the file system is read-only",
        }
    }
}

/// What a run left on its disk.
struct After {
    output: CommandOutput,
    files: BTreeMap<String, String>,
}

/// Runs `toolway` while this directory is on such a disk.
fn on(disk: Disk, directory: &Path, home: &TempHome, words: &[&str]) -> After {
    let (seed, after) = (home.home().join("seed"), home.home().join("after"));
    for folder in [&seed, &after] {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir(folder).unwrap();
    }
    let mut command = home.command("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .args([ON_A_DISK, "sh", program()])
        .args(words)
        .env("STATE", disk.word())
        .env("DISK", directory)
        .env("SEED", &seed)
        .env("AFTER", &after);
    let output = home.run(&mut command);
    let mut files = BTreeMap::new();
    gather(&after, Path::new(""), &mut files);
    After { output, files }
}

fn gather(root: &Path, below: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let path = below.join(entry.unwrap().file_name());
        if root.join(&path).is_dir() {
            gather(root, &path, files);
        } else if !path.ends_with("ballast") {
            let text = fs::read(root.join(&path)).unwrap();
            let text = String::from_utf8_lossy(&text).into_owned();
            files.insert(path.display().to_string(), text);
        }
    }
}

fn files_of(directory: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    gather(directory, Path::new(""), &mut files);
    files
}

#[expect(clippy::print_stderr, reason = "a test that did not run must say so")]
fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Whether a namespace with a file system of its own can be had here.
fn has_disks() -> bool {
    let mount = "mount -t tmpfs -o size=4k none /tmp";
    let works = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", mount])
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        skipped("this machine allows no file systems in a namespace");
    }
    works
}

fn has_strace() -> bool {
    let works = Path::new("/usr/bin/strace").exists();
    if !works {
        skipped("strace is not installed");
    }
    works
}

/// A home with a server that has every tool, was called before, and has a project beside it.
fn used_home() -> TempHome {
    let home = TempHome::new();
    let script = Script {
        drama: true,
        ..Script::default()
    };
    home.write_settings(servers(&[("chaos", ScriptedServer::new(script).entry())]));
    toolway(&home, &["call", "chaos", "echo", "text=before"]).expect_code(0);
    home
}

fn state(home: &TempHome) -> PathBuf {
    home.config_home().join("state")
}

#[test]
fn rel_19_an_edit_on_a_full_or_read_only_disk_says_so_and_leaves_every_file_as_it_was() {
    if !has_disks() {
        return;
    }
    for disk in Disk::ALL {
        let home = TempHome::new();
        home.write_settings(servers(&[("old", json!({ "command": "true" }))]));
        let before = files_of(&home.config_home());
        let words = ["add", "-s", "user", "new", "true"];
        let after = on(disk, &home.config_home(), &home, &words);
        let output = after.output.expect_code(1);
        assert_eq!(after.files, before, "{disk:?}");
        for part in ["settings.json", disk.complaint(), disk.advice()] {
            assert!(output.stderr.contains(part), "{disk:?}: {output}");
        }
        assert!(output.stderr.contains("nothing was written"), "{output}");
    }
}

#[test]
fn rel_19_an_approval_that_cannot_be_written_is_not_given() {
    if !has_disks() {
        return;
    }
    for disk in Disk::ALL {
        let home = TempHome::new();
        let entry = json!({ "command": "true" });
        home.write(
            ".mcp.json",
            servers(&[("one", entry.clone()), ("two", entry)]),
        );
        toolway(&home, &["approve", "--yes", "one"]).expect_code(0);
        let before = files_of(&home.config_home());
        let words = ["approve", "--yes", "two"];
        let after = on(disk, &home.config_home(), &home, &words);
        let output = after.output.expect_code(1);
        assert_eq!(after.files, before, "{disk:?}");
        for part in ["approvals.json", disk.complaint(), disk.advice()] {
            assert!(output.stderr.contains(part), "{disk:?}: {output}");
        }
    }
}

#[test]
fn rel_19_a_local_entry_that_cannot_be_hidden_from_git_leaves_no_empty_gitignore() {
    if !has_disks() {
        return;
    }
    let home = TempHome::new();
    let words = ["add", "-s", "local", "mine", "true"];
    let after = on(Disk::Full, home.project(), &home, &words);
    after.output.expect_code(1);
    // An empty one would be taken for a whole one the next time, and hide nothing.
    assert_eq!(after.files, BTreeMap::new());
    toolway(&home, &words).expect_code(0);
}

#[test]
fn rel_19_calls_go_on_when_neither_journal_audit_nor_era_can_be_written() {
    if !has_disks() {
        return;
    }
    for disk in Disk::ALL {
        let home = used_home();
        let era = home.read(state(&home).join("eras.json"));
        let pins = home.read(state(&home).join("pins.json"));
        let kept = files_of(&state(&home));
        // Another server, whose era is not known yet.
        let other = ScriptedServer::new(Script::default()).entry_with_env([("A", "b")]);
        home.write_settings(servers(&[("other", other)]));
        let words = ["call", "other", "echo", "text=hello"];
        let after = on(disk, &state(&home), &home, &words);
        let output = after.output.expect_code(0);
        assert_eq!(output.stdout, "hello\n", "{disk:?}");
        assert_eq!(after.files["eras.json"], era, "{disk:?}");
        assert_eq!(after.files["pins.json"], pins, "{disk:?}");
        let left: Vec<&String> = after
            .files
            .keys()
            .filter(|name| !name.starts_with("logs/") && !name.starts_with("audit/"))
            .filter(|name| !matches!(name.trim_end_matches(".lock"), "eras.json" | "pins.json"))
            // What the other one offered is there as it was, and nothing of this one but a lock.
            .filter(|name| !(name.starts_with("catalogue/") && Path::new(name).extension().is_some_and(|it| it == "lock")))
            .filter(|name| kept.get(*name) != after.files.get(*name))
            .collect();
        assert_eq!(left, Vec::<&String>::new(), "{disk:?}");
    }
}

#[test]
fn rel_19_an_answer_whose_picture_cannot_be_saved_is_whole_and_says_so() {
    if !has_disks() {
        return;
    }
    for disk in Disk::ALL {
        let home = used_home();
        // It does not fit, by far or by a little.
        for triples in ["1", "100000"] {
            let call = ["call", "chaos", "picture", &format!("triples={triples}")];
            let after = on(disk, &state(&home), &home, &call);
            let output = after.output.expect_code(0);
            assert!(output.stdout.starts_with("a picture\n"), "{output}");
            assert!(output.stderr.contains("not saved"), "{output}");
            assert!(output.stderr.contains(disk.complaint()), "{output}");
            let half = |name: &&String| name.starts_with("results/");
            assert_eq!(after.files.keys().find(half), None, "{disk:?}");

            // The bytes are still there for whoever wants the answer itself.
            let words = [call.as_slice(), &["--json"]].concat();
            let after = on(disk, &state(&home), &home, &words);
            let answer: Value = after.output.expect_code(0).json();
            let whole = "iVBO".repeat(triples.parse().unwrap());
            assert!(answer.to_string().contains(&whole), "{disk:?} {triples}");
        }
    }
}

#[test]
fn rel_19_an_edit_that_fails_at_any_system_call_leaves_old_or_new_and_nothing_else() {
    if !has_strace() {
        return;
    }
    let old = servers(&[("old", json!({ "command": "true" }))]);
    let mut failed = 0;
    for (call, error) in [
        ("write", "ENOSPC"),
        ("write", "EDQUOT"),
        ("fsync", "EIO"),
        ("fchmod", "EROFS"),
        ("rename", "EIO"),
        ("renameat", "EIO"),
        ("renameat2", "EIO"),
    ] {
        for nth in 1.. {
            let home = TempHome::new();
            let file = home.write_settings(&old);
            let log = home.home().join("strace.log");
            let mut strace = home.command("/usr/bin/strace");
            strace.arg("-f").arg("-o").arg(&log);
            let inject = format!("inject={call}:error={error}:when={nth}");
            strace.args(["-e", &format!("trace={call}"), "-e", &inject]);
            strace
                .arg(program())
                .args(["add", "-s", "user", "new", "true"]);
            let output = home.run(&mut strace);
            let place = format!("{call} {nth}: {output}");
            if !home.read(&log).contains("(INJECTED)") {
                break;
            }
            failed += 1;
            let text = home.read(&file);
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["mcpServers"]["old"]["command"], "true", "{place}");
            let is_new = value["mcpServers"]["new"]["command"] == "true";
            assert!(is_new || text == old, "{place}");
            // What is said is true.
            assert_eq!(
                output.stderr.contains("nothing was written"),
                !is_new,
                "{place}"
            );
            if !is_new {
                assert_eq!(output.code, Some(1), "{place}");
                assert!(output.stderr.contains("settings.json"), "{place}");
            }
            let left: Vec<String> = files_of(&home.config_home())
                .into_keys()
                .filter(|name| !matches!(name.as_str(), "settings.json" | "settings.json.bak"))
                .filter(|name| !name.starts_with("state/"))
                .collect();
            assert_eq!(left, Vec::<String>::new(), "{place}");
        }
    }
    assert!(failed > 5, "only {failed} failures were injected");
}

#[test]
fn rel_19_a_disk_that_breaks_under_a_call_costs_the_notes_and_not_the_answer() {
    if !has_strace() {
        return;
    }
    for (call, error) in [("fsync", "EIO"), ("rename", "EROFS"), ("mkdir", "ENOSPC")] {
        let home = TempHome::new();
        let entry = ScriptedServer::new(Script::default()).entry();
        home.write_settings(servers(&[("chaos", entry)]));
        let mut strace = home.command("/usr/bin/strace");
        strace.args(["-f", "-o", "/dev/null", "-e", &format!("trace={call}")]);
        strace.args(["-e", &format!("inject={call}:error={error}")]);
        strace
            .arg(program())
            .args(["call", "chaos", "echo", "text=hello"]);
        let output = home.run(&mut strace).expect_code(0);
        assert_eq!(output.stdout, "hello\n", "{call}");
        let new = state(&home).join("eras.json.new");
        assert!(!new.exists(), "{call}");
    }
}
