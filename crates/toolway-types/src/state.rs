//! The five states of a connection, as one closed type.
//!
//! Owns the states, what each carries for display, and the legal transitions; `toolway` decides
//! when they happen.

use std::fmt;

use serde_json::Value;

use crate::{Era, ReferenceKind, Untrusted};

/// Where a server's connection stands.
#[derive(Debug, Clone, PartialEq)]
pub enum ConnectionState {
    /// A handshake is under way or waits for its turn.
    Pending {
        /// The attempt, counted from 1.
        attempt: u32,
    },
    /// The handshake is done.
    Connected(Box<ServerFacts>),
    /// It could not be reached, or broke; the error is kept.
    Failed(Failure),
    /// It wants a login first.
    NeedsAuth {
        /// What the server said, cleaned.
        detail: Untrusted,
        /// Whether it has seen a login that does not reach far enough, and did not say which scopes
        /// it wants: another like that one would be refused again.
        unnamed_scopes: bool,
    },
    /// It must not connect: a user, a policy or its own entry says so.
    Disabled {
        /// Why, in one line.
        reason: String,
    },
}

impl ConnectionState {
    /// The word shown to people and in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            ConnectionState::Pending { .. } => "pending",
            ConnectionState::Connected(_) => "connected",
            ConnectionState::Failed(_) => "failed",
            ConnectionState::NeedsAuth { .. } => "needs-auth",
            ConnectionState::Disabled { .. } => "disabled",
        }
    }

    /// Whether this state may follow that one. What a state carries may change while it stays
    /// the same, except that a new session is always `pending` first.
    pub fn may_become(&self, next: &Self) -> bool {
        use ConnectionState::{Connected, Disabled, Failed, NeedsAuth, Pending};
        match (self, next) {
            (Pending { .. }, _)
            | (Failed(_) | NeedsAuth { .. } | Disabled { .. } | Connected(_), Pending { .. })
            | (Connected(_) | Failed(_), Failed(_))
            | (NeedsAuth { .. }, NeedsAuth { .. })
            | (Disabled { .. }, Disabled { .. }) => true,
            (Connected(_), Connected(_) | NeedsAuth { .. } | Disabled { .. })
            | (Failed(_), Connected(_) | NeedsAuth { .. } | Disabled { .. })
            | (NeedsAuth { .. }, Connected(_) | Failed(_) | Disabled { .. })
            | (Disabled { .. }, Connected(_) | Failed(_) | NeedsAuth { .. }) => false,
        }
    }
}

/// What the handshake settled about a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFacts {
    /// The era both sides speak.
    pub era: Era,
    /// The exact revision.
    pub protocol_version: String,
    /// `serverInfo` as the server sent it, cleaned; an object, or null when it sent none.
    pub server_info: Value,
    /// `capabilities` as the server sent them.
    pub capabilities: Value,
    /// `instructions`, cleaned and cut; none where an entry or a policy drops them.
    pub instructions: Option<Untrusted>,
}

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The class of the failure.
    pub kind: FailureKind,
    /// One line for a user, without the server's name.
    pub message: String,
    /// The last lines the server wrote to stderr, when it is a process.
    pub stderr: Vec<Untrusted>,
}

/// The classes of connection failure that callers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The process could not be started.
    Spawn,
    /// A secret that its entry refers to is not there.
    Secret(ReferenceKind),
    /// What its requests would carry cannot be had: a login that cannot be read or renewed now, or
    /// a helper that fails.
    Credentials,
    /// The peer could not be reached.
    Unreachable,
    /// The peer was reached, and a certificate stands between us.
    Certificate(CertificateFault),
    /// Policy forbids the place where the server leads.
    Forbidden,
    /// The handshake took too long.
    TimedOut,
    /// The process ended, or the connection closed, before it was done.
    Closed,
    /// The peer answered something that is not the protocol.
    Protocol,
}

/// What is wrong with a certificate. Each is fixed in another way, and none by waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateFault {
    /// No authority that we trust has signed it.
    Untrusted,
    /// Its time is over.
    Expired,
    /// Its time has not come, or our clock is wrong.
    NotYet,
    /// It was issued for another name than the one we asked for.
    OtherName,
    /// It is revoked, malformed, or made for another purpose.
    Unusable,
    /// It is ours: the server wants one, or another one.
    Ours,
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Untrusted => {
                "the server's certificate is not signed by an authority that this system trusts"
            }
            Self::Expired => "the server's certificate has expired",
            Self::NotYet => "the server's certificate is not valid yet",
            Self::OtherName => "the server's certificate is for another name",
            Self::Unusable => "the server's certificate cannot be used",
            Self::Ours => "the server asks for a client certificate, or refuses the one it got",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> [ConnectionState; 5] {
        [
            ConnectionState::Pending { attempt: 2 },
            ConnectionState::Connected(Box::new(ServerFacts {
                era: Era::Legacy,
                protocol_version: "2025-11-25".to_owned(),
                server_info: Value::Null,
                capabilities: Value::Null,
                instructions: None,
            })),
            ConnectionState::Failed(Failure {
                kind: FailureKind::Closed,
                message: "gone".to_owned(),
                stderr: Vec::new(),
            }),
            ConnectionState::NeedsAuth {
                detail: Untrusted::new(""),
                unnamed_scopes: false,
            },
            ConnectionState::Disabled {
                reason: "off".to_owned(),
            },
        ]
    }

    #[test]
    fn only_the_legal_moves_are_possible() {
        let mut moves = Vec::new();
        for from in states() {
            for to in states() {
                if from.as_str() != to.as_str() && from.may_become(&to) {
                    moves.push(format!("{}→{}", from.as_str(), to.as_str()));
                }
            }
        }
        assert_eq!(
            moves,
            [
                "pending→connected",
                "pending→failed",
                "pending→needs-auth",
                "pending→disabled",
                "connected→pending",
                "connected→failed",
                "failed→pending",
                "needs-auth→pending",
                "disabled→pending",
            ]
        );
    }

    #[test]
    fn a_new_session_is_always_pending_first() {
        let [_, connected, ..] = states();
        assert!(!connected.may_become(&connected));
    }
}
