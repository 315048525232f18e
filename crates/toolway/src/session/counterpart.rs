//! What this program offers to the server at the other end of one channel.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use toolway_types::ServerName;

use crate::dispatch::hooks::Runner;
use crate::respondent::{Remarks, Respondent, Root};

/// What this program offers to the server at the other end of one channel.
#[derive(Clone)]
pub(crate) struct Counterpart {
    /// The server, as the respondent is told.
    pub server: ServerName,
    /// Who answers.
    pub respondent: Option<Arc<dyn Respondent>>,
    /// Who is asked before them.
    pub hooks: Arc<Runner>,
    /// The roots of this moment.
    pub roots: watch::Receiver<Arc<[Root]>>,
    /// What a person should know about what became of its questions.
    pub remarks: Arc<Remarks>,
}

impl fmt::Debug for Counterpart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Counterpart")
            .field("server", &self.server)
            .field("respondent", &self.respondent.is_some())
            .field("roots", &*self.roots.borrow())
            .finish_non_exhaustive()
    }
}
