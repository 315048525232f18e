//! `toolway record` and `toolway replay`: what a server said is said again, byte for byte, and no
//! secret with it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, TempHome};

use crate::support::{command, program, servers, toolway};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/recorded_server.py");

fn entry() -> Value {
    json!({ "command": "python3", "args": ["-u", SERVER] })
}

fn home_with(entry: Value) -> TempHome {
    let home = TempHome::new();
    home.write_settings(servers(&[("shop", entry)]));
    home
}

/// A home whose server `shop` is a replay of a recording that another home made.
fn replaying(from: &TempHome, more: &[&str]) -> TempHome {
    let file = from.project().join("t.jsonl").display().to_string();
    let mut words = vec!["replay", &file];
    words.extend(more);
    home_with(json!({ "command": program(), "args": words }))
}

fn record(home: &TempHome, words: &[&str]) -> CommandOutput {
    let mut all = vec!["record", "t.jsonl", "--"];
    all.extend(words);
    toolway(home, &all)
}

#[test]
fn what_was_recorded_of_a_command_is_replayed_byte_for_byte() {
    let home = home_with(entry());
    let echo = ["call", "shop", "echo", "message=hé\u{200b}llo", "--json"];
    let before = record(&home, &echo).expect_code(0);
    assert!(
        before
            .stderr
            .contains("messages: replay them with `toolway replay t.jsonl`"),
        "{before}"
    );
    let again = record(&home, &["call", "shop", "count", "to:=2", "--json"]).expect_code(0);
    let failed = record(&home, &["call", "shop", "fail", "--json"]);
    assert_eq!(failed.code, Some(7), "{failed}");
    let file = home.project().join("t.jsonl");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let replayed = replaying(&home, &[]);
    assert_eq!(
        toolway(&replayed, &echo).expect_code(0).stdout,
        before.stdout
    );
    let count = toolway(&replayed, &["call", "shop", "count", "to:=2", "--json"]);
    assert_eq!(count.expect_code(0).stdout, again.stdout);
    let fails = toolway(&replayed, &["call", "shop", "fail", "--json"]);
    assert_eq!((fails.code, fails.stdout), (failed.code, failed.stdout));
    let tools = |home: &TempHome| toolway(home, &["tools", "--json"]).expect_code(0).stdout;
    assert_eq!(tools(&replayed), tools(&home));
    let unknown = toolway(&replayed, &["call", "shop", "echo", "message=bye"]);
    assert_ne!(unknown.code, Some(0));
    assert!(
        unknown
            .stderr
            .contains("not recorded: `tools/call` of `echo`")
            && unknown.stderr.contains("the nearest that was recorded is"),
        "{unknown}"
    );
}

