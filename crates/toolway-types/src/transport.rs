//! The transports, and what is true of each.
//!
//! Owns the one table of facts. Other code asks for a fact and does not list transports, so that a
//! new one is a row here: see "Add a transport" in `CONTRIBUTING.md`.

use crate::Era;

/// How a server is reached: what an entry's `type` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// A child process.
    Stdio,
    /// A server object inside the embedding program.
    Sdk,
    /// By an address.
    Remote(RemoteKind),
}

/// The transports to servers that have an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteKind {
    /// Streamable HTTP.
    Http,
    /// Legacy HTTP+SSE.
    Sse,
    /// WebSocket.
    Ws,
    /// An editor's server over SSE.
    SseIde,
    /// An editor's server over WebSocket.
    WsIde,
    /// A hosted connector behind its provider's proxy.
    Connector,
}

/// What is true of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportFacts {
    /// The word in an entry's `type`.
    pub word: &'static str,
    /// Other words for it there.
    pub aliases: &'static [&'static str],
    /// What other clients call it, in lower case, without `-` and `_`.
    pub foreign_words: &'static [&'static str],
    /// The schemes of its addresses, the encrypted one first.
    pub schemes: &'static [&'static str],
    /// What is at the other end.
    pub peer: TransportPeer,
    /// How messages travel.
    pub delivery: MessageDelivery,
    /// The era, where it exists in one only.
    pub only_era: Option<Era>,
}

/// What is at the other end of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportPeer {
    /// A process or an object of this machine: its login is its environment.
    Local,
    /// A server that an authorization server may speak for.
    Server,
    /// An editor on this machine, found by its lock file, which holds its token.
    Editor,
    /// The proxy of the account's provider, which takes the account's token.
    Provider,
}

/// How messages travel, as far as the protocol cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageDelivery {
    /// One stream each way.
    Stream,
    /// Each request has an answer of its own, with headers and a status: HTTP.
    PerRequest,
}

/// A server over HTTP; most transports differ in little.
const USUAL: TransportFacts = TransportFacts {
    word: "http",
    aliases: &[],
    foreign_words: &[],
    schemes: &["https", "http"],
    peer: TransportPeer::Server,
    delivery: MessageDelivery::Stream,
    only_era: None,
};

/// A process or an object has no address.
const LOCAL: TransportFacts = TransportFacts {
    schemes: &[],
    peer: TransportPeer::Local,
    ..USUAL
};

const SSE: TransportFacts = TransportFacts {
    word: "sse",
    only_era: Some(Era::Legacy),
    ..USUAL
};

const WS: TransportFacts = TransportFacts {
    word: "ws",
    foreign_words: &["websocket", "wss"],
    schemes: &["wss", "ws"],
    ..USUAL
};

impl RemoteKind {
    /// What is true of it.
    pub const fn facts(self) -> TransportFacts {
        match self {
            Self::Http => TransportFacts {
                aliases: &["streamable-http"],
                foreign_words: &["streamablehttp", "https", "remote"],
                delivery: MessageDelivery::PerRequest,
                ..USUAL
            },
            Self::Sse => SSE,
            Self::Ws => WS,
            Self::SseIde => TransportFacts {
                word: "sse-ide",
                peer: TransportPeer::Editor,
                ..SSE
            },
            Self::WsIde => TransportFacts {
                word: "ws-ide",
                foreign_words: &[],
                peer: TransportPeer::Editor,
                ..WS
            },
            Self::Connector => TransportFacts {
                word: "connector",
                aliases: &["claudeai-proxy"],
                peer: TransportPeer::Provider,
                delivery: MessageDelivery::PerRequest,
                ..USUAL
            },
        }
    }
}

impl TransportKind {
    /// Every kind, in the order documentation lists them.
    pub const ALL: [Self; 8] = [
        Self::Stdio,
        Self::Remote(RemoteKind::Http),
        Self::Remote(RemoteKind::Sse),
        Self::Remote(RemoteKind::Ws),
        Self::Sdk,
        Self::Remote(RemoteKind::SseIde),
        Self::Remote(RemoteKind::WsIde),
        Self::Remote(RemoteKind::Connector),
    ];

