//! Switching servers off and on: which file wins, and that a person gets what they mean.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::TempHome;

use crate::support::{command, servers, toolway};
use crate::terminal::TerminalProgram;

fn home_with_two() -> TempHome {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("one", json!({ "command": "true" })),
        ("two", json!({ "command": "true" })),
    ]));
    home
}

/// What is said of each server: `admitted`, `disabled`, …
fn verdicts(home: &TempHome) -> Vec<Value> {
    ["one", "two"]
        .map(|name| toolway(home, &["get", name, "--json"]).json()["verdict"].clone())
        .into()
}

#[test]
fn a_server_that_is_on_leaves_no_word_behind_when_it_is_switched_on() {
    let home = home_with_two();
    assert_snapshot!(toolway(&home, &["enable", "one"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    `one` is enabled already; nothing was changed
    ");
    assert!(!home.project().join(".toolway/settings.local.json").exists());
    toolway(&home, &["disable", "one"]).expect_code(0);
    toolway(&home, &["enable", "one"]).expect_code(0);
    assert_snapshot!(home.read(".toolway/settings.local.json"), @"{}");
}

#[test]
fn switching_off_everywhere_switches_off_here_too() {
    let home = home_with_two();
    toolway(&home, &["disable", "one", "-s", "user"]).expect_code(0);
    assert_snapshot!(toolway(&home, &["enable", "one"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    enabled `one` in the local scope: [PROJECT]/.toolway/settings.local.json:2
    ");
    assert_eq!(verdicts(&home), ["admitted", "admitted"]);
    assert_snapshot!(toolway(&home, &["disable", "one", "-s", "user"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    disabled `one` in the user scope: [HOME]/.config/toolway/settings.json:10 (no change)
    took back what was said of this project, which would have won: [PROJECT]/.toolway/settings.local.json
    ");
    assert_eq!(verdicts(&home), ["disabled", "admitted"]);
    toolway(&home, &["disable", "one"]).expect_code(0);
    assert_snapshot!(toolway(&home, &["enable", "one", "-s", "user"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    enabled `one` in the user scope: [HOME]/.config/toolway/settings.json
    took back what was said of this project, which would have won: [PROJECT]/.toolway/settings.local.json
    ");
    assert_eq!(verdicts(&home), ["admitted", "admitted"]);
}

#[test]
fn a_word_that_stands_above_is_named() {
    let home = home_with_two();
    home.write(
        home.system().join("managed-settings.json"),
        r#"{"disabledMcpServers": ["one"]}"#,
    );
    assert_snapshot!(toolway(&home, &["enable", "one"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    warning: `one` is still off: `one` is in `disabledMcpServers` ([SYSTEM]/managed-settings.json:1)
    ");
}

#[test]
fn without_a_name_a_person_chooses_from_the_list() {
    let home = home_with_two();
    toolway(&home, &["disable", "two"]).expect_code(0);
    let mut terminal = TerminalProgram::small(&mut command(&home, &["enable"]));
    terminal.expect("Which? ");
    assert_snapshot!(terminal.rows().join("\n"), @"
      1  one  (on, user scope)
      2  two  (off, user scope)
    Numbers or names to switch on, `all`, or Enter for none. Which?
    ");
    terminal.type_line("tow");
    terminal.expect("no server named `tow`");
    terminal.expect("Which? ");
    terminal.type_line("2");
    assert_eq!(terminal.leave().code, Some(0));
    assert_eq!(verdicts(&home), ["admitted", "admitted"]);

    let mut terminal = TerminalProgram::small(&mut command(&home, &["disable"]));
    terminal.expect("Which? ");
    terminal.type_line("one, 2");
    assert_eq!(terminal.leave().code, Some(0));
    assert_eq!(verdicts(&home), ["disabled", "disabled"]);

    let mut terminal = TerminalProgram::small(&mut command(&home, &["enable"]));
    terminal.expect("Which? ");
    terminal.type_line("");
    let left = terminal.leave();
    assert_eq!(left.code, Some(0));
    assert!(
        left.shown.ends_with("nothing was changed\r\n"),
        "{}",
        left.shown
    );

    let mut terminal = TerminalProgram::small(&mut command(&home, &["enable"]));
    terminal.expect("Which? ");
    terminal.type_line("all");
    assert_eq!(terminal.leave().code, Some(0));
    assert_eq!(verdicts(&home), ["admitted", "admitted"]);
}

#[test]
fn without_a_name_and_without_a_person_nothing_is_switched() {
    let home = home_with_two();
    assert_snapshot!(toolway(&home, &["disable"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: which server?
    hint: name it, or all of them: `toolway disable all`; `toolway list --no-connect` shows which there are
    ");
}
