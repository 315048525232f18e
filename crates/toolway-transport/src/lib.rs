//! From a server's definition to a channel of bytes.
//!
//! Owns starting processes and opening outbound sockets, and the caps on what comes back. Does
//! not know what the bytes mean beyond what framing needs.

pub mod browser;
pub mod channel;
pub mod client;
pub mod credentials;
pub mod error;
mod error_text;
pub mod http;
pub mod ide;
pub mod in_process;
mod inspection;
pub mod program;
pub mod sse;
pub mod stdio;
pub mod websocket;

use std::sync::Arc;
use std::time::Duration;

use toolway_types::{ServerSpec, TransportSpec};

pub use channel::{
    AnswerTimeout, Channel, ChannelCommand, ChannelDriver, ChannelEvent, OutgoingMessage,
    RequestTag,
};
pub use credentials::{Credentials, CredentialsError};
pub use error::{CloseReason, OpenError, SendFailure};
pub use inspection::forbid_inspection;
pub use stdio::shield::{ProtectedPath, Protection, Shield, ShieldError, ShieldState};

/// What every channel is opened with.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The HTTP client that all remote servers share.
    pub client: client::HttpClient,
    /// The caps.
    pub limits: ChannelLimits,
    /// What processes are kept from writing.
    pub shield: Shield,
    /// Starts processes.
    pub launcher: stdio::launcher::Launcher,
    /// The credentials for a remote server.
    pub credentials: Option<Arc<dyn Credentials>>,
}

/// The caps on what a server may send, and on how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelLimits {
    /// The longest line on a process's stdout, in bytes.
    pub line: usize,
    /// The largest HTTP answer, in bytes.
    pub response: usize,
    /// The largest single event of an event stream, in bytes.
    pub sse_event: usize,
    /// The largest WebSocket message, in bytes.
    pub websocket_message: usize,
    /// How much of a process's stderr is kept, in bytes.
    pub stderr_ring: usize,
    /// How long a process may leave its stdin unread while there is something to write.
    pub write_stall: Duration,
    /// How long an HTTP request may take until its answer begins, where its sender leaves that to
    /// the channel, and an event stream or a WebSocket until it stands.
    pub first_byte: Duration,
    /// How long the stream on which a legacy HTTP server speaks unasked may be silent before it is
    /// opened again.
    pub stream_idle: Duration,
    /// How long any stream may be silent although its server sends keepalives; three times their
    /// interval when that is longer.
    pub keepalive: Duration,
    /// How often a WebSocket is pinged; after two intervals without data it is closed.
    pub ping: Duration,
}

impl Default for ChannelLimits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            line: 16 * MIB,
            response: 64 * MIB,
            sse_event: 16 * MIB,
            websocket_message: 4 * MIB,
            stderr_ring: 256 * 1024,
            write_stall: Duration::from_secs(30),
            first_byte: Duration::from_mins(1),
            stream_idle: Duration::from_mins(5),
            keepalive: Duration::from_secs(30),
            ping: Duration::from_secs(30),
        }
    }
}

impl ChannelLimits {
    /// How long an answer may take to begin, where the channel decides that.
    pub(crate) fn within(&self, answer_timeout: AnswerTimeout) -> Option<Duration> {
        match answer_timeout {
            AnswerTimeout::ByChannel => Some(self.first_byte),
            AnswerTimeout::BySender => None,
        }
    }
}

/// Opens a channel to a server.
pub async fn open(spec: &ServerSpec, options: &OpenOptions) -> Result<Channel, OpenError> {
    match &spec.transport {
        TransportSpec::Stdio(stdio) => stdio::open(stdio, options).await,
        TransportSpec::Http(remote) | TransportSpec::Connector(remote) => {
            http::open(remote, options)
        }
        TransportSpec::Sse(remote) => sse::open(remote, options),
        TransportSpec::Ws(remote) => websocket::open(remote, options),
        TransportSpec::SseIde(remote) => ide::open_sse(remote, options),
        TransportSpec::WsIde(remote) => ide::open_websocket(remote, options),
        // Linked by the host, which has the object: see `in_process`.
        TransportSpec::Sdk => Err(OpenError::NoObject),
    }
}
