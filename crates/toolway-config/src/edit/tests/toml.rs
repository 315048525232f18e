//! Entries of TOML files: what is set, what is cut, and what stays around it.

use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::edit::EditError;
use crate::edit::spelled::EntryPath;
use crate::edit::toml_text::TomlText;

const CODEX: &str = r#"# How I like it.
model = "o5"   # the big one
notify = [
  "sh", # not a [header]
  "-c",
]

[mcp_servers.files] # mine
command = "npx"
# which folder
args = ["-y", "server-files", """
[mcp_servers.fake]
"""]

[mcp_servers.files.env]
TOKEN = "abc"

# The tracker.
[mcp_servers."issue tracker"]
url = "https://tracker.example/mcp"

# Colours.
[tui]
theme = "dark"
"#;

fn open(text: &str) -> TomlText {
    TomlText::parse(Path::new("config.toml"), text).unwrap()
}

fn entry(name: &str) -> EntryPath<'_> {
    EntryPath {
        table: "mcp_servers",
        name,
    }
}

fn gateway() -> Value {
    json!({"command": "toolway", "args": ["serve"], "env": {"A B": "x\"y", "C": "\u{7f}"}})
}

#[test]
fn an_entry_goes_behind_its_neighbours() {
    let mut text = open(CODEX);
    text.set(entry("toolway"), &gateway()).unwrap();
    assert_snapshot!(text.text(), @r##"
    # How I like it.
    model = "o5"   # the big one
    notify = [
      "sh", # not a [header]
      "-c",
    ]

    [mcp_servers.files] # mine
    command = "npx"
    # which folder
    args = ["-y", "server-files", """
    [mcp_servers.fake]
    """]

    [mcp_servers.files.env]
    TOKEN = "abc"

    # The tracker.
    [mcp_servers."issue tracker"]
    url = "https://tracker.example/mcp"

    [mcp_servers.toolway]
    command = "toolway"
    args = ["serve"]
    env = { "A B" = "x\"y", C = "\u007F" }

    # Colours.
    [tui]
    theme = "dark"
    "##);
    assert_eq!(text.line_of(entry("toolway")), Some(22));
    assert!(text.remove(entry("toolway")).unwrap());
    assert_eq!(text.text(), CODEX);
}

#[test]
fn what_is_cut_goes_with_its_own_lines_and_no_others() {
    let mut text = open(CODEX);
    assert!(text.remove(entry("files")).unwrap());
    assert!(!text.remove(entry("files")).unwrap());
    assert_snapshot!(text.text(), @r##"
    # How I like it.
    model = "o5"   # the big one
    notify = [
      "sh", # not a [header]
      "-c",
    ]

    # The tracker.
    [mcp_servers."issue tracker"]
    url = "https://tracker.example/mcp"

    # Colours.
    [tui]
    theme = "dark"
    "##);
    assert!(text.remove(entry("issue tracker")).unwrap());
    assert!(text.text().contains("# The tracker.\n"), "{}", text.text());
    assert_eq!(
        *text.value(),
        json!({"model": "o5", "notify": ["sh", "-c"], "tui": {"theme": "dark"}})
    );
}

#[test]
fn a_changed_entry_stays_where_it_was() {
    let mut text = open("[mcp_servers.a]\ncommand = \"a\"\n\n[mcp_servers.b]\ncommand = \"b\"\n");
    text.set(entry("a"), &json!({"command": "c"})).unwrap();
    assert_eq!(
        text.text(),
        "[mcp_servers.a]\ncommand = \"c\"\n\n[mcp_servers.b]\ncommand = \"b\"\n"
    );
}

#[test]
fn every_way_to_write_a_table_is_changed_rightly_or_refused() {
    for (text, name, expected) in [
        ("", "x", None),
        (
            "mcp_servers.x.command = 'a'\nmcp_servers.y.command = 'b'\n",
            "x",
            Some("mcp_servers.y.command = 'b'\n"),
        ),
        (
            "[mcp_servers]\nx = { command = 'a' } # one\ny = { command = 'b' }\n",
            "x",
            Some("[mcp_servers]\ny = { command = 'b' }\n"),
        ),
        (
            "[mcp_servers]\nx.command = 'a'\nx.args = []\n",
            "x",
            Some("[mcp_servers]\n"),
        ),
        ("mcp_servers = { x = { command = 'a' } }\n", "x", Some("")),
        (
            "mcp_servers = { x = { command = 'a' }, y = {} }\n",
            "x",
            Some("refused"),
        ),
        (
            "[mcp_servers.x.env]\nA = 'b'\n[tui]\n[mcp_servers.x]\ncommand = 'a'",
            "x",
            Some("[tui]\n"),
        ),
    ] {
        let mut document = open(text);
        let done = match document.remove(entry(name)) {
            Ok(true) => Some(document.text().to_owned()),
            Ok(false) => None,
            Err(error) => {
                assert!(matches!(error, EditError::Unfit { .. }), "{error}");
                assert_eq!(document.text(), text);
                Some("refused".to_owned())
            }
        };
        assert_eq!(done.as_deref(), expected, "{text}");
    }
}

#[test]
fn an_entry_fits_every_text_or_is_refused() {
    for (text, expected) in [
        ("", "[mcp_servers.t]\ncommand = \"t\"\n"),
        ("a = 1", "a = 1\n\n[mcp_servers.t]\ncommand = \"t\"\n"),
        (
            "[a]\r\nb = 1\r\n",
            "[a]\r\nb = 1\r\n\r\n[mcp_servers.t]\r\ncommand = \"t\"\r\n",
        ),
        (
            "# nothing\n",
            "# nothing\n\n[mcp_servers.t]\ncommand = \"t\"\n",
        ),
        (
            "[mcp_servers]\n[a]\n",
            "[mcp_servers]\n\n[mcp_servers.t]\ncommand = \"t\"\n\n[a]\n",
        ),
        ("mcp_servers = { x = {} }\n", "refused"),
        ("mcp_servers = 3\n", "refused"),
    ] {
        let mut document = open(text);
        match document.set(entry("t"), &json!({"command": "t"})) {
            Ok(()) => assert_eq!(document.text(), expected),
            Err(error) => {
                assert_eq!(expected, "refused", "{error}");
                assert_eq!(document.text(), text);
            }
        }
    }
}

#[test]
fn a_broken_text_is_named_with_its_place() {
    let error = TomlText::parse(Path::new("config.toml"), "a = 1\nb = \n").unwrap_err();
    assert!(
        matches!(error, EditError::Invalid { line: 2, .. }),
        "{error}"
    );
}

/// A statement between the entries, with a comment that can be found again.
fn any_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\n".to_owned()),
        Just("# note %\n".to_owned()),
        Just("[table_%] # head %\nkey = 'v' # tail %\n".to_owned()),
        Just("[mcp_servers.s%]\ncommand = '''\n[mcp_servers.no]\n''' # own %\n".to_owned()),
        Just(
            "[mcp_servers.s%]\n# inside %\ncommand = 'c'\n\n[mcp_servers.s%.env]\nA = \"]\\\"[\"\n"
                .to_owned()
        ),
        Just("[[list_%]]\nitems = [ # in %\n  [1, 2],\n]\n".to_owned()),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    prop::collection::vec(any_piece(), 0..8).prop_map(|pieces| {
        let pieces = pieces.iter().enumerate();
        pieces
            .map(|(at, piece)| piece.replace('%', &at.to_string()))
            .collect()
    })
}

fn without_blank_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty()).collect()
}

