//! The methods that only the owner may use.
//!
//! Owns their names. Whoever is a client is answered that there is no such method, at every endpoint:
//! none of them is ever passed on to a server.

/// What this gateway is doing.
pub(super) const STATUS: &str = "toolway/status";
/// The questions that wait.
pub(super) const QUESTIONS: &str = "toolway/questions";
/// An answer to one of them.
pub(super) const ANSWER: &str = "toolway/answer";

/// Whether a method is the owner's, known or not.
pub(crate) fn is_owners(method: &str) -> bool {
    method.starts_with("toolway/")
}
