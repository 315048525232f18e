//! Places in files, what is wrong there, errors, and hooks.

use serde::{Deserialize, Serialize};
use toolway_types::{Diagnosis, Origin, ServerName, Severity};

use crate::Word;

/// Where something is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRow {
    /// The file, or the flag's name.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl From<&Origin> for SourceRow {
    fn from(origin: &Origin) -> Self {
        Self {
            path: origin.path(),
            line: origin.line(),
        }
    }
}

/// One thing that is wrong with the configuration. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosisRow {
    /// `error` or `warning`.
    pub severity: Word,
    /// The server that it concerns.
    pub server: Option<ServerName>,
    /// Where it stands.
    pub source: Option<FindingPlace>,
    /// What.
    pub message: String,
    /// What helps.
    pub hint: Option<String>,
}

/// Where something wrong stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingPlace {
    /// The file, or the flag's name.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
}

impl From<&Diagnosis> for DiagnosisRow {
    fn from(diagnosis: &Diagnosis) -> Self {
        let severity = match diagnosis.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        Self {
            severity: severity.into(),
            server: diagnosis.server.clone(),
            source: diagnosis.origin.as_ref().map(|origin| FindingPlace {
                path: origin.path(),
                line: origin.line(),
                column: diagnosis.column,
            }),
            message: diagnosis.message.clone(),
            hint: diagnosis.hint.clone(),
        }
    }
}

/// Why something that was asked for failed. Every field is always there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRow {
    /// The exit code of the command line.
    pub exit: u8,
    /// What went wrong.
    pub error: String,
    /// Further lines below that.
    pub details: Vec<String>,
    /// What helps.
    pub hint: Option<String>,
}

/// A hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookRow {
    /// When it runs.
    pub event: Word,
    /// For what.
    pub matcher: String,
    /// Its program or its tool.
    pub runs: String,
    /// How long it may take.
    pub timeout_seconds: f64,
    /// Where it stands.
    pub source: SourceRow,
}
