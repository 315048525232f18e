//! What connecting changes in a text, without writing it.

use std::path::Path;

use serde_json::Value;

use super::elements::{AppendedElement, MovedServer};
use super::{ClientTarget, GatewayEntry};
use crate::edit::EditError;
use crate::edit::structured_text::StructuredText;

/// A changed text, and what was changed in it.
pub(super) struct ChangedText {
    pub(super) after: String,
    /// The keys on the way to the entry.
    pub(super) place: Vec<String>,
    /// The line of the entry.
    pub(super) line: Option<u32>,
    /// What stood in the entry's place.
    pub(super) replaced: Option<Value>,
    /// What was put into lists.
    pub(super) appended: Vec<AppendedElement>,
    /// What was taken out.
    pub(super) moved: Vec<MovedServer>,
}

/// Puts the entry into a text and takes the moved servers out of it. Refuses when one of them is
/// another one by now; one that is gone need not be taken out.
pub(super) fn apply(
    target: &ClientTarget,
    path: &Path,
    text: Option<&str>,
    entry: &GatewayEntry,
    moved: &[MovedServer],
) -> Result<ChangedText, EditError> {
    let text = text.unwrap_or_default();
    let mut document = StructuredText::parse(target.format(), path, text)?;
    let table = target.table(&document);
    let place: Vec<&str> = table.into_iter().chain([entry.name.as_str()]).collect();
    let replaced = document.get(&place);
    if replaced.as_ref() != Some(&entry.value) {
        document.set(&place, &entry.value)?;
    }
    let mut appended = Vec::new();
    for element in &entry.appended {
        if element.append(&mut document)? {
            appended.push(element.clone());
        }
    }
    // Last, so that the entry stands where its neighbours were.
    let mut gone = Vec::new();
    for server in moved {
        let own = server.place();
        match document.get(&own) {
            None => {}
            Some(value) if value == server.written => {
                document.remove(&own)?;
                gone.push(server.clone());
            }
            Some(_) => {
                return Err(EditError::Changed {
                    path: path.to_owned(),
                });
            }
        }
    }
    Ok(ChangedText {
        after: document.text().to_owned(),
        line: document.line_of(&place),
        place: place.into_iter().map(str::to_owned).collect(),
        replaced,
        appended,
        moved: gone,
    })
}
