//! Hooks: programs and tools that have a say in a call, as configured.
//!
//! Owns the `hooks` object of a settings file (event → matchers → hooks), its diagnoses, and
//! which hooks concern a tool. Running them is the dispatch line's work.
//!
//! Invariant: a hook that cannot be read is kept as [`HookAction::Broken`], never dropped, because
//! it may have been the guard that says no. A matcher that cannot be read concerns every tool.

#[cfg(test)]
mod tests;

use std::time::Duration;

use regex_lite::Regex;
use serde_json::{Map, Value};
use toolway_types::{Diagnosis, Origin, Scope, ToolKey};

use super::{kind, listed, nearest, not_here, speaks_for_the_user, spelling};

/// How long a hook may take when it does not say.
pub const DEFAULT_HOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time a hook may ask for.
const MAX_HOOK_TIMEOUT: Duration = Duration::from_hours(1);

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
    /// A person answered a server's question; matched like [`HookEvent::Elicitation`].
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

    /// What to call it in a message: the program, the tool, or why it is broken.
    pub fn title(&self) -> String {
        match &self.action {
            HookAction::Command { command, .. } => command.clone(),
            HookAction::McpTool { server, tool, .. } => format!("{server}.{tool}"),
            HookAction::Broken { reason } => format!("broken hook: {reason}"),
        }
    }
}

/// The hooks of one file, or of all of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hooks {
    hooks: Vec<Hook>,
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
        let mut reader = Reader {
            source,
            scope,
            hooks: Vec::new(),
            found: Vec::new(),
        };
        reader.events(value);
        (
            Hooks {
                hooks: reader.hooks,
            },
            reader.found,
        )
    }

    /// The hooks of all layers, in their order.
    pub fn merged(layers: impl IntoIterator<Item = Hooks>) -> Hooks {
        Hooks {
            hooks: layers.into_iter().flat_map(|layer| layer.hooks).collect(),
        }
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

    /// As [`Hooks::matching`], for a server's tool under any of its spellings: a guard must not
    /// be missed because the exposed name carries a digest.
    pub fn matching_tool(&self, event: HookEvent, key: &ToolKey) -> Vec<&Hook> {
        if self.hooks.is_empty() {
            return Vec::new();
        }
        let names = spelling::unfolded(key);
        self.concerning(event, |matcher| {
            names.iter().any(|name| matcher.matches(name))
        })
    }

    fn concerning(&self, event: HookEvent, matches: impl Fn(&Matcher) -> bool) -> Vec<&Hook> {
        self.hooks
            .iter()
            .filter(|hook| hook.event == event && matches(&hook.matcher))
            .collect()
    }
}

/// Which names a hook concerns.
#[derive(Debug, Clone)]
struct Matcher {
    text: String,
    how: How,
}

#[derive(Debug, Clone)]
enum How {
    All,
    OneOf(Vec<String>),
    Pattern(Regex),
}

/// A compiled expression is a function of its text.
impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Matcher {
    fn all() -> Self {
        Self {
            text: String::new(),
            how: How::All,
        }
    }

    /// Empty or `*` is all; plain names and `|` lists of them are exact; anything else is a
    /// regular expression for the whole name.
    fn parse(text: &str) -> Result<Self, regex_lite::Error> {
        let trimmed = text.trim();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '|' | ' ');
        let how = if trimmed.is_empty() || trimmed == "*" {
            How::All
        } else if trimmed.chars().all(plain) {
            How::OneOf(
                trimmed
                    .split('|')
                    .map(|name| name.trim().to_owned())
                    .collect(),
            )
        } else {
            // `(?s)` so that no line break in a hostile name slips through `.*`.
            How::Pattern(Regex::new(&format!("(?s)\\A(?:{trimmed})\\z"))?)
        };
        Ok(Self {
            text: trimmed.to_owned(),
            how,
        })
    }

    fn matches(&self, name: &str) -> bool {
        match &self.how {
            How::All => true,
            How::OneOf(names) => names.iter().any(|one| one == name),
            // The text itself, too: `mcp__my server__get.item` is a name before it is a pattern.
            How::Pattern(pattern) => self.text == name || pattern.is_match(name),
        }
    }
}

/// Reads one `hooks` object, collecting what is wrong with it.
struct Reader<'a> {
    source: &'a Origin,
    scope: Scope,
    hooks: Vec<Hook>,
    found: Vec<Diagnosis>,
}

