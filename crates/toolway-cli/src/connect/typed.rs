//! A server that is typed in place of a configured one: a URL, or a command behind `--`.
//!
//! Owns its name in this run, its flags, and what helps when it fails: there is no entry to look at.

use std::ops::Deref;

use clap::Args;
use serde_json::{Map, Value, json};
use toolway_config::Flags;
use toolway_types::{CertificateFault, ConnectionState, FailureKind, TransportKind};

use crate::context::Context;
use crate::report::{Report, network_hint};
use crate::typed::{TypedTarget, is_url};

/// A command in place of a configured server: its words, and the variables that it gets.
#[derive(Debug, Args)]
pub(crate) struct TypedCommand {
    /// A variable for the command behind `--`; without a value, yours. Repeatable
    #[arg(short, long, value_name = "NAME[=VALUE]", requires = "command")]
    env: Vec<String>,

    /// A command to run as the server
    #[arg(last = true, id = "command", value_name = "COMMAND")]
    words: Vec<String>,
}

impl Deref for TypedCommand {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.words
    }
}

impl TypedCommand {
    /// The variables, as an entry declares them.
    fn variables(&self, context: &Context) -> Result<Map<String, Value>, Report> {
        let variables = self.env.iter().map(|word| match word.split_once('=') {
            Some(("", _)) => Err(Report::usage("a variable has no name")
                .hint("write `-e NAME=VALUE`, or `-e NAME` for your own value")),
            Some((name, value)) => Ok((name.to_owned(), json!(value))),
            None => match context.environment().var(word) {
                // Named, not copied: what stands in a value is no variable.
                Some(_) => Ok((word.clone(), json!(format!("${{{word}}}")))),
                None => Err(Report::usage(format!("the variable `{word}` is not set"))
                    .hint(format!("give it a value: `-e {word}=VALUE`"))),
            },
        });
        variables.collect()
    }
}

/// A server typed in place of a configured one: its name, and flags that plan for it alone.
pub(crate) struct Typed {
    /// The name it goes by in this run.
    pub(crate) name: String,
    /// The URL or the command, as typed.
    what: TypedTarget,
    /// Flags under which the plan holds nothing else.
    pub(crate) flags: Flags,
}

impl Typed {
    /// What to do about a failure: there is no entry to look at, only what was typed.
    pub(crate) fn hint(&self, state: &ConnectionState) -> Option<String> {
        let ConnectionState::Failed(failure) = state else {
            return match (state, &self.what) {
                (ConnectionState::NeedsAuth { .. }, TypedTarget::Url(_)) => Some(format!(
                    "add it, then log in: {}, `toolway login <name>`",
                    self.what.adding()
                )),
                (ConnectionState::Disabled { .. }, _) => {
                    Some("ask the administrator of this machine to allow it".to_owned())
                }
                _ => None,
            };
        };
        if let Some(hint) = network_hint(failure) {
            return Some(hint.to_owned());
        }
        let hint = match (&self.what, failure.kind) {
            (_, FailureKind::Certificate(CertificateFault::OtherName)) => {
                "use the name that the certificate is for".to_owned()
            }
            (_, FailureKind::TimedOut | FailureKind::Certificate(_) | FailureKind::Forbidden) => {
                return None;
            }
            (TypedTarget::Url(_), _) if !self.what.is_plain() => {
                "check that an MCP server answers at that address".to_owned()
            }
            (TypedTarget::Url(url), FailureKind::Protocol) if !url.contains("/mcp") => {
                let bare = url.trim_end_matches('/');
                let bare = bare.strip_suffix("/sse").unwrap_or(bare);
                format!("check the address; many servers answer at `{bare}/mcp`")
            }
            (TypedTarget::Url(url), _) => format!("check that an MCP server answers at `{url}`"),
            (TypedTarget::Command(_), FailureKind::Spawn) => {
                "check the program's name, or write its full path".to_owned()
            }
            // What it was given may be a secret.
            (TypedTarget::Command(_), _) if !self.what.is_plain() => {
                "run it by hand to see what it does".to_owned()
            }
            (TypedTarget::Command(_), _) => format!(
                "run it by hand to see what it does: `{}`",
                self.what.shown()
            ),
        };
        Some(hint)
    }

    /// From a URL.
    pub(crate) fn url(context: &Context, url: &str) -> Self {
        let host = url
            .split("//")
            .nth(1)
            .and_then(|rest| rest.split(['/', '\\', '?', '#']).next())
            // Who logs in is not part of the name, and may be a token.
            .and_then(|authority| authority.rsplit('@').next())
            .and_then(|host| host.split(':').next());
        let name = host.filter(|host| !host.is_empty()).unwrap_or("url");
        let kind = TransportKind::of_address(url).as_str();
        Self::new(
            context,
            name,
            TypedTarget::Url(url.to_owned()),
            &serde_json::json!({ "type": kind, "url": url }),
        )
    }

    /// From a command with its arguments.
    fn command(context: &Context, words: &TypedCommand) -> Result<Self, Report> {
        let program = words.first().map_or("command", String::as_str);
        let name = program
            .rsplit('/')
            .next()
            .filter(|name| !name.is_empty())
            .unwrap_or("command");
        let args = words.get(1..).unwrap_or_default();
        let mut entry = json!({
            "command": program,
            "args": args,
            // Who types a command means the directory that they type it in.
            "cwd": "${workspace}",
        });
        let variables = words.variables(context)?;
        if !variables.is_empty() {
            entry["env"] = Value::Object(variables);
        }
        let what = TypedTarget::Command(words.to_vec());
        Ok(Self::new(context, name, what, &entry))
    }

    /// From whichever was typed, if one was.
    pub(crate) fn either(
        context: &Context,
        word: Option<&str>,
        command: &TypedCommand,
    ) -> Result<Option<Self>, Report> {
        match word {
            _ if !command.is_empty() => Self::command(context, command).map(Some),
            Some(word) if is_url(word) => Ok(Some(Self::url(context, word))),
            _ => Ok(None),
        }
    }

    fn new(
        context: &Context,
        name: &str,
        what: TypedTarget,
        definition: &serde_json::Value,
    ) -> Self {
        // Other characters would give every tool a digest in its exposed name.
        let name: String = name
            .chars()
            .map(|character| match character {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
                _ => '-',
            })
            .collect();
        context.note_typed(&name, what.clone());
        // A literal `$` in what was typed was already the shell's business.
        let file = serde_json::json!({ "mcpServers": { &name: definition } });
        Self {
            name,
            what,
            flags: Flags {
                mcp_config: vec![file.to_string()],
                mcp_server: Vec::new(),
                strict: true,
                ..context.flags().clone()
            },
        }
    }
}
