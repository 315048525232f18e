//! `headersHelper` at the command line: when it runs, and what nobody ever sees of it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use toolway_testkit::{Script, ScriptedServer, TempHome, marked};

use crate::support::{servers, toolway};

const CANARY: &str = marked!("b81d44e0-");

fn helper(home: &TempHome, script: &str) -> String {
    let path = home.write(
        home.project().join("helper"),
        format!("#!/bin/sh\n{script}\n"),
    );
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn everything(home: &TempHome) -> String {
    let mut all = String::new();
    let mut places = vec![home.home().to_path_buf()];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                places.push(path);
            } else if !path.ends_with("helper") {
                all.push_str(&String::from_utf8_lossy(
                    &fs::read(path).unwrap_or_default(),
                ));
            }
        }
    }
    all
}

#[test]
fn sec_47_a_helpers_headers_reach_the_server_and_no_output() {
    let home = TempHome::new();
    let server = ScriptedServer::new(Script::default()).serve_http();
    let path = helper(
        &home,
        &format!(r#"echo run >> "$(dirname "$0")/runs"; echo '{{"X-Key": "{CANARY}"}}'"#),
    );
    let entry = json!({ "type": "http", "url": server.url(), "headersHelper": path });
    home.write_settings(servers(&[("web", entry)]));
    let mut shown = String::new();
    for words in [
        &["call", "web", "echo", "text=hello"][..],
        &["list", "--verbose"],
        &["list", "--json"],
        &["get", "web"],
        &["logs", "web", "--protocol"],
        &["audit", "--json"],
    ] {
        let output = toolway(&home, words);
        shown.push_str(&output.to_string());
    }
    assert!(shown.contains("hello"), "{shown}");
    assert!(!shown.contains(CANARY), "{shown}");
    assert!(home.project().join("runs").exists(), "it ran");
    assert!(!everything(&home).contains(CANARY));
}

#[test]
fn sec_15_a_helper_that_fails_is_named_and_its_words_are_not_repeated() {
    let home = TempHome::new();
    let server = ScriptedServer::new(Script::default()).serve_http();
    for (script, expected) in [
        (
            format!("echo {CANARY}; echo {CANARY} >&2; exit 1"),
            "ended with exit code 1",
        ),
        (
            format!(r#"printf %s '{{"X": "{CANARY}\r\nEvil: 1"}}'"#),
            "that a header cannot have",
        ),
        (
            format!("echo {CANARY}; head -c 1073741824 /dev/zero"),
            "printed more than 65536 bytes",
        ),
        (format!("echo {CANARY}"), "printed no JSON"),
    ] {
        let path = helper(&home, &script);
        let entry = json!({ "type": "http", "url": server.url(), "headersHelper": path });
        home.write_settings(servers(&[("web", entry)]));
        let output = toolway(&home, &["tools", "web"]).expect_code(4);
        assert!(output.stderr.contains("the headers helper `"), "{output}");
        assert!(output.stderr.contains(expected), "{output}");
        assert!(!output.to_string().contains(CANARY), "{output}");
    }
    let output = toolway(&home, &["logs", "web"]).expect_code(0);
    assert!(output.stdout.contains("printed no JSON"), "{output}");
    assert!(!everything(&home).contains(CANARY));
}

#[test]
fn sec_05_a_repositorys_helper_runs_only_once_its_entry_is_approved_as_it_stands() {
    let home = TempHome::new();
    let server = ScriptedServer::new(Script::default()).serve_http();
    helper(&home, r#"echo run >> "$(dirname "$0")/runs"; echo '{}'"#);
    let write = |command: &str| {
        let entry = json!({ "type": "http", "url": server.url(), "headersHelper": command });
        home.write(home.project().join(".mcp.json"), servers(&[("web", entry)]));
    };
    let runs = || fs::read_to_string(home.project().join("runs")).unwrap_or_default();
    write("./helper");
    toolway(&home, &["list"]);
    toolway(&home, &["tools", "web"]);
    assert_eq!(runs(), "");
    let approved = toolway(&home, &["approve", "web", "--yes"]).expect_code(0);
    let warning =
        "This also runs on this machine, with your rights, for its headers:\n  ./helper\n";
    assert!(approved.to_string().contains(warning), "{approved}");
    toolway(&home, &["tools", "web"]).expect_code(0);
    assert_eq!(runs(), "run\n");
    write("./helper --more");
    toolway(&home, &["tools", "web"]);
    assert_eq!(
        runs(),
        "run\n",
        "another command line is another definition"
    );
}
