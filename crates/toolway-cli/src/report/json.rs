//! Errors as JSON: one shape for every command.
//!
//! Owns the shape, which is an interface: `exit`, `error`, `details`, `hint`, all of them always.

use serde_json::{Value, json};
use toolway_types::Diagnosis;

use super::{Report, place};
use crate::exit::Exit;

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
        let report = Report::new(Exit::Configuration, message);
        match &diagnosis.hint {
            Some(hint) => report.hint(hint),
            None => report.hint("mend it at that place, then check with `toolway doctor`"),
        }
    }
}
