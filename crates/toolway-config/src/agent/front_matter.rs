//! The front matter of a Markdown file: YAML between two lines of three dashes.
//!
//! Owns where it begins and ends, and YAML values that remember their lines. Does not own what any key
//! means (`read.rs`).

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use toolway_types::Diagnosis;

use crate::edit::yaml_text::syntax_error;
use crate::json::ValueLines;
use crate::source::TextSource;

/// What stands above and below it.
const FENCE: &str = "---";

/// The deepest that values stand in one another.
const DEEPEST: usize = 32;

/// A mapping of the front matter, in order, each value with the line of its key.
pub(super) type FrontMembers = Vec<(String, Located)>;

/// A value and its line.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) line: u32,
    pub(super) node: Node,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Node {
    Scalar(Value),
    List(Vec<Located>),
    Mapping(FrontMembers),
}

impl Located {
    /// What it is, in words for a message.
    pub(super) fn kind(&self) -> &'static str {
        match &self.node {
            Node::Scalar(value) => crate::json::kind_of(value),
            Node::List(_) => "a list",
            Node::Mapping(_) => "a mapping",
        }
    }

    /// The value as JSON has it, and its lines.
    pub(super) fn into_value(self) -> (Value, ValueLines) {
        let line = self.line;
        match self.node {
            Node::Scalar(value) => (value, ValueLines::new(line, Vec::new())),
            Node::List(items) => {
                let (values, inside) = items.into_iter().map(Self::into_value).unzip();
                (Value::Array(values), ValueLines::new(line, inside))
            }
            Node::Mapping(members) => {
                let mut map = Map::with_capacity(members.len());
                let mut inside = Vec::with_capacity(members.len());
                for (key, value) in members {
                    let (value, lines) = value.into_value();
                    // The parser refuses keys that stand twice.
                    map.insert(key, value);
                    inside.push(lines);
                }
                (Value::Object(map), ValueLines::new(line, inside))
            }
        }
    }

    /// The fence stands above it.
    fn move_down(&mut self) {
        self.line = self.line.saturating_add(1);
        match &mut self.node {
            Node::Scalar(_) => {}
            Node::List(items) => items.iter_mut().for_each(Self::move_down),
            Node::Mapping(members) => members.iter_mut().for_each(|(_, value)| value.move_down()),
        }
    }
}

/// Reads the front matter of a text.
pub(super) fn read(text: &str, source: &TextSource) -> Result<FrontMembers, Diagnosis> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let shape = "begin the file with `---`, a line `name: …`, and another `---`";
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == FENCE;
    let Some(first) = lines.next().filter(|line| is_fence(line)) else {
        return Err(Diagnosis::error("there is no front matter")
            .at(source.origin(1))
            .hint(shape));
    };
    let body = &text[first.len()..];
    let mut length = 0;
    let closed = body.split_inclusive('\n').any(|line| {
        let is_end = is_fence(line);
        if !is_end {
            length += line.len();
        }
        is_end
    });
    if !closed {
        return Err(Diagnosis::error("the front matter has no end")
            .at(source.origin(1))
            .hint("close it with a line `---`"));
    }
    let yaml = &body[..length];
    let broken = |line: u32, what: String| {
        Diagnosis::error(format!("the front matter is not valid YAML: {what}"))
            .at(source.origin(line.saturating_add(1)))
            .hint("mend the YAML at that place; texts with `:` or `#` in them need quotes")
    };
    if yaml.lines().all(|line| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#')
    }) {
        return Ok(FrontMembers::new());
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEEPEST },
    };
    let root = serde_saphyr::from_str_with_options(yaml, options);
    let mut root: Located = root.map_err(|error| {
        let error = syntax_error(&error);
        broken(error.line, error.message)
    })?;
    root.move_down();
    match root.node {
        Node::Mapping(members) => Ok(members),
        _ => Err(Diagnosis::error(format!(
            "the front matter must be a mapping, not {}",
            root.kind()
        ))
        .at(source.origin(root.line))
        .hint(shape)),
    }
}

impl<'de> Deserialize<'de> for Located {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Node>::deserialize(deserializer)?;
        Ok(Self {
            line: line_of(&spanned),
            node: spanned.value,
        })
    }
}

fn line_of<T>(spanned: &Spanned<T>) -> u32 {
    u32::try_from(spanned.referenced.line())
        .unwrap_or(u32::MAX)
        .max(1)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        // JSON has no infinity: it stays a text, so that it is found and named.
        Ok(Node::Scalar(Number::from_f64(value).map_or_else(
            || Value::String(value.to_string()),
            Value::Number,
        )))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let mut value: Located = entries.next_value()?;
            value.line = line_of(&key);
            members.push((key.value, value));
        }
        Ok(Node::Mapping(members))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn value(text: &str) -> Result<Value, String> {
        let source = TextSource::file("/a.md");
        let members = read(text, &source).map_err(|it| it.message)?;
        let node = Node::Mapping(members);
        Ok(Located { line: 1, node }.into_value().0)
    }

    #[test]
    fn values_are_those_of_json_and_know_their_lines() {
        let text = "---\nname: a\nlist:\n  - x\n  - y: 1\n    z: [true, null, 1.5]\n---\nbody\n";
        assert_eq!(
            value(text).unwrap(),
            serde_json::json!({"name": "a", "list": ["x", {"y": 1, "z": [true, null, 1.5]}]})
        );
        let members = read(text, &TextSource::file("/a.md")).unwrap();
        assert_eq!((members[0].1.line, members[1].1.line), (2, 3));
        let Node::List(items) = &members[1].1.node else {
            panic!("{members:?}");
        };
        assert_eq!((items[0].line, items[1].line), (4, 5));
        let Node::Mapping(inner) = &items[1].node else {
            panic!("{items:?}");
        };
        assert_eq!((inner[0].1.line, inner[1].1.line), (5, 6));
    }

    #[test]
    fn what_is_no_front_matter_is_said_with_its_line() {
        for (text, said, line) in [
            ("", "there is no front matter", 1),
            ("# Title\n", "there is no front matter", 1),
            ("---\nname: a\n", "the front matter has no end", 1),
            (
                "---\n- a\n---\n",
                "the front matter must be a mapping, not a list",
                2,
            ),
            (
                "---\na: 1\nb: [\n---\n",
                "the front matter is not valid YAML",
                3,
            ),
            (
                "---\na: 1\na: 2\n---\n",
                "the front matter is not valid YAML",
                3,
            ),
        ] {
            let found = read(text, &TextSource::file("/a.md")).unwrap_err();
            assert!(found.message.starts_with(said), "{text:?}: {found:?}");
            let at = found.origin.as_ref().and_then(toolway_types::Origin::line);
            assert_eq!(at, Some(line), "{text:?}: {found:?}");
        }
    }

    #[test]
    fn a_text_that_would_grow_or_nest_without_end_is_refused() {
        let mut bomb = "---\na: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (one, next) in "abcdefgh".chars().zip("bcdefghi".chars()) {
            let list = vec![format!("*{one}"); 10].join(", ");
            let _ = writeln!(bomb, "{next}: &{next} [{list}]");
        }
        bomb.push_str("---\n");
        assert!(value(&bomb).is_err());
        let deep = format!("---\na: {}{}\n---\n", "[".repeat(200), "]".repeat(200));
        assert!(value(&deep).is_err());
    }
}
