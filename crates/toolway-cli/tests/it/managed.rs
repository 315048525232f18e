//! What commands that change something say when other settings overrule them.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::TempHome;

use crate::support::{servers, toolway};

#[test]
fn what_the_organisation_adds_cannot_be_switched_off() {
    let home = TempHome::new();
    home.write(
        home.system().join("managed-settings.json"),
        r#"{"mcpServers": {"corp": {"command": "true"}}}"#,
    );
    assert_snapshot!(toolway(&home, &["disable", "corp"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `corp` comes from the managed scope, which you cannot switch on or off
    hint: ask the administrator of this machine
    ");
    assert_snapshot!(toolway(&home, &["remove", "corp"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `corp` comes from the managed scope, which `remove` cannot change
    hint: ask the administrator of this machine
    ");
    toolway(&home, &["add", "mine", "true"]).expect_code(0);
    assert_snapshot!(toolway(&home, &["disable", "all"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    disabled `mine` in the local scope: [PROJECT]/.toolway/settings.local.json:8
    ");
}

#[test]
fn a_server_that_policy_refuses_is_not_added() {
    let home = TempHome::new();
    home.write(
        home.system().join("managed-settings.json"),
        json!({ "deniedMcpServers": [{ "serverName": "bad" }] }).to_string(),
    );
    assert_snapshot!(toolway(&home, &["add", "bad", "true"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `bad` is not added: denied by `{"serverName":"bad"}` in `deniedMcpServers` ([SYSTEM]/managed-settings.json:1)
    hint: ask the administrator of this machine to allow it
    "#);
}

#[test]
fn an_approval_that_settings_overrule_says_so() {
    let home = TempHome::new();
    home.write(
        ".mcp.json",
        servers(&[("repo", json!({ "command": "true" }))]),
    );
    home.write_settings(json!({ "disabledMcpjsonServers": ["repo"] }).to_string());
    assert_snapshot!(toolway(&home, &["approve", "repo", "--yes"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    server `repo` from [PROJECT]/.mcp.json:3
    This runs on this machine, with your rights:
      true
    approved `repo`: [HOME]/.config/toolway/approvals.json:6
    warning: `repo` still does not start: `repo` is in `disabledMcpjsonServers` ([HOME]/.config/toolway/settings.json:1)
    ");
}
