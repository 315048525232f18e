//! Whatever a document looks like, a change alters what it is asked to and nothing else.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::edit::document::Document;
use crate::json::syntax_tree;

/// A document to write out, with a supply of white space and comments to put between its tokens.
#[derive(Debug, Clone)]
struct Written {
    value: Value,
    trivia: Vec<u8>,
    trailing_commas: Vec<bool>,
}

struct Writer<'a> {
    written: &'a Written,
    slot: usize,
    comments: usize,
    text: String,
}

impl Writer<'_> {
    fn trivia(&mut self) {
        let choice = self.written.trivia[self.slot % self.written.trivia.len()];
        self.slot += 1;
        let comment = self.comments;
        let trivia = match choice {
            0..=2 => String::new(),
            3 => " ".to_owned(),
            4 => "\n  ".to_owned(),
            5 => "\r\n\t".to_owned(),
            6 => format!("// ,{{c{comment}\n"),
            7 => format!(" /* ]c{comment}\" */ "),
            8 => format!("\n  // c{comment}\n  "),
            _ => format!("/*c{comment}\n*/"),
        };
        self.text.push_str(&trivia);
        if choice >= 6 {
            self.comments += 1;
        }
    }

    fn items<T>(&mut self, items: Vec<T>, mut write: impl FnMut(&mut Self, T)) {
        let count = items.len();
        for (index, item) in items.into_iter().enumerate() {
            write(self, item);
            self.trivia();
            let flags = &self.written.trailing_commas;
            if index + 1 < count || flags[self.slot % flags.len()] {
                self.text.push(',');
                self.trivia();
            }
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                self.text.push('{');
                self.trivia();
                self.items(map.iter().collect(), |writer, (key, value)| {
                    writer.text.push_str(&Value::from(key.as_str()).to_string());
                    writer.trivia();
                    writer.text.push(':');
                    writer.trivia();
                    writer.value(value);
                });
                self.text.push('}');
            }
            Value::Array(items) => {
                self.text.push('[');
                self.trivia();
                self.items(items.iter().collect(), Self::value);
                self.text.push(']');
            }
            scalar => self.text.push_str(&scalar.to_string()),
        }
    }
}

impl Written {
    fn text(&self) -> String {
        let mut writer = Writer {
            written: self,
            slot: 0,
            comments: 0,
            text: String::new(),
        };
        writer.trivia();
        writer.value(&self.value);
        writer.trivia();
        writer.text
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        // Strings that look like syntax.
        "[a-c\"/*,{}\\[\\]:#é]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            any_object(inner),
        ]
    })
}

fn any_object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec(("[a-e/\"]{1,2}", inner), 0..5)
        .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into())
}

fn any_document() -> impl Strategy<Value = Written> {
    (
        any_object(any_value()),
        prop::collection::vec(0u8..10, 1..40),
        prop::collection::vec(any::<bool>(), 1..8),
    )
        .prop_map(|(value, trivia, trailing_commas)| Written {
            value,
            trivia,
            trailing_commas,
        })
}

/// The paths of all objects, or of all members, of a value.
fn paths(
    value: &Value,
    above: &[String],
    objects: &mut Vec<Vec<String>>,
    members: &mut Vec<Vec<String>>,
) {
    if let Value::Object(map) = value {
        objects.push(above.to_vec());
        for (key, value) in map {
            let path: Vec<String> = above.iter().cloned().chain([key.clone()]).collect();
            members.push(path.clone());
            paths(value, &path, objects, members);
        }
    }
}

fn object_paths(value: &Value) -> Vec<Vec<String>> {
    let mut found = (Vec::new(), Vec::new());
    paths(value, &[], &mut found.0, &mut found.1);
    found.0
}

fn member_paths(value: &Value) -> Vec<Vec<String>> {
    let mut found = (Vec::new(), Vec::new());
    paths(value, &[], &mut found.0, &mut found.1);
    found.1
}

/// The naive way: into the parsed value, by key.
fn parent<'a>(value: &'a mut Value, path: &[String]) -> &'a mut Map<String, Value> {
    path.iter()
        .fold(value, |value, key| value.get_mut(key).unwrap())
        .as_object_mut()
        .unwrap()
}

