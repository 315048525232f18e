//! One question at a time on a terminal, and no answer from before its question.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use toolway_testkit::{Script, TempHome};

use crate::support::{command, home_with, program, servers};
use crate::terminal::TerminalProgram;

const RUN_IT: &str = "(n and a reason) [n] ";

/// A home whose server asks when the first pipe is written, and says in the second that its
/// question has been read.
fn interrupting() -> (TempHome, PathBuf, PathBuf) {
    let home = TempHome::new();
    let [sign, told] = ["sign", "told"].map(|name| {
        let pipe = home.home().join(name);
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        pipe
    });
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/interrupting_server.py"
    );
    let entry = json!({ "command": "python3", "args": ["-S", "-u", script, sign, told] });
    home.write_settings(servers(&[("s", entry)]));
    (home, sign, told)
}

#[test]
fn sec_34_a_server_that_asks_while_permission_is_asked_waits_for_its_turn() {
    let (home, sign, told) = interrupting();
    let mut terminal = TerminalProgram::small(&mut command(&home, &["call", "s", "t", "--ask"]));
    terminal.expect(RUN_IT);
    let before = terminal.rows();
    std::fs::write(sign, "now").unwrap();
    assert_eq!(std::fs::read_to_string(told).unwrap(), "read");
    // What is no answer has the question put again: whatever else was written stands above it.
    terminal.type_line("?");
    let again = terminal.expect(RUN_IT);
    assert!(!again.contains("cats"), "{again}");
    assert!(terminal.rows().starts_with(&before[..before.len() - 1]));
    terminal.type_line("y");
    let asked = terminal.expect("Tell server `s` that you agree? [y/N] ");
    assert!(
        asked.contains("server `s` asks:\r\n  | Do you like cats?"),
        "{asked}"
    );
    terminal.type_line("n");
    let left = terminal.leave();
    assert_eq!(
        (left.code, left.stdout.as_str()),
        (Some(0), "decline\n"),
        "{}",
        left.shown
    );
}

#[test]
fn sec_34_what_is_typed_ahead_keeps_no_rule() {
    let home = home_with(Script::default());
    let words = ["call", "chaos", "echo", "text=hi", "--ask"];
    let mut terminal = TerminalProgram::take(&mut command(&home, &words));
    terminal.expect(RUN_IT);
    terminal.type_keys("all\nu\n");
    terminal.expect("(l)? [u] ");
    terminal.type_line("x");
    terminal.expect("No rule is kept: it runs this once.");
    let left = terminal.leave();
    assert_eq!((left.code, left.stdout.as_str()), (Some(0), "hi\n"));
}

#[test]
fn sec_52_what_is_typed_ahead_turns_no_page_and_approves_nothing() {
    let home = TempHome::new();
    let long = "abcdefghi ".repeat(200);
    let entry = json!({ "command": "sh", "args": ["-c", long] });
    home.write(".mcp.json", servers(&[("build", entry)]));
    let mut terminal = TerminalProgram::small(&mut command(&home, &["approve", "build"]));
    terminal.expect("(page 1 of 2: Enter shows the next one, anything else is a no) ");
    terminal.type_keys("\ny\n");
    terminal.expect("Start `build` from now on? [y/N] ");
    terminal.type_line("n");
    terminal.expect("not approved, nothing was changed");
    assert_eq!(terminal.leave().code, Some(6));
}

/// Some terminals are left in a mode in which keys come one by one, not in lines.
#[test]
fn sec_52_what_is_typed_ahead_approves_nothing_on_a_terminal_without_lines() {
    let home = TempHome::new();
    let long = "abcdefghi ".repeat(400);
    let entry = json!({ "command": "sh", "args": ["-c", long] });
    home.write(".mcp.json", servers(&[("build", entry)]));
    let mut shell = home.command("sh");
    let line = "stty -icanon min 1 && exec \"$0\" approve build";
    let mut terminal = TerminalProgram::small(shell.args(["-c", line, program()]));
    terminal.expect("(page 1 of 4: Enter shows the next one, anything else is a no) ");
    // All of it answers this page, and more than Enter is a no.
    terminal.type_keys("\n\n\ny\n");
    terminal.expect("not approved, nothing was changed");
    assert_eq!(terminal.leave().code, Some(6));
}

#[test]
fn sec_52_a_log_waits_until_the_question_is_answered() {
    let home = TempHome::new();
    let sign = home.home().join("sign");
    let told = home.home().join("told");
    for pipe in [&sign, &told] {
        let made = Command::new("mkfifo").arg(pipe).status().unwrap();
        assert!(made.success());
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/vanishing_server.py");
    let entry = json!({ "command": "python3", "args": ["-S", "-u", script, sign, told] });
    home.write_settings(servers(&[("s", entry)]));
    let words = ["call", "s", "t", "--ask", "-vv"];
    let mut terminal = TerminalProgram::small(&mut command(&home, &words));
    terminal.expect(RUN_IT);
    std::fs::write(sign, "now").unwrap();
    // Told by the next server: that the first is gone has been logged.
    assert_eq!(std::fs::read_to_string(told).unwrap(), "again");
    terminal.type_line("?");
    let again = terminal.expect(RUN_IT);
    assert!(!again.contains("wants to run"), "{again}");
    assert!(again.lines().count() < 3, "{again}");
    terminal.type_line("n");
    let left = terminal.leave();
    assert!(
        left.shown.contains("of server `safe` wants to run"),
        "{}",
        left.shown
    );
}

#[test]
fn sec_36_what_is_typed_ahead_sends_no_form() {
    let home = home_with(Script {
        drama: true,
        ..Script::default()
    });
    let request = json!({
        "mode": "form",
        "message": "what do you say?",
        "requestedSchema": { "type": "object", "properties": { "word": { "type": "string" } } },
    });
    let request = format!("request:={request}");
    let mut terminal =
        TerminalProgram::take(&mut command(&home, &["call", "chaos", "elicit", &request]));
    terminal.expect("> ");
    terminal.type_keys("x\n\n");
    terminal.expect("[Y/n/edit] ");
    terminal.type_line("n");
    let answer: serde_json::Value = serde_json::from_str(&terminal.leave().stdout).unwrap();
    assert_eq!(answer, json!({ "action": "decline" }));
}
