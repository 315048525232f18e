//! Broken configuration: one clear diagnosis per fault, and nothing else is affected.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::support::{servers, toolway};

#[test]
fn broken_json_is_located_and_other_files_still_load() {
    let home = TempHome::new();
    home.write_settings(servers(&[(
        "good",
        ScriptedServer::new(Script::default()).entry(),
    )]));
    home.write(
        ".mcp.json",
        "{\n  \"mcpServers\": {\n    \"x\": { \"command\": }\n  }\n}\n",
    );
    assert_snapshot!(toolway(&home, &["doctor"]), @"");
    let listed = toolway(&home, &["list", "--json"]).expect_code(0);
    assert_eq!(
        listed.json()["servers"][0]["state"],
        "connected",
        "{listed}"
    );
    // An invalid file is never overwritten.
    let before = home.read(".mcp.json");
    assert_snapshot!(toolway(&home, &["add", "-s", "project", "y", "true"]), @"");
    assert_eq!(home.read(".mcp.json"), before);
}

#[test]
fn each_faulty_entry_is_diagnosed_and_the_good_one_works() {
    let home = TempHome::new();
    let good = ScriptedServer::new(Script::default()).entry();
    home.write_settings(format!(
        r#"{{
  // every way to get it wrong
  "mcpServers": {{
    "good": {good},
    "unknown-type": {{ "type": "htpp", "url": "https://x.example/" }},
    "no-command": {{ "args": ["x"] }},
    "no-url": {{ "type": "http" }},
    "wrong-args": {{ "command": "true", "args": "one two" }},
    "wrong-env": {{ "command": "true", "env": {{ "PORT": 80 }} }},
    "bad-url": {{ "type": "http", "url": "not a url" }},
    "undefined": {{ "command": "true", "args": ["${{NOWHERE_DEFINED}}"] }},
    "hidden ": {{ "command": "true" }},
    "key-space": {{ "command ": "true" }},
    "short": {{ "command": "true", "timeout": 5 }},
    "string": "npx server",
  }},
}}
"#
    ));
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"");
    let listed = toolway(&home, &["list", "--json"]).expect_code(0).json();
    let good = listed["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["name"] == "good")
        .unwrap();
    assert_eq!(good["state"], "connected");
    toolway(&home, &["doctor"]).expect_code(3);
    assert_snapshot!(toolway(&home, &["explain", "undefined"]), @"");
    toolway(&home, &["call", "undefined", "x"]).expect_code(3);
}

#[test]
fn the_wrong_root_key_is_named() {
    let home = TempHome::new();
    home.write(
        ".mcp.json",
        r#"{ "servers": { "x": { "command": "true" } } }"#,
    );
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"");
}

#[test]
fn a_policy_that_cannot_be_parsed_is_said_to_stop_everything() {
    let home = TempHome::new();
    home.write_settings(servers(&[("mine", json!({ "command": "true" }))]));
    home.write(
        home.system().join("managed-settings.json"),
        "{ \"deniedMcpServers\": [",
    );
    assert_snapshot!(toolway(&home, &["list"]), @"");
    assert_snapshot!(toolway(&home, &["call", "mine", "x"]), @"");
}

#[test]
fn a_missing_config_file_on_the_command_line_is_an_error() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["--mcp-config", "nowhere.json", "list"]), @"");
}
