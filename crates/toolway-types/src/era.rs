//! Which of the two protocol eras a server speaks.
//!
//! Owns the words; what differs between the eras on the wire lives in `toolway-wire`.

use serde::{Deserialize, Serialize};

/// One of the two incompatible families of protocol revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Up to 2025-11-25: `initialize`, sessions, requests in both directions.
    Legacy,
    /// From 2026-07-28: `server/discover`, stateless, `_meta` on every request.
    Modern,
}

impl Era {
    /// The word shown to people and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        }
    }
}

/// What a server's entry says about the era to speak (`protocol` in the entry).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ProtocolMode {
    /// Find out by probing.
    #[default]
    Auto,
    /// Always `initialize`.
    Legacy,
    /// Always 2026-07-28.
    Modern,
}

impl ProtocolMode {
    /// The spelling in a configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            ProtocolMode::Auto => "auto",
            ProtocolMode::Legacy => "legacy",
            ProtocolMode::Modern => "2026-07-28",
        }
    }

    /// Reads the spelling of a configuration file.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Auto, Self::Legacy, Self::Modern]
            .into_iter()
            .find(|mode| mode.as_str() == text)
    }
}
