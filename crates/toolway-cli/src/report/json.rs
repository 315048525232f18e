//! Errors as JSON: one shape for every command.
//!
//! Owns the shapes, which are an interface. An error has `exit`, `error`, `details` and `hint`, all
//! of them always.

use serde_json::{Value, json};
use toolway_types::{Diagnosis, Origin, Severity};

use super::{Report, place};

impl Report {
    /// The error as `--json` tells it.
    pub(crate) fn as_json(&self) -> Value {
        json!({
            "exit": self.exit.code(),
            "error": self.message,
            "details": self.details,
            "hint": self.hint,
        })
    }

    /// An error in a file, with its place.
    pub(crate) fn of_entry(diagnosis: &Diagnosis) -> Self {
        let message = format!("{}{}", place(diagnosis), diagnosis.message);
        Report::configuration(message)
            .hint("mend it at that place, then check with `toolway doctor`")
            .better_hint(diagnosis.hint.as_ref())
    }
}

/// Where something is written.
pub(crate) fn source(origin: &Origin) -> Value {
    json!({ "path": origin.path(), "line": origin.line() })
}

/// What is wrong with a file.
pub(crate) fn diagnosis_json(diagnosis: &Diagnosis) -> Value {
    json!({
        "severity": match diagnosis.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "server": diagnosis.server,
        "source": diagnosis.origin.as_ref().map(|origin| json!({
            "path": origin.path(), "line": origin.line(), "column": diagnosis.column,
        })),
        "message": diagnosis.message,
        "hint": diagnosis.hint,
    })
}
