//! Serves MCP to clients: over stdio, over HTTP, and inside one program; and to its owner, over a
//! socket.
//!
//! Owns listening, the guard in front of every HTTP route, the requests in flight of each client
//! and what waits to be read by it. Does not own what is served: that is a [`Service`]. What must
//! run is a future that the caller drives, and dropping it ends everything it started; connections
//! over HTTP are tasks that it holds.

pub mod agent_socket;
mod client_questions;
pub mod control;
pub mod conversation;
pub mod daemon_socket;
pub mod error;
pub mod hosted;
pub mod http;
pub mod in_process;
pub mod metrics;
mod ordered;
pub mod outlet;
pub mod owner_socket;
pub mod seal;
pub mod stdio;

pub use control::{ControlOptions, ControlService};
pub use conversation::{
    Answer, AnswerFuture, Conversation, Endpoint, IncomingRequest, NoConversation, Peer, Service,
    stateless,
};
pub use error::{ServeError, TlsError};
pub use hosted::{EndpointOptions, HostService, HostServiceOptions, OwnerService};
pub use in_process::in_process;
pub use outlet::{ClientBusy, Outlet};
pub use seal::{SealBinding, SealError, SealKeys, SealPurpose};
