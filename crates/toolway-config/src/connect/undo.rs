//! Taking back what connecting changed in a text, without writing it.

use std::path::Path;

use super::ClientTarget;
use super::record::{self, ConnectRecord};
use crate::edit::structured_text::StructuredText;
use crate::edit::{EditError, NewText};
use crate::itself::starts_toolway;

/// What was taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoneConnect {
    /// The names of the entries that led to Toolway.
    pub entries: Vec<String>,
    /// The names of the servers that were moved, and stand in the client's file again.
    pub put_back: Vec<String>,
    /// Whether the file had been changed since, so that only the entries were taken back.
    pub was_changed: bool,
    /// Whether the file was made by connecting, and is gone again.
    pub removed: bool,
}

/// The records of a file, those of one entry where it is named.
pub(super) fn records(
    records: &Path,
    file: &Path,
    name: Option<&str>,
) -> Result<Vec<ConnectRecord>, EditError> {
    let mut found = record::of_file(records, file)?;
    found.retain(|record| name.is_none_or(|name| record.name == name));
    Ok(found)
}

/// The text as it was before, newest change first; none where there is nothing to take back.
/// Refuses to take away, or to write over, what is no longer as it was written.
pub(super) fn apply(
    target: &ClientTarget,
    path: &Path,
    text: Option<&str>,
    records: &[ConnectRecord],
    name: Option<&str>,
) -> Result<Option<(NewText, UndoneConnect)>, EditError> {
    let mut undone = UndoneConnect::default();
    let mut text = text.map(str::to_owned);
    for record in records.iter().rev() {
        let restored = text.as_deref().and_then(|text| record.restored(text));
        text = if let Some(before) = restored {
            let back = record.moved.iter().map(|server| server.name.clone());
            undone.put_back.extend(back);
            undone.note_entry(&record.name);
            match before {
                NewText::Written(before) => Some(before),
                NewText::Removed => None,
            }
        } else if text.as_deref().is_some_and(|text| record.is_undone(text)) {
            text
        } else {
            undone.was_changed = true;
            without_entry(target, path, text.as_deref(), record, &mut undone)?
        };
    }
    if records.is_empty() {
        text = without_unrecorded(target, path, text, name, &mut undone)?;
    }
    if undone.entries.is_empty() && undone.put_back.is_empty() {
        return Ok(None);
    }
    undone.removed = text.is_none();
    Ok(Some((
        text.map_or(NewText::Removed, NewText::Written),
        undone,
    )))
}

impl UndoneConnect {
    fn note_entry(&mut self, name: &str) {
        if !self.entries.iter().any(|known| known == name) {
            self.entries.push(name.to_owned());
        }
    }
}

/// Takes back one change in a file that was changed since.
fn without_entry(
    target: &ClientTarget,
    path: &Path,
    text: Option<&str>,
    record: &ConnectRecord,
    undone: &mut UndoneConnect,
) -> Result<Option<String>, EditError> {
    if text.is_none() && record.moved.is_empty() {
        return Ok(None);
    }
    let refused = |what: String| EditError::Refused(format!("{what} in `{}`", path.display()));
    let mut document = StructuredText::parse(target.format(), path, text.unwrap_or_default())?;
    let place: Vec<&str> = record.place.iter().map(String::as_str).collect();
    if let Some(value) = document.get(&place) {
        if record.is_its_entry(&value) {
            match &record.replaced {
                Some(before) => document.set(&place, before)?,
                None => {
                    document.remove(&place)?;
                }
            }
            undone.note_entry(&record.name);
        } else if !record.is_what_it_replaced(&value) {
            return Err(refused(format!(
                "`{}` is no longer what `toolway connect` wrote",
                record.name
            )));
        }
    }
    for element in &record.appended {
        element.take_back(&mut document)?;
    }
    for server in &record.moved {
        match document.get(&server.place()) {
            None => {
                document.set(&server.place(), &server.written)?;
                undone.put_back.push(server.name.clone());
            }
            Some(value) if value == server.written => {}
            Some(_) => {
                return Err(refused(format!(
                    "`{}` was moved, and another server of that name stands",
                    server.name
                )));
            }
        }
    }
    Ok(Some(document.text().to_owned()))
}

/// Takes entries away that lead to Toolway, where nothing is remembered of them.
fn without_unrecorded(
    target: &ClientTarget,
    path: &Path,
    text: Option<String>,
    name: Option<&str>,
    undone: &mut UndoneConnect,
) -> Result<Option<String>, EditError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let mut document = StructuredText::parse(target.format(), path, &text)?;
    let table = target.table(&document);
    let members = document.get(&table);
    let members = members.as_ref().and_then(serde_json::Value::as_object);
    for (own, value) in members.into_iter().flatten() {
        let is_ours = value.as_object().is_some_and(starts_toolway);
        if is_ours && name.is_none_or(|name| name == own) {
            let place: Vec<&str> = table.iter().copied().chain([own.as_str()]).collect();
            document.remove(&place)?;
            undone.note_entry(own);
        }
    }
    Ok(Some(if undone.entries.is_empty() {
        text
    } else {
        document.text().to_owned()
    }))
}
