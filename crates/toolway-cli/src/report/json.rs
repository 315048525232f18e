//! Errors as JSON: one shape for every command, the row of `toolway_rows`.

use toolway_rows::ErrorRow;
use toolway_types::Diagnosis;

use super::{Report, place};

impl Report {
    /// The error as `--json` tells it.
    pub(crate) fn row(&self) -> ErrorRow {
        ErrorRow {
            exit: self.exit.code(),
            error: self.message.clone(),
            details: self.details.clone(),
            hint: self.hint.clone(),
        }
    }

    /// An error in a file, with its place.
    pub(crate) fn of_entry(diagnosis: &Diagnosis) -> Self {
        let message = format!("{}{}", place(diagnosis), diagnosis.message);
        Report::configuration(message)
            .hint("mend it at that place, then check with `toolway doctor`")
            .better_hint(diagnosis.hint.as_ref())
    }
}
