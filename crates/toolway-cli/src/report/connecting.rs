//! Clients that cannot be connected: what helps.

use toolway_config::connect::ClientEntryError;

use super::{Report, unwritable};
use crate::exit::Exit;

impl From<ClientEntryError> for Report {
    fn from(error: ClientEntryError) -> Self {
        let message = error.to_string();
        let (exit, hint) = match error {
            ClientEntryError::Edit(error) => return Report::from(error),
            ClientEntryError::NoPlace { .. } => (Exit::Configuration, "set `HOME`".to_owned()),
            ClientEntryError::NoProjectScope { .. } => (
                Exit::Usage,
                "leave `--scope` out: it has settings of yours only".to_owned(),
            ),
            ClientEntryError::NoAddress { .. } => (
                Exit::Usage,
                "leave `--url` out: it then starts `toolway serve` by itself".to_owned(),
            ),
            ClientEntryError::TokenInProject { .. } => (
                Exit::Usage,
                "leave `--scope project` out, or `--url`".to_owned(),
            ),
            ClientEntryError::Token { path, source } => {
                (Exit::Configuration, unwritable(&path, source.kind()))
            }
        };
        Report::new(exit, message).hint(hint)
    }
}
