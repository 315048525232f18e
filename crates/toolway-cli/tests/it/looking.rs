//! Looking at servers: none of them holds up the others, exit codes and errors say what is wrong,
//! and everything there is can be had at once.

use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;
use serde_json::{Value, json};

use toolway_testkit::{Script, ScriptedServer, TempHome, marked};

use crate::support::{command, home_with, program, servers, toolway};
use crate::terminal::TerminalProgram;
use crate::user_home::skipped;

/// A home with a server that answers and one that never does.
fn home_with_a_silent_one() -> TempHome {
    let home = TempHome::new();
    let silent = Script {
        never_reads: true,
        ..Script::default()
    };
    home.write_settings(servers(&[
        ("fast", ScriptedServer::new(Script::default()).entry()),
        ("slow", ScriptedServer::new(silent).entry()),
    ]));
    home
}

#[test]
fn one_slow_server_is_waited_for_only_as_long_as_was_said() {
    let home = home_with_a_silent_one();
    assert_snapshot!(toolway(&home, &["list", "--timeout", "2"]), @"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE   STATE        TOOLS  DETAIL
    fast  user   stdio  ✔ connected  8      protocol 2026-07-28
    slow  user   stdio  · pending    -      has not answered within 2s
    ----- stderr
    ");
    assert_snapshot!(toolway(&home, &["tools", "--timeout", "2", "--search", "again"]), @"
    exit: 0
    ----- stdout
    NAME             DESCRIPTION
    mcp__fast__echo  Says it again
    ----- stderr
    warning: server `slow` has not answered within 2s
    hint: give it longer with `--timeout <seconds>`; what it writes is in `toolway logs slow`
    ");
    assert_snapshot!(toolway(&home, &["tools", "slow", "--timeout", "1"]), @"
    exit: 8
    ----- stdout
    ----- stderr
    error: server `slow` has not answered within 1s
    hint: give it longer with `--timeout <seconds>`; what it writes is in `toolway logs slow`
    ");
    toolway(&home, &["list", "--check", "--timeout", "1"]).expect_code(4);
}

#[test]
fn ctrl_c_shows_what_is_there() {
    let home = home_with_a_silent_one();
    for (words, expected) in [
        (
            ["list"],
            "fast  user   stdio  ✔ connected  8      protocol 2026-07-28",
        ),
        (["tools"], "mcp__fast__echo     Says it again"),
    ] {
        let mut terminal = TerminalProgram::take(&mut command(&home, &words));
        terminal.expect("connected");
        terminal.interrupt();
        let left = terminal.leave();
        assert_eq!(left.code, Some(130), "{}", left.shown);
        assert!(left.stdout.contains(expected), "{}", left.stdout);
    }
}

#[test]
fn rows_of_tools_appear_while_a_slow_server_is_waited_for() {
    let home = home_with_a_silent_one();
    let mut terminal = TerminalProgram::take_with_stdout(&mut command(&home, &["tools"]));
    terminal.expect("mcp__fast__echo");
    terminal.expect("pending");
    terminal.interrupt();
    let shown = terminal.shown_to_the_end();
    assert_eq!(shown.matches("mcp__fast__echo").count(), 1, "{shown}");
}

#[test]
fn without_a_network_the_hint_says_so() {
    let home = TempHome::new();
    let npx = home.write("bin/npx", "#!/bin/sh\nexit 1\n");
    std::fs::set_permissions(&npx, std::fs::Permissions::from_mode(0o755)).unwrap();
    home.write_settings(servers(&[(
        "shop",
        json!({ "command": npx, "args": ["-y", "shop"] }),
    )]));
    let mut alone = home.command("unshare");
    alone.args(["--user", "--map-root-user", "--net", program(), "list"]);
    let output = home.run(&mut alone);
    if output.stderr.contains("unshare") {
        skipped("this kernel refuses namespaces");
        return;
    }
    let expected = "hint: `shop`: this machine has no network, from which `npx` fetches the \
                    server: connect it, or install the server and name its program as `command`";
    assert!(output.stderr.contains(expected), "{output}");
}

#[test]
fn the_list_ends_with_what_is_wrong() {
    let home = TempHome::new();
    home.write_settings("{ \"mcpServers\": ");
    let output = toolway(&home, &["list"]).expect_code(3);
    assert!(output.stderr.contains("settings.json:1"), "{output}");
    toolway(&home, &["list", "--no-connect", "--json"]).expect_code(3);

    let locked = Script {
        http_status: Some(401),
        ..Script::default()
    };
    let locked = ScriptedServer::new(locked).serve_http();
    let fine = ScriptedServer::new(Script::default()).entry();
    let missing = json!({ "command": "/nonexistent/server" });
    let off = json!({ "command": "true", "disabled": true });
    for (entries, code) in [
        (vec![("fine", fine.clone()), ("off", off)], 0),
        (vec![("fine", fine), ("locked", locked.entry())], 5),
        (vec![("locked", locked.entry()), ("missing", missing)], 4),
        (vec![("odd", json!({ "command": 3 }))], 3),
    ] {
        home.write_settings(servers(&entries));
        toolway(&home, &["list", "--check"]).expect_code(code);
        toolway(&home, &["list"]).expect_code(0);
    }
}

#[test]
fn with_json_every_error_is_one_line_of_json() {
    let home = home_with(Script::default());
    for words in [
        &["get", "chaso", "--json"][..],
        &["tools", "chaso", "--json"],
        &["call", "chaos", "ehco", "--json"],
        &["call", "chaos", "echo", "text=1", "--json", "--nonsense"],
        &["resources", "http://127.0.0.1:1/mcp", "--json"],
        &["read", "--json"],
    ] {
        let output = toolway(&home, words);
        let error: Value =
            serde_json::from_str(&output.stderr).unwrap_or_else(|_| panic!("{output}"));
        assert_eq!(
            error.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["exit", "error", "details", "hint"],
            "{output}"
        );
        assert_eq!(
            error["exit"].as_i64(),
            output.code.map(i64::from),
            "{output}"
        );
        assert_ne!(error["exit"], 0, "{output}");
    }
    assert_snapshot!(toolway(&home, &["get", "chaso", "--json"]), @r#"
    exit: 3
    ----- stdout
    ----- stderr
    {"exit":3,"error":"no server named `chaso` is configured","details":[],"hint":"did you mean `chaos`?"}
    "#);
    home.write_settings("{ \"mcpServers\": ");
    let output = toolway(&home, &["list", "--json"]).expect_code(3);
    for line in output.stderr.lines() {
        let error: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{output}"));
        assert_eq!(error["exit"], 3, "{output}");
    }
}

#[test]
fn the_state_is_exported_at_once() {
    let home = TempHome::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/offers_server.py");
    let kit = json!({
        "command": "python3",
        "args": ["-u", script],
        "env": { "KIT_TOKEN": marked!("state-export-") },
    });
    let chaos = ScriptedServer::new(Script::default()).entry();
    let off = json!({ "command": "true", "disabled": true });
    home.write_settings(servers(&[("My kit!", kit), ("chaos", chaos), ("off", off)]));
    let first = toolway(&home, &["state", "--json"]).expect_code(0);
    let again = toolway(&home, &["state", "--json"]).expect_code(0);
    assert_eq!(first.stdout, again.stdout, "the order is fixed");
    let state = first.json();
    assert_eq!(
        state.as_object().unwrap().keys().collect::<Vec<_>>(),
        [
            "version",
            "servers",
            "tools",
            "resources",
            "templates",
            "prompts",
            "names"
        ]
    );
    let names: Vec<&str> = state["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["My kit!", "chaos", "off"]);
    let kit = &state["servers"][0];
    assert_eq!(kit["state"], "connected");
    assert_eq!(kit["definition"]["env"]["KIT_TOKEN"], "[redacted]");
    assert_eq!(state["servers"][2]["state"], "disabled");
    assert_eq!(state["names"]["servers"]["My_kit_"], json!(["My kit!"]));
    assert_eq!(
        state["names"]["tools"]["mcp__chaos__echo"],
        json!({ "server": "chaos", "tool": "echo" })
    );
    assert_eq!(state["tools"].as_array().unwrap().len(), 8);
    assert!(!state["resources"].as_array().unwrap().is_empty());
    assert!(!state["templates"].as_array().unwrap().is_empty());
    assert_eq!(state["prompts"][0]["prompt"], "draw");
    let cached = toolway(&home, &["state", "--cached"]).expect_code(0).json();
    assert_eq!(cached["tools"], state["tools"]);
    assert_eq!(cached["servers"][1]["state"], "pending");
}

#[test]
fn the_list_shows_the_line_that_says_why() {
    let home = home_with(Script {
        complaint: Some("starting up\nError: Cannot find module 'left-pad'\n    at require (node:1)\nNode.js v22".to_owned()),
        exit_at_start: Some(1),
        ..Script::default()
    });
    let output = toolway(&home, &["list"]).expect_code(0);
    assert!(
        output
            .stdout
            .contains("Error: Cannot find module 'left-pad'"),
        "{output}"
    );
    let listed = toolway(&home, &["list", "--json"]).json();
    assert_eq!(listed["servers"][0]["stderr"][0], "starting up", "{listed}");
}

#[test]
fn the_picture_of_the_demo_is_there_afterwards() {
    let home = TempHome::new();
    let mut demo = command(&home, &["demo"]);
    let temporary = home.home().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output = home.run(demo.env("TMPDIR", &temporary)).expect_code(0);
    let path = output.stdout.lines().find_map(|line| {
        let start = line.find("[HOME]/tmp/")?;
        let end = line[start..].find(".png")? + start + 4;
        Some(home.home().join(&line[start + "[HOME]/".len()..end]))
    });
    let path = path.unwrap_or_else(|| panic!("{output}"));
    assert!(path.exists(), "{output}");
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "only the picture stays: {left:?}");
}

#[test]
fn nothing_wraps_on_a_small_terminal() {
    let home = TempHome::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wide_server.py");
    let wide = json!({ "command": "python3", "args": ["-u", script] });
    home.write_settings(servers(&[("a-server-with-quite-a-long-name", wide)]));
    toolway(
        &home,
        &[
            "call",
            "a-server-with-quite-a-long-name",
            "a_tool_with_quite_a_long_name",
        ],
    );
    for words in [
        &["resources"][..],
        &["resources", "--templates"],
        &["prompts"],
        &["audit"],
        &["tools"],
        &["list"],
        &["doctor"],
    ] {
        let terminal = TerminalProgram::small_with_stdout(&mut command(&home, words));
        let shown = terminal.shown_to_the_end();
        // What a live view draws and takes away is no row.
        let shown = shown.rsplit('\u{1b}').next().unwrap().to_owned();
        for row in shown.lines() {
            let width = unicode_width::UnicodeWidthStr::width(row);
            assert!(width <= 80, "{words:?}: {width}: {row:?}");
        }
    }
}

#[test]
fn the_doctor_breaks_lines_at_words() {
    let home = home_with(Script::default());
    let terminal = TerminalProgram::small_with_stdout(&mut command(&home, &["doctor"]));
    let narrow = terminal.shown_to_the_end();
    let wide = toolway(&home, &["doctor"]).stdout;
    let words = |text: &str| {
        home.normalise(text)
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&narrow), words(&wide), "no word is broken or lost");
    assert!(narrow.lines().count() > wide.lines().count());
}
