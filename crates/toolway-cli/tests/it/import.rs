//! `import`: previews, skips what is there, says what is lost, writes only after a yes.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::TempHome;

use crate::support::{servers, toolway};

fn home_with_clients() -> TempHome {
    let home = TempHome::new();
    home.write(
        home.home().join(".cursor/mcp.json"),
        servers(&[
            (
                "files",
                json!({ "command": "npx", "args": ["-y", "server-files"] }),
            ),
            ("docs", json!({ "url": "https://docs.example/mcp" })),
        ]),
    );
    home.write(
        home.home().join(".codex/config.toml"),
        "[mcp_servers.tracker]\nurl = \"https://tracker.example/mcp\"\nbearer_token_env_var = \"TRACKER\"\nstartup_timeout_sec = 20\n",
    );
    home
}

#[test]
fn a_preview_changes_nothing() {
    let home = home_with_clients();
    assert_snapshot!(toolway(&home, &["import"]), @"");
    assert!(!home.config_home().join("settings.json").exists());
}

#[test]
fn yes_adds_and_a_second_time_finds_nothing_new() {
    let home = home_with_clients();
    home.write_settings(servers(&[(
        "mine",
        json!({ "type": "http", "url": "https://docs.example/mcp" }),
    )]));
    assert_snapshot!(toolway(&home, &["import", "--yes"]), @"");
    assert_snapshot!(home.read(home.config_home().join("settings.json")), @"");
    assert_snapshot!(toolway(&home, &["import", "cursor", "--yes"]), @"");
}

#[test]
fn an_unknown_client_or_a_broken_file_is_named() {
    let home = TempHome::new();
    home.write(home.home().join(".cursor/mcp.json"), "{ \"mcpServers\": ");
    assert_snapshot!(toolway(&home, &["import", "cursr"]), @"");
    assert_snapshot!(toolway(&home, &["import", "cursor"]), @"");
}
