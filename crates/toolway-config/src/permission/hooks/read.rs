//! Reads one `hooks` object, collecting what is wrong with it.
//!
//! Owns the shape (event → groups with a matcher → hooks) and its diagnoses.

use std::time::Duration;

use serde_json::{Map, Value};
use toolway_types::{Diagnosis, Origin, Scope, nearest, text};

use super::super::is_policy;
use super::{DEFAULT_HOOK_TIMEOUT, Hook, HookAction, HookEvent, Matcher};
use crate::json::kind_of;
use crate::keys::listed;

/// The longest time a hook may ask for.
const MAX_HOOK_TIMEOUT: Duration = Duration::from_hours(1);

pub(super) fn hooks(value: &Value, source: &Origin, scope: Scope) -> (Vec<Hook>, Vec<Diagnosis>) {
    let mut reader = HooksReader {
        source,
        scope,
        hooks: Vec::new(),
        found: Vec::new(),
    };
    reader.events(value);
    (reader.hooks, reader.found)
}

struct HooksReader<'a> {
    source: &'a Origin,
    scope: Scope,
    hooks: Vec<Hook>,
    found: Vec<Diagnosis>,
}

impl HooksReader<'_> {
    fn events(&mut self, value: &Value) {
        let Value::Object(events) = value else {
            let reason = format!("`hooks` must be an object, not {}", kind_of(value));
            let hint = "write `\"hooks\": {\"PreToolUse\": []}`";
            if is_nothing(value) && !is_policy(self.scope) {
                self.report(reason, hint);
            } else {
                self.lost(&reason, hint);
            }
            return;
        };
        for (name, groups) in events {
            let Some(event) = HookEvent::parse(name) else {
                match near_event(name) {
                    Some(event) => self.near_miss(name, event, groups),
                    None => self.unknown_event(name),
                }
                continue;
            };
            let Value::Array(groups) = groups else {
                let reason = format!("`hooks.{name}` must be an array, not {}", kind_of(groups));
                self.broken(event, Matcher::all(), &reason, SHAPE);
                continue;
            };
            for group in groups {
                self.group(event, group);
            }
        }
    }

    /// It is not known which hooks were meant, so one of each kind that can deny fails.
    fn lost(&mut self, reason: &str, hint: &str) {
        let reason = text::clean_line(reason).into_owned();
        self.report(reason.clone(), hint);
        for event in HookEvent::ALL {
            let action = HookAction::Broken {
                reason: reason.clone(),
            };
            self.keep(event, Matcher::all(), action, DEFAULT_HOOK_TIMEOUT);
        }
    }

    /// An event in a wrong spelling: its hooks are those of the event that was meant, and fail,
    /// because one of them may be the one that denies.
    fn near_miss(&mut self, name: &str, event: HookEvent, groups: &Value) {
        let meant = event.as_str();
        let name = text::clean_line(name);
        let reason = format!("there is no hook event `{name}`");
        self.report(reason.clone(), &format!("did you mean `{meant}`?"));
        let groups = match groups {
            Value::Array(groups) if groups.is_empty() && is_policy(self.scope) => &[Value::Null],
            Value::Array(groups) => groups.as_slice(),
            other => std::slice::from_ref(other),
        };
        for group in groups {
            let matcher = group.get("matcher").and_then(Value::as_str);
            let matcher = matcher.and_then(|text| Matcher::parse(text).ok());
            let reason = format!("{reason}, which may mean `{meant}`");
            self.keep(
                event,
                matcher.unwrap_or_else(Matcher::all),
                HookAction::Broken { reason },
                DEFAULT_HOOK_TIMEOUT,
            );
        }
    }

    /// Other hosts have more events in the same file; they are ignored.
    fn unknown_event(&mut self, name: &str) {
        let known = HookEvent::ALL.map(HookEvent::as_str);
        let message = format!("there is no hook event `{}`", text::clean_line(name));
        self.found.push(
            Diagnosis::warning(message)
                .at(self.source.clone())
                .hint(format!("the events are {}", listed(known))),
        );
    }

    fn group(&mut self, event: HookEvent, group: &Value) {
        let Value::Object(group) = group else {
            let reason = format!("an entry of `hooks.{}` must be an object", event.as_str());
            self.broken(event, Matcher::all(), &reason, SHAPE);
            return;
        };
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => Matcher::all(),
            Some(Value::String(text)) => match Matcher::parse(text) {
                Ok(matcher) => matcher,
                Err(error) => {
                    self.broken(event, Matcher::all(), &error.to_string(), MATCHER);
                    return;
                }
            },
            Some(other) => {
                let reason = format!("`matcher` must be a string, not {}", kind_of(other));
                self.broken(event, Matcher::all(), &reason, MATCHER);
                return;
            }
        };
        let Some(Value::Array(hooks)) = group.get("hooks") else {
            let reason = format!(
                "an entry of `hooks.{}` has no array `hooks`",
                event.as_str()
            );
            self.broken(event, matcher, &reason, SHAPE);
            return;
        };
        for hook in hooks {
            match action(hook, "a hook") {
                Ok(action) => {
                    let timeout = self.timeout(hook);
                    self.keep(event, matcher.clone(), action, timeout);
                }
                Err(reason) => self.broken(event, matcher.clone(), &reason, SHAPE),
            }
        }
    }

    fn timeout(&mut self, hook: &Value) -> Duration {
        // The hook itself still runs: a bad time limit does not disable it.
        timeout(hook).unwrap_or_else(|asked| {
            let message = format!("the `timeout` of a hook cannot be {asked}; it has 10 seconds");
            self.report(message, TIMEOUT_HINT);
            DEFAULT_HOOK_TIMEOUT
        })
    }

    fn broken(&mut self, event: HookEvent, matcher: Matcher, reason: &str, hint: &str) {
        let reason = text::clean_line(reason).into_owned();
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

/// How a time limit is written.
pub(in crate::permission) const TIMEOUT_HINT: &str = "write a number of seconds between 0 and 3600";

/// How long it may take; what it says instead where that cannot be.
pub(in crate::permission) fn timeout(hook: &Value) -> Result<Duration, &Value> {
    let Some(value) = hook.get("timeout") else {
        return Ok(DEFAULT_HOOK_TIMEOUT);
    };
    let asked = value
        .as_f64()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    asked
        .filter(|asked| !asked.is_zero() && *asked <= MAX_HOOK_TIMEOUT)
        .ok_or(value)
}

const SHAPE: &str = "write `{\"matcher\": \"mcp__server__.*\", \"hooks\": [{\"type\": \"command\", \
                     \"command\": \"…\"}]}`";
const MATCHER: &str = "write a tool name, names joined by `|`, or a regular expression without \
                       look-around";

/// The event that was meant: another case, other separators, or a slip.
fn near_event(name: &str) -> Option<HookEvent> {
    let letters: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    nearest(&letters, HookEvent::ALL.map(HookEvent::as_str)).and_then(HookEvent::parse)
}

/// Whether nothing can have been meant by it.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.trim().is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// What a hook, or whatever is written like one, runs; else what is wrong with it.
pub(in crate::permission) fn action(value: &Value, what: &str) -> Result<HookAction, String> {
    let Value::Object(hook) = value else {
        return Err(format!("{what} must be an object, not {}", kind_of(value)));
    };
    match hook.get("type").and_then(Value::as_str) {
        Some("command") => Ok(HookAction::Command {
            command: string(hook, "command", what)?,
            args: args(hook, what)?,
        }),
        Some("mcp_tool") => Ok(HookAction::McpTool {
            server: string(hook, "server", what)?,
            tool: string(hook, "tool", what)?,
            input: match hook.get("input") {
                None => Map::new(),
                Some(Value::Object(input)) => input.clone(),
                Some(other) => {
                    return Err(format!(
                        "`input` of {what} must be an object, not {}",
                        kind_of(other)
                    ));
                }
            },
        }),
        Some(other) => Err(format!(
            "the {} type `{other}` is neither `command` nor `mcp_tool`",
            noun(what)
        )),
        None => Err(format!(
            "{what} has no `type`, which is `command` or `mcp_tool`"
        )),
    }
}

/// A thing without its article.
fn noun(what: &str) -> &str {
    what.split_once(' ').map_or(what, |(_, noun)| noun)
}

fn string(hook: &Map<String, Value>, key: &str, what: &str) -> Result<String, String> {
    match hook.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        Some(Value::String(_)) => Err(format!("`{key}` of {what} is empty")),
        Some(other) => Err(format!(
            "`{key}` of {what} must be a string, not {}",
            kind_of(other)
        )),
        None => Err(format!("{what} has no `{key}`")),
    }
}

fn args(hook: &Map<String, Value>, what: &str) -> Result<Option<Vec<String>>, String> {
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
        .ok_or_else(|| format!("`args` of {what} must be an array of strings"))
}
