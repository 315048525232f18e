//! The Model Context Protocol as data.
//!
//! Owns: JSON-RPC envelopes over raw JSON, ids, errors, what differs between the two eras,
//! `_meta`, protocol headers, and typed views of results that tolerate one bad item.
//! Does not own: any I/O, ids in flight, or what to do about a message. Payloads stay raw bytes
//! until a view is requested.

pub mod edit;
mod elements;
pub mod envelope;
pub mod era;
pub mod error;
pub mod headers;
pub mod id;
mod lenient;
mod members;
pub mod meta;
mod params;
mod plain;
mod raw_json;
mod received;
pub mod request_head;
pub mod scan;
pub mod skim;
pub mod trace;
pub mod view;

pub use envelope::{EnvelopeError, Message};
pub use error::RpcError;
pub use id::Id;
pub use params::{CarriedParams, ParamsError};
pub use raw_json::{JsonText, RawJson};
pub use request_head::RequestHead;
pub use trace::{TraceContext, TraceParent};