fn comments(text: &str) -> Vec<&str> {
    let marks = ["# note", "# head", "# tail", "# own", "# inside", "# in "];
    let starts = text
        .lines()
        .filter_map(|line| line.find('#').map(|at| &line[at..]));
    starts
        .filter(|it| marks.iter().any(|mark| it.starts_with(mark)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_new_entry_changes_nothing_else_and_leaves_no_trace_when_removed(text in any_text()) {
        let mut document = open(&text);
        document.set(entry("new"), &gateway()).unwrap();
        prop_assert_eq!(comments(document.text()), comments(&text));
        prop_assert_eq!(&document.value()["mcp_servers"]["new"], &gateway());
        for line in text.lines() {
            prop_assert!(document.text().contains(line));
        }
        prop_assert!(document.remove(entry("new")).unwrap());
        prop_assert_eq!(without_blank_lines(document.text()), without_blank_lines(&text));
    }

    #[test]
    fn a_removed_entry_takes_only_its_own_comments(text in any_text(), pick in 0_usize..8) {
        let mut document = open(&text);
        let name = format!("s{pick}");
        let was_there = document.remove(entry(&name)).unwrap();
        prop_assert_eq!(was_there, text.contains(&format!("[mcp_servers.{name}]")));
        let own = [format!("# own {pick}"), format!("# inside {pick}")];
        let kept: Vec<&str> = comments(&text).into_iter().filter(|it| !own.iter().any(|own| own == it)).collect();
        prop_assert_eq!(comments(document.text()), kept);
    }
}
