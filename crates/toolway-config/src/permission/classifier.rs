//! The classifier that decides in mode `auto` about calls that no rule decides.
//!
//! Owns reading `permissions.classifier` and who may name one: the user or their organisation,
//! never a file that can come with a repository, because the classifier decides what runs. Dispatch
//! runs it.

use std::time::Duration;

use serde_json::Value;
use toolway_types::{Origin, Scope};

use super::hooks::{self, DEFAULT_HOOK_TIMEOUT, HookAction};
use super::is_policy;

/// A configured classifier.
#[derive(Debug, Clone, PartialEq)]
pub struct Classifier {
    /// What it runs, as a hook does. One that cannot be read fails, so that the user is asked.
    pub action: HookAction,
    /// How long it may take.
    pub timeout: Duration,
    /// Where it stands.
    pub origin: Origin,
    /// The scope of that file.
    pub scope: Scope,
}

impl Classifier {
    /// Whether an organisation named it.
    pub fn is_policy(&self) -> bool {
        is_policy(self.scope)
    }

    /// The server whose tool it is, where it is one.
    pub fn server(&self) -> Option<&str> {
        match &self.action {
            HookAction::McpTool { server, .. } => Some(server),
            HookAction::Command { .. } | HookAction::Broken { .. } => None,
        }
    }

    /// Reads the value of the key, with what is wrong with it: a message and a hint each.
    pub(super) fn read(
        value: &Value,
        origin: &Origin,
        scope: Scope,
    ) -> (Self, Vec<(String, &'static str)>) {
        let mut found = Vec::new();
        let action = match value {
            // Usually it is a command line.
            Value::String(line) if !line.trim().is_empty() => Ok(HookAction::Command {
                command: line.clone(),
                args: None,
            }),
            other => hooks::action(other, "the classifier"),
        };
        let action = action.unwrap_or_else(|reason| {
            let message = format!("`permissions.classifier` cannot be read: {reason}");
            found.push((format!("{message}; mode `auto` asks"), SHAPE));
            HookAction::Broken { reason }
        });
        let timeout = hooks::timeout(value).unwrap_or_else(|asked| {
            let message = format!("the `timeout` of the classifier cannot be {asked}");
            found.push((format!("{message}; it has 10 seconds"), hooks::TIMEOUT_HINT));
            DEFAULT_HOOK_TIMEOUT
        });
        let classifier = Self {
            action,
            timeout,
            origin: origin.clone(),
            scope,
        };
        (classifier, found)
    }
}

const SHAPE: &str = "write a command line, `{\"type\": \"command\", \"command\": \"…\"}`, or \
                     `{\"type\": \"mcp_tool\", \"server\": \"…\", \"tool\": \"…\"}`";

/// Whether settings of this scope may name one.
pub(super) fn may_be_named_in(scope: Scope) -> bool {
    match scope {
        Scope::User | Scope::Dynamic | Scope::Managed | Scope::Enterprise => true,
        Scope::Connector | Scope::Plugin | Scope::Project | Scope::Local => false,
    }
}
