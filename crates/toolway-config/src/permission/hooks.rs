//! Hooks: programs and tools that are asked about a call.
//!
//! Owns what a hook is and which hooks match a tool; reading the `hooks` object is in
//! `hooks/read.rs`. Dispatch runs them.
//!
//! Invariant: a hook that cannot be read is kept as [`HookAction::Broken`], never dropped, because
//! it may have been the one that denies. A matcher that cannot be read matches every tool.

mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use regex_lite::Regex;
use serde_json::{Map, Value};
use toolway_types::text::{self, fold};
use toolway_types::{
    Diagnosis, Origin, Scope, Secret, ServerName, ToolKey, WorkingDirectory, limits,
};

pub(super) use self::read::{TIMEOUT_HINT, action, timeout};
use super::glob::Glob;
use super::spelling::PREFIX;
use super::{not_here, speaks_for_the_user, spelling};

/// How long a hook may take when it does not say.
pub const DEFAULT_HOOK_TIMEOUT: Duration = limits::call::HOOK_TIME;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookEvent {
    /// Before a call: may allow, ask, deny or rewrite.
    PreToolUse,
    /// After a call that gave a result.
    PostToolUse,
    /// After a call that failed.
    PostToolUseFailure,
    /// A server asks for input; the matcher is tried against the server's name.
    Elicitation,
    /// The user answered a server's question; matched like [`HookEvent::Elicitation`].
    ElicitationResult,
}

impl HookEvent {
    /// Every event.
    pub const ALL: [HookEvent; 5] = [
        HookEvent::PreToolUse,
        HookEvent::PostToolUse,
        HookEvent::PostToolUseFailure,
        HookEvent::Elicitation,
        HookEvent::ElicitationResult,
    ];

    /// The word in a settings file.
    pub fn as_str(self) -> &'static str {
        match self {
            HookEvent::PreToolUse => "PreToolUse",
            HookEvent::PostToolUse => "PostToolUse",
            HookEvent::PostToolUseFailure => "PostToolUseFailure",
            HookEvent::Elicitation => "Elicitation",
            HookEvent::ElicitationResult => "ElicitationResult",
        }
    }

    /// Reads the word of a settings file.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == text)
    }
}

/// One configured hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// When it runs.
    pub event: HookEvent,
    /// What it runs.
    pub action: HookAction,
    /// How long it may take.
    pub timeout: Duration,
    /// Where it stands.
    pub origin: Origin,
    /// The scope of that file.
    pub scope: Scope,
    matcher: Matcher,
}

/// What a hook runs.
#[derive(Debug, Clone, PartialEq)]
pub enum HookAction {
    /// A program, with JSON on stdin and stdout.
    Command {
        /// The command line as written, or the program alone when `args` are given.
        command: String,
        /// The program's arguments, when they are written apart.
        args: Option<Vec<String>>,
    },
    /// A tool of a configured server.
    McpTool {
        /// The server's name.
        server: String,
        /// The tool's own name.
        tool: String,
        /// Arguments to send along.
        input: Map<String, Value>,
    },
    /// It could not be read. Where a hook can say no, this is a no with that reason.
    Broken {
        /// What is wrong with it.
        reason: String,
    },
}

impl Hook {
    /// Its matcher as written; empty for all.
    pub fn matcher(&self) -> &str {
        &self.matcher.text
    }

    /// The names in its matcher, where it is names and no expression.
    pub(super) fn matcher_names(&self) -> impl Iterator<Item = &str> {
        let text = match &self.matcher.how {
            MatcherKind::Names(..) => self.matcher.text.as_str(),
            MatcherKind::All | MatcherKind::Pattern(_) => "",
        };
        text.split('|')
            .map(str::trim)
            .filter(|name| !name.is_empty())
    }

    /// What to call it in a message: the program, the tool, or why it is broken.
    pub fn title(&self) -> String {
        match &self.action {
            HookAction::Broken { reason } => format!("broken hook: {reason}"),
            action => action.title(),
        }
    }
}

