//! Which era each definition spoke, kept across runs, so that the next start need not probe; and
//! which definitions of HTTP lead to a server of the transport before it.
//!
//! Owns the file's content and its key; how it is shared is `toolway_files::state_file`. The
//! file is a hint and nothing else: it may be missing, broken, or written by several hosts at once,
//! and none of that keeps a server from connecting. What proves a remembered era wrong is
//! `probe.rs`'s to say.
//!
//! Invariant: the file holds digests, never a command, an address or a value of the environment.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolway_files::state_file::{self, now};
use toolway_types::{Era, ProtocolMode, RemoteKind, ServerSpec, TransportSpec};
use tracing::debug;

use crate::error::ConnectError;
use crate::lock::lock;
use crate::server_source::ServerSource;
use crate::server_source::definition::digest;
use crate::session;

/// How many definitions are remembered, the newest.
const MOST: usize = 1000;

/// How long a modern era is believed.
const MODERN_FOR: u64 = 30 * DAY;

/// How long a legacy era is believed: a server that learns the modern one still answers
/// `initialize`, so this never proves wrong by itself.
const LEGACY_FOR: u64 = 7 * DAY;

const DAY: u64 = 24 * 60 * 60;

/// No file of ours is larger.
const MAX_FILE: u64 = 1 << 20;

/// The memory; clones share it. By default it remembers nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct EraMemory(Option<Arc<EraFile>>);

/// A definition's place in the memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EraKey(String);

#[derive(Debug)]
struct EraFile {
    path: PathBuf,
    /// What the file said when it was first asked, and what was learnt since.
    known: Mutex<Option<EraRecords>>,
}

type EraRecords = BTreeMap<EraKey, EraRecord>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EraRecord {
    era: Era,
    /// When it was found out, in seconds since 1970.
    when: u64,
}

impl EraKey {
    /// The key of what a connection connects to; `None` where nothing is to be remembered: the
    /// entry says which era, or the server is an object of this program.
    pub(crate) fn of(source: &ServerSource) -> Option<Self> {
        match source {
            ServerSource::Spec(spec) if source.protocol() == ProtocolMode::Auto => {
                Some(Self(digest(spec)))
            }
            ServerSource::Spec(_) | ServerSource::Object { .. } => None,
        }
    }

    /// The place of a definition of Streamable HTTP for that its server is one of the transport
    /// before it; `None` where it cannot be, or its entry says that it is not.
    pub(crate) fn of_older(source: &ServerSource) -> Option<Self> {
        let spec = source.spec()?;
        let may_be = spec.protocol != ProtocolMode::Modern;
        may_be.then(|| Self::older(spec)).flatten()
    }

    fn older(spec: &ServerSpec) -> Option<Self> {
        let TransportSpec::Remote(RemoteKind::Http, remote) = &spec.transport else {
            return None;
        };
        let text = json!(["http as sse", { "url": remote.url.as_str() }]).to_string();
        Some(Self(hex::encode(Sha256::digest(text))))
    }
}

impl EraMemory {
    /// Keeps what it learns in this file, which need not exist.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(Some(Arc::new(EraFile {
            path,
            known: Mutex::default(),
        })))
    }

    /// The era this definition spoke last time.
    pub(crate) fn recall(&self, key: Option<&EraKey>) -> Option<Era> {
        let store = self.0.as_ref()?;
        let record = store.known().get(key?).copied()?;
        (!record.is_old(now())).then_some(record.era)
    }

    /// Takes in how a handshake ended. An era that failed in a way that speaks of the era is
    /// forgotten; any other failure changes nothing.
    pub(crate) async fn learn(&self, key: Option<&EraKey>, outcome: Result<Era, &ConnectError>) {
        let (Some(store), Some(key)) = (&self.0, key) else {
            return;
        };
        let era = match outcome {
            Ok(era) => Some(era),
            Err(error) if session::is_era_evidence(error) => None,
            Err(_) => return,
        };
        let now = now();
        {
            let mut known = store.known();
            let before = known.get(key).filter(|record| !record.is_old(now));
            if before.map(|record| record.era) == era {
                return;
            }
            change(&mut known, key, era, now);
        }
        let (store, key) = (Arc::clone(store), key.clone());
        // Files and locks may block, and only the connection itself waits for this.
        let saved = tokio::task::spawn_blocking(move || store.save(&key, era, now)).await;
        if let Ok(Err(error)) = saved {
            debug!(%error, "the era was not remembered");
        }
    }
}