    /// What is true of it.
    pub const fn facts(self) -> TransportFacts {
        match self {
            Self::Stdio => TransportFacts {
                word: "stdio",
                foreign_words: &["local", "command", "process"],
                ..LOCAL
            },
            Self::Sdk => TransportFacts {
                word: "sdk",
                ..LOCAL
            },
            Self::Remote(kind) => kind.facts(),
        }
    }

    /// The word shown to people and written to files.
    pub fn as_str(self) -> &'static str {
        self.facts().word
    }

    /// Whether its server has an address.
    pub fn is_remote(self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Whether an authorization server could speak for its server. Processes have their
    /// environment, editors their lock file, connectors their account.
    pub fn logs_in(self) -> bool {
        self.facts().peer == TransportPeer::Server
    }

    /// Whether an editor is at the other end.
    pub fn is_editor(self) -> bool {
        self.facts().peer == TransportPeer::Editor
    }

    /// Whether it is reached by the account's token.
    pub fn is_connector(self) -> bool {
        self.facts().peer == TransportPeer::Provider
    }

    /// Reads a `type`, aliases included.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| {
            let facts = kind.facts();
            facts.word == text || facts.aliases.contains(&text)
        })
    }

    /// Those that users write entries for, here and for other clients.
    pub fn common() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|kind| kind.logs_in() || *kind == Self::Stdio)
    }

    /// What another client means by a word.
    pub fn of_foreign_word(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase().replace(['-', '_'], "");
        Self::common().find(|kind| {
            let facts = kind.facts();
            facts.word == word || facts.foreign_words.contains(&word.as_str())
        })
    }

    /// What an address of this scheme is taken for.
    pub fn of_scheme(scheme: &str) -> Option<Self> {
        Self::common().find(|kind| {
            let mut schemes = kind.facts().schemes.iter();
            schemes.any(|known| known.eq_ignore_ascii_case(scheme))
        })
    }

    /// What an address without a `type` is taken for, wherever one is given: the old HTTP+SSE
    /// transport by a path that ends in `/sse`, else by its scheme. Streamable HTTP finds out by
    /// itself when the server is an old one.
    pub fn of_address(address: &str) -> Self {
        let scheme = address.split("://").next().unwrap_or_default();
        let path = address.split(['?', '#']).next().unwrap_or_default();
        let http = Self::Remote(RemoteKind::Http);
        match Self::of_scheme(scheme).unwrap_or(http) {
            kind if kind == http && path.trim_end_matches('/').ends_with("/sse") => {
                Self::Remote(RemoteKind::Sse)
            }
            kind => kind,
        }
    }
}

impl From<RemoteKind> for TransportKind {
    fn from(kind: RemoteKind) -> Self {
        Self::Remote(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_means_one_transport() {
        let mut words: Vec<_> = TransportKind::ALL
            .into_iter()
            .flat_map(|kind| {
                [kind.as_str()]
                    .into_iter()
                    .chain(kind.facts().aliases.iter().copied())
            })
            .inspect(|word| assert!(TransportKind::parse(word).is_some(), "{word}"))
            .collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[test]
    fn an_address_says_which_transport_it_means() {
        for (address, word) in [
            ("https://a.test/mcp", "http"),
            ("a.test/mcp", "http"),
            ("http://a.test/sse/?x=1", "sse"),
            ("https://a.test/sse-like", "http"),
            ("WSS://a.test/sse", "ws"),
            ("ws://a.test", "ws"),
        ] {
            assert_eq!(
                TransportKind::of_address(address).as_str(),
                word,
                "{address}"
            );
        }
    }
    #[test]
    fn words_of_other_clients_are_known_and_mean_nothing_of_ours_alone() {
        for (word, meant) in [
            ("Streamable_HTTP", Some("http")),
            ("wss", Some("ws")),
            ("process", Some("stdio")),
            ("sse", Some("sse")),
            ("ws-ide", None),
            ("sdk", None),
        ] {
            let kind = TransportKind::of_foreign_word(word);
            assert_eq!(kind.map(TransportKind::as_str), meant, "{word}");
        }
    }
}
