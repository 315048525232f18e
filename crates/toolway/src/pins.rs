//! Pins: what a tool, a prompt and the like looked like when it was first permitted (SEC-33).
//!
//! Owns the memory, in this process and in a file that all of a person's hosts share, and the
//! comparison with it. What of a tool counts is `pins/definition.rs`; what a change leads to is
//! decided in `dispatch/permission.rs`.
//!
//! Invariants: bounded, for each server and for all together, and nothing is forgotten for lack of
//! room: what cannot be remembered counts as changed. A file that is missing is as none, but what
//! was pinned once and is not any more (`pins/roster.rs`) is not as it was. A file that
//! is there and cannot be read may hold a pin of any tool: then nothing is known to be as it was,
//! and the file is left alone. What was pinned in this process stays pinned whatever becomes of
//! the file. No command, address or secret of a definition stands in it, only its digest.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolway_files::state_file::{self, now};
use toolway_types::{ServerName, ToolKey, Untrusted, text};
use tracing::warn;

use crate::tasks;

mod definition;
mod instructions;
mod roster;
#[cfg(test)]
mod tests;

pub(crate) use self::definition::Definition;
pub use self::definition::{Against, Difference};
pub(crate) use self::instructions::PinnedInstructions;
use self::roster::Roster;

/// How much is remembered of one server: twice what its tools and as many prompts can be at once.
const MOST_OF_ONE: usize = 2048;

/// How much of all servers together.
const MOST: usize = 12_000;

/// How much text of one server; what comes later is known by its digest alone.
const MOST_TEXT_OF_ONE: usize = 512 << 10;

/// The same of all together; the file is a little larger.
const MOST_TEXT: usize = 4 << 20;

/// No file of ours is larger.
const MAX_FILE: u64 = 16 << 20;

/// The longest name that is written down whole.
const MAX_NAME: usize = 256;

/// The longest word on what is wrong with the file.
const MAX_FAULT: usize = 1000;

/// How long is waited for another process that writes.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The memory; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pins(Arc<PinFile>);

#[derive(Debug, Default)]
struct PinFile {
    /// None: what is pinned is forgotten with the host.
    path: Option<PathBuf>,
    /// Which tools were ever pinned.
    roster: Roster,
    /// What the file said when it was last asked, and what was pinned since.
    known: Mutex<Option<PinRecords>>,
}

/// A place in the memory, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PinPlace {
    key: String,
    /// The server, by its definition.
    owner: String,
}

type PinRecords = BTreeMap<String, PinRecord>;

/// What is remembered of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PinRecord {
    digest: String,
    /// Whose it is; unknown of what older versions wrote.
    #[serde(default)]
    owner: String,
    /// What a later difference is shown against; empty where there was no room for it.
    text: String,
    /// When it was pinned, in seconds since 1970.
    when: u64,
    /// Whose it is, for people who look into the file.
    tool: String,
    /// The name under which it was permitted; unknown of what older versions wrote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
}

/// A tool under the name that it is shown as, which can have been another's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownTool<'a> {
    pub(crate) name: &'a str,
    pub(crate) key: &'a ToolKey,
}

impl ShownTool<'_> {
    /// The tool that was permitted under this name, if it was another one: a rule that was given
    /// for that one is not for this (SEC-31).
    fn namesake<'r>(&self, records: &'r PinRecords) -> Option<&'r PinRecord> {
        let own = told(&label_of(self.key));
        let mut records = records.values();
        records.find(|record| record.name == self.name && record.tool != own)
    }
}

/// What the pin of a tool is called.
pub(crate) fn label_of(key: &ToolKey) -> String {
    format!("{}.{}", key.server, key.tool)
}

fn told(label: &str) -> String {
    text::cut(&Untrusted::new(label).line(), MAX_NAME).into_owned()
}

#[derive(Serialize, Deserialize)]
struct PinFileContent {
    pins: PinRecords,
}

/// How a tool stands to its pin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PinState {
    /// Nothing is pinned yet.
    New,
    /// As it was.
    Same,
    /// It changed, or that is unknown.
    Changed(Difference),
}

/// Why a file that is there cannot be read.
#[derive(Debug, thiserror::Error)]
enum PinReadError {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is larger than {} MiB", MAX_FILE >> 20)]
    TooLarge,
    #[error("it cannot be understood: {0}")]
    Content(#[from] serde_json::Error),
}

impl PinPlace {
    /// The place of a tool: what its server's definition is, and the tool's own name. A server
    /// without a definition of its own is known by its name.
    pub(crate) fn of(key: &ToolKey, server: Option<&str>) -> Self {
        let server = server.unwrap_or(key.server.as_str());
        Self::made(server, &serde_json::json!([server, key.tool]))
    }

