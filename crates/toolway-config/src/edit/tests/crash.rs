//! A process killed at any moment of a write leaves the old content or the new one.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use super::writers;

/// The system calls a write consists of.
const CALLS: &[&str] = &[
    "write",
    "fsync",
    "rename",
    "renameat",
    "renameat2",
    "openat",
    "flock",
    "fchmod",
    "unlink",
];

/// No write needs more of one call than this; the loop ends far earlier, at the first run that
/// comes through.
const MOST_CALLS: usize = 400;

#[test]
fn rel_18_a_crash_at_any_system_call_leaves_old_or_new() {
    if Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        println!("rel_18 DID NOT RUN: strace is not installed");
        return;
    }
    let old = "{\n  // kept\n  \"mcpServers\": {}\n}\n";
    let mut killed = 0;
    for call in CALLS {
        for nth in 1..=MOST_CALLS {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("settings.json");
            fs::write(&file, old).unwrap();
            let mut command = Command::new("strace");
            command
                .args(["-f", "-qq", "-e", "signal=none", "-o", "/dev/null"])
                .args(["-e", &format!("trace={call}")])
                .args(["-e", &format!("inject={call}:signal=SIGKILL:when={nth}")])
                .arg(std::env::current_exe().unwrap())
                .stderr(Stdio::null());
            writers::as_child(&mut command, &file, "w", 1);
            let status = command.status().unwrap();
            if status.success() {
                break;
            }
            assert!(
                status.signal() == Some(9) || status.code() == Some(137),
                "{call} {nth}: {status}"
            );
            killed += 1;
            let found = fs::read_to_string(&file).unwrap();
            let is_new = found.contains("// kept")
                && found.contains("\"w-0\"")
                && crate::json::syntax_tree::parse(&found).is_ok();
            assert!(found == old || is_new, "killed at {call} {nth}: {found:?}");
            let backup = home.path().join("settings.json.bak");
            if backup.exists() {
                assert_eq!(
                    fs::read_to_string(&backup).unwrap(),
                    old,
                    "killed at {call} {nth}"
                );
            }
        }
    }
    println!("rel_18: {killed} crashes survived");
    assert!(killed > 10, "only {killed} runs were killed");
}
