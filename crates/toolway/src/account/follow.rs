//! Which connectors there are: asking the provider, and keeping the copy that plans are made of.
//!
//! Owns the time that asking may take, writing and removing the copy, and the task that does so
//! while a host runs. The copy is the only way from here into a plan, so that every process has
//! the same connectors, a reload keeps them, and a logout anywhere takes them away everywhere.
//! Does not own: what a directory may say (`toolway-config`).

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;
use toolway_config::ConnectorDirectory;
use toolway_files::state_file;

use super::Connectors;
use crate::tasks;

/// How long the provider has to answer. Nothing waits for it, but a copy is better than a list
/// that comes when the work is done.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A copy that says the same is written again after this long, in seconds, so that its age is true
/// without every start writing a file.
const TOUCH_AFTER: u64 = 3600;

/// The largest copy that is compared with.
const LARGEST: u64 = 1024 * 1024;

/// What is known of the account's connectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryState {
    /// The provider is being asked; until it answers the copy stands for it.
    Asking,
    /// Not logged in, so the provider is not asked.
    LoggedOut {
        /// Why, and what to do about it.
        why: String,
    },
    /// The provider answered.
    Fresh {
        /// What of its answer was left out and why.
        left_out: Vec<String>,
    },
    /// The provider did not answer, and the copy stands for it.
    Kept {
        /// Why it did not.
        why: String,
        /// When it last did, in seconds since 1970; `None` when there is no copy.
        fetched_at: Option<u64>,
    },
}

/// What asking did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    /// What is known now.
    pub state: DirectoryState,
    /// Whether the copy says something else than before.
    pub changed: bool,
}

/// Asks the provider and keeps its answer.
pub async fn refresh(connectors: &Connectors) -> Refreshed {
    let provider = &connectors.provider;
    let asked = timeout(PATIENCE, connectors.account.directory()).await;
    let kept = |why: String| Refreshed {
        state: DirectoryState::Kept {
            why,
            fetched_at: read(connectors).map(|copy| copy.fetched_at),
        },
        changed: false,
    };
    let answer = match asked {
        Err(_) => {
            let host = provider.host();
            return kept(format!(
                "{host} did not answer within {} s",
                PATIENCE.as_secs()
            ));
        }
        Ok(Err(error)) if error.wants_login() => {
            let why = error.to_string();
            return Refreshed {
                state: DirectoryState::LoggedOut { why },
                changed: false,
            };
        }
        Ok(Err(error)) => return kept(error.to_string()),
        Ok(Ok(answer)) => answer,
    };
    let mut directory = match ConnectorDirectory::read(provider, &answer) {
        Ok(directory) => directory,
        Err(error) => return kept(format!("{}: {error}", provider.host())),
    };
    directory.fetched_at = state_file::now();
    let left_out = directory.left_out.clone();
    match keep(connectors.clone(), directory).await {
        Ok(changed) => Refreshed {
            state: DirectoryState::Fresh { left_out },
            changed,
        },
        Err(error) => {
            let copy = connectors.copy.display();
            kept(format!(
                "the list of connectors cannot be kept in `{copy}`: {error}"
            ))
        }
    }
}

/// Removes the copy: no connector is left, here and in every process that watches its
/// configuration.
pub fn forget(copy: &Path) -> io::Result<()> {
    match std::fs::remove_file(copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn read(connectors: &Connectors) -> Option<ConnectorDirectory> {
    let text = state_file::read(&connectors.copy, LARGEST).ok()?;
    ConnectorDirectory::from_copy(&connectors.provider, &text)
}

/// Writes the copy where it would say something new; gives whether it does.
async fn keep(connectors: Connectors, directory: ConnectorDirectory) -> io::Result<bool> {
    let keeping = tasks::blocking("connectors", move || {
        let mut changed = true;
        state_file::replace_within(&connectors.copy, PATIENCE, || {
            if let Some(old) = read(&connectors) {
                changed = old.connectors != directory.connectors;
                let age = directory.fetched_at.saturating_sub(old.fetched_at);
                if !changed && age < TOUCH_AFTER {
                    return Ok(None);
                }
            }
            Ok(Some(directory.to_copy(&connectors.provider)))
        })?;
        Ok(changed)
    });
    keeping.await.map_err(io::Error::other)?
}