/// Forgets which era a definition spoke, in the file that [`HostOptions`](crate::HostOptions)
/// names: the next host that starts asks the server again.
pub fn forget_era(path: &Path, spec: &ServerSpec) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let store = EraFile {
        path: path.to_owned(),
        known: Mutex::default(),
    };
    if let Some(older) = EraKey::older(spec) {
        store.save(&older, None, now())?;
    }
    store.save(&EraKey(digest(spec)), None, now())
}

impl EraRecord {
    fn is_old(&self, now: u64) -> bool {
        let believed = match self.era {
            Era::Legacy => LEGACY_FOR,
            Era::Modern => MODERN_FOR,
        };
        // A clock that was wrong must not make a record eternal.
        now.saturating_sub(self.when) > believed || self.when > now + DAY
    }
}

/// What is known, read from the file the first time.
struct LoadedRecords<'a>(MutexGuard<'a, Option<EraRecords>>);

impl std::ops::Deref for LoadedRecords<'_> {
    type Target = EraRecords;

    fn deref(&self) -> &EraRecords {
        const NONE: &EraRecords = &BTreeMap::new();
        self.0.as_ref().unwrap_or(NONE)
    }
}

impl std::ops::DerefMut for LoadedRecords<'_> {
    fn deref_mut(&mut self) -> &mut EraRecords {
        self.0.get_or_insert_default()
    }
}

impl EraFile {
    fn known(&self) -> LoadedRecords<'_> {
        // Every change is one call, so a panic elsewhere leaves the map whole.
        let mut known = lock(&self.known);
        known.get_or_insert_with(|| read(&self.path));
        LoadedRecords(known)
    }

    /// Puts one change into the file, which others may have changed meanwhile.
    fn save(&self, key: &EraKey, era: Option<Era>, now: u64) -> io::Result<()> {
        state_file::replace(&self.path, || {
            let mut records = read(&self.path);
            change(&mut records, key, era, now);
            prune(&mut records, now);
            render(&records)
        })
    }
}

fn change(records: &mut EraRecords, key: &EraKey, era: Option<Era>, now: u64) {
    match era {
        Some(era) => drop(records.insert(key.clone(), EraRecord { era, when: now })),
        None => drop(records.remove(key)),
    }
}

/// Keeps what is still believed, and of that the newest.
fn prune(records: &mut EraRecords, now: u64) {
    records.retain(|_, record| !record.is_old(now));
    let excess = records.len().saturating_sub(MOST);
    if excess > 0 {
        let mut ages: Vec<(u64, EraKey)> = records
            .iter()
            .map(|(key, record)| (record.when, key.clone()))
            .collect();
        ages.sort_unstable();
        for (_, key) in &ages[..excess] {
            records.remove(key);
        }
    }
}

/// Whatever of the file can be read. A file that cannot be is as none.
fn read(path: &Path) -> EraRecords {
    let text = state_file::read(path, MAX_FILE);
    let Ok(Value::Object(file)) = text.map(|text| serde_json::from_str(&text).unwrap_or_default())
    else {
        return EraRecords::new();
    };
    let eras = file.get("eras").and_then(Value::as_object);
    let records = eras.into_iter().flatten().filter_map(|(key, record)| {
        let era = [Era::Legacy, Era::Modern]
            .into_iter()
            .find(|era| record["era"] == era.as_str())?;
        let when = record["when"].as_u64()?;
        Some((EraKey(key.clone()), EraRecord { era, when }))
    });
    records.collect()
}

fn render(records: &EraRecords) -> String {
    let eras: serde_json::Map<String, Value> = records
        .iter()
        .map(|(key, record)| {
            let record = json!({ "era": record.era.as_str(), "when": record.when });
            (key.0.clone(), record)
        })
        .collect();
    json!({ "eras": eras }).to_string()
}

#[cfg(test)]
mod tests;
