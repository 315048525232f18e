//! Small terminals: 80 columns, and 60. No row is broken by the terminal, and what goes on stands in.
//! Where there is no terminal, a line is a line.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::{Script, ScriptedServer, TempHome};
use unicode_width::UnicodeWidthStr as _;

use crate::support::{command, servers, toolway};
use crate::terminal::TerminalProgram;

/// What a command shows on a terminal with so many columns.
fn shown(home: &TempHome, words: &[&str], columns: u16) -> String {
    let terminal = TerminalProgram::narrow_with_stdout(&mut command(home, words), columns);
    let shown = terminal.shown_to_the_end();
    // What a live view draws and takes away is no row.
    shown.rsplit('\u{1b}').next().unwrap().to_owned()
}

/// A home in which everything is long.
fn long() -> TempHome {
    let home = TempHome::new();
    let deep = format!("/{}", ["a-folder-with-a-long-name"; 5].join("/"));
    let word = "x".repeat(130);
    let script = Script {
        complaint: Some(format!(
            "{word} and some more words\n{}",
            "words ".repeat(30)
        )),
        ..Script::default()
    };
    home.write_settings(servers(&[
        (
            "a-server-with-a-name-that-nobody-would-want-to-type-more-than-once-in-a-life",
            json!({ "command": format!("{deep}/program"), "args": [word, "a b", "short"], "env": { "A": word } }),
        ),
        ("chaos", ScriptedServer::new(script).entry()),
        ("misspelt", json!({ "command": "true", "comand": word, "arguments": 1 })),
    ]));
    home.write(
        ".mcp.json",
        servers(&[("brought", json!({ "command": deep, "args": [word] }))]),
    );
    toolway(&home, &["call", "chaos", "echo", &format!("text={word}")]).expect_code(0);
    for tool in ["echo", &word] {
        toolway(&home, &["permissions", "deny", "chaos", tool]).expect_code(0);
    }
    home
}

#[test]
fn no_command_leaves_a_row_to_the_terminal_to_break() {
    let home = long();
    let name = "a-server-with-a-name-that-nobody-would-want-to-type-more-than-once-in-a-life";
    for columns in [80, 60] {
        for words in [
            &["list"][..],
            &["list", "--no-connect"],
            &["get", name],
            &["explain", name],
            &["explain", "brought"],
            &["explain", "misspelt"],
            &["permissions"],
            &["permissions", "chaos", "echo"],
            &["audit"],
            &["logs", "chaos"],
            &["logs", "chaos", "--protocol"],
            &["logs", "chaos", "--stderr"],
            &["doctor"],
            &["tools"],
            &["tools", name],
            &["tools", "chaos", "--long"],
            &["call", "chaos", "echo", "text=hi"],
            &["call", "chaos", "nothing-of-that-name-and-nothing-like-it"],
            &["get", "nobody"],
            &["call", name, "x"],
        ] {
            let shown = shown(&home, words, columns);
            for row in shown.lines() {
                let width = row.width();
                assert!(
                    width <= usize::from(columns),
                    "{words:?}: {width}: {row:?}\n{shown}"
                );
            }
            assert!(!shown.trim().is_empty(), "{words:?}");
        }
    }
}

#[test]
fn what_goes_on_stands_in_and_no_word_is_lost() {
    let home = long();
    let narrow = shown(&home, &["call", "chaos", "echo", "text=hi"], 60);
    let wide = toolway(&home, &["call", "chaos", "echo", "text=hi"]).expect_code(6);
    let words = |text: &str| {
        let text = home.normalise(text);
        text.chars()
            .filter(|c| !c.is_whitespace())
            .collect::<String>()
    };
    assert_eq!(words(&narrow), words(&wide.stderr));
    assert!(
        narrow.lines().count() > wide.stderr.lines().count(),
        "{narrow}"
    );
    for row in narrow.lines() {
        let begins = ["error: ", "hint: ", "warning: ", "  "];
        assert!(
            begins.iter().any(|start| row.starts_with(start)),
            "{narrow}"
        );
    }
    // Where no terminal breaks lines, each is one.
    for line in wide.stderr.lines() {
        let begins = ["error: ", "hint: ", "warning: "];
        assert!(begins.iter().any(|start| line.starts_with(start)), "{wide}");
    }
    let logged = toolway(&home, &["logs", "chaos", "--protocol"]).stdout;
    assert!(
        logged.lines().all(|line| line.starts_with("20")),
        "{logged}"
    );
    assert!(logged.lines().any(|line| line.len() > 200), "{logged}");
}

#[test]
fn a_command_in_a_hint_stays_on_one_row_where_it_fits() {
    let home = TempHome::new();
    home.write_settings(servers(&[("chaos", json!({ "command": "true" }))]));
    assert_snapshot!(shown(&home, &["logs", "chaos"], 60), @"
    error: server `chaos` has no log yet: nothing was connected
      to it
    hint: connect to it once, e.g. with `toolway tools chaos`
    ");
    assert_snapshot!(shown(&home, &["logs", "chaos"], 48), @"
    error: server `chaos` has no log yet: nothing
      was connected to it
    hint: connect to it once, e.g. with
      `toolway tools chaos`
    ");
}
