//! A notification that the protocol does not have.
//!
//! Owns its words. Who hears it is `notices.rs`.

use std::sync::Arc;

use toolway_wire::RawJson;

/// A notification that the protocol does not have, as its server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNotice {
    /// What it is called.
    pub method: Arc<str>,
    /// With what.
    pub params: Option<RawJson>,
}

/// Where notices of one request go.
pub type NoticeSink = Arc<dyn Fn(ServerNotice) + Send + Sync>;
