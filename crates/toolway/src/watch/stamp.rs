//! Asking every running Toolway of this person to reconnect a server.
//!
//! Owns the stamps: a file per server below `<state>/reconnect`, whose content is new each time.
//! Hosts that watch compare it with what they saw before. No lock is held, so a stamp that was left
//! behind, by whatever end of a process, means nothing to the next one.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::CWD;
use serde::{Deserialize, Serialize};
use toolway_files::private_file::{open_directory, open_own, replace};
use toolway_types::ServerName;

use crate::journal::{file_stem, timestamp};

/// No stamp of ours is longer.
const LONGEST: u64 = 4096;

/// No configuration has more servers; stamps beyond that are a flood.
const ENOUGH: usize = 1024;

#[derive(Serialize, Deserialize)]
struct Stamp {
    server: ServerName,
    at: String,
    nonce: String,
}

/// Makes every host that watches `directory` connect to this server anew.
pub fn request_reconnect(directory: &Path, server: &ServerName) -> io::Result<()> {
    let nonce = RandomState::new().hash_one(std::process::id());
    let stamp = Stamp {
        server: server.clone(),
        at: timestamp(SystemTime::now()),
        nonce: format!("{nonce:016x}"),
    };
    let text = serde_json::to_string(&stamp)?;
    let directory = open_directory(directory)?;
    let name = file_stem(server);
    // Servers' names never start with a dot here, so the temporary name is free.
    let temporary = format!(".{nonce:016x}");
    replace(&directory, &name, &temporary, text.as_bytes())
}

/// The stamps seen so far.
pub(super) struct Stamps {
    directory: PathBuf,
    seen: BTreeMap<String, String>,
}

impl Stamps {
    /// Whatever lies there now is old.
    pub(super) fn read(directory: PathBuf) -> Self {
        let seen = read_all(&directory);
        Self { directory, seen }
    }

    /// The servers whose stamps are new since the last time.
    pub(super) fn news(&mut self) -> Vec<ServerName> {
        let now = read_all(&self.directory);
        let fresh = now
            .iter()
            .filter(|(name, text)| self.seen.get(*name) != Some(text))
            .filter_map(|(_, text)| serde_json::from_str::<Stamp>(text).ok())
            .map(|stamp| stamp.server)
            .collect();
        self.seen = now;
        fresh
    }
}

fn read_all(directory: &Path) -> BTreeMap<String, String> {
    directory
        .read_dir()
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let plain = !name.starts_with('.') && entry.file_type().ok()?.is_file();
            plain.then_some((name, entry.path()))
        })
        .take(ENOUGH)
        .filter_map(|(name, path)| {
            let mut text = String::new();
            // It may be something else by now.
            let file = open_own(CWD, path).ok()?;
            file.take(LONGEST).read_to_string(&mut text).ok()?;
            Some((name, text))
        })
        .collect()
}
