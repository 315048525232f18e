//! `logs`: what is shown, what is never in it, and what there is to say when there is nothing.

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::support::{command, home_with, servers, toolway};
use crate::watching::Running;

/// Lines without times and processes.
fn stable(text: &str) -> String {
    text.lines()
        .map(|line| match line.splitn(3, ' ').collect::<Vec<_>>()[..] {
            [time, process, rest] if time.ends_with('Z') && process.parse::<u32>().is_ok() => {
                format!("[TIME] [PROCESS] {rest}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect()
}

fn talkative() -> Script {
    Script {
        complaint: Some("first \u{1b}[31mwords\u{1b}[0m\nsecond words".to_owned()),
        ..Script::default()
    }
}

#[test]
fn what_a_server_logged_and_what_was_said_is_shown() {
    let home = home_with(talkative());
    toolway(&home, &["call", "chaos", "echo", "text=hello"]).expect_code(0);
    let output = toolway(&home, &["logs", "chaos", "--stderr"]).expect_code(0);
    assert_snapshot!(stable(&output.stdout), @"
    [TIME] [PROCESS] stderr first words
    [TIME] [PROCESS] stderr second words
    ");
    let output = toolway(&home, &["logs", "chaos", "--protocol"]).expect_code(0);
    let calls: Vec<&str> = output
        .stdout
        .lines()
        .filter(|line| line.contains("hello"))
        .collect();
    assert_snapshot!(stable(&calls.join("\n")), @r#"
    [TIME] [PROCESS] → tools/call #3 354 bytes {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"toolway","version":"0.1.0"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}},"progressToken":3}}}
    [TIME] [PROCESS] ← result #3 102 bytes {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"hello"}],"resultType":"complete"}}
    "#);
    let output = toolway(&home, &["logs", "chaos", "-n", "1", "--stderr", "--json"]).expect_code(0);
    let mut line: Value = serde_json::from_str(&output.stdout).unwrap();
    line["time"] = json!("then");
    line["process"] = json!(0);
    let expected =
        json!({ "time": "then", "process": 0, "kind": "stderr", "text": "second words" });
    assert_eq!(line, expected);
}

#[test]
fn what_became_of_connections_is_in_the_log() {
    let home = TempHome::new();
    home.write_settings(servers(&[("nope", json!({ "command": "/nonexistent" }))]));
    toolway(&home, &["tools", "nope"]).expect_code(4);
    let output = toolway(&home, &["logs", "nope"]).expect_code(0);
    assert_snapshot!(stable(&output.stdout), @"
    [TIME] [PROCESS] note attempt 1: not connected: cannot start `/nonexistent`: no such program, or its interpreter is missing
    [TIME] [PROCESS] note attempt 1: failed: not tried again by itself
    ");
}

#[test]
fn a_log_outlives_the_configuration_of_its_server() {
    let home = home_with(talkative());
    toolway(&home, &["tools", "chaos"]).expect_code(0);
    home.write_settings(servers(&[]));
    let output = toolway(&home, &["logs", "chaos", "--stderr"]).expect_code(0);
    assert!(output.stdout.contains("second words"), "{output}");
    assert_snapshot!(toolway(&home, &["logs", "chaso"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: there is no log of a server named `chaso`
    hint: did you mean `chaos`?
    ");
}

#[test]
fn nothing_to_show_says_why_and_what_to_do() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("fresh", json!({ "command": "true" })),
        ("off", json!({ "command": "true", "disabled": true })),
    ]));
    assert_snapshot!(toolway(&home, &["logs", "fresh"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: server `fresh` has no log yet: nothing was connected to it
    hint: connect to it once, e.g. with `toolway tools fresh`
    ");
    assert_snapshot!(toolway(&home, &["logs", "off"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: server `off` has no log yet: nothing was connected to it
    hint: it may not connect; see why with `toolway explain off`
    ");
    assert_snapshot!(toolway(&home, &["logs", "fesh"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `fesh` is configured
    hint: did you mean `fresh`?
    ");
    assert_snapshot!(toolway(&home, &["logs", "fresh", "--stderr", "--protocol"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: the argument '--stderr' cannot be used with '--protocol'

    Usage: toolway logs --stderr <SERVER>
    hint: see `toolway logs --help`
    ");
    let home = home_with(Script::default());
    toolway(&home, &["tools", "chaos"]).expect_code(0);
    assert_snapshot!(toolway(&home, &["logs", "chaos", "--stderr"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no such lines were written down
    ");
}

#[test]
fn following_shows_what_comes_and_being_told_to_end_is_success() {
    let home = home_with(talkative());
    toolway(&home, &["tools", "chaos"]).expect_code(0);
    let mut logs = Running::start(&home, &["logs", "chaos", "-f", "--stderr", "-n", "1"]);
    logs.wait_for("second words");
    toolway(&home, &["tools", "chaos"]).expect_code(0);
    logs.wait_for("first words");
    logs.wait_for("second words");
    logs.signal(Signal::TERM);
    let (code, stdout, stderr) = logs.end();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(stdout.lines().count(), 3, "{stdout}");
}

#[test]
fn sec_47_no_secret_is_in_any_log() {
    const SECRETS: [&str; 5] = [
        marked!("env-"),
        marked!("header-"),
        marked!("query-"),
        marked!("typed-"),
        marked!("user-"),
    ];
    let home = TempHome::new();
    let peer = ScriptedServer::new(Script::default()).serve_http();
    // It tells its stderr what it was given.
    let mut words = vec![
        "-c".to_owned(),
        "echo \"starting with $SETTING\" >&2; exec \"$0\" \"$@\"".to_owned(),
        ScriptedServer::program().display().to_string(),
    ];
    words.extend(ScriptedServer::new(Script::default()).args());
    let env = json!({ "SETTING": marked!("env-") });
    let child = json!({ "command": "/bin/sh", "args": words, "env": env });
    let address = peer.url().replace("://", marked!("://me:user-", "@"));
    home.write_settings(servers(&[
        ("child", child),
        (
            "remote",
            json!({
                "type": "http",
                "url": format!("{}?key=query-{MARK}", peer.url()),
                "headers": { "Authorization": marked!("Bearer header-") },
            }),
        ),
        ("address", json!({ "type": "http", "url": address })),
    ]));
    // The answers hold the server's whole environment, and what it was asked to repeat.
    let call = |words: &[&str]| {
        let words = [&["call"], words].concat();
        home.run_showing_secrets(&mut command(&home, &words))
            .expect_code(0)
    };
    call(&["child", "inspect"]);
    for text in SECRETS {
        let typed = format!("text=env-{MARK} token={text}");
        call(&["child", "echo", &typed]);
        let typed = format!("text=Bearer header-{MARK}, query-{MARK}, password={text}");
        call(&["remote", "echo", &typed]);
    }
    let typed = json!({ "text": json!({ "password": SECRETS[3] }).to_string() }).to_string();
    call(&["child", "echo", "--args", &typed]);
    toolway(&home, &["tools", "address"]);
    let state = home.config_home().join("state/logs");
    let mut files = 0;
    for entry in std::fs::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("[redacted]") || path.ends_with("address.log"),
            "{}",
            path.display()
        );
        files += 1;
    }
    assert_eq!(files, 3);
    home.assert_no_secrets();
}
