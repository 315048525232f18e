//! Projection: a few fields of a large result instead of all of it.
//!
//! Owns a small part of the language of `jq`: enough to say which fields are wanted, and nothing
//! that computes. There is no recursion, no definition, no variable and no way to the
//! environment, and the work is bounded by the size of the value, so that a filter which a model
//! wrote can neither run for ever nor fill the memory. A whole `jq` in the program could do both.
//!
//! | filter | gives |
//! |---|---|
//! | `.` | the value itself |
//! | `.name`, `."odd name"`, `.["odd name"]` | a field; `null` where it is absent |
//! | `.[2]`, `.[-1]` | an element; negative counts from the end |
//! | `.[2:5]`, `.[:-1]` | a part of an array, or of a text |
//! | `.[]` | every element of an array, every value of an object |
//! | `f?` | what `f` gives, and nothing where it does not fit |
//! | `f \| g` | `g` of everything that `f` gives |
//! | `f, g` | what `f` gives, then what `g` gives |
//! | `[f]` | one array of everything that `f` gives |
//! | `{id, "odd name", label: .a.b}` | an object of these fields |
//! | `(f)` | `f`, where the order has to be told |
//!
//! Reading a filter is `projection/parse.rs`, applying it `projection/apply.rs`.
//!
//! ```
//! use serde_json::json;
//! use toolway::projection::Projection;
//!
//! let wanted: Projection = ".items[] | {id, owner: .user.name}".parse()?;
//! let value = json!({"items": [{"id": 1, "user": {"name": "Ada"}, "body": "…"}]});
//! assert_eq!(wanted.apply(&value)?, [json!({"id": 1, "owner": "Ada"})]);
//!
//! let fault = ".items[".parse::<Projection>().unwrap_err();
//! assert_eq!(fault.column, 8);
//! # Ok::<(), toolway::projection::ProjectionError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

mod apply;
mod parse;
#[cfg(test)]
mod tests;

pub use parse::{MAX_DEPTH, MAX_LENGTH};

/// A filter that was understood.
#[derive(Clone, PartialEq)]
pub struct Projection {
    text: String,
    root: FilterNode,
}

/// What is wrong with a filter, or why it does not fit a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct ProjectionError {
    /// Where in the filter, in characters from 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

/// One operation, and where it stands.
#[derive(Debug, Clone, PartialEq)]
struct FilterNode {
    column: usize,
    op: FilterOp,
}

#[derive(Debug, Clone, PartialEq)]
enum FilterOp {
    Identity,
    Field(Box<FilterNode>, String),
    Index(Box<FilterNode>, i64),
    Slice(Box<FilterNode>, Option<i64>, Option<i64>),
    Each(Box<FilterNode>),
    Try(Box<FilterNode>),
    Pipe(Box<FilterNode>, Box<FilterNode>),
    Comma(Vec<FilterNode>),
    Collect(Box<FilterNode>),
    Object(Vec<(String, FilterNode)>),
}

impl Projection {
    /// Everything the filter gives of a value, in order.
    pub fn apply(&self, value: &Value) -> Result<Vec<Value>, ProjectionError> {
        apply::apply(&self.root, value)
    }

    /// The filter as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Projection {
    type Err = ProjectionError;

    fn from_str(text: &str) -> Result<Self, ProjectionError> {
        Ok(Self {
            root: parse::parse(text)?,
            text: text.to_owned(),
        })
    }
}

impl fmt::Debug for Projection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Projection")
            .field(&self.text)
            .finish()
    }
}

/// Values as lines: texts as they are, everything else as JSON.
pub fn lines(values: &[Value]) -> String {
    let mut text = String::new();
    for value in values {
        match value {
            Value::String(words) => text.push_str(words),
            other => text.push_str(&other.to_string()),
        }
        text.push('\n');
    }
    text
}
