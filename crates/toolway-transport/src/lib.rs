//! From a server's definition to a channel of bytes.
//!
//! Owns starting processes and opening outbound sockets, and the caps on what comes back. Does
//! not know what the bytes mean beyond what framing needs.

pub mod browser;
pub mod channel;
pub mod client;
pub mod collector;
pub mod credentials;
pub mod error;
mod error_text;
mod first_look;
pub mod http;
mod ide;
pub mod in_process;
mod inspection;
pub mod memory;
mod open;
mod options;
pub mod program;
mod server_log;
mod sse;
pub mod stdio;
pub mod websocket;
pub mod woken;

pub use channel::{
    AnswerTimeout, Channel, ChannelCommand, ChannelDriver, ChannelEvent, ChannelLimits,
    OutgoingMessage, RequestTag,
};
pub use credentials::{Credentials, CredentialsError};
pub use error::{CloseReason, OpenError, SendFailure, ShieldError};
pub use first_look::FirstLook;
pub use inspection::forbid_inspection;
pub use open::open;
pub use options::OpenOptions;
pub use server_log::ServerLog;
pub use stdio::shield::{ProtectedPath, Protection, Shield, ShieldState};
