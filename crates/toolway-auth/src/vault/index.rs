//! What is in the vault, without any secret.
//!
//! Owns the one file that says which keys there are, when they were saved and where they lie. A
//! damaged one is kept aside and made again from the sealed files; what lies in the keychain is
//! then looked for when it is asked for.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolway_files::private_file::open_directory;
use toolway_files::state_file::{self, now};
use tracing::warn;

use super::file::{LOCK_TIMEOUT, SealedFiles, put_aside};
use super::{VaultBackend, VaultEntry, VaultError, VaultKey, io_error};

/// The name of the file.
pub(super) const FILE: &str = "index.json";

/// No list of ours is longer.
const LONGEST: u64 = 16 * 1024 * 1024;

pub(super) struct VaultIndex {
    folder: PathBuf,
    path: PathBuf,
}

/// What the list says about one key.
pub(super) struct IndexLookup {
    pub(super) backend: Option<VaultBackend>,
    /// The list was lost once.
    pub(super) is_rebuilt: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct IndexFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rebuilt_at: Option<u64>,
    secrets: BTreeMap<String, VaultEntry>,
}

impl VaultIndex {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            path: folder.join(FILE),
        }
    }

    pub(super) fn find(
        &self,
        sealed: &SealedFiles,
        key: &VaultKey,
    ) -> Result<IndexLookup, VaultError> {
        let content = self.read(sealed)?;
        Ok(IndexLookup {
            backend: content.secrets.get(&key.id()).map(|entry| entry.backend),
            is_rebuilt: content.rebuilt_at.is_some(),
        })
    }

    pub(super) fn list(&self, sealed: &SealedFiles) -> Result<Vec<VaultEntry>, VaultError> {
        let content = self.read(sealed)?;
        let mut listed: Vec<_> = content.secrets.into_values().collect();
        listed.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(listed)
    }

    /// Adds a key; gives where it lay before.
    pub(super) fn add(
        &self,
        sealed: &SealedFiles,
        key: &VaultKey,
        backend: VaultBackend,
    ) -> Result<(Option<VaultBackend>, VaultKey), VaultError> {
        let entry = VaultEntry {
            key: key.clone(),
            saved_at: now(),
            backend,
        };
        let before = self.change(sealed, |secrets| secrets.insert(key.id(), entry))?;
        Ok((before.map(|entry| entry.backend), key.clone()))
    }

    pub(super) fn remove(&self, sealed: &SealedFiles, key: &VaultKey) -> Result<(), VaultError> {
        self.change(sealed, |secrets| secrets.remove(&key.id()))?;
        Ok(())
    }

    fn change<T>(
        &self,
        sealed: &SealedFiles,
        change: impl FnOnce(&mut BTreeMap<String, VaultEntry>) -> T,
    ) -> Result<T, VaultError> {
        open_directory(&self.folder).map_err(io_error(&self.folder))?;
        let mut outcome = None;
        state_file::replace_within(&self.path, LOCK_TIMEOUT, || {
            let mut content = match self.parse() {
                Ok(content) => content,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => self.rebuild(sealed)?,
                Err(error) => return Err(error),
            };
            outcome = Some(change(&mut content.secrets));
            Ok(Some(content.text()?))
        })
        .map_err(io_error(&self.path))?;
        outcome.ok_or_else(|| io_error(&self.path)(io::ErrorKind::Other.into()))
    }

    fn read(&self, sealed: &SealedFiles) -> Result<IndexFile, VaultError> {
        match self.parse() {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            read => return read.map_err(io_error(&self.path)),
        }
        state_file::replace_within(&self.path, LOCK_TIMEOUT, || {
            // Another process may have fixed it.
            match self.parse() {
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.rebuild(sealed)?.text().map(Some)
                }
                _ => Ok(None),
            }
        })
        .and_then(|()| self.parse())
        .map_err(io_error(&self.path))
    }

    /// What the file says; [`io::ErrorKind::InvalidData`] when it is damaged.
    fn parse(&self) -> io::Result<IndexFile> {
        match state_file::read(&self.path, LONGEST) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(IndexFile::default()),
            Err(error) => Err(error),
        }
    }

    /// Makes the list again. Runs under the lock.
    fn rebuild(&self, sealed: &SealedFiles) -> io::Result<IndexFile> {
        let aside = put_aside(&self.path)?;
        let found = sealed.all();
        warn!(
            path = %self.path.display(),
            aside = %aside.display(),
            found = found.len(),
            "the list of secrets was damaged; it is kept aside and was made anew"
        );
        let entry = |(record, backend): (super::file::SealedRecord, VaultBackend)| {
            let entry = VaultEntry {
                saved_at: record.saved_at,
                backend,
                key: record.key,
            };
            (entry.key.id(), entry)
        };
        Ok(IndexFile {
            rebuilt_at: Some(now()),
            secrets: found.into_iter().map(entry).collect(),
        })
    }
}

impl IndexFile {
    fn text(&self) -> io::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}
