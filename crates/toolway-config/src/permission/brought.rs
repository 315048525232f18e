//! Servers that a repository brought, and the allow rules that count for them (SEC-57).
//!
//! Owns which allow rules count for such a server: those that were given for its definition as it
//! stands, and those that name no server at all. A rule follows a name, and a repository can call
//! its server whatever it likes; a yes belongs to what it was said of. Deny and ask rules do not
//! come here: they count for every server of a name. Where the given ones are kept is
//! `approval/given.rs`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use toolway_types::{Origin, ServerName, name};

use super::concern::Rules;
use super::predicate::Truth;
use super::rule::{PREFIX, Rule, Stance};
use super::{Cited, Permissions, Subject, Target};

/// A server that a repository brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
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
pub(super) type BroughtServers = BTreeMap<ServerName, Arc<Brought>>;

/// An allow rule that would fit, were it not given for another server of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheeded {
    /// The rule.
    pub rule: Arc<Cited>,
    /// The server it does not count for.
    pub server: Arc<Brought>,
}

impl Rules {
    /// Those of these servers that no repository brought, each once: a repository must not make
    /// a person's rule unclear.
    pub(super) fn own<'s>(&self, servers: &[&'s ServerName]) -> Vec<&'s ServerName> {
        let mut own = servers.to_vec();
        own.retain(|name| !self.brought.contains_key(*name));
        own.sort();
        own.dedup();
        own
    }

    /// Whether an allow rule counts for the server of this call.
    pub(super) fn counts(&self, rule: &Rule, subject: &Subject<'_>) -> bool {
        let Target::Tool(key) = subject.target else {
            return rule.given_for().is_none();
        };
        match (self.brought.get(&key.server), rule.given_for()) {
            (None, given) => given.is_none(),
            (Some(_), Some(given)) => *given == key.server,
            (Some(_), None) => rule.names_no_server(),
        }
    }
}

impl Permissions {
    /// Takes note of a server that a repository brought, and of the rules that were given for its
    /// definition; `kept` is where they stand.
    pub(crate) fn add_brought(&mut self, server: Brought, given: &[String], kept: &Origin) {
        let rules = Arc::make_mut(&mut self.rules);
        for text in given {
            // What cannot be read permits nothing.
            if let Ok(rule) = Rule::given(text, kept, &server.server) {
                rules.allow.push(rule);
            }
        }
        rules
            .brought
            .insert(server.server.clone(), Arc::new(server));
    }

    /// What is known of a server, if a repository brought it.
    pub fn brought(&self, server: &ServerName) -> Option<&Arc<Brought>> {
        self.rules.brought.get(server)
    }

    /// The server that stands in the place of the classifier's, so that it decides nothing: one that
    /// a repository brought.
    pub fn classifier_displaced_by(&self) -> Option<&Arc<Brought>> {
        let server = self.classifier()?.server()?;
        self.brought(&ServerName::new(server).ok()?)
    }

    /// The allow rule that would let this call run, were it not given for another server.
    pub fn unheeded<'a>(&self, subject: impl Into<Subject<'a>>) -> Option<Unheeded> {
        let subject = subject.into();
        let Target::Tool(key) = subject.target else {
            return None;
        };
        let server = self.rules.brought.get(&key.server)?;
        let mut rules = self.rules.allow.iter();
        let rule = rules.find(|rule| {
            !self.rules.counts(rule, &subject)
                && rule.permits(&subject)
                && rule.holds(&subject, Stance::Permit) == Truth::Yes
        })?;
        Some(Unheeded {
            rule: Arc::clone(rule.cited()),
            server: Arc::clone(server),
        })
    }

    /// Every allow rule that names a server which a repository brought, and was not given for it.
    pub fn all_unheeded(&self) -> Vec<Unheeded> {
        let mut all = Vec::new();
        for server in self.rules.brought.values() {
            let named = self.rules.allow.iter().filter(|rule| {
                rule.given_for().is_none()
                    && !rule.names_no_server()
                    && rule.names_server(&server.server)
            });
            all.extend(named.map(|rule| Unheeded {
                rule: Arc::clone(rule.cited()),
                server: Arc::clone(server),
            }));
        }
        all
    }
}

/// How the exposed names of a server's tools begin.
pub(super) fn beginning(server: &ServerName) -> String {
    format!("{PREFIX}{}__", name::normalize(server.as_str()))
}
