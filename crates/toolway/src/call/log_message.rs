//! One message of a server's log (`notifications/message`), and how serious it is.
//!
//! Owns the words and reading them. Who hears a message is `call/logs.rs`'s.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use toolway_types::ServerName;
use toolway_wire::RawJson;

/// How serious a message is, the least serious first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Details for who looks for a fault.
    Debug,
    /// What goes on.
    Info,
    /// What goes on and is worth a look.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Somebody has to act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// Every level, the least serious first.
    pub const ALL: [LogLevel; 8] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];

    /// The protocol's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// No level has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no log level has this name")]
pub struct UnknownLogLevel;

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(word: &str) -> Result<Self, UnknownLogLevel> {
        let mut levels = Self::ALL.into_iter();
        levels
            .find(|level| level.as_str() == word)
            .ok_or(UnknownLogLevel)
    }
}

/// One message of a server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// Who says it.
    pub server: ServerName,
    /// How serious it is.
    pub level: LogLevel,
    /// The parameters of the notification, byte for byte as the server sent them: `level`,
    /// `logger`, `data`, and whatever else.
    pub raw: RawJson,
}

impl LogMessage {
    /// Reads a notification's parameters; nothing where there is no level in them.
    pub(crate) fn read(server: &ServerName, raw: RawJson) -> Option<Self> {
        #[derive(Deserialize)]
        struct Leveled {
            level: String,
        }
        let leveled: Leveled = serde_json::from_str(raw.get()).ok()?;
        Some(Self {
            server: server.clone(),
            level: leveled.level.parse().ok()?,
            raw,
        })
    }
}

/// Takes what a server logs while it works on one request. It must not block.
#[derive(Clone)]
pub struct LogSink {
    /// From which level on.
    pub level: LogLevel,
    /// Where it goes.
    pub sink: Arc<dyn Fn(LogMessage) + Send + Sync>,
}
