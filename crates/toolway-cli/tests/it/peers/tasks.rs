//! The tool of the official server that can only be called as a task, over both of its transports.

use serde_json::Value;
use toolway_testkit::TempHome;

use super::listening::Peer;
use super::{call, home_with, node};
use crate::support::command;
use crate::terminal::TerminalProgram;

const TOOL: &str = "simulate-research-query";

fn over_stdio() -> TempHome {
    home_with("everything", node("server-everything", &["stdio"]))
}

fn expect_report(home: &TempHome) {
    let report = call(home, &["everything", TOOL, "topic=tides"]).stdout;
    assert!(report.starts_with("# Research Report: tides"), "{report}");
}

/// The server asks only whoever waits for the result.
fn expect_question(home: &TempHome) {
    let words = ["call", "everything", TOOL, "topic=python", "ambiguous=true"];
    let mut terminal = TerminalProgram::take(&mut command(home, &words));
    terminal.expect("server `everything` asks:");
    terminal.expect("> ");
    terminal.type_line("Python snake species");
    terminal.expect("[Y/n/edit] ");
    terminal.type_line("y");
    let left = terminal.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
    let title = "# Research Report: python (snake)";
    assert!(left.stdout.starts_with(title), "{}", left.stdout);
}

#[test]
fn a_tool_of_everything_that_requires_a_task_is_called_as_one_over_stdio() {
    let home = over_stdio();
    expect_report(&home);
    expect_question(&home);
}

#[test]
fn a_tool_of_everything_that_requires_a_task_is_called_as_one_over_http() {
    let server = Peer::EverythingHttp.start();
    let home = home_with("everything", server.entry());
    expect_report(&home);
    expect_question(&home);
}

#[test]
fn how_far_the_task_of_everything_is_shows_at_a_terminal() {
    let home = over_stdio();
    let words = ["call", "everything", TOOL, "topic=tides"];
    let mut terminal = TerminalProgram::take(&mut command(&home, &words));
    // Of the next words, only the letters that differ are written.
    terminal.expect("Gathering");
    terminal.expect("Analyz");
    let left = terminal.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
}

#[test]
fn the_task_of_everything_is_not_lost_in_json() {
    let home = over_stdio();
    let words = ["everything", TOOL, "topic=tides", "--json"];
    let answer: Value = call(&home, &words).json();
    assert_eq!(answer["content"][0]["type"], "text", "{answer}");
}
