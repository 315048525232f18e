//! Toolway's authentication: how a remote server's demand for a login becomes a token.
//!
//! Will own: discovery of the resource's and the authorization server's metadata, registration,
//! the login with its loopback callback, refresh, revocation, cross-app access, headers helpers
//! and the token store.
//! Has now: the reading of `WWW-Authenticate` (`challenge.rs`), which tells a server that wants a
//! login from one that failed.
//! Does not own: MCP traffic. Requests to servers are `toolway-transport`'s.

pub mod account;
pub mod assertion;
pub mod authorize;
pub mod callback;
pub mod challenge;
mod detached;
pub mod device;
pub mod discovery;
pub mod federated;
pub mod helper;
pub mod idp;
pub mod inbound;
pub mod jwt;
pub mod login;
pub mod logins;
pub mod metadata;
pub mod needs_auth;
mod random;
pub mod references;
pub mod refresh;
pub mod registration;
pub mod revoke;
pub mod scopes;
pub mod secret;
pub mod token;
pub mod vault;
pub mod web;
pub mod workload;
pub mod xaa;

pub use challenge::{AuthNeed, BearerChallenge, BearerError, Challenge};
