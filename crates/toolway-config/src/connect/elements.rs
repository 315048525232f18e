//! What a change takes out of a client's file beside its entry, or puts into a list of it.
//!
//! Owns how each is done and taken back. `Debug` shows no value: servers have secrets.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::edit::EditError;
use crate::edit::structured_text::StructuredText;

/// A server that was taken out of a client's file.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct MovedServer {
    /// Its name there.
    pub name: String,
    pub(super) place: Vec<String>,
    /// As the client had it.
    pub(super) written: Value,
}

impl MovedServer {
    pub(super) fn place(&self) -> Vec<&str> {
        self.place.iter().map(String::as_str).collect()
    }
}

impl fmt::Debug for MovedServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MovedServer")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// Something that stands in a list because of the entry.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AppendedElement {
    pub(super) path: Vec<String>,
    pub(super) element: Value,
    /// Where there is no list, none is needed.
    #[serde(default)]
    pub(super) only_to_a_list: bool,
}

impl AppendedElement {
    fn path(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// Puts it at the end of its list, unless it is there. Says whether it did.
    pub(super) fn append(&self, document: &mut StructuredText) -> Result<bool, EditError> {
        let mut items = match document.get(&self.path()) {
            Some(Value::Array(items)) => items,
            None if !self.only_to_a_list => Vec::new(),
            _ => return Ok(false),
        };
        if items.contains(&self.element) {
            return Ok(false);
        }
        items.push(self.element.clone());
        document.set(&self.path(), &Value::Array(items))?;
        Ok(true)
    }

    /// Takes it out of its list again.
    pub(super) fn take_back(&self, document: &mut StructuredText) -> Result<(), EditError> {
        let Some(Value::Array(mut items)) = document.get(&self.path()) else {
            return Ok(());
        };
        if let Some(at) = items.iter().position(|item| *item == self.element) {
            items.remove(at);
            document.set(&self.path(), &Value::Array(items))?;
        }
        Ok(())
    }
}
