//! A recording, read.
//!
//! Owns what is taken from a file that is damaged: every line that is whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use crate::exchange::RecordedExchange;
use crate::exchange::{Spoken, exchanges};
use crate::file::{LARGEST, is_head};
use crate::line::{Head, Side, VERSION};

/// Why a file cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read.
    #[error("cannot read `{path}`: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    /// There is something else in it.
    #[error("`{}` is not a recording", .0.display())]
    NotARecording(PathBuf),
    /// A later Toolway wrote it.
    #[error("`{path}` has format {found}, and this Toolway reads format {VERSION}", path = .0.display(), found = .1)]
    Newer(PathBuf, u32),
    /// It is longer than any that is written.
    #[error("`{}` is larger than a recording can be", .0.display())]
    TooLarge(PathBuf),
}

/// What was said, by server.
#[derive(Debug, Default)]
pub struct Recording {
    pub(crate) servers: BTreeMap<String, Vec<RecordedExchange>>,
    /// Lines that are no line of a recording.
    pub damaged: usize,
    /// Messages that were left out when it was made.
    pub left_out: usize,
}

/// One server of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingSummary {
    /// Its name.
    pub server: String,
    /// How many requests were made of it.
    pub requests: usize,
    /// How many of these were calls of tools.
    pub calls: usize,
}

impl Recording {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let failed = |error| ReadError::Io(path.to_owned(), error);
        let file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(ReadError::NotARecording(path.to_owned()));
        }
        let mut bytes = Vec::new();
        let mut file = file.take(LARGEST + 1);
        file.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > LARGEST {
            return Err(ReadError::TooLarge(path.to_owned()));
        }
        let first = bytes
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        let head = serde_json::from_slice::<Head>(first).ok();
        match head.filter(|head| head.toolway == "recording") {
            Some(head) if head.version > VERSION => {
                Err(ReadError::Newer(path.to_owned(), head.version))
            }
            Some(_) => Ok(Self::parse(&bytes)),
            None => Err(ReadError::NotARecording(path.to_owned())),
        }
    }

    /// Reads lines, as many as are whole.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut spoken: BTreeMap<(String, String), Vec<Spoken>> = BTreeMap::new();
        // In the order in which connections began.
        let mut order: Vec<(String, String)> = Vec::new();
        let mut recording = Self::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            if line.is_empty() || is_head(line) {
                continue;
            }
            let Ok(line) = serde_json::from_slice::<OwnedLine>(line) else {
                recording.damaged += 1;
                continue;
            };
            let key = (line.server, line.connection);
            if !spoken.contains_key(&key) {
                order.push(key.clone());
            }
            let messages = spoken.entry(key).or_default();
            match line.message {
                Some(message) => messages.push(Spoken {
                    from: line.from,
                    message,
                }),
                None => recording.left_out += 1,
            }
        }
        for key in order {
            let messages = spoken.remove(&key).unwrap_or_default();
            let all = recording.servers.entry(key.0).or_default();
            all.extend(exchanges(messages));
        }
        recording
    }

    /// The servers that it holds.
    pub fn servers(&self) -> Vec<RecordingSummary> {
        let summary = |(server, exchanges): (&String, &Vec<RecordedExchange>)| RecordingSummary {
            server: server.clone(),
            requests: exchanges.len(),
            calls: exchanges
                .iter()
                .filter(|one| one.method == "tools/call")
                .count(),
        };
        self.servers.iter().map(summary).collect()
    }
}

/// A line that outlives its text.
#[derive(serde::Deserialize)]
struct OwnedLine {
    server: String,
    connection: String,
    from: Side,
    #[serde(default)]
    message: Option<Box<RawValue>>,
}
