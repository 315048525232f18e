//! An MCP host as a library: connections, one catalogue, one pipeline for every call.
//!
//! Owns the host. Front-ends see this crate's root and nothing below a host.

pub mod call;
pub mod catalog;
pub mod dispatch;

pub use call::{
    Answer, CallError, CallOptions, Consent, Oversize, Problem, Progress, ProgressSink, Prompter,
    Question, RefusedBy, SavedFile, ToolOutcome, ToolRequest, ToolTarget,
};
pub use catalog::{Catalog, CatalogTool, CatalogWarning};
