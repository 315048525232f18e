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

#[test]
fn lists_of_the_organisation_alone_exclude_nobody_but_those_they_name() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("good", json!({ "command": "true" })),
        ("bad", json!({ "command": "false" })),
    ]));
    let policy = home.system().join("managed-mcp.json");
    let lists = json!({ "deniedMcpServers": [{ "serverName": "bad" }] });
    home.write(&policy, lists.to_string());
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @r#"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE   STATE       TOOLS  DETAIL
    bad   user   stdio  ⊘ disabled  -      denied by `{"serverName":"bad"}` in `deniedMcpServers` ([SYSTEM]/managed-mcp.json:1)
    good  user   stdio  · pending   -
    ----- stderr
    "#);
    let said = toolway(&home, &["doctor"]).expect_code(0).stdout;
    assert_snapshot!(said.split_once("\nwarning: ").unwrap().1, @r#"
    [SYSTEM]/managed-mcp.json:1: the file has lists and no `mcpServers`, so it excludes only what they say; servers of other scopes connect
    hint: write `"mcpServers": {}` too if no other server may
    "#);
    home.write(&policy, json!({ "mcpServers": {} }).to_string());
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE   STATE       TOOLS  DETAIL
    bad   user   stdio  ⊘ disabled  -      `[SYSTEM]/managed-mcp.json` excludes every server that it does not name itself
    good  user   stdio  ⊘ disabled  -      `[SYSTEM]/managed-mcp.json` excludes every server that it does not name itself
    ----- stderr
    ");
    let said = toolway(&home, &["doctor"]).expect_code(0).stdout;
    assert_snapshot!(said.split_once("\nwarning: ").unwrap().1, @"
    [SYSTEM]/managed-mcp.json:1: the file excludes every server that it does not name, and names none: nothing can connect
    hint: leave `mcpServers` out and write `allowedMcpServers` or `deniedMcpServers` if only some are to be excluded
    ");
}

fn home_with_managed_variables(env: &serde_json::Value) -> TempHome {
    let home = TempHome::new();
    home.write(
        home.system().join("managed-settings.json"),
        serde_json::to_string_pretty(&json!({ "env": env })).unwrap(),
    );
    let entry = json!({ "command": "true", "args": ["${TEAM}"] });
    home.write_settings(servers(&[("own", entry)]));
    home
}

#[test]
fn a_variable_of_the_organisation_counts_once_a_person_confirmed_it() {
    let home = home_with_managed_variables(&json!({ "TEAM": "blue", "MCP_TIMEOUT": "5000" }));
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE   STATE     TOOLS  DETAIL
    own   user   stdio  ✘ failed  -      the variable `TEAM` is not set
    ----- stderr
    warning: [SYSTEM]/managed-settings.json:3: `env.TEAM` is not applied until you confirm it
    hint: look at it with `toolway policy confirm`
    error: [HOME]/.config/toolway/settings.json:5: server `own`: the variable `TEAM` is not set
    hint: set it, or give it a default: `${TEAM:-value}`
    ");
    assert_snapshot!(toolway(&home, &["policy"]), @"
    exit: 0
    ----- stdout
    VARIABLE     STATE          SOURCE
    TEAM         waits for you  [SYSTEM]/managed-settings.json:3
    MCP_TIMEOUT  counts         [SYSTEM]/managed-settings.json:4
    ----- stderr
    hint: look at them and let them count with `toolway policy confirm`
    ");
    assert_snapshot!(toolway(&home, &["policy", "confirm"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    the organisation sets these variables in [SYSTEM]/managed-settings.json:
      TEAM: blue
    Confirmed, they count as if they stood in your environment.
    error: nobody is there to confirm this
    hint: read the above, then run `toolway policy confirm --yes`
    ");
    let mut terminal = crate::terminal::TerminalProgram::small(&mut crate::support::command(
        &home,
        &["policy", "confirm"],
    ));
    terminal.expect("Let them count from now on? [y/N] ");
    assert_snapshot!(home.normalise(&terminal.rows().join("\n")), @"
    the organisation sets these variables in
      |  [SYSTEM]/managed-settings.json:
      TEAM: blue
    Confirmed, they count as if they stood in your environment.
    Let them count from now on? [y/N]
    ");
    terminal.type_line("y");
    assert_eq!(terminal.leave().code, Some(0));
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE   STATE      TOOLS  DETAIL
    own   user   stdio  · pending  -
    ----- stderr
    ");
    assert_snapshot!(toolway(&home, &["policy"]), @"
    exit: 0
    ----- stdout
    VARIABLE     STATE      SOURCE
    TEAM         confirmed  [SYSTEM]/managed-settings.json:3
    MCP_TIMEOUT  counts     [SYSTEM]/managed-settings.json:4
    ----- stderr
    ");
    // Another value is another question.
    home.write(
        home.system().join("managed-settings.json"),
        json!({ "env": { "TEAM": "red" } }).to_string(),
    );
    let said = toolway(&home, &["list", "--no-connect"]).stderr;
    assert!(said.contains("`env.TEAM` is not applied"), "{said}");
    toolway(&home, &["policy", "confirm", "--yes"]).expect_code(0);
    let said = toolway(&home, &["list", "--no-connect"]).stderr;
    assert!(!said.contains("TEAM"), "{said}");
}

#[test]
fn a_variable_that_says_where_settings_lie_is_no_ones_to_confirm() {
    let home = home_with_managed_variables(&json!({ "TOOLWAY_HOME": "/tmp/x", "TEAM": "blue" }));
    toolway(&home, &["policy", "confirm", "--yes"]).expect_code(0);
    let output = toolway(&home, &["list", "--no-connect"]);
    assert_snapshot!(output, @"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE   STATE      TOOLS  DETAIL
    own   user   stdio  · pending  -
    ----- stderr
    warning: [SYSTEM]/managed-settings.json:3: `env.TOOLWAY_HOME` is not applied: where settings lie is settled before they are read
    ");
}