    /// The place of something else that a server offers: of a kind, by its name.
    pub(crate) fn beside(
        server: &ServerName,
        definition: Option<&str>,
        kind: &str,
        name: &str,
    ) -> Self {
        let server = definition.unwrap_or(server.as_str());
        Self::made(server, &serde_json::json!([server, kind, name]))
    }

    fn made(server: &str, whole: &serde_json::Value) -> Self {
        let owner = Sha256::digest(server);
        Self {
            key: hex::encode(Sha256::digest(whole.to_string())),
            owner: hex::encode(&owner[..8]),
        }
    }
}

impl Pins {
    /// Keeps what is pinned in this file, which need not exist; without one, in memory.
    pub(crate) fn at(path: Option<PathBuf>) -> Self {
        Self(Arc::new(PinFile {
            path,
            ..PinFile::default()
        }))
    }

    /// As well, keeps in this file which tools were ever pinned.
    #[must_use]
    pub(crate) fn with_roster(self, roster: Option<PathBuf>) -> Self {
        Self(Arc::new(PinFile {
            path: self.0.path.clone(),
            roster: Roster::at(roster),
            ..PinFile::default()
        }))
    }

    /// Compares a tool with its pin, and the name it is shown as with those of others.
    pub(crate) fn check(
        &self,
        place: &PinPlace,
        tool: &Definition,
        shown: Option<ShownTool<'_>>,
    ) -> PinState {
        let mut known = self.0.known();
        // What is wrong with the file is found again below: no tool is the same by an empty map.
        let known = known.get_or_insert_with(|| self.0.read().unwrap_or_default());
        let state = self.compare(known, place, tool);
        let Some(shown) = shown else {
            return state;
        };
        let is_known_so = |record: &PinRecord| record.name.is_empty() || record.name == shown.name;
        match state {
            PinState::Same if known.get(&place.key).is_none_or(is_known_so) => PinState::Same,
            PinState::Same | PinState::New => match shown.namesake(known) {
                Some(other) => PinState::Changed(taken_over(shown.name, other)),
                None => state,
            },
            PinState::Changed(difference) => PinState::Changed(difference),
        }
    }

    fn compare(&self, known: &mut PinRecords, place: &PinPlace, tool: &Definition) -> PinState {
        match known.get(&place.key) {
            Some(record) if record.digest == tool.digest => return PinState::Same,
            None if self.0.path.is_none() => return self.0.unless_full(known, place),
            _ => {}
        }
        // Another process may have pinned it since: it was accepted there, or is new here only.
        let absent = match self.0.read() {
            Ok(mut records) => {
                if let Some(record) = records.remove(&place.key) {
                    known.insert(place.key.clone(), record);
                    None
                } else {
                    let state = self.0.unless_full(&records, place);
                    // Others may have been pinned under its name since.
                    for (key, record) in records {
                        known.entry(key).or_insert(record);
                    }
                    Some(state)
                }
            }
            Err(error) => Some(PinState::Changed(self.0.unknown(&error))),
        };
        match (known.get(&place.key), absent) {
            (Some(record), _) if record.digest == tool.digest => PinState::Same,
            (Some(record), _) if record.text.is_empty() => {
                PinState::Changed(Difference::untold(tool))
            }
            (Some(record), _) => PinState::Changed(Difference::between(&record.text, tool)),
            // What was pinned once and is not any more is not new.
            (None, Some(PinState::New)) => match self.0.roster.holds(&place.key) {
                Ok(false) => PinState::New,
                Ok(true) => PinState::Changed(self.0.lost()),
                Err(error) => PinState::Changed(self.0.unknown(&error.into())),
            },
            (None, Some(state)) => state,
            (None, None) => PinState::New,
        }
    }

    /// Pins a tool as it is now.
    pub(crate) async fn pin(
        &self,
        place: PinPlace,
        label: String,
        tool: &Definition,
        shown: Option<ShownTool<'_>>,
    ) {
        let record = PinRecord {
            digest: tool.digest.clone(),
            owner: place.owner,
            text: tool.text.clone(),
            when: now(),
            tool: told(&label),
            name: shown.map_or_else(String::new, |shown| shown.name.to_owned()),
        };
        {
            let mut known = self.0.known();
            let known = known.get_or_insert_with(|| self.0.read().unwrap_or_default());
            add(known, place.key.clone(), record.clone());
        }
        let Some(path) = self.0.path.clone() else {
            return;
        };
        let roster = self.0.roster.clone();
        let written = tasks::blocking("pin", move || {
            let mut pinned = Vec::new();
            state_file::replace_within(&path, LOCK_PATIENCE, || {
                // A file that cannot be read is left alone: the pins in it may be saved yet.
                let mut records = read(&path).map_err(io::Error::other)?;
                if !add(&mut records, place.key, record) {
                    return Ok(None);
                }
                pinned.extend(records.keys().cloned());
                Ok(Some(serde_json::to_string(&PinFileContent {
                    pins: records,
                })?))
            })?;
            // Last: what could not be pinned must not look like a pin that is gone.
            if let Err(error) = roster.add(&pinned) {
                warn!(%error, "a pin that is removed will look like a tool that is new");
            }
            io::Result::Ok(())
        })
        .await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "a tool's definition was pinned for this run only"),
            Err(failure) => warn!(%failure, "a tool's definition was pinned for this run only"),
        }
    }
}

