//! Other clients behind Toolway: the one entry in their files that leads here.
//!
//! Owns what is read of a client's file before it is changed ([`ClientReading`]), changing it
//! ([`connect`]) and taking that back ([`undo`]). Which file and table it is are `target.rs`, what
//! the entry looks like `entry.rs`, the change of a text `change.rs`, what is remembered of it
//! `record.rs`. Whether servers are moved, and who is asked, is the caller's affair.
//!
//! Invariants: nothing is written before the text was parsed and the result parsed again; what was
//! done is on disk before the file is replaced; secrets in the client's file leave through no
//! `Debug` and through no difference that is shown.

use std::io;
use std::path::Path;

use serde_json::Value;
use toolway_files::plain_file;
use toolway_types::Secret;

use crate::Environment;
use crate::edit::structured_text::StructuredText;
use crate::edit::{EditError, Edited, NewText, edit_text, peek};
use crate::import::{self, ClientFile, ClientLocations, ImportClient, ImportedServer};
use crate::itself::starts_toolway;

mod change;
mod elements;
mod entry;
mod record;
mod shown;
mod target;
#[cfg(test)]
mod tests;
mod undo;

pub use elements::MovedServer;
pub use entry::{GatewayAddress, GatewayEntry, GatewayProgram, GatewayReach, gateway_command};
pub use target::{ClientScope, ClientTarget};
pub use undo::UndoneConnect;

use record::ConnectRecord;

/// The longest file that is read as a token, in bytes.
const LONGEST_TOKEN: u64 = 64 << 10;

