//! An MCP host as a library: connections, one catalogue, one pipeline for every call.
//!
//! Start with [`Host`]. A call is carried by `dispatch`, a server by `connection`, the protocol
//! by `session`; what is on offer is the [`Catalog`], and what is going on is the
//! [`HostSnapshot`].

pub mod call;
pub mod catalog;
mod connection;
pub mod dispatch;
pub mod error;
pub mod host;
mod session;
pub mod snapshot;
mod supervisor;
mod tasks;

pub use call::{
    Answer, CallError, CallOptions, Consent, Oversize, Problem, Progress, ProgressSink, Prompter,
    Question, RefusedBy, SavedFile, ToolOutcome, ToolRequest, ToolTarget,
};
pub use catalog::{Catalog, CatalogTool, CatalogWarning};
pub use connection::InProcessServer;
pub use error::{ConnectError, RequestError};
pub use host::{Host, HostOptions};
pub use snapshot::{Counts, HostSnapshot, ServerSnapshot};
/// How remote servers are reached: proxies and certificates.
pub use toolway_transport::client::ClientOptions;
/// The server's side of an [`InProcessServer`]'s connection.
pub use toolway_transport::in_process::ServerEnd;
/// What servers that are processes are kept from writing.
pub use toolway_transport::{Protected, Protection, Shield, ShieldError, ShieldState};
/// What results, tools, resources and prompts look like, read.
pub use toolway_wire::view;
