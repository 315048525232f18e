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

/// Says that a text is written in a way that cannot be changed safely.
pub(super) fn refusal(path: &Path, entry: EntryPath<'_>) -> EditError {
    EditError::Refused(format!(
        "`{}` in `{}` is written in a way that cannot be changed safely; it was left as it is",
        entry.table,
        path.display()
    ))
}