#[test]
fn a_server_in_a_clients_configuration_is_recorded_on_the_way() {
    let home = TempHome::new();
    let file = home.project().join("t.jsonl").display().to_string();
    let passed = json!({
        "command": program(),
        "args": ["record", file, "--", "python3", "-u", SERVER],
        "env": { "SHOP_TOKEN": "quince-4f9d2" },
    });
    home.write_settings(servers(&[("shop", passed)]));
    let words = ["call", "shop", "environment", "name=SHOP_TOKEN", "--json"];
    let first = toolway(&home, &words).expect_code(0);
    let echo = ["call", "shop", "echo", "message=hi", "--json"];
    let second = toolway(&home, &echo).expect_code(0);
    assert!(first.stdout.contains("quince-4f9d2"), "{first}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("quince"), "{text}");
    assert!(text.contains("[redacted]"), "{text}");
    let replayed = replaying(&home, &[]);
    assert_eq!(
        toolway(&replayed, &echo).expect_code(0).stdout,
        second.stdout
    );
    let redacted = toolway(&replayed, &words).expect_code(0);
    assert_eq!(
        redacted.stdout,
        first.stdout.replace("quince-4f9d2", "[redacted]")
    );
}

#[test]
fn no_secret_of_an_entry_or_a_call_is_recorded() {
    let mut entry = entry();
    entry["env"] = json!({ "SHOP_KEY": "quince-env-1", "OTHER": "quince/value 22!" });
    let home = home_with(entry);
    for words in [
        vec!["call", "shop", "environment", "name=SHOP_KEY"],
        vec!["call", "shop", "environment", "name=OTHER"],
        vec!["call", "shop", "echo", "message=x", "password=quince-3"],
        vec![
            "call",
            "shop",
            "echo",
            concat!("message=Bearer ", "quince4567890123456789"),
        ],
    ] {
        let mut all = vec!["record", "t.jsonl", "--"];
        all.extend(words);
        let mut command = command(&home, &all);
        home.run(command.env("MY_API_KEY", "quince-own-5"))
            .expect_code(0);
    }
    let mut last = command(
        &home,
        &[
            "record",
            "t.jsonl",
            "--",
            "call",
            "shop",
            "echo",
            "message=a quince-own-5 b",
        ],
    );
    home.run(last.env("MY_API_KEY", "quince-own-5"))
        .expect_code(0);
    let text = fs::read_to_string(home.project().join("t.jsonl")).unwrap();
    assert!(!text.contains("quince"), "{text}");
    assert!(text.matches("[redacted]").count() >= 5, "{text}");
}

#[test]
fn slips_are_answered_with_what_was_meant() {
    let home = home_with(entry());
    insta::assert_snapshot!(toolway(&home, &["record", "t.jsonl", "call", "shop", "echo"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: unexpected argument 'call' found

    Usage: toolway record [OPTIONS] <FILE> -- <COMMAND>...
    hint: what is recorded goes behind `--`: `toolway record <file> -- call <server> <tool>`
    ");
    insta::assert_snapshot!(record(&home, &["shop"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: `shop` is a configured server, not a command
    hint: record a command: `toolway record t.jsonl -- tools shop`
    ");
    insta::assert_snapshot!(record(&home, &["cal", "shop", "echo"]), @r"
    exit: 4
    ----- stdout
    ----- stderr
    error: `cal` is neither a command of Toolway nor a program
    hint: behind `--` stands a command of Toolway, or one that starts a server: `toolway record --help`
    ");
    insta::assert_snapshot!(record(&home, &["daemon", "start"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: `daemon` cannot be recorded
    hint: record a command that talks to servers, such as `call` or `serve`
    ");
    fs::remove_file(home.project().join("t.jsonl")).unwrap();
    let missed = record(&home, &["toolway", "call", "shop", "ecko"]);
    let words =
        "error: no tool `shop.ecko`\nhint: did you mean `toolway call shop echo`?\nrecorded ";
    assert!(missed.stderr.starts_with(words), "{missed}");
    home.write("notes.txt", "mine\n");
    let refused = toolway(&home, &["record", "notes.txt", "--", "tools"]);
    insta::assert_snapshot!(home.normalise(&refused.to_string()), @r"
    exit: 3
    ----- stdout
    ----- stderr
    error: `[PROJECT]/notes.txt` is not a recording
    hint: name another file: `toolway record <file> -- …`
    ");
    symlink(
        home.project().join("elsewhere"),
        home.project().join("link"),
    )
    .unwrap();
    let refused = toolway(&home, &["record", "link", "--", "tools"]);
    assert_eq!(refused.code, Some(3), "{refused}");
    assert!(!home.project().join("elsewhere").exists());
    insta::assert_snapshot!(home.normalise(&toolway(&home, &["replay", "notes.txt"]).to_string()), @r"
    exit: 3
    ----- stdout
    ----- stderr
    error: `[PROJECT]/notes.txt` is not a recording
    hint: make one with `toolway record <file> -- <command>`
    ");
}

#[test]
fn a_recording_of_several_servers_is_replayed_one_at_a_time() {
    let home = TempHome::new();
    home.write_settings(servers(&[("shop", entry()), ("store", entry())]));
    record(&home, &["tools", "--json"]).expect_code(0);
    insta::assert_snapshot!(toolway(&home, &["replay", "t.jsonl"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: `t.jsonl` holds several servers: `shop`, `store`
    hint: name one: `toolway replay t.jsonl --server shop`
    ");
    insta::assert_snapshot!(toolway(&home, &["replay", "t.jsonl", "--server", "stor"]), @r"
    exit: 3
    ----- stdout
    ----- stderr
    error: nothing of server `stor` was recorded in `t.jsonl`
    hint: did you mean `store`?
    ");
    let listed = toolway(&home, &["replay", "t.jsonl", "--list"]).expect_code(0);
    assert!(
        listed.stdout.starts_with("SERVER  REQUESTS  CALLS\nshop "),
        "{listed}"
    );
    let replayed = replaying(&home, &["--server", "store"]);
    assert!(
        toolway(&replayed, &["tools"])
            .expect_code(0)
            .stdout
            .contains("mcp__shop__echo")
    );
}

#[test]
fn what_serve_says_to_servers_is_recorded_and_order_can_be_asked_for() {
    let home = home_with(entry());
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "mcp__shop__echo", "arguments": { "message": "one" } } }),
    ];
    let input = lines.map(|line| line.to_string() + "\n").concat();
    let mut serve = command(&home, &["record", "t.jsonl", "--", "serve"]);
    let served = home.run_with_input(&mut serve, &input).expect_code(0);
    assert!(served.stdout.contains("Echo: one"), "{served}");
    let replayed = replaying(&home, &["--exact"]);
    let early = toolway(&replayed, &["call", "shop", "echo", "message=two"]);
    assert!(early.stderr.contains("next in the recording is"), "{early}");
    let one = toolway(&replayed, &["call", "shop", "echo", "message=one"]).expect_code(0);
    assert_eq!(one.stdout, "Echo: one\n");
}
