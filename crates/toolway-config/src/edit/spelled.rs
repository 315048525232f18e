//! One entry in one table at the top of a document: what its change is meant to give.
//!
//! Owns the intended value that writers of TOML and YAML are held against, and the refusal where
//! the text does not give it.

use std::path::Path;

use serde_json::{Map, Value};

use super::EditError;

/// Where an entry stands: a name in a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryPath<'a> {
    pub(crate) table: &'a str,
    pub(crate) name: &'a str,
}

impl EntryPath<'_> {
    /// The document with the entry set; none where something else stands in the table's place.
    pub(super) fn set(self, document: Value, value: &Value) -> Option<Value> {
        let mut document = match document {
            Value::Null => Map::new(),
            Value::Object(members) => members,
            _ => return None,
        };
        let table = document
            .entry(self.table)
            .or_insert_with(|| Value::Object(Map::new()));
        if table.is_null() {
            *table = Value::Object(Map::new());
        }
        let table = table.as_object_mut()?;
        table.insert(self.name.to_owned(), value.clone());
        Some(Value::Object(document))
    }

    /// The document without the entry; none where it has none.
    pub(super) fn remove(self, mut document: Value) -> Option<Value> {
        let table = document.get_mut(self.table)?.as_object_mut()?;
        table.shift_remove(self.name)?;
        Some(document)
    }

    /// Whether two documents are the same. A table of nothing and no table mean the same.
    pub(super) fn is_same(self, one: &Value, other: &Value) -> bool {
        self.pruned(one) == self.pruned(other)
    }

    fn pruned(self, document: &Value) -> Map<String, Value> {
        let mut members = document.as_object().cloned().unwrap_or_default();
        let is_nothing = members
            .get(self.table)
            .is_some_and(|table| table.is_null() || table.as_object().is_some_and(Map::is_empty));
        if is_nothing {
            members.shift_remove(self.table);
        }
        members
    }
}

/// Says why a text cannot be changed: something else stands in the table's place, or the table is
/// written in another way than is `wanted`. The line is that of the table, where it is found.
pub(super) fn refusal(
    path: &Path,
    document: &Value,
    entry: EntryPath<'_>,
    line: Option<u32>,
    wanted: &'static str,
) -> EditError {
    let path = path.to_owned();
    let line = line.unwrap_or(1);
    let members = match document {
        Value::Null => None,
        Value::Object(members) => Some(members),
        _ => return EditError::top_level(&path, 1),
    };
    let key = entry.table.to_owned();
    match members.and_then(|members| members.get(entry.table)) {
        None | Some(Value::Null | Value::Object(_)) => EditError::Unfit {
            path,
            key,
            line,
            wanted,
        },
        Some(_) => EditError::NotAnObject { path, key, line },
    }
}
