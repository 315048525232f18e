//! Servers that a repository brought, and the allow rules that count for them (SEC-57).
//!
//! Owns which allow rules count for such a server: those that were given for its definition as it
//! stands, and those that name no server at all. A rule follows a name, and a repository can call
//! its server whatever it likes; a yes belongs to what it was said of. Deny and ask rules do not
//! come here: they count for every server of a name. Where the given ones are kept is
//! `approval/allowed_rules.rs`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use toolway_types::{Origin, ServerName};

use super::predicate::{PredicateResult, RuleStance};
use super::rule::PermissionRule;
use super::{CallSubject, CitedRule, Permissions, SubjectTool};

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

/// An allow rule that would fit, were it not given for another server of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnheededRule {
    /// The rule.
    pub rule: Arc<CitedRule>,
    /// The server it does not count for.
    pub server: Arc<RepositoryServer>,
}

impl Permissions {
    /// Takes note of a server that a repository brought, and of the rules that were given for its
    /// definition; `kept` is where they stand.
    pub(crate) fn add_repository_server(
        &mut self,
        server: RepositoryServer,
        given: &[String],
        kept: &Origin,
    ) {
        let rules = Arc::make_mut(&mut self.rules);
        for text in given {
            // What cannot be read permits nothing.
            if let Ok(rule) = PermissionRule::given(text, kept, &server.server) {
                rules.allow.push(rule);
            }
        }
        rules
            .repository_servers
            .insert(server.server.clone(), Arc::new(server));
    }

    /// What is known of a server, if a repository brought it.
    pub fn repository_server(&self, server: &ServerName) -> Option<&Arc<RepositoryServer>> {
        self.rules.repository_servers.get(server)
    }

    /// The server that stands in the place of the classifier's, so that it decides nothing: one that
    /// a repository brought.
    pub fn classifier_displaced_by(&self) -> Option<&Arc<RepositoryServer>> {
        let server = self.classifier()?.server()?;
        self.repository_server(&ServerName::new(server).ok()?)
    }

    /// The allow rule that would let this call run, were it not given for another server.
    pub fn unheeded<'a>(&self, subject: impl Into<CallSubject<'a>>) -> Option<UnheededRule> {
        let subject = subject.into();
        let SubjectTool::Tool(key) = subject.target else {
            return None;
        };
        let server = self.rules.repository_servers.get(&key.server)?;
        let mut rules = self.rules.allow.iter();
        let rule = rules.find(|rule| {
            !self.rules.counts(rule, &subject)
                && rule.permits(&subject)
                && rule.holds(&subject, RuleStance::Permit) == PredicateResult::Yes
        })?;
        Some(UnheededRule {
            rule: Arc::clone(rule.cited()),
            server: Arc::clone(server),
        })
    }

    /// Every allow rule that names a server which a repository brought, and was not given for it.
    pub fn all_unheeded(&self) -> Vec<UnheededRule> {
        let mut all = Vec::new();
        for server in self.rules.repository_servers.values() {
            let named = self.rules.allow.iter().filter(|rule| {
                rule.given_for().is_none()
                    && !rule.names_no_server()
                    && rule.names_server(&server.server)
            });
            all.extend(named.map(|rule| UnheededRule {
                rule: Arc::clone(rule.cited()),
                server: Arc::clone(server),
            }));
        }
        all
    }
}