impl HookAction {
    /// What to call it in a message: the program or the tool.
    pub fn title(&self) -> String {
        match self {
            HookAction::Command { command, .. } => text::clean_line(command).into_owned(),
            HookAction::McpTool { server, tool, .. } => {
                text::clean_line(&format!("{server}.{tool}")).into_owned()
            }
            HookAction::Broken { .. } => "unreadable".to_owned(),
        }
    }
}

/// The hooks of one file, or of all of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hooks {
    hooks: Vec<Hook>,
    place: HookLocation,
}

/// Where hooks that are programs run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookLocation {
    /// The directory in which Toolway runs, which they are told.
    pub workspace: PathBuf,
    /// Where they are started, which is somewhere else: a repository must not choose what
    /// `python3 -m guard` means (SEC-48).
    pub directory: WorkingDirectory,
    /// What they get of the host's environment. There is nothing else (SEC-39).
    pub environment: Arc<BTreeMap<String, Secret>>,
}

impl Hooks {
    /// None.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Reads the value of `hooks` in a settings file. `source` is where the key stands.
    ///
    /// Hooks run programs, so those of a repository, plugin or connector are ignored with a
    /// warning (SEC-03, SEC-15).
    pub fn parse(value: &Value, source: &Origin, scope: Scope) -> (Hooks, Vec<Diagnosis>) {
        if !speaks_for_the_user(scope) {
            return (Hooks::empty(), vec![not_here("hooks", source, scope)]);
        }
        let (hooks, found) = read::hooks(value, source, scope);
        let place = HookLocation::default();
        (Hooks { hooks, place }, found)
    }

    /// The hooks of all layers, in their order.
    pub fn merged(layers: impl IntoIterator<Item = Hooks>) -> Hooks {
        Hooks {
            hooks: layers.into_iter().flat_map(|layer| layer.hooks).collect(),
            place: HookLocation::default(),
        }
    }

    /// The same hooks, to be run in this place.
    #[must_use]
    pub fn placed(self, place: HookLocation) -> Hooks {
        Hooks { place, ..self }
    }

    /// Where those that are programs run.
    pub fn place(&self) -> &HookLocation {
        &self.place
    }

    /// The servers whose tools are hooks.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.hooks.iter().filter_map(|hook| match &hook.action {
            HookAction::McpTool { server, .. } => Some(server.as_str()),
            HookAction::Command { .. } | HookAction::Broken { .. } => None,
        })
    }

    /// Every hook, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Hook> {
        self.hooks.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// The hooks for an event on a tool (or, for elicitation, a server) of that name, in order.
    pub fn matching(&self, event: HookEvent, tool_name: &str) -> Vec<&Hook> {
        self.concerning(event, |matcher| matcher.matches(tool_name))
    }

    /// As [`Hooks::matching`], for a server's tool under any of its spellings.
    pub fn matching_tool(&self, event: HookEvent, key: &ToolKey) -> Vec<&Hook> {
        if self.hooks.is_empty() {
            return Vec::new();
        }
        self.matching_any(event, &spelling::unfolded(key))
    }

    /// As [`Hooks::matching`], for any of these names.
    pub fn matching_any(&self, event: HookEvent, names: &[String]) -> Vec<&Hook> {
        self.concerning(event, |matcher| matcher.matches_any(names))
    }

    fn concerning(&self, event: HookEvent, matches: impl Fn(&Matcher) -> bool) -> Vec<&Hook> {
        self.hooks
            .iter()
            .filter(|hook| hook.event == event && matches(&hook.matcher))
            .collect()
    }
}

/// Every name by which a hook may mean a tool: the spellings of its key, and the name the
/// catalogue shows it under.
pub fn names_of_tool(key: &ToolKey, shown_as: &str) -> Vec<String> {
    let mut names = spelling::unfolded(key);
    if !names.iter().any(|name| name == shown_as) {
        names.push(shown_as.to_owned());
    }
    names
}

