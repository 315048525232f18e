//! What a repository's files can do to the terminal, the time and the trust of the person who
//! works in it.

use std::process::Command;

use serde_json::json;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_testkit::{CommandOutput, TempHome};

use crate::support::{command, servers, toolway};

/// What would act on a terminal, or turn text around, if it got there.
fn acts(c: char) -> bool {
    toolway_types::text::is_hidden(c) && c != '\n' && c != '\t'
}

fn assert_nothing_acts(output: &CommandOutput, words: &[&str]) {
    let found: Vec<char> = output.stdout.chars().chain(output.stderr.chars()).collect();
    let found: Vec<&char> = found.iter().filter(|c| acts(**c)).collect();
    assert!(found.is_empty(), "`{words:?}` printed {found:?}:\n{output}");
}

#[test]
fn sec_35_no_command_prints_what_a_repository_hides_in_its_definitions() {
    let home = TempHome::new();
    let evil = "\u{1b}[31mX\u{7}\u{9d}52;c;AAAA\u{9c}\u{202e}\u{2066}\u{9b}";
    let entry = json!({
        "command": format!("c{evil}"),
        "args": [format!("a{evil}")],
        "env": { "E": format!("v{evil}") },
        "cwd": format!("d{evil}"),
        "protocol": evil,
        (format!("k{evil}")): 1,
        "oauth": { (format!("k{evil}")): 1 },
    });
    let clean = json!({ "command": format!("c{evil}"), "args": [evil], "x": evil });
    let file = servers(&[("bad", entry), ("good", clean), (evil, json!({}))]);
    for path in [
        ".mcp.json",
        ".toolway/settings.local.json",
        ".toolway/settings.json",
        ".cursor/mcp.json",
    ] {
        home.write(path, &file);
    }
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["get", "bad"],
        &["get", "good"],
        &["get", "good", "--json"],
        &["explain", "bad"],
        &["explain", "good", "--json"],
        &["approve", "good"],
        &["approve", "--local-settings"],
        &["tools"],
        &["call", "good", "x"],
        &["import"],
        &["import", "--json"],
        &["approve", "good", "--yes"],
        &["list"],
    ] {
        assert_nothing_acts(&toolway(&home, words), words);
    }
}

#[test]
fn sec_35_no_command_prints_what_hides_in_a_directorys_name() {
    let home = TempHome::new();
    let place = home.home().join("p\u{1b}[31m\u{202e}\nhint: run `evil`");
    home.write(
        place.join(".mcp.json"),
        servers(&[
            ("a", json!({ "command": "x" })),
            ("b", json!({ "comand": 1 })),
        ]),
    );
    home.write(place.join(".toolway/settings.local.json"), "{");
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["doctor"],
        &["explain", "a"],
        &["get", "a"],
        &["approve", "a", "--yes"],
        &["add", "q", "true"],
    ] {
        let output = home.run(command(&home, words).current_dir(&place));
        assert_nothing_acts(&output, words);
    }
}

#[test]
fn sec_05_an_approval_shows_what_a_terminal_would_swallow() {
    let home = TempHome::new();
    home.write(
        ".mcp.json",
        servers(&[(
            "a",
            json!({
                "command": "ls\u{1b}]0;first\u{7}\nargs: []",
                "args": ["echo hi\u{9d}; second \u{9c}"],
            }),
        )]),
    );
    for words in [&["approve", "a"][..], &["explain", "a"], &["get", "a"]] {
        let output = toolway(&home, words).to_string();
        for hidden in ["first", "; second "] {
            assert!(output.contains(hidden), "`{words:?}` hides it:\n{output}");
        }
        assert!(
            !output.lines().any(|line| line.trim() == "args: []"),
            "a line was forged:\n{output}"
        );
    }
}

#[test]
fn sec_01_what_lies_in_the_place_of_local_settings_hangs_no_command() {
    for kind in ["pipe", "/dev/zero"] {
        let home = TempHome::new();
        let path = home.write(".toolway/settings.local.json", "{}");
        std::fs::remove_file(&path).unwrap();
        if kind == "pipe" {
            let made = Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(made.success());
        } else {
            std::os::unix::fs::symlink(kind, &path).unwrap();
        }
        let words = ["approve", "--local-settings", "--yes"];
        let output = ends_in_time(&home, &words).expect_code(3);
        assert!(output.stderr.contains("hint:"), "{output}");
    }
}

/// Runs a command that might not end by itself.
fn ends_in_time(home: &TempHome, words: &[&str]) -> CommandOutput {
    let mut timed = home.command("timeout");
    timed.arg("60").arg(crate::support::program()).args(words);
    let output = home.run(&mut timed);
    assert_ne!(output.code, Some(124), "`{words:?}` hangs");
    output
}

#[test]
fn sec_01_a_servers_name_cannot_smuggle_a_command_into_a_hint() {
    let home = TempHome::new();
    let entry = json!({ "command": "x" });
    let names = ["x; touch evil", "$(evil)", "--all", "it's"];
    for (name, hint) in names.into_iter().zip([
        "`toolway approve 'x; touch evil'`",
        "`toolway approve '$(evil)'`",
        "`toolway approve -- '--all'`",
        r"`toolway approve 'it'\''s'`",
    ]) {
        home.write(".mcp.json", servers(&[(name, entry.clone())]));
        let output = toolway(&home, &["list"]);
        assert!(output.stderr.contains(hint), "{hint}:\n{output}");
    }
    home.write(".mcp.json", servers(&[(names[0], entry)]));
    let output = toolway(&home, &["call", names[0], "tool"]).expect_code(6);
    assert!(
        output.stderr.contains("toolway approve 'x; touch evil'"),
        "{output}"
    );
}

