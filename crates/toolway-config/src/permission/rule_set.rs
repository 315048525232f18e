//! Which rules are about a tool, whatever its arguments.
//!
//! Owns the three lists of rules, and finding out once for each tool which of them name it, because
//! a name is matched in every spelling. What those rules say about a call, with its arguments, is
//! decided in `permission.rs`.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use toolway_types::{ServerName, ToolKey};

use super::repository_server::RepositoryServers;
use super::rule::PermissionRule;
use super::spelling::ToolNames;
use super::{CallSubject, SubjectTool};

/// All rules, each list in the order in which they count.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RuleSet {
    pub(super) deny: Vec<PermissionRule>,
    pub(super) ask: Vec<PermissionRule>,
    pub(super) allow: Vec<PermissionRule>,
    /// The servers for which not every allow rule of their name counts.
    pub(super) repository_servers: RepositoryServers,
}

impl RuleSet {
    /// Those of these servers that no repository brought, each once: a repository must not make the
    /// user's rule ambiguous.
    pub(super) fn own<'s>(&self, servers: &[&'s ServerName]) -> Vec<&'s ServerName> {
        let mut own = servers.to_vec();
        own.retain(|name| !self.repository_servers.contains_key(*name));
        own.sort();
        own.dedup();
        own
    }

    /// Whether an allow rule counts for the server of this call.
    pub(super) fn counts(&self, rule: &PermissionRule, subject: &CallSubject<'_>) -> bool {
        let SubjectTool::Tool(key) = subject.target else {
            return rule.given_for().is_none();
        };
        match (self.repository_servers.get(&key.server), rule.given_for()) {
            (None, given) => given.is_none(),
            (Some(_), Some(given)) => *given == key.server,
            (Some(_), None) => rule.names_no_server(),
        }
    }
}

/// The rules that name one tool, by their indexes in the lists.
#[derive(Debug, Clone)]
pub(super) struct MatchingRules {
    /// The rules that the indexes are for. Held, so that no other rules can have the same address.
    rules: Arc<RuleSet>,
    deny: Vec<usize>,
    ask: Vec<usize>,
    allow: Vec<usize>,
}

impl MatchingRules {
    /// Those that name the subject's tool, from the cache where there is one.
    pub(super) fn by<'a>(rules: &Arc<RuleSet>, subject: &CallSubject<'a>) -> Cow<'a, Self> {
        let Some(spellings) = subject.spellings else {
            return Cow::Owned(Self::find(rules, subject));
        };
        let known = spellings
            .concerned
            .get_or_init(|| Self::find(rules, subject));
        if Arc::ptr_eq(&known.rules, rules) {
            Cow::Borrowed(known)
        } else {
            // The cache was made for other rules.
            Cow::Owned(Self::find(rules, subject))
        }
    }

    fn find(rules: &Arc<RuleSet>, subject: &CallSubject<'_>) -> Self {
        let places = |list: &[PermissionRule], names: &dyn Fn(&PermissionRule) -> bool| {
            let named = list.iter().enumerate().filter(|(_, rule)| names(rule));
            named.map(|(place, _)| place).collect::<Vec<_>>()
        };
        let (mut deny, mut ask) = (Vec::new(), Vec::new());
        if !(rules.deny.is_empty() && rules.ask.is_empty()) {
            let made;
            let spellings = if let Some(kept) = subject.spellings {
                kept
            } else {
                made = ToolSpellings::of(subject);
                &made
            };
            let restricts = |rule: &PermissionRule| rule.restricts(subject, &spellings.names);
            deny = places(&rules.deny, &restricts);
            ask = places(&rules.ask, &restricts);
        }
        Self {
            deny,
            ask,
            allow: places(&rules.allow, &|rule| {
                rule.permits(subject) && rules.counts(rule, subject)
            }),
            rules: Arc::clone(rules),
        }
    }

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
    names: ToolNames,
    tool: SpelledTool,
    /// The name it is shown as.
    shown_as: Option<String>,
    /// Whether no other tool that is known is spelled like it.
    alone: bool,
    /// The rules that name it, found on first use.
    concerned: OnceLock<MatchingRules>,
}

#[derive(Debug)]
enum SpelledTool {
    Server { key: ToolKey, apart: String },
    Builtin(String),
}

impl ToolSpellings {
    /// Of a server's tool that the catalogue shows under this name.
    pub fn of_tool(key: &ToolKey, shown_as: &str) -> Self {
        Self::of(&CallSubject::tool(key).shown_as(shown_as))
    }

    /// Of a tool whose plain spelling no other tool that is known has.
    #[must_use]
    pub fn spelled_alone(self) -> Self {
        Self {
            alone: true,
            ..self
        }
    }

    fn of(subject: &CallSubject<'_>) -> Self {
        let (mut names, tool) = match subject.target {
            SubjectTool::Builtin(name) => (
                ToolNames::of_builtin(name),
                SpelledTool::Builtin(name.to_owned()),
            ),
            SubjectTool::Tool(key) => {
                let apart = key.exposed_apart();
                let names = ToolNames::of_key(key, &apart);
                let key = key.clone();
                (names, SpelledTool::Server { key, apart })
            }
        };
        if let Some(shown) = subject.shown_as {
            names.add_shown(shown);
        }
        Self {
            names,
            alone: subject.alone || matches!(tool, SpelledTool::Builtin(_)),
            tool,
            shown_as: subject.shown_as.map(str::to_owned),
            concerned: OnceLock::new(),
        }
    }

    /// A call of this tool, with nothing known about it yet.
    pub fn subject(&self) -> CallSubject<'_> {
        let target = match &self.tool {
            SpelledTool::Server { key, .. } => SubjectTool::Tool(key),
            SpelledTool::Builtin(name) => SubjectTool::Builtin(name),
        };
        CallSubject {
            shown_as: self.shown_as.as_deref(),
            alone: self.alone,
            spellings: Some(self),
            ..CallSubject::of(target)
        }
    }

    /// The exposed name that tells a server's tool from all others.
    pub(super) fn apart(&self) -> Option<&str> {
        match &self.tool {
            SpelledTool::Server { apart, .. } => Some(apart),
            SpelledTool::Builtin(_) => None,
        }
    }
}
