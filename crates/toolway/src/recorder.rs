//! Recording what is said to servers and by them, for `toolway replay`.
//!
//! Owns what is secret in a recording, and that none is written: known values go wherever they stand,
//! and texts under names that speak of a secret; a message that still holds one is left out. All else
//! stays byte for byte, unlike in a journal. The file is `toolway_recording`'s. Does not own: which
//! commands record.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolway_recording::{RecordingFile, Side};
use toolway_types::Secret;

use crate::journal::{JournalWriter, Redactor};

/// A recording that goes on. A cheap handle.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<RecorderShared>,
}

#[derive(Debug)]
struct RecorderShared {
    file: RecordingFile,
    /// Secrets of the program itself, whichever server hears them.
    secrets: Vec<Secret>,
    connections: AtomicU64,
}

impl Recorder {
    /// Records into a file, and keeps these values out of it, whoever says them.
    pub fn new(file: RecordingFile, secrets: Vec<Secret>) -> Self {
        Self {
            shared: Arc::new(RecorderShared {
                file,
                secrets,
                connections: AtomicU64::new(0),
            }),
        }
    }

    /// The file.
    pub fn file(&self) -> &RecordingFile {
        &self.shared.file
    }

    /// One conversation with a server, with secrets of its own.
    pub fn connection(&self, server: &str, secrets: &[Secret]) -> RecordedConnection {
        let number = self.shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let all: Vec<Secret> = self.shared.secrets.iter().chain(secrets).cloned().collect();
        RecordedConnection {
            recorder: self.clone(),
            server: server.to_owned(),
            connection: format!("{}.{number}", std::process::id()),
            redactor: Redactor::new(&all),
            learning: None,
        }
    }
}

/// One conversation that is recorded.
pub struct RecordedConnection {
    recorder: Recorder,
    server: String,
    connection: String,
    redactor: Redactor,
    /// Knows secrets that are found out on the way.
    learning: Option<JournalWriter>,
}

impl RecordedConnection {
    /// The same; what this journal learns of secrets is kept out too.
    pub(crate) fn learning_from(mut self, journal: Option<JournalWriter>) -> Self {
        self.learning = journal;
        self
    }

    /// A message to the server.
    pub fn sent(&self, message: &[u8]) {
        self.message(Side::Client, message);
    }

    /// A message from the server.
    pub fn received(&self, message: &[u8]) {
        self.message(Side::Server, message);
    }

    fn message(&self, from: Side, message: &[u8]) {
        let file = &self.recorder.shared.file;
        let left_out = |why: &str| file.left_out(&self.server, &self.connection, from, why);
        let Ok(text) = std::str::from_utf8(message) else {
            left_out("it was no text");
            return;
        };
        let learned = self.learning.as_ref().map(JournalWriter::redactor);
        let mut kept = self.redactor.kept(text);
        if let Some(learned) = &learned {
            kept = learned.kept(&kept);
        }
        if self.redactor.is_in(&kept) || learned.is_some_and(|learned| learned.is_in(&kept)) {
            left_out("it would hold a secret");
            return;
        }
        file.message(&self.server, &self.connection, from, &kept);
    }
}