/// Every name by which a hook may mean a server itself, as those around its questions do.
pub fn names_of_server(server: &ServerName) -> Vec<String> {
    spelling::of_server(server)
}

/// A matcher that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the matcher `{text}` is no regular expression: {problem}")]
pub struct BadMatcher {
    /// The matcher as written.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Which names a hook concerns.
#[derive(Debug, Clone)]
pub struct Matcher {
    text: String,
    how: MatcherKind,
}

#[derive(Debug, Clone)]
enum MatcherKind {
    All,
    /// Names as rules write them, folded; and the expression as which the same text can be read.
    Names(Vec<Glob>, Option<NameExpression>),
    Pattern(NameExpression),
}

/// A regular expression for the whole name, as written and in any case. Both, since `[^A-Z]`
/// matches less in any case.
#[derive(Debug, Clone)]
struct NameExpression {
    written: Regex,
    folded: Regex,
}

impl NameExpression {
    fn parse(text: &str) -> Result<Self, regex_lite::Error> {
        // `s` so that no line break in a hostile name slips through `.*`.
        Ok(Self {
            written: Regex::new(&format!("(?s)\\A(?:{text})\\z"))?,
            folded: Regex::new(&format!("(?si)\\A(?:{text})\\z"))?,
        })
    }

    fn matches(&self, name: &str) -> bool {
        self.written.is_match(name) || self.folded.is_match(name)
    }
}

/// A compiled expression is a function of its text.
impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Matcher {
    /// Every name.
    pub fn all() -> Self {
        Self {
            text: String::new(),
            how: MatcherKind::All,
        }
    }

    /// Empty or `*` is all; names and `|` lists of them are read as a rule that restricts reads
    /// them: in any case, `*` for any characters, `mcp__server` for all of a server. Anything else
    /// is a regular expression for the whole name. What can be read both ways is read both ways, so
    /// that no hook is missed.
    pub fn parse(text: &str) -> Result<Self, BadMatcher> {
        let trimmed = text.trim();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '|' | ' ' | '*');
        let expression = || NameExpression::parse(trimmed);
        let how = if trimmed.is_empty() || trimmed == "*" {
            MatcherKind::All
        } else if trimmed.chars().all(plain) {
            let starred = trimmed.contains('*').then(|| expression().ok()).flatten();
            MatcherKind::Names(trimmed.split('|').flat_map(named).collect(), starred)
        } else {
            MatcherKind::Pattern(expression().map_err(|error| BadMatcher {
                text: text.to_owned(),
                problem: error.to_string(),
            })?)
        };
        Ok(Self {
            text: trimmed.to_owned(),
            how,
        })
    }

    /// Whether it concerns what goes by any of these names.
    pub fn matches_any(&self, names: &[String]) -> bool {
        names.iter().any(|name| self.matches(name))
    }

    /// Whether it concerns what goes by this name.
    pub fn matches(&self, name: &str) -> bool {
        match &self.how {
            MatcherKind::All => true,
            MatcherKind::Names(names, expression) => {
                let folded = fold(name);
                names.iter().any(|one| one.matches(&folded))
                    || expression.as_ref().is_some_and(|one| one.matches(name))
            }
            // The text itself, too: `mcp__my server__get.item` is a name before it is a pattern.
            MatcherKind::Pattern(pattern) => {
                self.text == name || pattern.matches(name) || fold(&self.text) == fold(name)
            }
        }
    }
}

/// What one name of a list stands for: itself, and behind `mcp__` all tools of a server so named.
fn named(name: &str) -> Vec<Glob> {
    let name = fold(name.trim());
    let mut globs = vec![Glob::new(&name)];
    if let Some(server) = name.strip_prefix(PREFIX)
        && !server.is_empty()
    {
        globs.push(Glob::new(&format!("{name}__*")));
    }
    globs
}
