//! A host, served to MCP clients of both eras.
//!
//! Owns the gateway's meaning: endpoints and their lists (`endpoint.rs`, `lists.rs`, `names.rs`),
//! one conversation per client (`client.rs`), requests that servers answer (`work.rs`), what differs
//! between the eras (`answers.rs`, `parked.rs`, `sealing.rs`), traces (`traced.rs`), and what the
//! owner may ask besides (`owner.rs`). Does not own what may run: every
//! request goes through the host's pipeline as a call of its client.

mod answers;
mod capabilities;
mod client;
mod core;
mod endpoint;
#[cfg(fuzzing)]
pub mod fuzzing;
mod greeting;
mod header_params;
mod lists;
mod names;
mod own_tools;
mod owner;
mod owner_methods;
mod parked;
mod party;
mod program_side;
mod questions;
mod record;
mod request_identity;
mod routed;
mod scope;
mod sealing;
mod service;
mod stream_asker;
mod traced;
mod work;

pub(crate) use self::client::progress_message;
pub use self::endpoint::{EndpointOptions, ToolOffer};
pub use self::names::MAX_NAME;
pub use self::own_tools::OwnTools;
pub use self::owner::OwnerService;
pub(crate) use self::owner_methods::is_owners;
pub(crate) use self::program_side::ProgramSide;
pub use self::routed::RoutedQuestions;
pub use self::service::{HostService, HostServiceOptions, ServiceDriver, ShownProfile};
