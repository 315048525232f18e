//! One client as far as its requests carry it: who it is, what it sees, its way into the host.
//!
//! Owns nothing that changes but the record for whoever looks (`record.rs`). What a conversation
//! remembers is `client.rs`'s; a request that outlives its conversation holds no more than this.

use std::sync::Arc;

use toolway::{Attached, ToolPool};

use super::core::ServiceCore;
use super::endpoint::ServedEndpoint;
use super::record::ClientRecord;
use crate::conversation::Peer;

/// A client, as its requests know it.
pub(super) struct ClientParty {
    pub(super) core: Arc<ServiceCore>,
    pub(super) endpoint: Arc<ServedEndpoint>,
    pub(super) attached: Attached,
    /// What values are sealed for: its principal, under its profile.
    pub(super) sealed_for: String,
    pub(super) peer: Peer,
    pub(super) record: ClientRecord,
    /// What it found by searching, where it has to.
    pub(super) pool: Option<ToolPool>,
}
