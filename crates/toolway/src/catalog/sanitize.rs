//! Cleaning what a server says about itself, before anyone sees it.
//!
//! Owns the limits on text and schemas and the recursive walk. Which characters go is
//! `toolway_types::text`, and what a schema may not say differently is in `sanitize/schema.rs`.
//! Untouched JSON stays the very bytes the server sent.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use toolway_types::limits;
use toolway_types::text::{self, is_hidden};
use toolway_wire::scan;

use crate::json_schema::MAX_SCHEMA_NODES;

mod schema;

pub use schema::{SchemaSide, ShownSchema, schema};

/// The longest description, in characters.
pub const MAX_DESCRIPTION: usize = limits::offers::DESCRIPTION;
/// The longest title, in characters.
pub const MAX_TITLE: usize = limits::offers::TITLE;
/// The longest name or URI, in bytes.
pub const MAX_NAME: usize = 2_048;
/// The largest schema, in bytes.
pub const MAX_SCHEMA_BYTES: usize = limits::offers::SCHEMA;
/// Why a piece of JSON cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitJson {
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
    /// It takes nothing but values that cannot be shown as they are.
    #[error(
        "takes at `{0}` only values with characters that are not shown, and another spelling would \
         not be the same value"
    )]
    Unsayable(String),
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

/// Cleans every string in annotations. Keys are refused instead of cleaned.
pub fn json(raw: &RawValue) -> Result<Box<RawValue>, UnfitJson> {
    let (mut value, twice) = read(raw)?;
    let changed = plain(&mut value)?;
    write(raw, &value, changed || twice)
}

/// Reads an object within the limits; and whether it has a key twice.
fn read(raw: &RawValue) -> Result<(Value, bool), UnfitJson> {
    if !raw.get().starts_with('{') {
        return Err(UnfitJson::NotAnObject);
    }
    let bytes = raw.get().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(UnfitJson::TooManyBytes(bytes));
    }
    let value: Value = serde_json::from_str(raw.get()).map_err(unreadable)?;
    let (mut nodes, mut members) = (0, 0);
    count(&value, &mut nodes, &mut members);
    if nodes > MAX_SCHEMA_NODES {
        return Err(UnfitJson::TooManyNodes);
    }
    // Of a key that is there twice only the last was looked at.
    Ok((value, members != members_in(raw.get())))
}

fn write(raw: &RawValue, value: &Value, changed: bool) -> Result<Box<RawValue>, UnfitJson> {
    if changed {
        to_raw_value(value).map_err(unreadable)
    } else {
        Ok(raw.to_owned())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn unreadable(error: serde_json::Error) -> UnfitJson {
    UnfitJson::Unreadable(error.to_string())
}

// The parser bounds the depth, so the recursion is bounded here and below.
fn count(value: &Value, nodes: &mut usize, members: &mut usize) {
    *nodes += 1;
    match value {
        Value::Array(items) => items.iter().for_each(|item| count(item, nodes, members)),
        Value::Object(object) => {
            *members += object.len();
            object.values().for_each(|one| count(one, nodes, members));
        }
        _ => {}
    }
}

/// How many members all objects of a JSON text have together, those with the same key included.
fn members_in(json: &str) -> usize {
    let tokens = scan::tokens(json.as_bytes(), 0);
    tokens.filter(|token| token.byte == b':').count()
}

/// Cleans every string of a value; whether that changed anything.
fn plain(value: &mut Value) -> Result<bool, UnfitJson> {
    let mut changed = false;
    match value {
        Value::String(text) => {
            let cleaned = text::clean(text);
            if *cleaned != **text {
                *text = cleaned.into_owned();
                changed = true;
            }
        }
        Value::Array(items) => {
            for item in items {
                changed |= plain(item)?;
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                seen(key)?;
                changed |= plain(member)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(changed)
}

/// Refuses a key or a name of which a part is not seen.
fn seen(key: &str) -> Result<(), UnfitJson> {
    match key.chars().find(|c| is_hidden(*c)) {
        Some(hidden) => Err(UnfitJson::HiddenKey(hidden as u32)),
        None => Ok(()),
    }
}
