//! Rules that a person's answer makes for good.
//!
//! Owns the way from "always" to a settings file. An embedding program that has its own place for
//! rules, or wants none written, supplies its own [`RuleKeeper`].

use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use toolway_config::{
    EditError, Edited, Environment, PermissionList, RepositoryServer, write_rule,
};
use toolway_types::Scope;

use crate::call::KeepIn;
use crate::tasks;

/// Keeps allow rules.
pub trait RuleKeeper: Send + Sync {
    /// Keeps one, or says in a sentence why not.
    fn keep<'a>(&'a self, rule: &'a str, place: KeepIn) -> BoxFuture<'a, Result<(), String>>;

    /// Keeps one for a server that a repository brought, as it is defined now, or says why not.
    fn keep_for<'a>(
        &'a self,
        _rule: &'a str,
        server: &'a RepositoryServer,
    ) -> BoxFuture<'a, Result<(), String>> {
        let why = format!("nothing is kept here for `{}`", server.server);
        std::future::ready(Err(why)).boxed()
    }
}

/// Writes rules into the settings files.
pub struct SettingsRules(Environment);

impl SettingsRules {
    /// Into the files of this environment.
    pub fn new(environment: Environment) -> Self {
        Self(environment)
    }
}

impl fmt::Debug for SettingsRules {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SettingsRules")
            .finish_non_exhaustive()
    }
}

impl RuleKeeper for SettingsRules {
    fn keep<'a>(&'a self, rule: &'a str, place: KeepIn) -> BoxFuture<'a, Result<(), String>> {
        let (environment, rule) = (self.0.clone(), rule.to_owned());
        let scope = match place {
            KeepIn::User => Scope::User,
            KeepIn::Local => Scope::Local,
        };
        written(move || write_rule(&environment, scope, PermissionList::Allow, &rule)).boxed()
    }

    fn keep_for<'a>(
        &'a self,
        rule: &'a str,
        server: &'a RepositoryServer,
    ) -> BoxFuture<'a, Result<(), String>> {
        let (environment, server) = (self.0.clone(), server.clone());
        let rules = [rule.to_owned()];
        written(move || toolway_config::allow_for_repository_server(&environment, &server, &rules))
            .boxed()
    }
}

async fn written<T: Send + 'static>(
    write: impl FnOnce() -> Result<Edited<T>, EditError> + Send + 'static,
) -> Result<(), String> {
    match tasks::blocking("rule", write).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(failure) => Err(failure.to_string()),
    }
}
