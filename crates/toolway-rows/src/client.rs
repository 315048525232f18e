//! Other clients, and whether they are connected to Toolway.

use serde::{Deserialize, Serialize};

use crate::Word;

/// The clients that were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientListing {
    /// File by file.
    pub clients: Vec<ClientRow>,
}

/// One file of a client. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRow {
    /// The client.
    pub client: Word,
    /// Whose settings the file holds: `user` or `project`.
    pub scope: Word,
    /// The file, which may not be there yet.
    pub path: String,
    /// The entries that lead to Toolway.
    pub connected: Vec<String>,
    /// How many other servers the client has there.
    pub servers: usize,
    /// Why the file cannot be read; null when it can.
    pub problem: Option<String>,
}