/// Why a client cannot be connected in this way. Its file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ClientEntryError {
    /// Nobody knows where its file would be.
    #[error("there is no home directory, so no place for the settings of {client}")]
    NoPlace {
        /// The client's title.
        client: &'static str,
    },
    /// It reads nothing in projects.
    #[error("{client} has no settings of a project")]
    NoProjectScope {
        /// The client's title.
        client: &'static str,
    },
    /// Its settings hold programs only.
    #[error("{client} starts programs only: its settings take no address")]
    NoAddress {
        /// The client's title.
        client: &'static str,
    },
    /// It takes a token only where it would be shared with everybody who has the project.
    #[error("{client} takes a token only written out, which must not lie in a project")]
    TokenInProject {
        /// The client's title.
        client: &'static str,
    },
    /// The token cannot be read.
    #[error("cannot read the token in `{}`: {source}", path.display())]
    Token {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file could not be read or written.
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// What a client's file holds now.
pub struct ClientReading {
    /// The servers of the table that Toolway's entry goes to, without those that lead to Toolway,
    /// and what cannot be read of them.
    pub file: ClientFile,
    /// The names of the entries that lead to Toolway.
    pub gateways: Vec<String>,
    target: ClientTarget,
    text: Option<String>,
    document: StructuredText,
}

impl ClientReading {
    /// Reads the file; a missing one holds nothing.
    pub fn of(
        environment: &Environment,
        target: &ClientTarget,
        records: &Path,
    ) -> Result<Self, ClientEntryError> {
        target.require_own(environment)?;
        let (path, text) = peek(&target.path)?;
        let document =
            StructuredText::parse(target.format(), &path, text.as_deref().unwrap_or_default())?;
        let table = target.table(&document);
        let records = record::of_file(records, &path)?;
        let is_gateway = |name: &str| {
            let place: Vec<&str> = table.iter().copied().chain([name]).collect();
            let found = document.get(&place);
            found.is_some_and(|value| {
                value.as_object().is_some_and(starts_toolway)
                    || record::wrote(&records, name, &value)
            })
        };
        let names = document.get(&table);
        let names = names.as_ref().and_then(Value::as_object);
        let names = names
            .into_iter()
            .flat_map(|members| members.keys().cloned());
        let gateways: Vec<String> = names.filter(|name| is_gateway(name)).collect();
        let places = ClientLocations::from(environment);
        let mut file = if text.is_some() {
            import::read_file(&places, target.client, &target.path)
        } else {
            ClientFile::empty(&places, target.client, &target.path)
        };
        file.servers.retain(|server| {
            let above = server.place.split_last().map(|(_, above)| above);
            above.is_some_and(|above| above == table) && !gateways.contains(&server.name)
        });
        Ok(Self {
            file,
            gateways,
            target: target.clone(),
            text,
            document,
        })
    }

    /// A server of the file, as it is written there.
    pub fn moved(&self, server: &ImportedServer) -> Option<MovedServer> {
        let place: Vec<&str> = server.place.iter().map(String::as_str).collect();
        Some(MovedServer {
            name: server.name.clone(),
            place: server.place.clone(),
            written: self.document.get(&place)?,
        })
    }

    /// Whether a name stands for something else than Toolway.
    pub fn is_taken(&self, name: &str) -> bool {
        let table = self.target.table(&self.document);
        let place: Vec<&str> = table.into_iter().chain([name]).collect();
        self.document.get(&place).is_some() && !self.gateways.iter().any(|own| own == name)
    }

    /// What [`connect`] would change, as a unified difference without secrets; empty where nothing
    /// would.
    pub fn difference(
        &self,
        entry: &GatewayEntry,
        moved: &[MovedServer],
    ) -> Result<String, ClientEntryError> {
        let path = &self.file.path;
        let changed = change::apply(&self.target, path, self.text.as_deref(), entry, moved)?;
        let before = self.text.as_deref().unwrap_or_default();
        Ok(shown::difference(
            self.target.format(),
            before,
            &changed.after,
        ))
    }
}

/// Writes the entry into the client's file and takes the moved servers out of it, in one edit, and
/// remembers both in `records`.
pub fn connect(
    environment: &Environment,
    records: &Path,
    target: &ClientTarget,
    entry: &GatewayEntry,
    moved: &[MovedServer],
) -> Result<Edited<()>, ClientEntryError> {
    let backup = target.backup(environment)?;
    let mut noted = None;
    let mut line = None;
    let edited = edit_text(&target.path, backup.as_deref(), |path, text| {
        let changed = change::apply(target, path, text, entry, moved)?;
        line = changed.line;
        if text != Some(changed.after.as_str()) {
            let record = ConnectRecord::of(target, path, text, entry, &changed);
            record::add(records, &record)?;
            noted = Some(record);
        }
        Ok((NewText::Written(changed.after), ()))
    });
    if let (Some(record), Err(error)) = (&noted, &edited)
        && !matches!(error, EditError::Unconfirmed { .. })
    {
        // It was not done. A record that stays says so itself: nothing of it is found in the file.
        let _ = record::forget(records, std::slice::from_ref(record));
    }
    let edited = edited?;
    Ok(Edited { line, ..edited })
}

/// The file of a client that was changed last, where its usual one may be another by now.
pub fn recorded_target(
    records: &Path,
    client: ImportClient,
    scope: ClientScope,
) -> Result<Option<ClientTarget>, ClientEntryError> {
    let path = record::last_file(records, client, scope)?;
    Ok(path.map(|path| ClientTarget {
        client,
        scope,
        path,
    }))
}

/// Forgets what was done to a file, where there is nothing to take back any more.
pub fn forget(
    records: &Path,
    target: &ClientTarget,
    name: Option<&str>,
) -> Result<(), ClientEntryError> {
    let (path, _) = peek(&target.path)?;
    let known = undo::records(records, &path, name)?;
    Ok(record::forget(records, &known)?)
}

/// What [`undo`] would change, as [`ClientReading::difference`] shows it.
pub fn undo_difference(
    records: &Path,
    target: &ClientTarget,
    name: Option<&str>,
) -> Result<Option<(String, UndoneConnect)>, ClientEntryError> {
    let (path, text) = peek(&target.path)?;
    let known = undo::records(records, &path, name)?;
    let Some((new, undone)) = undo::apply(target, &path, text.as_deref(), &known, name)? else {
        return Ok(None);
    };
    let after = match &new {
        NewText::Written(after) => after.as_str(),
        NewText::Removed => "",
    };
    let before = text.as_deref().unwrap_or_default();
    let difference = shown::difference(target.format(), before, after);
    Ok(Some((difference, undone)))
}

/// Takes back what [`connect`] wrote into a client's file: byte for byte where the file is still as
/// it was written, else the entries alone. None where there is nothing to take back.
pub fn undo(
    environment: &Environment,
    records: &Path,
    target: &ClientTarget,
    name: Option<&str>,
) -> Result<Option<Edited<UndoneConnect>>, ClientEntryError> {
    let backup = target.backup(environment)?;
    let mut known = Vec::new();
    let edited = edit_text(&target.path, backup.as_deref(), |path, text| {
        known = undo::records(records, path, name)?;
        Ok(match undo::apply(target, path, text, &known, name)? {
            Some((new, undone)) => (new, Some(undone)),
            None => (unchanged(text), None),
        })
    })?;
    record::forget(records, &known)?;
    let Edited {
        value: Some(value),
        path,
        backup,
        line,
        changed,
        before,
        after,
    } = edited
    else {
        return Ok(None);
    };
    Ok(Some(Edited {
        value,
        path,
        backup,
        line,
        changed,
        before,
        after,
    }))
}

fn unchanged(text: Option<&str>) -> NewText {
    text.map_or(NewText::Removed, |text| NewText::Written(text.to_owned()))
}

/// The token in a file, without the white space around it.
fn read_token(path: &Path) -> Result<Secret, ClientEntryError> {
    let failed = |source| ClientEntryError::Token {
        path: path.to_owned(),
        source,
    };
    // A pipe would be waited for, and a device read without end.
    let opened = plain_file::open(path).map_err(failed)?;
    let (file, facts) = opened.ok_or_else(|| failed(io::Error::other("it is no regular file")))?;
    let bytes = plain_file::read_at_most(file, &facts, LONGEST_TOKEN).map_err(failed)?;
    let bytes = bytes.ok_or_else(|| failed(io::ErrorKind::FileTooLarge.into()))?;
    let text = String::from_utf8(bytes).map_err(|_| failed(io::ErrorKind::InvalidData.into()))?;
    match text.trim() {
        "" => Err(failed(io::Error::other("it is empty"))),
        token => Ok(Secret::new(token.to_owned())),
    }
}
