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
    assert_snapshot!(toolway(&home, &["import"]), @"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      + files  npx -y server-files
      + docs   https://docs.example/mcp
          ~ no transport was named; `http` was taken from the URL
    Codex ([HOME]/.codex/config.toml)
      + tracker  https://tracker.example/mcp
          ! `startup_timeout_sec` was left out: the time to connect is set for all servers by `MCP_TIMEOUT`
    ----- stderr
    nothing was changed: nobody is there to confirm this
    hint: run it again with `--yes` to add them
    ");
    assert!(!home.config_home().join("settings.json").exists());
}

#[test]
fn yes_adds_and_a_second_time_finds_nothing_new() {
    let home = home_with_clients();
    home.write_settings(servers(&[(
        "mine",
        json!({ "type": "http", "url": "https://docs.example/mcp" }),
    )]));
    assert_snapshot!(toolway(&home, &["import", "--yes"]), @"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      + files  npx -y server-files
      = docs   skipped: the same as `mine` of [HOME]/.config/toolway/settings.json:3
    Codex ([HOME]/.codex/config.toml)
      + tracker  https://tracker.example/mcp
          ! `startup_timeout_sec` was left out: the time to connect is set for all servers by `MCP_TIMEOUT`
    ----- stderr
    added `files` to the user scope: [HOME]/.config/toolway/settings.json:7
    added `tracker` to the user scope: [HOME]/.config/toolway/settings.json:11
    ");
    assert_snapshot!(home.read(home.config_home().join("settings.json")), @r#"
    {
      "mcpServers": {
        "mine": {
          "type": "http",
          "url": "https://docs.example/mcp"
        },
        "files": {
          "command": "npx",
          "args": ["-y", "server-files"]
        },
        "tracker": {
          "type": "http",
          "url": "https://tracker.example/mcp",
          "headers": {
            "Authorization": "Bearer ${TRACKER}"
          }
        }
      }
    }
    "#);
    assert_snapshot!(toolway(&home, &["import", "cursor", "--yes"]), @"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      = files  skipped: already there: [HOME]/.config/toolway/settings.json:7
      = docs   skipped: the same as `mine` of [HOME]/.config/toolway/settings.json:3
    ----- stderr
    nothing to import
    ");
}

#[test]
fn an_unknown_client_or_a_broken_file_is_named() {
    let home = TempHome::new();
    home.write(home.home().join(".cursor/mcp.json"), "{ \"mcpServers\": ");
    assert_snapshot!(toolway(&home, &["import", "cursr"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value 'cursr' for '[CLIENTS]...'
      [possible values: claude-desktop, claude-code, cursor, vscode, codex, gemini, windsurf, zed, opencode, goose]
    hint: did you mean `cursor`?
    ");
    assert_snapshot!(toolway(&home, &["import", "cursor"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: [HOME]/.cursor/mcp.json:1:17: not valid: expected value after colon in object property
    hint: mend the file at that place; nothing of it was imported
    nothing to import
    ");
}

#[test]
fn nobody_is_sent_to_a_yes_that_would_not_do() {
    let home = TempHome::new();
    home.write(
        ".cursor/mcp.json",
        servers(&[("repo", json!({ "command": "true" }))]),
    );
    assert_snapshot!(toolway(&home, &["import", "cursor"]), @"
    exit: 0
    ----- stdout
    Cursor ([PROJECT]/.cursor/mcp.json)
      + repo  true
    ----- stderr
    nothing was changed: nobody is there to confirm this
    hint: these files came with this repository; look at them, then name one: `toolway import <client> --from <file> --yes`
    ");
}
