//! Toolway's authentication: how a remote server's demand for a login becomes a token.
//!
//! Owns discovery, registration, the login with its loopback callback, refresh, revocation,
//! federated logins, headers helpers, the token store, and the check of inbound tokens.
//! Does not own: MCP traffic. Requests to servers are `toolway-transport`'s.

pub mod account;
pub mod assertion;
pub mod authorize;
pub mod callback;
pub mod challenge;
pub mod clock;
mod detached;
pub mod device;
pub mod discovery;
pub mod federated;
pub mod gateway_token;
pub mod grant;
pub mod helper;
pub mod idp;
pub mod inbound;
pub mod jwt;
pub mod login;
pub mod login_ui;
pub mod logins;
pub mod metadata;
pub mod named_tokens;
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
pub mod voucher;
pub mod web;

pub use challenge::{AuthNeed, BearerChallenge, BearerError, Challenge};
