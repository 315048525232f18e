//! What a change looks like in the file.

use std::path::Path;

use serde_json::{Value, json};

use crate::edit::document::Document;

fn open(text: &str) -> Document {
    Document::parse(Path::new("settings.json"), text).unwrap()
}

fn set(text: &str, path: &[&str], value: &Value) -> String {
    let mut document = open(text);
    document.set(path, value).unwrap();
    document.text().to_owned()
}

fn remove(text: &str, path: &[&str]) -> String {
    let mut document = open(text);
    assert!(document.remove(path));
    document.text().to_owned()
}

fn server() -> Value {
    json!({"command": "npx", "args": ["-y", "some-server"], "env": {"TOKEN": "${TOKEN}"}})
}

#[test]
fn an_entry_joins_an_empty_file() {
    insta::assert_snapshot!(set("", &["mcpServers", "a"], &server()), @r#"
    {
      "mcpServers": {
        "a": {
          "command": "npx",
          "args": ["-y", "some-server"],
          "env": {
            "TOKEN": "${TOKEN}"
          }
        }
      }
    }
    "#);
}

#[test]
fn an_entry_joins_a_file_of_comments() {
    insta::assert_snapshot!(set("// my servers\n", &["a"], &json!(1)), @r#"
    // my servers
    {
      "a": 1
    }
    "#);
}

#[test]
fn an_entry_joins_an_empty_object() {
    insta::assert_snapshot!(set("{\n  \"mcpServers\": {}\n}\n", &["mcpServers", "a"], &server()), @r#"
    {
      "mcpServers": {
        "a": {
          "command": "npx",
          "args": ["-y", "some-server"],
          "env": {
            "TOKEN": "${TOKEN}"
          }
        }
      }
    }
    "#);
}

#[test]
fn an_entry_joins_an_object_that_holds_only_a_comment() {
    let text = "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n";
    insta::assert_snapshot!(set(text, &["mcpServers", "a"], &json!({"url": "x"})), @r#"
    {
      "mcpServers": {
        // none yet
        "a": {
          "url": "x"
        }
      }
    }
    "#);
}

#[test]
fn a_server_breaks_open_a_file_on_one_line() {
    let text = r#"{"mcpServers":{"a":{"command":"a"},"b":{"command":"b"}},"theme":"dark"}"#;
    insta::assert_snapshot!(set(text, &["mcpServers", "c"], &server()), @r#"
    {
      "mcpServers":{
        "a":{"command":"a"},
        "b":{"command":"b"},
        "c": {
          "command": "npx",
          "args": ["-y", "some-server"],
          "env": {
            "TOKEN": "${TOKEN}"
          }
        }
      },
      "theme":"dark"
    }
    "#);
}

#[test]
fn a_plain_value_stays_on_the_line() {
    insta::assert_snapshot!(set(r#"{ "a": 1 }"#, &["b"], &json!(["x", "y"])), @r#"{ "a": 1, "b": ["x", "y"] }"#);
    insta::assert_snapshot!(set(r#"{ "a": 1, }"#, &["b"], &json!({})), @r#"{ "a": 1, "b": {}, }"#);
    insta::assert_snapshot!(set(r#"{"a": 1 /* one */}"#, &["b"], &json!(2)), @r#"{"a": 1, /* one */ "b": 2}"#);
}

#[test]
fn an_entry_goes_behind_the_last_comment() {
    let text = r#"{
  "a": 1, // one
  "b": 2 // two
  // "old": 3
}
"#;
    insta::assert_snapshot!(set(text, &["c"], &json!(4)), @r#"
    {
      "a": 1, // one
      "b": 2, // two
      // "old": 3
      "c": 4
    }
    "#);
}

#[test]
fn trailing_commas_go_on() {
    let text = "{\n    \"a\": {\n        \"x\": 1,\n    },\n}\n";
    insta::assert_snapshot!(set(text, &["a", "y"], &server()), @r#"
    {
        "a": {
            "x": 1,
            "y": {
                "command": "npx",
                "args": ["-y", "some-server"],
                "env": {
                    "TOKEN": "${TOKEN}"
                }
            },
        },
    }
    "#);
}

#[test]
fn tabs_go_on() {
    let text = "{\n\t\"a\": {\n\t\t\"x\": 1\n\t}\n}\n";
    assert_eq!(
        set(text, &["a", "y"], &json!({"z": true})),
        "{\n\t\"a\": {\n\t\t\"x\": 1,\n\t\t\"y\": {\n\t\t\t\"z\": true\n\t\t}\n\t}\n}\n"
    );
}

#[test]
fn line_breaks_go_on() {
    let text = "{\r\n  \"a\": {}\r\n}\r\n";
    assert_eq!(
        set(text, &["a", "b"], &json!({"c": 1})),
        "{\r\n  \"a\": {\r\n    \"b\": {\r\n      \"c\": 1\r\n    }\r\n  }\r\n}\r\n"
    );
    assert_eq!(set("\r\n", &["a"], &json!(1)), "{\r\n  \"a\": 1\r\n}\r\n");
}

#[test]
fn a_closing_brace_at_the_end_of_a_line_moves_to_its_own() {
    insta::assert_snapshot!(set("{\n  \"a\": 1}", &["b"], &json!(2)), @r#"
    {
      "a": 1,
      "b": 2
    }
    "#);
}

#[test]
fn a_changed_server_keeps_its_comments_and_unknown_keys_are_the_callers_choice() {
    let text = r#"{
  "mcpServers": {
    // the one we all use
    "a": {
      "command": "old", // was npx
      "args": ["-y", /* pinned */ "pkg@1"],
      "env": { "GONE": "1" }
    }
  }
}
"#;
    let value = json!({"command": "new", "args": ["-y", "pkg@2", "--flag"], "timeout": 5000});
    insta::assert_snapshot!(set(text, &["mcpServers", "a"], &value), @r#"
    {
      "mcpServers": {
        // the one we all use
        "a": {
          "command": "new", // was npx
          "args": ["-y", /* pinned */ "pkg@2", "--flag"],
          "timeout": 5000
        }
      }
    }
    "#);
}

#[test]
fn a_list_grows_and_shrinks_in_place() {
    let text = r#"{
  "allow": [
    "a", // first
    "b",
    "c" // last
  ]
}
"#;
    insta::assert_snapshot!(set(text, &["allow"], &json!(["a", "b", "c", "d"])), @r#"
    {
      "allow": [
        "a", // first
        "b",
        "c", // last
        "d"
      ]
    }
    "#);
    insta::assert_snapshot!(set(text, &["allow"], &json!(["a", "c"])), @r#"
    {
      "allow": [
        "a", // first
        "c" // last
      ]
    }
    "#);
    insta::assert_snapshot!(set(text, &["allow"], &json!(["a", "b"])), @r#"
    {
      "allow": [
        "a", // first
        "b"
        // last
      ]
    }
    "#);
    insta::assert_snapshot!(set(r#"{"allow": []}"#, &["allow"], &json!(["a"])), @r#"{"allow": ["a"]}"#);
}

#[test]
fn a_long_list_gets_a_line_for_each() {
    let long: Vec<String> = (0..4)
        .map(|index| format!("a-rather-long-argument-{index}"))
        .collect();
    insta::assert_snapshot!(set("{}", &["args"], &json!(long)), @r#"
    {
      "args": [
        "a-rather-long-argument-0",
        "a-rather-long-argument-1",
        "a-rather-long-argument-2",
        "a-rather-long-argument-3"
      ]
    }
    "#);
}

#[test]
fn a_removed_entry_takes_its_line_and_its_comma() {
    let text = "{\n  \"a\": 1,\n  \"b\": 2, // about b\n  // above c\n  \"c\": 3\n}\n";
    insta::assert_snapshot!(remove(text, &["a"]), @r#"
    {
      "b": 2, // about b
      // above c
      "c": 3
    }
    "#);
    insta::assert_snapshot!(remove(text, &["b"]), @r#"
    {
      "a": 1,
      // about b
      // above c
      "c": 3
    }
    "#);
    insta::assert_snapshot!(remove(text, &["c"]), @r#"
    {
      "a": 1,
      "b": 2 // about b
      // above c
    }
    "#);
}

#[test]
fn removing_on_one_line_leaves_it_tidy() {
    assert_eq!(remove(r#"{"a": 1, "b": 2}"#, &["a"]), r#"{"b": 2}"#);
    assert_eq!(remove(r#"{"a": 1, "b": 2}"#, &["b"]), r#"{"a": 1}"#);
    assert_eq!(remove(r#"{ "a": 1, "b": 2, }"#, &["b"]), r#"{ "a": 1, }"#);
    assert_eq!(remove(r#"{ "a": 1 }"#, &["a"]), "{}");
    assert_eq!(
        remove("{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", &["a", "b"]),
        "{\n  \"a\": {}\n}\n"
    );
}

#[test]
fn set_and_remove_leave_every_byte() {
    for text in [
        "{\n  \"a\": {}\n}\n",
        "{\n  \"a\": { \"x\": 1 } // note\n  // end\n}\n",
        "{\n  \"a\": 1,\n}\n",
        "\t{\r\n\t\t\"a\": [\r\n\t\t]\r\n\t}",
        "{}",
    ] {
        let mut document = open(text);
        document.set(&["new"], &server()).unwrap();
        assert!(document.remove(&["new"]));
        assert_eq!(document.text(), text);
    }
}

#[test]
fn the_line_of_the_last_entry_is_known() {
    let mut document = open("{\n  // servers\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n");
    document.set(&["mcpServers", "b"], &server()).unwrap();
    assert_eq!(document.last_set_line(), Some(5));
    document.set(&["mcpServers", "a"], &json!({})).unwrap();
    assert_eq!(document.last_set_line(), Some(4));
}
