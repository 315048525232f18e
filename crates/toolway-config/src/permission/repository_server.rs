//! Servers that a repository brought, and the allow rules that count for them (SEC-57).
//!
//! Owns which allow rules count for such a server: those that were given for its present
//! definition, and those that name no server at all. A rule goes by name, and a repository can
//! choose any name for its server. Deny and ask rules count for every server of a name. The given
//! rules are kept by `approval/allowed_rules.rs`.

use std::sync::Arc;

use toolway_types::{Origin, ServerName};

use super::predicate::{PredicateResult, RuleStance};
use super::rule::PermissionRule;
use super::rule_set::RepositoryServer;
use super::subject::{CallSubject, SubjectTool};
use super::{CitedRule, Permissions};

/// An allow rule that would match, but was not given for this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnheededRule {
    /// The rule.
    pub rule: Arc<CitedRule>,
    /// The server it does not count for.
    pub server: Arc<RepositoryServer>,
}

impl Permissions {
    /// Adds a server that a repository brought, and the rules that were given for its definition;
    /// `kept` is where they stand.
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

    /// Other servers have these names: what was given for the definition of a server of a repository
    /// was not given for them.
    pub fn forget_given_for<'n>(&mut self, names: impl IntoIterator<Item = &'n ServerName>) {
        let names: Vec<&ServerName> = names.into_iter().collect();
        let is_for_them = |rule: &PermissionRule| {
            let given = rule.given_for();
            given.is_some_and(|server| names.contains(&server))
        };
        if self.rules.allow.iter().any(is_for_them) {
            let rules = Arc::make_mut(&mut self.rules);
            rules.allow.retain(|rule| !is_for_them(rule));
        }
    }

    /// The server, if a repository brought it.
    pub fn repository_server(&self, server: &ServerName) -> Option<&Arc<RepositoryServer>> {
        self.rules.repository_servers.get(server)
    }

    /// The repository's server that has the name of the classifier's, which then decides nothing.
    pub fn classifier_displaced_by(&self) -> Option<&Arc<RepositoryServer>> {
        let server = self.classifier()?.server()?;
        self.repository_server(&ServerName::new(server).ok()?)
    }

    /// The allow rule that would let this call run, had it been given for this server.
    pub fn unheeded<'a>(&self, subject: impl Into<CallSubject<'a>>) -> Option<UnheededRule> {
        let subject = subject.into();
        let SubjectTool::Tool(key) = subject.target else {
            return None;
        };
        let server = self.rules.repository_servers.get(&key.server)?;
        let mut rules = self.rules.allow.iter();
        let rule = rules.find(|rule| {
            !self.rules.counts(rule, subject.server())
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
