//! Serves MCP to clients: over stdio, over loopback HTTP, and inside one program.
//!
//! Owns listening, the guard in front of every HTTP route, the requests in flight of each client
//! and what waits to be read by it. Does not own what is served: that is a [`Service`]. Nothing
//! here spawns; what must run is a future that the caller drives, and dropping it ends everything
//! it started.

pub mod client;
pub mod error;
pub mod http;
pub mod in_process;
pub mod serve;
pub mod stdio;

pub use client::{ClientBusy, ClientHandle};
pub use error::ServeError;
pub use in_process::in_process;
pub use serve::{ReplyFuture, Service};
