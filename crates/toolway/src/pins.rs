//! Pins: what a tool looked like when a call of it was first permitted (SEC-33).
//!
//! Owns the memory, in this process and in a file that all of a person's hosts share, and the
//! comparison with it. What of a tool counts is `pins/definition.rs`; what a change leads to is
//! decided in `dispatch/permission.rs`.
//!
//! Invariants: bounded, the oldest are forgotten first. A file that is missing or broken is as
//! none; what was pinned in this process stays pinned whatever becomes of the file. No command,
//! address or secret of a definition stands in it, only its digest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolway_transport::state_file::{self, now};
use toolway_types::{ToolKey, Untrusted, text};
use tracing::warn;

use crate::tasks;

mod definition;
#[cfg(test)]
mod tests;

pub(crate) use self::definition::Definition;
pub use self::definition::Difference;

/// How many tools are remembered.
const MOST: usize = 4000;

/// How much of their texts, all together; the file is a little larger.
const MOST_TEXT: usize = 6 << 20;

/// No file of ours is larger.
const MAX_FILE: u64 = 16 << 20;

/// The longest name that is written down whole.
const MAX_NAME: usize = 256;

/// The memory; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pins(Arc<Store>);

#[derive(Debug, Default)]
struct Store {
    /// None: what is pinned is forgotten with the host.
    path: Option<PathBuf>,
    /// What the file said when it was last asked, and what was pinned since.
    known: Mutex<Option<Records>>,
}

/// A tool's place in the memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place(String);

type Records = BTreeMap<Place, Record>;

/// What is remembered of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    digest: String,
    /// What a later difference is shown against.
    text: String,
    /// When it was pinned, in seconds since 1970.
    when: u64,
    /// Whose it is, for people who look into the file.
    tool: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    pins: Records,
}

/// How a tool stands to its pin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing is pinned yet.
    New,
    /// As it was.
    Same,
    /// It changed.
    Changed(Difference),
}

impl Place {
    /// The place of a tool: what its server's definition is, and the tool's own name. A server
    /// that nobody can tell apart by its definition is known by its name.
    pub(crate) fn of(key: &ToolKey, server: Option<&str>) -> Self {
        let server = server.unwrap_or(key.server.as_str());
        let both = serde_json::json!([server, key.tool]).to_string();
        Self(hex::encode(Sha256::digest(both)))
    }
}

impl Pins {
    /// Keeps what is pinned in this file, which need not exist; without one, in memory.
    pub(crate) fn at(path: Option<PathBuf>) -> Self {
        Self(Arc::new(Store {
            path,
            known: Mutex::default(),
        }))
    }

    /// Compares a tool with its pin.
    pub(crate) fn check(&self, place: &Place, tool: &Definition) -> Standing {
        let mut known = self.0.known();
        let known = known.get_or_insert_with(|| self.0.read());
        match known.get(place) {
            Some(record) if record.digest == tool.digest => return Standing::Same,
            None if self.0.path.is_none() => return Standing::New,
            _ => {}
        }
        // Another process may have pinned it since: it was accepted there, or is new here only.
        if let Some(record) = self.0.read().remove(place) {
            known.insert(place.clone(), record);
        }
        match known.get(place) {
            None => Standing::New,
            Some(record) if record.digest == tool.digest => Standing::Same,
            Some(record) => Standing::Changed(Difference::between(&record.text, &tool.text)),
        }
    }

    /// Pins a tool as it is now.
    pub(crate) async fn pin(&self, place: Place, key: &ToolKey, tool: &Definition) {
        let name = Untrusted::new(format!("{}.{}", key.server, key.tool));
        let record = Record {
            digest: tool.digest.clone(),
            text: tool.text.clone(),
            when: now(),
            tool: text::cut(&name.line(), MAX_NAME).into_owned(),
        };
        {
            let mut known = self.0.known();
            let known = known.get_or_insert_with(|| self.0.read());
            known.insert(place.clone(), record.clone());
            prune(known);
        }
        let Some(path) = self.0.path.clone() else {
            return;
        };
        let written = tasks::blocking("pin", move || {
            state_file::replace(&path, || {
                let mut records = read(&path);
                records.insert(place, record);
                prune(&mut records);
                serde_json::to_string(&Content { pins: records }).unwrap_or_default()
            })
        })
        .await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "a tool's definition was pinned for this run only"),
            Err(failure) => warn!(%failure, "a tool's definition was pinned for this run only"),
        }
    }
}

impl Store {
    fn known(&self) -> std::sync::MutexGuard<'_, Option<Records>> {
        // Every change is one call, so a panic elsewhere leaves the map whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> Records {
        self.path.as_deref().map(read).unwrap_or_default()
    }
}

/// Whatever of the file can be read.
fn read(path: &Path) -> Records {
    let text = state_file::read(path, MAX_FILE).unwrap_or_default();
    let content: Content = serde_json::from_str(&text).unwrap_or_default();
    content.pins
}

/// Keeps the newest that have room.
fn prune(records: &mut Records) {
    let mut size: usize = records.values().map(|record| record.text.len()).sum();
    if records.len() <= MOST && size <= MOST_TEXT {
        return;
    }
    let mut ages: Vec<(u64, Place)> = records
        .iter()
        .map(|(place, record)| (record.when, place.clone()))
        .collect();
    ages.sort_unstable();
    for (_, place) in ages {
        if records.len() <= MOST && size <= MOST_TEXT {
            break;
        }
        if let Some(record) = records.remove(&place) {
            size -= record.text.len();
        }
    }
}