#[test]
fn the_secrets_of_an_address_are_not_shown() {
    let home = TempHome::new();
    let url = format!("http://me:{MARK}@127.0.0.1:1/mcp?key={MARK}&x=${{NAME}}");
    home.write_settings(servers(&[("far", json!({ "type": "http", "url": url }))]));
    for words in [
        &["get", "far"][..],
        &["get", "far", "--json"],
        &["explain", "far"],
        &["explain", "far", "--json"],
        &["list"],
        &["-vvv", "list"],
        &["call", "far", "x"],
        &[
            "call",
            &format!("http://{MARK}@127.0.0.1:1/mcp?key={MARK}"),
            "x",
        ],
    ] {
        let output = home.run(command(&home, words).env("NAME", MARK));
        assert!(!output.to_string().contains(MARK), "{words:?}:\n{output}");
    }
    let output = toolway(&home, &["get", "far"]);
    let shown = "http://[redacted]@127.0.0.1:1/mcp?key=[redacted]&x=${NAME}";
    assert!(output.stdout.contains(shown), "{output}");
}

#[test]
fn a_changed_definition_is_explained_without_its_secrets() {
    let home = TempHome::new();
    let entry = |secret: &str| {
        let env = json!({ "KEY": secret, "SAME": marked!("same-"), "NAME": "${VAR}" });
        servers(&[("a", json!({ "command": "x", "env": env }))])
    };
    home.write(".mcp.json", entry(marked!("old-")));
    // What is approved is shown whole.
    home.run_showing_secrets(&mut command(
        &home,
        &["approve", "a", "--yes", "--allow-env", "VAR"],
    ))
    .expect_code(0);
    home.write(".mcp.json", entry(marked!("new-")));
    for words in [&["explain", "a"][..], &["explain", "a", "--json"]] {
        let output = toolway(&home, words);
        assert!(!output.to_string().contains(MARK), "{output}");
        assert!(output.stdout.contains("[redacted, changed]"), "{output}");
    }
    let shown = home.run_showing_secrets(&mut command(&home, &["approve", "a"]));
    assert!(shown.stderr.contains(marked!("new-")));
    // The record of the approval holds the whole entry too, to compare it with the next.
    home.may_keep_secrets(home.config_home().join("approvals.json"));
}

#[test]
fn no_number_of_connections_at_a_time_is_too_large() {
    let home = crate::support::home_with(toolway_testkit::Script::default());
    let mut list = command(&home, &["list"]);
    list.env("MCP_SERVER_CONNECTION_BATCH_SIZE", u64::MAX.to_string())
        .env(
            "MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE",
            u64::MAX.to_string(),
        );
    let output = home.run(&mut list).expect_code(0);
    assert!(output.stdout.contains("connected"), "{output}");
}

#[test]
fn a_server_flag_that_cannot_be_read_ends_the_command() {
    let home = TempHome::new();
    for value in ["nameless", "a='open"] {
        let output = toolway(&home, &["list", "--mcp-server", value]).expect_code(3);
        assert!(output.stderr.contains("hint:"), "{output}");
    }
}

#[test]
fn every_error_of_a_file_has_a_hint() {
    let home = TempHome::new();
    home.write(
        ".mcp.json",
        r#"{"mcpServers": {"a": 1, "b": {"x": 2}, "": {}}}"#,
    );
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"a": 1, "b": {}}}"#);
    home.write_settings(
        r#"{"enabledMcpServers": 1, "disabledMcpServers": [1], "enabledPlugins": {"p": 1},
            "permissions": {"allow": 1, "defaultMode": "x"}, "hooks": {"PreToolUse": 1}}"#,
    );
    for words in [&["list"][..], &["doctor"], &["import"]] {
        let output = toolway(&home, words);
        let lines: Vec<&str> = output.stdout.lines().chain(output.stderr.lines()).collect();
        for (index, line) in lines.iter().enumerate() {
            let next = lines.get(index + 1).copied().unwrap_or_default();
            assert!(
                !line.starts_with("error: ") || next.starts_with("hint: "),
                "`{line}` has no hint:\n{output}"
            );
        }
    }
}

#[test]
fn sec_01_an_import_takes_nothing_of_a_repository_unseen() {
    let home = TempHome::new();
    let entry = servers(&[("evil", json!({ "command": "evil" }))]);
    for path in [
        ".cursor/mcp.json",
        ".vscode/mcp.json",
        ".gemini/settings.json",
    ] {
        home.write(path, &entry);
    }
    home.write(
        home.home().join(".cursor/mcp.json"),
        servers(&[("own", json!({ "command": "own" }))]),
    );
    toolway(&home, &["import", "--yes"]);
    let names: Vec<String> = toolway(&home, &["list", "--no-connect", "--json"]).json()["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["own"]);
    let words = ["import", "cursor", "--yes", "--from", ".cursor/mcp.json"];
    let by_path = toolway(&home, &words).expect_code(0);
    assert!(by_path.stderr.contains("added"), "{by_path}");
}

#[test]
fn the_doctor_looks_for_a_program_where_it_would_be_started() {
    let home = TempHome::new();
    home.write(
        ".mcp.json",
        servers(&[("a", json!({ "command": "./run" }))]),
    );
    home.write("run", "#!/bin/sh\n");
    toolway(&home, &["approve", "a", "--yes"]).expect_code(0);
    let below = home.write("below/file", "");
    let mut doctor = command(&home, &["doctor"]);
    doctor.current_dir(below.parent().unwrap());
    home.run(&mut doctor).expect_code(0);
}
