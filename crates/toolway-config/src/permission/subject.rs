//! The call that is judged.
//!
//! Owns what is known of it: which tool, under which name, with which arguments and claims. What
//! rules make of it is `permission.rs`.

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolway_types::{ServerName, ToolKey};

use super::predicate::ToolHints;
use super::rule_set::ToolSpellings;
use super::spelling::UnsureName;

/// The call that is judged: which tool, and what is known about this very call.
#[derive(Debug, Clone, Copy)]
pub struct CallSubject<'a> {
    pub(super) target: SubjectTool<'a>,
    pub(super) shown_as: Option<&'a str>,
    pub(super) alone: bool,
    pub(super) arguments: Option<&'a Map<String, Value>>,
    pub(super) hints: Option<ToolHints>,
    /// What of its name is only a spelling, in which characters may have been replaced.
    pub(super) unsure: Option<UnsureName>,
    /// Made before, for this tool.
    pub(super) spellings: Option<&'a ToolSpellings>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum SubjectTool<'a> {
    Tool(&'a ToolKey),
    Builtin(&'a str),
}

impl<'a> CallSubject<'a> {
    /// A server's tool, with nothing known about arguments or annotations yet.
    pub fn tool(key: &'a ToolKey) -> Self {
        Self::of(SubjectTool::Tool(key))
    }

    /// One of the host's own tools, e.g. `ToolSearch`.
    pub fn builtin(name: &'a str) -> Self {
        Self::of(SubjectTool::Builtin(name))
    }

    pub(super) fn of(target: SubjectTool<'a>) -> Self {
        Self {
            target,
            shown_as: None,
            alone: false,
            arguments: None,
            hints: None,
            unsure: None,
            spellings: None,
        }
    }

    /// The name the catalogue shows it under, when that is not the exposed name (an alias, or a
    /// server without prefix). The catalogue promises that it is unique.
    #[must_use]
    pub fn shown_as(mut self, name: &'a str) -> Self {
        self.shown_as = Some(name);
        self.spellings = None;
        self
    }

    /// No other tool that is known is spelled like it, so that an allow rule in the plain
    /// spelling means this one.
    #[must_use]
    pub fn spelled_alone(mut self) -> Self {
        self.alone = true;
        self.spellings = None;
        self
    }

    /// Its server's own name for it is not known: a restricting rule counts if it can mean
    /// any tool that is spelled so.
    #[must_use]
    pub fn unsure_of(mut self, unsure: UnsureName) -> Self {
        self.unsure = Some(unsure);
        self.spellings = None;
        self
    }

    /// The arguments it is called with.
    #[must_use]
    pub fn with_arguments(mut self, arguments: &'a Map<String, Value>) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// What the server claims about the tool.
    #[must_use]
    pub fn with_hints(mut self, hints: ToolHints) -> Self {
        self.hints = Some(hints);
        self
    }

    /// The server whose tool it is; none for the host's own tools.
    pub(super) fn server(&self) -> Option<&'a ServerName> {
        match self.target {
            SubjectTool::Tool(key) => Some(&key.server),
            SubjectTool::Builtin(_) => None,
        }
    }

    /// The exposed name that tells its tool from all others.
    pub(super) fn apart(&self, key: &ToolKey) -> Cow<'a, str> {
        match self.spellings.and_then(ToolSpellings::apart) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(key.exposed_apart()),
        }
    }
}

impl<'a> From<&'a ToolKey> for CallSubject<'a> {
    fn from(key: &'a ToolKey) -> Self {
        CallSubject::tool(key)
    }
}

impl<'a> From<&CallSubject<'a>> for CallSubject<'a> {
    fn from(subject: &CallSubject<'a>) -> Self {
        *subject
    }
}
