//! Adding, showing, switching and removing servers: what is printed and what is written.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::TempHome;

use crate::support::{servers, toolway};

#[test]
fn a_command_is_added_to_the_local_scope() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["add", "files", "-e", "MODE=ro", "--", "npx", "-y", "server-files", "/tmp"]), @"");
    assert_snapshot!(home.read(".toolway/settings.local.json"), @"");
    assert_snapshot!(toolway(&home, &["get", "files"]), @"");
}

#[test]
fn a_url_is_added_as_http() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["add", "docs", "https://mcp.example.com/mcp", "-s", "user", "-H", "Authorization: Bearer ${TOKEN:-x}", "--client-id", "abc", "--callback-port", "7777", "--xaa"]), @"");
    assert_snapshot!(home.read(home.config_home().join("settings.json")), @"");
}

#[test]
fn the_project_file_keeps_its_comments_and_order() {
    let home = TempHome::new();
    home.write(".mcp.json", "{\n  // ours\n  \"mcpServers\": {\n    \"b\": { \"command\": \"true\" }, // second\n    \"a\": { \"command\": \"true\" }\n  },\n  \"unknown\": [1, 2]\n}\n");
    toolway(&home, &["add", "-s", "project", "c", "true"]).expect_code(0);
    assert_snapshot!(home.read(".mcp.json"), @"");
    toolway(&home, &["remove", "b"]).expect_code(0);
    assert_snapshot!(home.read(".mcp.json"), @"");
}

#[test]
fn a_server_i_add_to_the_project_is_approved_by_me() {
    let home = TempHome::new();
    toolway(&home, &["add", "-s", "project", "mine", "true"]).expect_code(0);
    assert_eq!(
        toolway(&home, &["get", "mine", "--json"]).json()["verdict"],
        "admitted"
    );
}

#[test]
fn an_existing_name_is_not_overwritten() {
    let home = TempHome::new();
    toolway(&home, &["add", "one", "true"]).expect_code(0);
    assert_snapshot!(toolway(&home, &["add", "one", "false"]), @"");
    toolway(&home, &["add", "one", "false", "--force"]).expect_code(0);
    assert_eq!(
        toolway(&home, &["get", "one", "--json"]).json()["definition"]["command"],
        "false"
    );
}

#[test]
fn flags_of_the_command_need_dashes_before_them() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["add", "files", "npx", "-y", "server-files"]), @"");
}

#[test]
fn flags_that_do_not_fit_the_transport_are_refused() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["add", "files", "true", "-H", "A: b"]), @"");
    assert_snapshot!(toolway(&home, &["add", "docs", "https://x.example/", "-e", "A=b"]), @"");
    assert_snapshot!(toolway(&home, &["add", "docs", "https://x.example/", "extra"]), @"");
    assert_snapshot!(toolway(&home, &["add", "docs", "ftp://x.example/", "-t", "http"]), @"");
}

#[test]
fn add_json_takes_an_entry() {
    let home = TempHome::new();
    toolway(
        &home,
        &[
            "add-json",
            "j",
            r#"{"command": "true", "timeout": 5000, "x-note": "kept"}"#,
        ],
    )
    .expect_code(0);
    assert_eq!(
        toolway(&home, &["get", "j", "--json"]).json()["definition"],
        json!({ "command": "true", "timeout": 5000, "x-note": "kept" })
    );
    assert_snapshot!(toolway(&home, &["add-json", "k", "{"]), @"");
    assert_snapshot!(toolway(&home, &["add-json", "k", r#"{"mcpServers": {"k": {}}}"#]), @"");
    assert_snapshot!(toolway(&home, &["add-json", "k", r#"{"args": ["x"]}"#]), @"");
}

#[test]
fn remove_says_which_scope_it_means() {
    let home = TempHome::new();
    toolway(&home, &["add", "one", "true"]).expect_code(0);
    toolway(&home, &["add", "one", "true", "-s", "user"]).expect_code(0);
    assert_snapshot!(toolway(&home, &["remove", "one"]), @"");
    assert_snapshot!(toolway(&home, &["remove", "one", "-s", "user"]), @"");
    assert_snapshot!(toolway(&home, &["remove", "one"]), @"");
    assert_snapshot!(toolway(&home, &["remove", "one"]), @"");
}

#[test]
fn a_typo_gets_the_nearest_name() {
    let home = TempHome::new();
    home.write_settings(servers(&[("github", json!({ "command": "true" }))]));
    assert_snapshot!(toolway(&home, &["get", "gihub"]), @"");
    assert_snapshot!(toolway(&home, &["remove", "gthub"]), @"");
    assert_snapshot!(toolway(&home, &["lst"]), @"");
}

#[test]
fn a_server_can_be_switched_off_and_on() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("one", json!({ "command": "true" })),
        ("two", json!({ "command": "true" })),
    ]));
    assert_snapshot!(toolway(&home, &["disable", "one"]), @"");
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"");
    toolway(&home, &["call", "one", "x"]).expect_code(6);
    assert_snapshot!(toolway(&home, &["enable", "one"]), @"");
    toolway(&home, &["disable", "all"]).expect_code(0);
    assert_snapshot!(home.read(".toolway/settings.local.json"), @"");
}

#[test]
fn secrets_are_not_shown() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("a", json!({ "command": "true", "env": { "TOKEN": "hunter2", "KEY": "${KEY:-hunter3}", "REF": "${REF:-}" } })),
        ("b", json!({ "type": "http", "url": "https://x.example/", "headers": { "Authorization": "Bearer hunter2" } })),
    ]));
    for verb in [
        &["get", "a"][..],
        &["get", "b"],
        &["get", "a", "--json"],
        &["explain", "a"],
        &["explain", "b", "--json"],
        &["list", "--no-connect", "--json"],
        &["doctor"],
    ] {
        let output = toolway(&home, verb);
        assert!(!output.to_string().contains("hunter"), "{output}");
    }
}

#[test]
fn an_approval_shows_everything_and_waits_for_a_yes() {
    let home = TempHome::new();
    home.write(".mcp.json", servers(&[("repo", json!({ "command": "node", "args": ["server.js", "--root", "${HOME}"], "env": { "A": "b" } }))]));
    assert_snapshot!(toolway(&home, &["approve", "repo"]), @"");
    assert_snapshot!(toolway(&home, &["approve", "repo", "--yes"]), @"");
    assert_snapshot!(toolway(&home, &["reject", "repo"]), @"");
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"");
    assert_snapshot!(toolway(&home, &["reset-approvals"]), @"");
}

#[test]
fn explain_tells_who_won_and_why() {
    let home = TempHome::new();
    home.write_settings(servers(&[("one", json!({ "command": "user" }))]));
    home.write(
        ".mcp.json",
        servers(&[("one", json!({ "command": "project" }))]),
    );
    assert_snapshot!(toolway(&home, &["explain", "one"]), @"");
}
