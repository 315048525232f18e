//! Entries of YAML files: what is set, what is cut, and what stays around it.

use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::edit::EditError;
use crate::edit::spelled::EntryPath;
use crate::edit::yaml_text::YamlText;

const GOOSE: &str = r#"# My goose.
GOOSE_PROVIDER: openai   # paid by work
extensions:
  # comes with it
  developer:
    enabled: true
    type: builtin
    timeout: 300
  "files":
    type: stdio
    cmd: npx
    args:
    - -y
    - server-files
    envs: { TOKEN: "abc" }
    description: |
      Reads files.

      # no comment

  # the tracker
  tracker:
    type: streamable_http
    uri: https://tracker.example/mcp

# at the end
GOOSE_MODEL: gpt
"#;

fn open(text: &str) -> YamlText {
    YamlText::parse(Path::new("config.yaml"), text).unwrap()
}

fn entry(name: &str) -> EntryPath<'_> {
    EntryPath {
        table: "extensions",
        name,
    }
}

fn gateway() -> Value {
    json!({
        "enabled": true, "type": "stdio", "cmd": "toolway", "args": ["serve", "--profile", "no"],
        "envs": {"A": "x: y # z", "B": ""}, "env_keys": [], "timeout": 300,
    })
}

#[test]
fn an_entry_goes_behind_its_neighbours() {
    let mut text = open(GOOSE);
    text.set(entry("toolway"), &gateway()).unwrap();
    assert_snapshot!(text.text(), @r#"
    # My goose.
    GOOSE_PROVIDER: openai   # paid by work
    extensions:
      # comes with it
      developer:
        enabled: true
        type: builtin
        timeout: 300
      "files":
        type: stdio
        cmd: npx
        args:
        - -y
        - server-files
        envs: { TOKEN: "abc" }
        description: |
          Reads files.

          # no comment

      # the tracker
      tracker:
        type: streamable_http
        uri: https://tracker.example/mcp
      toolway:
        enabled: true
        type: stdio
        cmd: toolway
        args:
        - serve
        - "--profile"
        - "no"
        envs:
          A: "x: y # z"
          B: ""
        env_keys: []
        timeout: 300

    # at the end
    GOOSE_MODEL: gpt
    "#);
    assert_eq!(text.line_of(entry("toolway")), Some(25));
    assert!(text.remove(entry("toolway")).unwrap());
    assert_eq!(text.text(), GOOSE);
}

#[test]
fn what_is_cut_goes_with_its_own_lines_and_no_others() {
    let mut text = open(GOOSE);
    assert!(text.remove(entry("files")).unwrap());
    assert!(!text.remove(entry("files")).unwrap());
    assert!(text.remove(entry("tracker")).unwrap());
    assert_snapshot!(text.text(), @r"
    # My goose.
    GOOSE_PROVIDER: openai   # paid by work
    extensions:
      # comes with it
      developer:
        enabled: true
        type: builtin
        timeout: 300

      # the tracker

    # at the end
    GOOSE_MODEL: gpt
    ");
    assert!(text.remove(entry("developer")).unwrap());
    assert!(text.text().contains("extensions: {}\n"), "{}", text.text());
    text.set(entry("developer"), &json!({"enabled": true}))
        .unwrap();
    assert!(text.text().contains("extensions:\n"), "{}", text.text());
}

#[test]
fn an_entry_fits_every_text_or_is_refused() {
    for (text, expected) in [
        ("", "extensions:\n  t:\n    cmd: t\n"),
        ("# nothing\n", "# nothing\nextensions:\n  t:\n    cmd: t\n"),
        ("a: 1", "a: 1\nextensions:\n  t:\n    cmd: t\n"),
        ("a: 1\r\n", "a: 1\r\nextensions:\r\n  t:\r\n    cmd: t\r\n"),
        (
            "extensions:\na: 1\n",
            "extensions:\n  t:\n    cmd: t\na: 1\n",
        ),
        (
            "extensions: {} # none\na: 1\n",
            "extensions: # none\n  t:\n    cmd: t\na: 1\n",
        ),
        ("extensions: null\n", "extensions:\n  t:\n    cmd: t\n"),
        (
            "extensions:\n    b:\n        cmd: b",
            "extensions:\n    b:\n        cmd: b\n    t:\n      cmd: t\n",
        ),
        ("---\na: 1\n", "---\na: 1\nextensions:\n  t:\n    cmd: t\n"),
        (
            "extensions:\n  t: {cmd: u}\n  b: {}\n",
            "extensions:\n  t:\n    cmd: t\n  b: {}\n",
        ),
        ("extensions: {b: {cmd: b}}\n", "refused"),
        ("{a: 1}\n", "refused"),
        ("- a\n", "refused"),
        ("extensions: 3\n", "refused"),
        ("a: 1\n...\n", "refused"),
    ] {
        let mut document = open(text);
        match document.set(entry("t"), &json!({"cmd": "t"})) {
            Ok(()) => assert_eq!(document.text(), expected),
            Err(error) => {
                assert_eq!(expected, "refused", "{text}: {error}");
                assert_eq!(document.text(), text);
            }
        }
    }
}

#[test]
fn a_broken_text_is_named_with_its_place() {
    let error = YamlText::parse(Path::new("config.yaml"), "a: 1\nb: [\n").unwrap_err();
    assert!(matches!(error, EditError::Invalid { .. }), "{error}");
}

/// An entry or a line between the entries, with a comment that can be found again.
fn any_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\n".to_owned()),
        Just("  # note %\n".to_owned()),
        Just("# note %\n".to_owned()),
        Just("  s%: # own %\n    cmd: c\n    args:\n    - \"a: b\"\n    # own %\n".to_owned()),
        Just("  's%': {cmd: 'x', args: [\n    a]}\n".to_owned()),
        Just("  s%:\n    text: >-\n      folded\n\n      s1: no\n    cmd: c\n".to_owned()),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(any_piece(), 1..8);
    (pieces, any::<bool>(), any::<bool>()).prop_map(|(pieces, before, behind)| {
        let pieces = pieces.iter().enumerate();
        let pieces: String = pieces
            .map(|(at, piece)| piece.replace('%', &at.to_string()))
            .collect();
        let before = if before { "A: 1 # note before\n" } else { "" };
        let behind = if behind { "Z:\n  s1: 2\n" } else { "" };
        format!("{before}extensions:\n{pieces}{behind}")
    })
}

fn comments(text: &str) -> Vec<&str> {
    let starts = text
        .lines()
        .filter_map(|line| line.find("# ").map(|at| &line[at..]));
    starts.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_new_entry_changes_nothing_else_and_leaves_no_trace_when_removed(text in any_text()) {
        let mut document = open(&text);
        document.set(entry("new"), &gateway()).unwrap();
        for comment in comments(&text) {
            prop_assert!(document.text().contains(comment));
        }
        prop_assert_eq!(&document.value()["extensions"]["new"], &gateway());
        let had_entries = open(&text).value()["extensions"].is_object();
        prop_assert!(document.remove(entry("new")).unwrap());
        let expected = if had_entries { text } else { text.replacen("extensions:", "extensions: {}", 1) };
        prop_assert_eq!(document.text(), expected);
    }

    #[test]
    fn a_removed_entry_takes_only_its_own_comments(text in any_text(), pick in 0_usize..8) {
        let mut document = open(&text);
        let name = format!("s{pick}");
        let was_there = document.value()["extensions"].get(&name).is_some();
        prop_assert_eq!(document.remove(entry(&name)).unwrap(), was_there);
        let own = format!("# own {pick}");
        let kept: Vec<&str> = comments(&text).into_iter().filter(|it| *it != own).collect();
        prop_assert_eq!(comments(document.text()), kept);
    }
}
