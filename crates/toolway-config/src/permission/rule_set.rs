//! The rules of all files, and which of them are about one tool.
//!
//! Owns the three lists of rules, the servers that a repository brought, and the cache of the rules
//! that name a tool. Finding those is `matching.rs`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use toolway_types::{Origin, ServerName, ToolKey, TransportKind};

use super::rule::PermissionRule;
use super::spelling::ToolNames;

/// A server that a repository brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryServer {
    /// Its name.
    pub server: ServerName,
    /// Where its entry stands.
    pub origin: Origin,
    /// What an approval of it is bound to, and so what is allowed of it.
    pub digest: String,
    /// The directory that its approval is for.
    pub directory: PathBuf,
}

/// Those of a plan, by their names.
pub(super) type RepositoryServers = BTreeMap<ServerName, Arc<RepositoryServer>>;

/// All rules, each list in the order in which they count.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RuleSet {
    pub(super) deny: Vec<PermissionRule>,
    pub(super) ask: Vec<PermissionRule>,
    pub(super) allow: Vec<PermissionRule>,
    /// The servers for which not every allow rule of their name counts.
    pub(super) repository_servers: RepositoryServers,
    /// The servers that a program or an agent brought: an allow rule of their name was given for
    /// another definition, so none counts but those that came with them.
    pub(super) brought: BTreeMap<ServerName, Option<TransportKind>>,
}

impl RuleSet {
    /// Those of these servers that no repository brought, each once: a repository must not make the
    /// user's rule ambiguous. None where there is no rule that allows anything.
    pub(super) fn own<'s>(&self, servers: &[&'s ServerName]) -> Vec<&'s ServerName> {
        if self.allow.is_empty() {
            return Vec::new();
        }
        let mut own = servers.to_vec();
        own.retain(|name| !self.repository_servers.contains_key(*name));
        own.sort();
        own.dedup();
        own
    }

    /// Whether an allow rule counts for this server; none for the host's own tools.
    pub(super) fn counts(&self, rule: &PermissionRule, server: Option<&ServerName>) -> bool {
        if server.is_some_and(|server| self.brought.contains_key(server)) {
            return match rule.given_for() {
                Some(given) => Some(given) == server,
                None => rule.names_no_server(),
            };
        }
        let repository = server.and_then(|server| self.repository_servers.get(server));
        match (repository, rule.given_for()) {
            (None, given) => given.is_none(),
            (Some(_), Some(given)) => Some(given) == server,
            (Some(_), None) => rule.names_no_server(),
        }
    }
}

/// The rules that name one tool, by their indexes in the lists.
#[derive(Debug, Clone)]
pub(super) struct MatchingRules {
    /// The rules that the indexes are for. Held, so that no other rules can have the same address.
    pub(super) rules: Arc<RuleSet>,
    pub(super) deny: Vec<usize>,
    pub(super) ask: Vec<usize>,
    pub(super) allow: Vec<usize>,
}

impl MatchingRules {
    pub(super) fn deny<'r>(&self, rules: &'r RuleSet) -> impl Iterator<Item = &'r PermissionRule> {
        self.deny.iter().filter_map(|place| rules.deny.get(*place))
    }

    pub(super) fn ask<'r>(&self, rules: &'r RuleSet) -> impl Iterator<Item = &'r PermissionRule> {
        self.ask.iter().filter_map(|place| rules.ask.get(*place))
    }

    pub(super) fn allow<'r>(&self, rules: &'r RuleSet) -> impl Iterator<Item = &'r PermissionRule> {
        self.allow
            .iter()
            .filter_map(|place| rules.allow.get(*place))
    }
}

/// The spellings of one tool, and the rules that name it. Making them costs more than judging by
/// them, so a caller that judges many calls of one tool keeps them.
#[derive(Debug)]
pub struct ToolSpellings {
    pub(super) names: ToolNames,
    pub(super) tool: SpelledTool,
    /// The name it is shown as.
    pub(super) shown_as: Option<String>,
    /// Whether no other tool that is known is spelled like it.
    pub(super) alone: bool,
    /// The rules that name it, found on first use.
    pub(super) concerned: OnceLock<MatchingRules>,
}

#[derive(Debug)]
pub(super) enum SpelledTool {
    Server { key: ToolKey, apart: String },
    Builtin(String),
}

impl ToolSpellings {
    /// The exposed name that tells a server's tool from all others.
    pub(super) fn apart(&self) -> Option<&str> {
        match &self.tool {
            SpelledTool::Server { apart, .. } => Some(apart),
            SpelledTool::Builtin(_) => None,
        }
    }
}
