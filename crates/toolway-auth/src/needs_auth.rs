//! Which servers asked for a login lately.
//!
//! Owns the memory that all of a user's processes share: for a quarter of an hour a server that
//! wants a login is not asked again, unless the user logs in. The file is a hint: missing, damaged
//! or from the future, it says nothing. It holds names and times, no address and no secret.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolway_files::state_file::{self, now};
use toolway_types::limits;
use tracing::debug;

/// How long a server is not asked again.
pub const REMEMBERED: Duration = limits::login::NEEDS_LOGIN_KEPT;

/// How many servers are remembered.
const MOST: usize = 1024;

/// No file of ours is longer.
const LONGEST: u64 = 1024 * 1024;

/// How long is waited for another process that writes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The memory.
#[derive(Debug, Clone)]
pub struct NeedsAuthMemory {
    path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct NeedsAuthFile {
    /// By the digest of name and definition.
    servers: BTreeMap<String, NeedsAuthEntry>,
}

#[derive(Serialize, Deserialize)]
struct NeedsAuthEntry {
    server: String,
    /// In seconds since 1970.
    since: u64,
}

impl NeedsAuthEntry {
    /// A line of the future was written by a clock that has been set back since.
    fn is_fresh(&self, now: u64) -> bool {
        self.since <= now && now - self.since < REMEMBERED.as_secs()
    }
}

impl NeedsAuthMemory {
    /// The memory in this file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Since when a server has been known to want a login, in seconds since 1970.
    pub async fn since(&self, server: &str, definition: &str) -> Option<u64> {
        let (path, id) = (self.path.clone(), id(server, definition));
        let read = tokio::task::spawn_blocking(move || {
            let line = read(&path).servers.remove(&id)?;
            line.is_fresh(now()).then_some(line.since)
        });
        read.await.ok().flatten()
    }

    /// A server wants a login.
    pub async fn remember(&self, server: &str, definition: &str) {
        let line = NeedsAuthEntry {
            server: server.to_owned(),
            since: now(),
        };
        let id = id(server, definition);
        self.change(move |servers| {
            servers.insert(id, line);
        })
        .await;
    }

    /// The user logged in, or wants to try.
    pub async fn forget(&self, server: &str, definition: &str) {
        // Nearly always there is nothing to forget, and nothing is written then.
        if self.since(server, definition).await.is_none() {
            return;
        }
        let id = id(server, definition);
        self.change(move |servers| {
            servers.remove(&id);
        })
        .await;
    }

    async fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, NeedsAuthEntry>) + Send + 'static,
    ) {
        let path = self.path.clone();
        let changed = tokio::task::spawn_blocking(move || {
            state_file::replace_within(&path, LOCK_TIMEOUT, || {
                let mut content = read(&path);
                let now = now();
                content.servers.retain(|_, line| line.is_fresh(now));
                change(&mut content.servers);
                while content.servers.len() > MOST {
                    let oldest = content.servers.iter().min_by_key(|(_, line)| line.since);
                    let oldest = oldest.map(|(id, _)| id.clone());
                    oldest.and_then(|id| content.servers.remove(&id));
                }
                Ok(Some(serde_json::to_string_pretty(&content)? + "\n"))
            })
        });
        let changed = changed
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        if let Err(error) = changed {
            debug!(%error, "it is not remembered which servers want a login");
        }
    }
}

fn read(path: &Path) -> NeedsAuthFile {
    let text = state_file::read(path, LONGEST).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn id(server: &str, definition: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(server.len().to_be_bytes());
    digest.update(server);
    digest.update(definition);
    hex::encode(&digest.finalize()[..16])
}
