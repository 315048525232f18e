//! From a server's definition to a channel of bytes.
//!
//! Owns starting processes and opening outbound sockets. Does not know what the bytes mean.

pub mod channel;
pub mod client;
pub mod error;
pub mod http;
pub mod in_process;
pub mod stdio;

pub use channel::{Channel, Command, Driver, Event, Outgoing, Tag};
pub use error::{CloseReason, OpenError, SendFailure};
