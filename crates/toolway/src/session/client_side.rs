//! What this program offers to the server at the other end of one channel.

use std::sync::Arc;

use tokio::sync::watch;
use toolway_types::ServerName;

use crate::client_handler::{ClientHandler, Remarks, Root};
use crate::dispatch::hooks::HookRunner;

/// What this program offers to the server at the other end of one channel.
#[derive(Clone)]
pub(crate) struct ClientSide {
    /// The server, as the client handler is told.
    pub server: ServerName,
    /// Who answers.
    pub client_handler: Option<Arc<dyn ClientHandler>>,
    /// Who is asked before them.
    pub hooks: Arc<HookRunner>,
    /// The roots of this moment.
    pub roots: watch::Receiver<Arc<[Root]>>,
    /// What a person should know about what became of its questions.
    pub remarks: Arc<Remarks>,
}
