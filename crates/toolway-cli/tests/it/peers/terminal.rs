//! A person at a terminal, and the official server that tries everything a server may ask.

use toolway_testkit::TempHome;

use super::{home_with, node, tool_names};
use crate::support::{command, toolway};
use crate::terminal::Seat;

fn home() -> TempHome {
    home_with("everything", node("server-everything", &["stdio"]))
}

/// A call that the server answers −32042, with a page of its own that is to be visited first.
fn visiting_first(home: &TempHome) -> Seat {
    let words = [
        "call",
        "everything",
        "trigger-url-elicitation",
        "url=https://example.com/then",
        "errorPath=true",
    ];
    Seat::take(command(home, &words).env("BROWSER", "true"))
}

#[test]
fn the_form_of_everything_is_filled_in_at_a_terminal() {
    let home = home();
    let words = ["call", "everything", "trigger-elicitation-request"];
    let mut seat = Seat::take(&mut command(&home, &words));
    seat.expect("server `everything` asks:\r\n  | Please provide inputs");
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
        seat.expect(question);
        if !question.starts_with('[') {
            seat.expect("> ");
        }
        seat.type_line(line);
    }
    seat.expect("Legacy Titled Single Select Enum: Dogs");
    seat.expect("[Y/n/edit] ");
    seat.type_line("y");
    let left = seat.leave();
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
    let mut seat = visiting_first(&home);
    let first = seat.expect("[y/N] ");
    assert!(
        first.contains("page: https://modelcontextprotocol.io/"),
        "{first}"
    );
    seat.type_line("n");
    let left = seat.leave();
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
    let mut seat = Seat::take(&mut command(&home, &words));
    seat.expect("waiting");
    seat.expect("`trigger-long-running-operation`");
    seat.expect("1 of 3");
    let left = seat.leave();
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
    let mut seat = visiting_first(&home);
    seat.expect("[y/N] ");
    seat.type_line("y");
    // The server never says that its page is dealt with.
    seat.expect("press Enter when you are done there");
    seat.type_line("");
    // It asks once more, in the other way.
    let second = seat.expect("[y/N] ");
    assert!(second.contains("https://example.com/then"), "{second}");
    seat.type_line("n");
    let left = seat.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
}
