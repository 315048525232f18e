//! What was done to clients' files, so that it can be taken back.
//!
//! Owns the file that remembers it and what one record holds: the change itself, as bytes and as
//! entries. What was moved may hold secrets, so the file is the user's alone, and no `Debug` shows
//! what is in it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolway_files::state_file;

use super::change::ChangedText;
use super::elements::{AppendedElement, MovedServer};
use super::{ClientScope, ClientTarget, GatewayEntry};
use crate::edit::{EditError, NewText};
use crate::environment::path_key;
use crate::file::MAX_BYTES;
use crate::import::ImportClient;

/// How long is waited for another process that writes down what it did.
const PATIENCE: Duration = Duration::from_secs(10);

/// Keys that people change in an entry without making it another one.
const SWITCHES: [&str; 3] = ["enabled", "disabled", "timeout"];

/// One change of one file.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ConnectRecord {
    client: String,
    scope: ClientScope,
    file: String,
    pub(super) name: String,
    /// The keys on the way to the entry.
    pub(super) place: Vec<String>,
    pub(super) entry: Value,
    pub(super) replaced: Option<Value>,
    #[serde(default)]
    pub(super) appended: Vec<AppendedElement>,
    pub(super) moved: Vec<MovedServer>,
    /// Whether there was no file before.
    made: bool,
    /// The digests of the text before and after.
    before: String,
    after: String,
    /// The part of the text that was changed, as it was before.
    part: ReplacedPart,
    /// When, in seconds since 1970.
    at: u64,
}

/// A part of a text that takes the place of another.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct ReplacedPart {
    start: usize,
    length: usize,
    was: String,
}

impl ConnectRecord {
    pub(super) fn of(
        target: &ClientTarget,
        path: &Path,
        before: Option<&str>,
        entry: &GatewayEntry,
        changed: &ChangedText,
    ) -> Self {
        let old = before.unwrap_or_default();
        Self {
            client: target.client.id().to_owned(),
            scope: target.scope,
            file: path_key(path),
            name: entry.name.clone(),
            place: changed.place.clone(),
            entry: entry.value.clone(),
            replaced: changed.replaced.clone(),
            appended: changed.appended.clone(),
            moved: changed.moved.clone(),
            made: before.is_none(),
            before: digest(old),
            after: digest(&changed.after),
            part: ReplacedPart::between(old, &changed.after),
            at: state_file::now(),
        }
    }

    /// What was there before, if this is the text that was written.
    pub(super) fn restored(&self, text: &str) -> Option<NewText> {
        if digest(text) != self.after {
            return None;
        }
        let ReplacedPart { start, length, was } = &self.part;
        let end = start.checked_add(*length)?;
        let (head, tail) = (text.get(..*start)?, text.get(end..)?);
        let old = format!("{head}{was}{tail}");
        if digest(&old) != self.before {
            return None;
        }
        Some(if self.made {
            NewText::Removed
        } else {
            NewText::Written(old)
        })
    }

    /// Whether a text is what was there before: the change was never made, or is taken back. A run
    /// that ends between the record and the write leaves such a record.
    pub(super) fn is_undone(&self, text: &str) -> bool {
        !self.made && digest(text) == self.before
    }

    /// Whether a value is what stood in the entry's place, whatever was switched in it since.
    pub(super) fn is_what_it_replaced(&self, value: &Value) -> bool {
        let before = self.replaced.as_ref();
        before.is_some_and(|before| covers(value, before))
    }

    /// Whether a value is the entry that was written, whatever was added to it or switched since.
    pub(super) fn is_its_entry(&self, value: &Value) -> bool {
        covers(value, &self.entry)
    }
}

impl ReplacedPart {
    /// What differs between two texts that begin and end alike.
    fn between(old: &str, new: &str) -> Self {
        let same = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
            let same = pairs.take_while(|(one, other)| one == other);
            same.map(|(one, _)| one.len_utf8()).sum()
        };
        let start = same(&mut old.chars().zip(new.chars()));
        let (old_rest, new_rest) = (&old[start..], &new[start..]);
        let end = same(&mut old_rest.chars().rev().zip(new_rest.chars().rev()));
        Self {
            start,
            length: new_rest.len() - end,
            was: old_rest[..old_rest.len() - end].to_owned(),
        }
    }
}

fn covers(value: &Value, written: &Value) -> bool {
    match (value, written) {
        (Value::Object(value), Value::Object(written)) => written
            .iter()
            .filter(|(key, _)| !SWITCHES.contains(&key.as_str()))
            .all(|(key, written)| value.get(key).is_some_and(|value| covers(value, written))),
        (value, written) => value == written,
    }
}

fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// Whether an entry is one that we wrote under this name.
pub(super) fn wrote(records: &[ConnectRecord], name: &str, value: &Value) -> bool {
    let mut own = records.iter().filter(|record| record.name == name);
    own.any(|record| record.is_its_entry(value))
}

/// What was done to a file, the oldest first.
pub(super) fn of_file(records: &Path, file: &Path) -> Result<Vec<ConnectRecord>, EditError> {
    let key = path_key(file);
    let all = read(records)?;
    Ok(all
        .into_iter()
        .filter(|record| record.file == key)
        .collect())
}

/// The file of a client that was changed last.
pub(super) fn last_file(
    records: &Path,
    client: ImportClient,
    scope: ClientScope,
) -> Result<Option<PathBuf>, EditError> {
    let all = read(records)?;
    let mut own = all.iter().rev();
    let last = own.find(|record| record.client == client.id() && record.scope == scope);
    Ok(last.map(|record| PathBuf::from(&record.file)))
}

/// Writes down what is about to be done.
pub(super) fn add(records: &Path, record: &ConnectRecord) -> Result<(), EditError> {
    change(records, |all| all.push(record.clone()))
}

/// Takes records out again.
pub(super) fn forget(records: &Path, done: &[ConnectRecord]) -> Result<(), EditError> {
    if done.is_empty() {
        return Ok(());
    }
    change(records, |all| all.retain(|record| !done.contains(record)))
}

fn change(records: &Path, change: impl FnOnce(&mut Vec<ConnectRecord>)) -> Result<(), EditError> {
    let written = state_file::replace_within(records, PATIENCE, || {
        let mut all = read(records).map_err(io::Error::other)?;
        change(&mut all);
        let whole = Map::from_iter([("changes".to_owned(), serde_json::to_value(all)?)]);
        let text = serde_json::to_string_pretty(&whole)?;
        // What cannot be read again would stop every further change of every client.
        if text.len() as u64 > MAX_BYTES {
            let much = "it would grow larger than can be read again; take something back first";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, much));
        }
        Ok(Some(text))
    });
    written.map_err(failed(records))
}

fn read(records: &Path) -> Result<Vec<ConnectRecord>, EditError> {
    #[derive(Deserialize)]
    struct Whole {
        changes: Vec<ConnectRecord>,
    }
    let text = match state_file::read(records, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(failed(records))?,
    };
    let whole: Whole = serde_json::from_str(&text).map_err(|error| EditError::Invalid {
        path: records.to_owned(),
        line: u32::try_from(error.line()).unwrap_or(u32::MAX),
        column: u32::try_from(error.column()).unwrap_or(u32::MAX),
        message: "it is no record of `toolway connect`".to_owned(),
    })?;
    Ok(whole.changes)
}

fn failed(records: &Path) -> impl Fn(io::Error) -> EditError + use<> {
    let path = records.to_owned();
    move |source| EditError::Io {
        path: path.clone(),
        source,
    }
}
