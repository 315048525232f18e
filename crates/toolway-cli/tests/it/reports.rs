//! `toolway doctor --bundle`: what a report holds, and that no secret is in it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use toolway_testkit::TempHome;

use crate::support::{command, servers, toolway};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/recorded_server.py");

#[test]
fn a_report_says_what_it_holds_and_is_the_owners_alone() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        (
            "shop",
            json!({ "command": "python3", "args": ["-u", SERVER] }),
        ),
        ("broken", json!({ "command": 7 })),
    ]));
    toolway(&home, &["call", "shop", "echo", "message=my words"]).expect_code(0);
    let made = toolway(&home, &["doctor", "--bundle"]).expect_code(0);
    assert_eq!(made.stdout, "");
    insta::assert_snapshot!(home.normalise(made.stderr.split(" (").next().unwrap()), @r"
    the report holds, without secrets, and without arguments and results of tools:
      Platform              version, system, variables of Toolway's by name
      Checkup               what `toolway doctor` finds
      Servers               what `toolway list --cached` and `--no-connect` print
      Settings              what `toolway explain` says of each server
      Daemon and gateways   what `toolway daemon status` and `toolway status` print
      Rules                 what `toolway permissions` prints
      Last calls            who called which tool, and how it ended
      Logs                  the last lines of servers; of messages, what they were and how long
    wrote `[PROJECT]/toolway-report.md`
    ");
    let file = home.project().join("toolway-report.md");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let text = fs::read_to_string(&file).unwrap();
    for held in [
        "# Report of Toolway",
        "## Logs",
        "$ toolway doctor",
        "$ toolway explain -- shop",
        "$ toolway daemon status",
        "tools/call",
        "broken",
    ] {
        assert!(text.contains(held), "{held}\n{text}");
    }
    assert!(!text.contains("my words"), "{text}");
    insta::assert_snapshot!(home.normalise(&toolway(&home, &["doctor", "--bundle"]).to_string()), @r"
    exit: 3
    ----- stdout
    ----- stderr
    error: `[PROJECT]/toolway-report.md` is there already
    hint: name another file: `toolway doctor --bundle <file>`
    ");
    let shown = toolway(&home, &["doctor", "--bundle", "other.md", "--dry-run"]).expect_code(0);
    assert!(shown.stdout.starts_with("# Report of Toolway\n"), "{shown}");
    assert!(!home.project().join("other.md").exists());
    assert_eq!(toolway(&home, &["doctor", "--dry-run"]).code, Some(2));
}

#[test]
fn no_canary_is_in_a_report_wherever_it_was_put() {
    let home = TempHome::new();
    let entry = json!({
        "command": "python3",
        "args": ["-u", SERVER, "--api-key", "quince-argument-1"],
        "env": { "SHOP_KEY": "quince-variable-2", "OTHER": "quince/plain 33!" },
    });
    let remote = json!({
        "type": "http",
        "url": "http://me:quince-password-4@127.0.0.1:9/mcp?key=quince-query-5",
        "headers": { "X-Own": "quince-header-6", "Authorization": concat!("Bearer ", "quince-bearer-7") },
    });
    home.write_settings(servers(&[("shop", entry), ("remote", remote)]));
    let run = |words: &[&str]| {
        let mut command = command(&home, words);
        command
            .env("MY_API_TOKEN", "quince-own-8")
            .env("TOOLWAY_AUDIT", "results")
            .env("TOOLWAY_VAULT", "file");
        command
    };
    let kept = home.run_with_input(&mut run(&["vault", "set", "note"]), "quince-vault-9\n");
    kept.expect_code(0);
    for words in [
        ["call", "shop", "echo", "message=quince in an argument"],
        ["call", "shop", "environment", "name=SHOP_KEY"],
        ["call", "shop", "environment", "name=OTHER"],
        [
            "call",
            "shop",
            "log",
            "message=token: quince-logged-10 and quince-vault-9",
        ],
    ] {
        home.run(&mut run(&words)).expect_code(0);
    }
    home.run(&mut run(&["tools", "remote", "--timeout", "5"]));
    home.run(&mut run(&["doctor", "--bundle", "report.md"]))
        .expect_code(0);
    let text = fs::read_to_string(home.project().join("report.md")).unwrap();
    assert!(!text.contains("quince"), "{text}");
    // What it is about is there all the same.
    for held in ["remote", "shop", "tools/call", "and [redacted]"] {
        assert!(text.contains(held), "{held}\n{text}");
    }
    let shown = home
        .run(&mut run(&["doctor", "--bundle", "--dry-run"]))
        .expect_code(0);
    assert!(!shown.to_string().contains("quince"), "{shown}");
}
