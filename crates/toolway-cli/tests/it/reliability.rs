//! The reliability cases of the command line, by their ids.

use std::process::Stdio;

use serde_json::json;
use toolway_testkit::{Canary, Script, ScriptedServer, TempHome, marked, shell_code};

use crate::support::{command, home_with, servers, toolway};

#[test]
fn rel_05_noise_on_stdout_does_not_end_the_connection() {
    let home = home_with(Script {
        banner: Some("\u{1b}[32mServer v1 starting…\u{1b}[0m".to_owned()),
        noise: true,
        ..Script::default()
    });
    let output = toolway(&home, &["call", "chaos", "echo", "text=hello"]).expect_code(0);
    assert_eq!(output.stdout, "hello\n");
}

#[test]
fn rel_06_a_flood_on_stderr_does_not_block_the_server() {
    let home = home_with(Script {
        stderr_flood: 8 << 20,
        ..Script::default()
    });
    let output = toolway(&home, &["call", "chaos", "echo", "text=hello"]).expect_code(0);
    assert_eq!(output.stdout, "hello\n");
}

#[test]
fn rel_10_a_server_that_dies_in_the_middle_of_a_call_is_said_to() {
    let home = home_with(Script::default());
    let output = toolway(&home, &["call", "chaos", "crash"]).expect_code(4);
    assert!(output.stderr.contains("server `chaos`"), "{output}");
    assert!(output.stderr.contains("hint:"), "{output}");
}

#[test]
fn rel_17_fifty_processes_add_twenty_servers_each_and_all_are_there() {
    let home = TempHome::new();
    home.write_settings("{\n  // kept\n  \"theme\": \"dark\"\n}\n");
    std::thread::scope(|scope| {
        for writer in 0..50 {
            let home = &home;
            scope.spawn(move || {
                for number in 0..20 {
                    let name = format!("s{writer}-{number}");
                    toolway(home, &["add", "-s", "user", &name, "true"]).expect_code(0);
                }
            });
        }
    });
    let text = home.read(home.config_home().join("settings.json"));
    assert!(text.contains("// kept"), "the comment is gone");
    assert!(
        text.contains("\"theme\": \"dark\""),
        "an unknown key is gone"
    );
    let listed = toolway(&home, &["list", "--no-connect", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(listed["servers"].as_array().unwrap().len(), 1000);
}

#[test]
fn rel_18_a_crash_while_adding_leaves_the_old_file_or_the_new_one() {
    if !std::path::Path::new("/usr/bin/strace").exists() {
        eprintln!("skipped: strace is not installed; the library's own test still runs");
        return;
    }
    let old = servers(&[("old", json!({ "command": "true" }))]);
    let mut killed = 0;
    for system_call in [
        "write",
        "fsync",
        "fdatasync",
        "rename",
        "renameat",
        "renameat2",
    ] {
        for nth in 1.. {
            let home = TempHome::new();
            let file = home.write_settings(&old);
            let mut strace = home.command("/usr/bin/strace");
            strace.args(["-f", "-o", "/dev/null"]);
            strace.args([
                "-e",
                &format!("inject={system_call}:signal=SIGKILL:when={nth}"),
            ]);
            strace
                .arg(crate::support::program())
                .args(["add", "-s", "user", "new", "true"]);
            let output = home.run(&mut strace);
            let text = home.read(&file);
            let value: serde_json::Value =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(value["mcpServers"]["old"]["command"], "true", "{text}");
            if output.code == Some(0) {
                assert_eq!(value["mcpServers"]["new"]["command"], "true", "{text}");
                break;
            }
            killed += 1;
            // Whatever the crash left behind is in nobody's way.
            toolway(&home, &["add", "-s", "user", "--force", "new", "true"]).expect_code(0);
        }
    }
    assert!(killed > 0, "no crash was injected");
}

#[test]
fn rel_01_nothing_is_left_behind_after_a_call() {
    let home = TempHome::new();
    let canary = Canary::new();
    let server = ScriptedServer::new(Script {
        ignores_end_of_input: true,
        ..Script::default()
    });
    home.write_settings(servers(&[(
        "chaos",
        server.entry_with_env([(canary.name(), canary.value())]),
    )]));
    toolway(&home, &["call", "chaos", "echo", "text=x"]).expect_code(0);
    canary.assert_gone();
}

#[test]
fn rel_32_an_interrupted_call_ends_its_server_and_says_so() {
    let home = TempHome::new();
    let canary = Canary::new();
    let server = ScriptedServer::new(Script {
        ignores_end_of_input: true,
        ..Script::default()
    });
    home.write_settings(servers(&[(
        "chaos",
        server.entry_with_env([(canary.name(), canary.value())]),
    )]));
    let child = command(&home, &["call", "chaos", "hang"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while canary.processes().is_empty() {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = marked::output_of(child);
    assert_eq!(
        shell_code(output.status),
        Some(130),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    canary.assert_gone();
}