impl Reader<'_> {
    fn events(&mut self, value: &Value) {
        let Value::Object(events) = value else {
            self.report(
                format!("`hooks` must be an object, not {}", kind(value)),
                "write `\"hooks\": {\"PreToolUse\": []}`",
            );
            return;
        };
        for (name, groups) in events {
            let Some(event) = HookEvent::parse(name) else {
                self.unknown_event(name);
                continue;
            };
            let Value::Array(groups) = groups else {
                let reason = format!("`hooks.{name}` must be an array, not {}", kind(groups));
                self.broken(event, Matcher::all(), reason, SHAPE);
                continue;
            };
            for group in groups {
                self.group(event, group);
            }
        }
    }

    fn unknown_event(&mut self, name: &str) {
        let known = HookEvent::ALL.map(HookEvent::as_str);
        let message = format!("there is no hook event `{name}`");
        match nearest(name, &known) {
            Some(near) => self.report(message, &format!("did you mean `{near}`?")),
            // Other hosts have many more events in the same file; theirs do no harm here.
            None => self.found.push(
                Diagnosis::warning(message)
                    .at(self.source.clone())
                    .hint(format!("the events are {}", listed(&known))),
            ),
        }
    }

    fn group(&mut self, event: HookEvent, group: &Value) {
        let Value::Object(group) = group else {
            let reason = format!("an entry of `hooks.{}` must be an object", event.as_str());
            self.broken(event, Matcher::all(), reason, SHAPE);
            return;
        };
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => Matcher::all(),
            Some(Value::String(text)) => match Matcher::parse(text) {
                Ok(matcher) => matcher,
                Err(error) => {
                    let reason = format!("the matcher `{text}` is no regular expression: {error}");
                    self.broken(event, Matcher::all(), reason, MATCHER);
                    return;
                }
            },
            Some(other) => {
                let reason = format!("`matcher` must be a string, not {}", kind(other));
                self.broken(event, Matcher::all(), reason, MATCHER);
                return;
            }
        };
        let Some(Value::Array(hooks)) = group.get("hooks") else {
            let reason = format!(
                "an entry of `hooks.{}` has no array `hooks`",
                event.as_str()
            );
            self.broken(event, matcher, reason, SHAPE);
            return;
        };
        for hook in hooks {
            match action(hook) {
                Ok(action) => {
                    let timeout = self.timeout(hook);
                    self.keep(event, matcher.clone(), action, timeout);
                }
                Err(reason) => self.broken(event, matcher.clone(), reason, SHAPE),
            }
        }
    }

    fn timeout(&mut self, hook: &Value) -> Duration {
        let Some(value) = hook.get("timeout") else {
            return DEFAULT_HOOK_TIMEOUT;
        };
        let asked = value
            .as_f64()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        match asked {
            Some(asked) if !asked.is_zero() && asked <= MAX_HOOK_TIMEOUT => asked,
            // The hook itself still runs: a guard is not lost over its time limit.
            _ => {
                self.report(
                    format!("the `timeout` of a hook cannot be {value}; it has 10 seconds"),
                    "write a number of seconds between 0 and 3600",
                );
                DEFAULT_HOOK_TIMEOUT
            }
        }
    }

    fn broken(&mut self, event: HookEvent, matcher: Matcher, reason: String, hint: &str) {
        self.report(reason.clone(), hint);
        self.keep(
            event,
            matcher,
            HookAction::Broken { reason },
            DEFAULT_HOOK_TIMEOUT,
        );
    }

    fn keep(&mut self, event: HookEvent, matcher: Matcher, action: HookAction, timeout: Duration) {
        let (origin, scope) = (self.source.clone(), self.scope);
        self.hooks.push(Hook {
            event,
            action,
            timeout,
            origin,
            scope,
            matcher,
        });
    }

    fn report(&mut self, message: String, hint: &str) {
        self.found
            .push(Diagnosis::error(message).at(self.source.clone()).hint(hint));
    }
}

const SHAPE: &str = "write `{\"matcher\": \"mcp__server__.*\", \"hooks\": [{\"type\": \"command\", \
                     \"command\": \"…\"}]}`";
const MATCHER: &str = "write a tool name, names joined by `|`, or a regular expression without \
                       look-around";

fn action(hook: &Value) -> Result<HookAction, String> {
    let Value::Object(hook) = hook else {
        return Err(format!("a hook must be an object, not {}", kind(hook)));
    };
    match hook.get("type").and_then(Value::as_str) {
        Some("command") => Ok(HookAction::Command {
            command: text(hook, "command")?,
            args: args(hook)?,
        }),
        Some("mcp_tool") => Ok(HookAction::McpTool {
            server: text(hook, "server")?,
            tool: text(hook, "tool")?,
            input: match hook.get("input") {
                None => Map::new(),
                Some(Value::Object(input)) => input.clone(),
                Some(other) => {
                    return Err(format!(
                        "`input` of a hook must be an object, not {}",
                        kind(other)
                    ));
                }
            },
        }),
        Some(other) => Err(format!(
            "the hook type `{other}` is neither `command` nor `mcp_tool`"
        )),
        None => Err("a hook has no `type`, which is `command` or `mcp_tool`".to_owned()),
    }
}

fn text(hook: &Map<String, Value>, key: &str) -> Result<String, String> {
    match hook.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        Some(Value::String(_)) => Err(format!("`{key}` of a hook is empty")),
        Some(other) => Err(format!(
            "`{key}` of a hook must be a string, not {}",
            kind(other)
        )),
        None => Err(format!("a hook has no `{key}`")),
    }
}

fn args(hook: &Map<String, Value>) -> Result<Option<Vec<String>>, String> {
    let Some(value) = hook.get("args") else {
        return Ok(None);
    };
    value
        .as_array()
        .and_then(|args| {
            args.iter()
                .map(|arg| arg.as_str().map(str::to_owned))
                .collect()
        })
        .map(Some)
        .ok_or_else(|| "`args` of a hook must be an array of strings".to_owned())
}
