//! The words that cross Toolway's crates.
//!
//! Owns: plain values that more than one crate speaks of — names, scopes, origins, authors,
//! server definitions, connection states, diagnoses, secrets, untrusted text and budgets.
//! Does not own: reading files, opening connections, or any decision about them. No I/O and no
//! async runtime may enter here.

pub mod author;
pub mod budget;
pub mod diagnosis;
pub mod era;
pub mod limits;
pub mod name;
pub mod nearest;
pub mod origin;
pub mod reference;
pub mod scope;
pub mod secret;
pub mod server;
pub mod share;
pub mod shield;
pub mod state;
pub mod text;
pub mod transport;
pub mod url_check;
pub mod url_rules;
pub mod voucher;
pub mod wildcard;

pub use author::Author;
pub use budget::{Budget, BudgetExceeded, BytePool, PoolShare};
pub use diagnosis::{Diagnosis, Severity};
pub use era::{Era, ProtocolMode};
pub use name::{NameError, ServerName, ToolKey};
pub use nearest::{nearest, several_nearest};
pub use origin::Origin;
pub use reference::{ReferenceKind, SecretReference, replace_placeholders};
pub use scope::Scope;
pub use secret::Secret;
pub use server::{
    CrossApp, HeadersHelper, OauthSpec, RemoteSpec, ServerSpec, StdioSpec, TransportSpec,
    UnannouncedPkce, WorkingDirectory,
};
pub use share::{ServerShare, ShareMode};
pub use shield::ShieldMode;
pub use state::{CertificateFault, ConnectionState, Failure, FailureKind, ServerFacts};
pub use text::Untrusted;
pub use transport::{MessageDelivery, RemoteKind, TransportFacts, TransportKind, TransportPeer};
pub use url_check::{could_be_this_machine, is_this_machine, may_be_opened, request_url};
pub use url_rules::{UrlList, UrlPattern, UrlRules};
pub use voucher::{VoucherKind, VoucherSpec, WorkloadSource};
