//! What every channel is opened with.
//!
//! Owns the bundle of parts that an opener hands over; each part is its own module's.

use std::sync::Arc;

use crate::channel::ChannelLimits;
use crate::client::HttpClient;
use crate::credentials::Credentials;
use crate::stdio::launcher::Launcher;
use crate::stdio::shield::Shield;

/// What every channel is opened with.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The HTTP client that all remote servers share.
    pub client: HttpClient,
    /// The caps.
    pub limits: ChannelLimits,
    /// What processes are kept from writing.
    pub shield: Shield,
    /// Starts processes.
    pub launcher: Launcher,
    /// The credentials for a remote server.
    pub credentials: Option<Arc<dyn Credentials>>,
}
