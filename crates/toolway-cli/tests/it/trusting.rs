//! A person's word for what a repository brings, and which variables it covers.

use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, Script, ScriptedServer, TempHome, marked};

use crate::support::{command, servers, toolway};
use crate::terminal::TerminalProgram;

/// A scripted server that declares this environment.
pub(crate) fn scripted(env: &[(&str, &str)]) -> Value {
    ScriptedServer::new(Script::default()).entry_with_env(env.iter().copied())
}

/// A repository whose `hub` reads a token, and a level that has a default.
fn repository() -> TempHome {
    let home = TempHome::new();
    let entry = scripted(&[("TOKEN", "${HUB_TOKEN}"), ("LEVEL", "${HUB_LEVEL:-warn}")]);
    home.write(".mcp.json", servers(&[("hub", entry)]));
    home
}

/// `toolway` where the token is set.
fn with_token(home: &TempHome, words: &[&str]) -> Command {
    let mut toolway = command(home, words);
    toolway.env("HUB_TOKEN", "plain");
    toolway
}

/// The environment that a server says it has.
pub(crate) fn environment_of(home: &TempHome, toolway: &mut Command) -> Value {
    let output = home.run(toolway).expect_code(0);
    output.json()["structuredContent"]["env"].clone()
}

fn without_the_command(shown: &CommandOutput) -> String {
    let shown = shown.to_string();
    let of_command = |row: &&str| {
        row.starts_with("  1  ") || row.starts_with("  2  ") || row.starts_with("  3  ")
    };
    let rows = shown.lines().filter(|row| !of_command(row));
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_the_approval_screen_names_is_what_a_yes_covers() {
    let home = repository();
    let mut terminal = TerminalProgram::small(&mut with_token(&home, &["approve", "hub"]));
    let shown = terminal.expect("Start `hub` from now on? [y/N] ");
    for row in [
        "  your yes lets it read of your environment: HUB_TOKEN\r\n",
        "  your yes lets it read, once they are set: HUB_LEVEL\r\n",
    ] {
        assert!(shown.contains(row), "{shown}");
    }
    terminal.type_line("y");
    let left = terminal.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
    assert!(!left.shown.contains("error:"), "{}", left.shown);
    let inspect = ["call", "hub", "inspect", "--json"];
    let env = environment_of(&home, &mut with_token(&home, &inspect));
    assert_eq!(
        (&env["TOKEN"], &env["LEVEL"]),
        (&json!("plain"), &json!("warn"))
    );
    let env = environment_of(&home, with_token(&home, &inspect).env("HUB_LEVEL", "debug"));
    assert_eq!(env["LEVEL"], "debug", "it stood on the screen too");
}

#[test]
fn sec_40_a_yes_that_nobody_saw_gives_no_variable_and_names_all_that_are_read() {
    let home = repository();
    let shown = home.run(&mut with_token(&home, &["approve", "hub", "--yes"]));
    assert_snapshot!(without_the_command(&shown), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    server `hub` from [PROJECT]/.mcp.json:3
      env TOKEN: ${HUB_TOKEN}
      env LEVEL: ${HUB_LEVEL:-warn}
      `--yes` alone does not let it read of your environment: HUB_LEVEL, HUB_TOKEN
    This runs on this machine, with your rights:
    error: `hub` reads `HUB_TOKEN` of your environment, which `--yes` alone does not give it
    hint: read the above, then run `toolway approve hub --allow-env HUB_LEVEL --allow-env HUB_TOKEN --yes`
    "#);
    assert!(!home.config_home().join("approvals.json").exists());
    let words = ["approve", "hub", "--yes", "--allow-env", "HUB_TOKEN"];
    home.run(&mut with_token(&home, &words)).expect_code(0);
    let inspect = ["call", "hub", "inspect", "--json"];
    let env = environment_of(&home, &mut with_token(&home, &inspect));
    assert_eq!(
        (&env["TOKEN"], &env["LEVEL"]),
        (&json!("plain"), &json!("warn"))
    );
    // The level was not named, and is set now.
    let told = &inspect[..3];
    let refused = home.run(with_token(&home, told).env("HUB_LEVEL", "debug"));
    assert_snapshot!(refused, @"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `hub` cannot be used: a project's file may not read `HUB_LEVEL` from your environment without your word
    hint: run `toolway approve hub --allow-env HUB_LEVEL`
    ");
    // What was allowed before stays allowed.
    let words = ["approve", "hub", "--yes", "--allow-env", "HUB_LEVEL"];
    let added = home.run(with_token(&home, &words).env("HUB_LEVEL", "debug"));
    added.expect_code(0);
    let env = environment_of(&home, with_token(&home, &inspect).env("HUB_LEVEL", "debug"));
    assert_eq!(
        (&env["TOKEN"], &env["LEVEL"]),
        (&json!("plain"), &json!("debug"))
    );
}

#[test]
fn sec_40_a_word_for_the_whole_repository_gives_the_variables_that_settings_name() {
    let home = repository();
    let inspect = ["call", "hub", "inspect", "--json"];
    let told = [&inspect[..3], &["--approve-project-servers"]].concat();
    let flag = [&inspect[..], &["--approve-project-servers"]].concat();
    let refused = home.run(&mut with_token(&home, &told));
    assert_snapshot!(refused, @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `hub` cannot be used: a project's file may not read `HUB_TOKEN` from your environment without your word
    hint: run `toolway approve hub --allow-env HUB_LEVEL --allow-env HUB_TOKEN`, or allow it to every repository that you trust unseen, in `[HOME]/.config/toolway/settings.json`: `"projectVariables": ["HUB_LEVEL", "HUB_TOKEN"]` (`["*"]` allows all)
    "#);
    home.write_settings(json!({ "enableAllProjectMcpServers": true }).to_string());
    home.run(&mut with_token(&home, &inspect)).expect_code(6);
    for variables in [json!(["HUB_TOKEN"]), json!(["*"])] {
        let settings = json!({ "enableAllProjectMcpServers": true, "projectVariables": variables });
        home.write_settings(settings.to_string());
        let env = environment_of(&home, &mut with_token(&home, &inspect));
        assert_eq!(env["TOKEN"], "plain");
        assert_eq!(env["LEVEL"], "warn");
    }
    home.write_settings(json!({ "projectVariables": ["HUB_*"] }).to_string());
    let env = environment_of(&home, &mut with_token(&home, &flag));
    assert_eq!(env["TOKEN"], "plain");
}

#[test]
fn a_default_needs_no_leave_while_its_variable_is_unset() {
    let home = TempHome::new();
    let entry = scripted(&[("TOKEN", "${HUB_TOKEN:-none}")]);
    home.write(".mcp.json", servers(&[("hub", entry)]));
    let inspect = [
        "call",
        "hub",
        "inspect",
        "--json",
        "--approve-project-servers",
    ];
    for value in [None, Some("")] {
        let mut call = command(&home, &inspect);
        call.envs(value.map(|value| ("HUB_TOKEN", value)));
        assert_eq!(environment_of(&home, &mut call)["TOKEN"], "none");
    }
    toolway(&home, &["approve", "hub", "--yes"]).expect_code(0);
    let call = ["call", "hub", "inspect", "--json"];
    assert_eq!(
        environment_of(&home, &mut command(&home, &call))["TOKEN"],
        "none"
    );
    let set = home.run(command(&home, &call).env("HUB_TOKEN", marked!("ghp_")));
    let said = set.expect_code(6).stderr;
    assert!(said.contains("may not read `HUB_TOKEN`"), "{said}");
}

#[test]
fn a_hint_names_what_is_not_set_beside_what_is_not_allowed() {
    let home = TempHome::new();
    let entry = json!({ "command": "true", "args": ["${ONE}", "${TWO}", "${THREE}"] });
    home.write(".mcp.json", servers(&[("many", entry)]));
    let mut list = command(
        &home,
        &["list", "--no-connect", "--approve-project-servers"],
    );
    assert_snapshot!(home.run(list.env("ONE", "1")), @r#"
    exit: 0
    ----- stdout
    NAME  SCOPE    TYPE   STATE       TOOLS  DETAIL
    many  project  stdio  ⊘ disabled  -      a project's file may not read `ONE`, `THREE`, `TWO` from your environment without your word; `THREE`, `TWO` are not set
    ----- stderr
    error: [PROJECT]/.mcp.json:3: server `many`: a project's file may not read `ONE`, `THREE`, `TWO` from your environment without your word; `THREE`, `TWO` are not set
    hint: run `toolway approve many --allow-env ONE --allow-env THREE --allow-env TWO`, or allow it to every repository that you trust unseen, in `[HOME]/.config/toolway/settings.json`: `"projectVariables": ["ONE", "THREE", "TWO"]` (`["*"]` allows all), and set `THREE`, `TWO`
    "#);
}
