//! Cleaning what a server says about itself, before anyone sees it.
//!
//! Owns the limits on text and schemas and the recursive walk. Which characters go is
//! `toolway_types::text`. Untouched JSON stays the very bytes the server sent.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use toolway_types::text::{self, is_hidden};

/// The longest description, in characters.
pub const MAX_DESCRIPTION: usize = 2_048;
/// The longest title, in characters.
pub const MAX_TITLE: usize = 256;
/// The longest name or URI, in bytes.
pub const MAX_NAME: usize = 2_048;
/// The largest schema, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// The most values in a schema, counting every object, array and scalar.
pub const MAX_SCHEMA_NODES: usize = 2_000;

/// Why a piece of JSON cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is not an object.
    #[error("is not an object")]
    NotAnObject,
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// It is too large.
    #[error("has {0} bytes, over the limit of {MAX_SCHEMA_BYTES}")]
    TooManyBytes(usize),
    /// It has too many values.
    #[error("has over {MAX_SCHEMA_NODES} values")]
    TooManyNodes,
    /// A key that a person could not see or type again. Cleaning it would change what the tool
    /// takes, and two keys could become one.
    #[error("has an invisible character (U+{0:04X}) in a property name")]
    HiddenKey(u32),
}

/// Cleans a description and cuts it to [`MAX_DESCRIPTION`] characters.
pub fn description(text: &str) -> String {
    text::cut(&text::clean(text), MAX_DESCRIPTION).into_owned()
}

/// Cleans text that stands on one line: titles and names.
pub fn line(text: &str) -> String {
    text::cut(&text::clean_line(text), MAX_TITLE).into_owned()
}

/// Cleans words to search by: white space is folded.
pub fn words(text: &str) -> String {
    let folded = text::clean(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    text::cut(&folded, MAX_DESCRIPTION).into_owned()
}

/// Cleans every string in a schema, or in annotations. Keys are refused instead of cleaned.
pub fn schema(raw: &RawValue) -> Result<Box<RawValue>, Unfit> {
    if !raw.get().starts_with('{') {
        return Err(Unfit::NotAnObject);
    }
    let bytes = raw.get().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(Unfit::TooManyBytes(bytes));
    }
    let unreadable = |error: serde_json::Error| Unfit::Unreadable(error.to_string());
    let mut value: Value = serde_json::from_str(raw.get()).map_err(unreadable)?;
    let mut walk = Walk {
        nodes: 0,
        members: 0,
        changed: false,
    };
    walk.clean(&mut value)?;
    // Of a key that is there twice only the last was looked at.
    if walk.changed || walk.members != members_in(raw.get()) {
        to_raw_value(&value).map_err(unreadable)
    } else {
        Ok(raw.to_owned())
    }
}

/// How many members all objects of a JSON text have together, those with the same key included.
fn members_in(json: &str) -> usize {
    let (mut members, mut quoted, mut escaped) = (0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b':' if !quoted => members += 1,
            _ => {}
        }
    }
    members
}

struct Walk {
    nodes: usize,
    members: usize,
    changed: bool,
}

impl Walk {
    // The parser bounds the depth, so the recursion is bounded.
    fn clean(&mut self, value: &mut Value) -> Result<(), Unfit> {
        self.nodes += 1;
        if self.nodes > MAX_SCHEMA_NODES {
            return Err(Unfit::TooManyNodes);
        }
        match value {
            Value::String(text) => {
                let cleaned = text::clean(text);
                if *cleaned != **text {
                    *text = cleaned.into_owned();
                    self.changed = true;
                }
                Ok(())
            }
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.clean(item)),
            Value::Object(members) => members.iter_mut().try_for_each(|(key, member)| {
                self.members += 1;
                match key.chars().find(|c| is_hidden(*c)) {
                    Some(hidden) => Err(Unfit::HiddenKey(hidden as u32)),
                    None => self.clean(member),
                }
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }
}
