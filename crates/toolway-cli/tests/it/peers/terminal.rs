//! A person at a terminal, and the official server that tries everything a server may ask.

use toolway_testkit::TempHome;

use super::{home_with, node, tool_names};
use crate::support::{command, toolway};
use crate::terminal::TerminalProgram;

fn home() -> TempHome {
    home_with("everything", node("server-everything", &["stdio"]))
}

/// A call that the server answers −32042, with a page of its own that is to be visited first.
fn visiting_first(home: &TempHome) -> TerminalProgram {
    let words = [
        "call",
        "everything",
        "trigger-url-elicitation",
        "url=https://example.com/then",
        "errorPath=true",
    ];
    TerminalProgram::take(command(home, &words).env("BROWSER", "true"))
}

#[test]
fn the_form_of_everything_is_filled_in_at_a_terminal() {
    let home = home();
    let words = ["call", "everything", "trigger-elicitation-request"];
    let mut terminal = TerminalProgram::take(&mut command(&home, &words));
    terminal.expect("server `everything` asks:\r\n  | Please provide inputs");
    for (question, line) in [
        ("`String` (required): text", "Ada Lovelace"),
        ("`Boolean` (optional): yes or no", "y"),
        ("[It was a dark and stormy night.]", ""),
        ("an e-mail address", "ada@example.com"),
        ("an address such as", "https://example.com"),
        ("a date such as", "1815-12-10"),
        ("a whole number, 1 to 100", "7"),
        ("[3.14]", ""),
        ("Untitled Single Select Enum", "Phoebe"),
        ("Untitled Multiple Select Enum", "1, Bass"),
        ("Titled Single Select Enum", "wonder woman"),
        ("Titled Multiple Select Enum", "Tuna, Trout"),
        ("Legacy Titled Single Select Enum", "2"),
    ] {
        terminal.expect(question);
        if !question.starts_with('[') {
            terminal.expect("> ");
        }
        terminal.type_line(line);
    }
    terminal.expect("Legacy Titled Single Select Enum: Dogs");
    terminal.expect("[Y/n/edit] ");
    terminal.type_line("y");
    let left = terminal.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
    for said in [
        "User provided the requested information",
        "- Name: Ada Lovelace",
        "- Agreed to terms: true",
        "- Birthdate: 1815-12-10",
        "- Favorite Integer: 7",
        "- Favorite Number: 3.14",
        "hero-3",
        "fish-1",
        "fish-3",
        "pet-2",
    ] {
        assert!(left.stdout.contains(said), "no {said:?}: {}", left.stdout);
    }
}

#[test]
fn a_page_that_everything_wants_visited_first_is_shown_and_may_be_declined() {
    let home = home();
    let mut terminal = visiting_first(&home);
    let first = terminal.expect("[y/N] ");
    assert!(
        first.contains("page: https://modelcontextprotocol.io/"),
        "{first}"
    );
    terminal.type_line("n");
    let left = terminal.leave();
    assert_eq!(left.code, Some(7), "{}", left.shown);
}

#[test]
fn everything_hears_of_no_model_and_its_tools_for_one_are_not_there() {
    let home = home();
    let names = tool_names(&home);
    assert!(
        !names.iter().any(|name| name.contains("sampling")),
        "{names:?}"
    );
    let call = toolway(
        &home,
        &[
            "call",
            "everything",
            "trigger-sampling-request",
            "prompt=hi",
        ],
    );
    assert_eq!(call.code, Some(2), "{call}");
    assert!(
        call.stderr
            .contains("no tool `everything.trigger-sampling-request`"),
        "{call}"
    );
}

#[test]
fn the_long_operation_of_everything_shows_how_far_it_is() {
    let home = home();
    let words = [
        "call",
        "everything",
        "trigger-long-running-operation",
        "duration=3",
        "steps=3",
    ];
    let mut terminal = TerminalProgram::take(&mut command(&home, &words));
    terminal.expect("waiting");
    terminal.expect("`trigger-long-running-operation`");
    terminal.expect("1 of 3");
    let left = terminal.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
    assert!(
        left.stdout.starts_with("Long running operation completed"),
        "{}",
        left.stdout
    );
}

#[test]
fn whoever_is_done_with_a_page_of_everything_says_so_and_waits_no_minute() {
    let home = home();
    let mut terminal = visiting_first(&home);
    terminal.expect("[y/N] ");
    terminal.type_line("y");
    // The server never says that its page is dealt with.
    terminal.expect("press Enter when you are done there");
    terminal.type_line("");
    // It asks once more, in the other way.
    let second = terminal.expect("[y/N] ");
    assert!(second.contains("https://example.com/then"), "{second}");
    terminal.type_line("n");
    let left = terminal.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
}