/// The comments in order; every comment holds `c` and a number behind a `/`.
fn comments(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = match character {
            '"' => {
                let mut escaped = false;
                1 + rest[1..]
                    .find(|c| {
                        let ends = c == '"' && !escaped;
                        escaped = c == '\\' && !escaped;
                        ends
                    })
                    .unwrap()
                    + 1
            }
            '/' => {
                let length = match &rest[1..2] {
                    "*" => rest.find("*/").unwrap() + 2,
                    _ => rest.find('\n').unwrap_or(rest.len()),
                };
                found.push(rest[..length].trim_end().to_owned());
                length
            }
            other => other.len_utf8(),
        };
        rest = &rest[length..];
    }
    found
}

fn without_white_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn open(text: &str) -> Document {
    Document::parse(Path::new("settings.json"), text).unwrap()
}

fn strs(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn parsed(text: &str) -> Value {
    syntax_tree::parse(text).unwrap().unwrap().to_value()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_new_key_changes_nothing_else_and_leaves_no_trace_when_removed(
        written in any_document(), pick in any::<prop::sample::Index>(), value in any_value(),
    ) {
        let text = written.text();
        prop_assert_eq!(parsed(&text), written.value.clone());
        let objects = object_paths(&written.value);
        let mut path = objects[pick.index(objects.len())].clone();
        let mut expected = written.value.clone();
        parent(&mut expected, &path).insert("zz".to_owned(), value.clone());
        path.push("zz".to_owned());

        let mut document = open(&text);
        document.set(&strs(&path), &value).unwrap();
        prop_assert_eq!(parsed(document.text()), expected, "{}", document.text());
        prop_assert_eq!(comments(document.text()), comments(&text));
        prop_assert_eq!(document.get(&strs(&path)), Some(value));

        prop_assert!(document.remove(&strs(&path)));
        prop_assert_eq!(without_white_space(document.text()), without_white_space(&text));
    }

    #[test]
    fn a_changed_key_keeps_every_comment_outside_it(
        written in any_document(), pick in any::<prop::sample::Index>(), value in any_value(),
    ) {
        let members = member_paths(&written.value);
        prop_assume!(!members.is_empty());
        let text = written.text();
        let path = &members[pick.index(members.len())];
        let (last, above) = path.split_last().unwrap();
        let mut expected = written.value.clone();
        parent(&mut expected, above).insert(last.clone(), value.clone());

        let mut document = open(&text);
        document.set(&strs(path), &value).unwrap();
        prop_assert_eq!(parsed(document.text()), expected, "{}", document.text());
        let kept = comments(document.text());
        let root = syntax_tree::parse(&text).unwrap().unwrap();
        let node = path.iter().fold(&root, |node, key| &node.member(key).unwrap().value);
        let outside = comments(&format!("{}0{}", &text[..node.start], &text[node.end..]));
        prop_assert!(outside.iter().all(|comment| kept.contains(comment)), "{}", document.text());
    }

    #[test]
    fn a_removed_key_keeps_every_comment_outside_it(
        written in any_document(), pick in any::<prop::sample::Index>(),
    ) {
        let members = member_paths(&written.value);
        prop_assume!(!members.is_empty());
        let text = written.text();
        let path = &members[pick.index(members.len())];
        let (last, above) = path.split_last().unwrap();
        let mut expected = written.value.clone();
        parent(&mut expected, above).shift_remove(last);

        let mut document = open(&text);
        prop_assert!(document.remove(&strs(path)));
        prop_assert_eq!(parsed(document.text()), expected, "{}", document.text());
        let root = syntax_tree::parse(&text).unwrap().unwrap();
        let object = above.iter().fold(&root, |node, key| &node.member(key).unwrap().value);
        let member = object.member(last).unwrap();
        let outside = comments(&format!("{}0{}", &text[..member.start], &text[member.value.end..]));
        prop_assert_eq!(comments(document.text()), outside);
    }

    #[test]
    fn setting_what_is_there_changes_no_byte(written in any_document()) {
        let text = written.text();
        let mut document = open(&text);
        for path in member_paths(&written.value) {
            let value = document.get(&strs(&path)).unwrap();
            document.set(&strs(&path), &value).unwrap();
        }
        prop_assert_eq!(document.text(), text);
    }
}

#[test]
fn a_key_written_twice_counts_and_goes_as_one() {
    let mut document = open("{\"a\": 1, \"b\": 2, \"a\": 3}");
    assert_eq!(document.get(&["a"]), Some(json!(3)));
    assert_eq!(document.keys(&[]), ["a", "b"]);
    document.set(&["a"], &json!(4)).unwrap();
    assert_eq!(document.text(), "{\"a\": 1, \"b\": 2, \"a\": 4}");
    assert!(document.remove(&["a"]));
    assert_eq!(document.text(), "{\"b\": 2}");
}