impl PinFile {
    fn known(&self) -> std::sync::MutexGuard<'_, Option<PinRecords>> {
        // Every change is one call, so a panic elsewhere leaves the map whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> Result<PinRecords, PinReadError> {
        self.path
            .as_deref()
            .map_or_else(|| Ok(PinRecords::new()), read)
    }

    /// What takes the place of a difference where a pin is gone.
    fn lost(&self) -> Difference {
        let file = self.path.as_deref().unwrap_or(Path::new("")).display();
        Difference::unknown(vec![
            text::clean_line(&format!(
                "it was permitted before, and how it was defined then is missing from `{file}`"
            ))
            .into_owned(),
            "whoever removed it may have wanted it forgotten; accepted, it is pinned anew"
                .to_owned(),
        ])
    }

    /// How something stands that is not among these records: new, unless there is no room for it.
    fn unless_full(&self, records: &PinRecords, place: &PinPlace) -> PinState {
        if has_room(records, &place.owner) {
            return PinState::New;
        }
        let mut lines = vec![
            "so much is remembered of its server already that there is room for no more: it is \
             asked about every time"
                .to_owned(),
        ];
        if let Some(path) = &self.path {
            lines.push(format!(
                "`{}` can be moved away if that server is no longer wanted: then all is pinned anew",
                text::clean_line(&path.display().to_string())
            ));
        }
        PinState::Changed(Difference::unknown(lines))
    }

    /// What takes the place of a difference while the file cannot be read.
    fn unknown(&self, error: &PinReadError) -> Difference {
        let file = self.path.as_deref().unwrap_or(Path::new("")).display();
        Difference::unknown(vec![
            text::cut(
                &text::clean_line(&format!(
                    "how tools were defined when they were permitted stands in `{file}`, and {error}"
                )),
                MAX_FAULT,
            )
            .into_owned(),
            text::clean_line(&format!(
                "repair `{file}` or move it away: then every tool is asked about once more"
            ))
            .into_owned(),
        ])
    }
}

/// What takes the place of a difference where a tool comes under a name that was another's.
fn taken_over(name: &str, other: &PinRecord) -> Difference {
    let other = text::clean_line(&other.tool);
    Difference::namesake(vec![
        format!("`{name}` stood for another tool, `{other}`, when that was permitted"),
        "what was allowed then was not meant for this one; accepted, it is".to_owned(),
    ])
}

/// All that the file holds; nothing when there is none.
fn read(path: &Path) -> Result<PinRecords, PinReadError> {
    let text = match state_file::read(path, MAX_FILE + 1) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(PinRecords::new()),
        // Its folder is no folder, so there is no file either.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(PinRecords::new()),
        Err(error) => return Err(error.into()),
    };
    if text.len() as u64 > MAX_FILE {
        return Err(PinReadError::TooLarge);
    }
    let content: PinFileContent = serde_json::from_str(&text)?;
    Ok(content.pins)
}

/// Whether something new of this server can be remembered. A server that fills its own room takes
/// nothing from another, and nothing of its own is forgotten for it.
fn has_room(records: &PinRecords, owner: &str) -> bool {
    let of_owner = records.values().filter(|record| record.owner == owner);
    records.len() < MOST && of_owner.count() < MOST_OF_ONE
}

/// Remembers something, if there is room: its digest in any case, its text where that fits too.
fn add(records: &mut PinRecords, key: String, mut record: PinRecord) -> bool {
    if !records.contains_key(&key) && !has_room(records, &record.owner) {
        return false;
    }
    let others = || records.iter().filter(|(other, _)| **other != key);
    let size = |owner: Option<&str>| -> usize {
        let counted = others().filter(|(_, one)| owner.is_none_or(|owner| one.owner == owner));
        counted.map(|(_, one)| one.text.len()).sum()
    };
    if size(Some(&record.owner)) + record.text.len() > MOST_TEXT_OF_ONE
        || size(None) + record.text.len() > MOST_TEXT
    {
        record.text.clear();
    }
    records.insert(key, record);
    true
}
