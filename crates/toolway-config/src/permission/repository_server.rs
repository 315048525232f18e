//! Servers that a repository brought, and the allow rules that count for them (SEC-57).
//!
//! Owns which allow rules count for such a server: those that were given for its present
//! definition, and those that name no server at all. A rule goes by name, and a repository can
//! choose any name for its server. Deny and ask rules count for every server of a name. The given
//! rules are kept by `approval/allowed_rules.rs`. Servers that a program or an agent brought itself
//! stand here too: what was given for another definition of their name does not count for them.

use std::sync::Arc;

use toolway_types::{Origin, Scope, ServerName, ToolKey, TransportKind};

use super::predicate::{PredicateResult, RuleStance};
use super::rule::PermissionRule;
use super::rule_set::RepositoryServer;
use super::subject::{CallSubject, SubjectTool};
use super::{CitedRule, PermissionList, Permissions, rule_for_tool};

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

    /// A program or an agent brought these servers itself: no allow rule that names one of them was
    /// given for what it is there. Rules that deny or ask hold for them as for others.
    pub(crate) fn set_apart(
        &mut self,
        servers: impl IntoIterator<Item = (ServerName, Option<TransportKind>)>,
    ) {
        let rules = Arc::make_mut(&mut self.rules);
        rules.brought.extend(servers);
    }

    /// Adds a rule for one tool of a server that a program brought, by that program's word; false
    /// where its name cannot be written as a rule.
    pub(crate) fn add_of_program(&mut self, list: PermissionList, key: &ToolKey) -> bool {
        let source = &Origin::Program;
        let Some(written) = rule_for_tool(key) else {
            return false;
        };
        let rules = Arc::make_mut(&mut self.rules);
        let (rule, place) = match list {
            PermissionList::Allow => (
                PermissionRule::given(&written, source, &key.server),
                &mut rules.allow,
            ),
            PermissionList::Ask => (
                PermissionRule::parse(&written, list.stance(), source, Scope::Dynamic),
                &mut rules.ask,
            ),
            PermissionList::Deny => (
                PermissionRule::parse(&written, list.stance(), source, Scope::Dynamic),
                &mut rules.deny,
            ),
        };
        rule.map(|rule| place.push(rule)).is_ok()
    }

    /// Whether a program or an agent brought it.
    pub fn is_apart(&self, server: &ServerName) -> bool {
        self.rules.brought.contains_key(server)
    }

    /// Whether it lives in the program that brought it, which may define its tools as it likes.
    pub fn is_of_program(&self, server: &ServerName) -> bool {
        self.rules.brought.get(server) == Some(&Some(TransportKind::Sdk))
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
