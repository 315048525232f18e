//! `toolway __complete`: what could come next on a command line that names a server, and there a
//! tool, a prompt or a template.
//!
//! Owns what is asked for (the answers are `complete/ask.rs`); the line is read in
//! `complete/line.rs`, and candidates are spelled in `complete/spelling.rs`. A shell waits meanwhile:
//! servers have two seconds, and nothing is said when it fails.

mod ask;
mod line;
mod quoting;
mod spelling;

use std::collections::BTreeMap;

use clap::{Args, Command};
use serde_json::Value;
use toolway::builtin::{self, RESERVED};
use toolway_config::Plan;
use toolway_types::ServerName;

use self::ask::{asked, uris};
use self::line::Line;
use self::quoting::Dialect;
use self::spelling::Charset;
use super::call::{Schema, steps};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::Outcome;

/// How whole names begin.
const FLAT: &str = "mcp__";

/// What could come next on a command line, for shells
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,

    /// The line up to the cursor
    #[arg(allow_hyphen_values = true)]
    line: String,

    /// The end of the line that bash replaces; scripts of earlier versions do not say it
    #[arg(allow_hyphen_values = true)]
    replaced: Option<String>,
}

/// The shells that ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Shell {
    /// Replaces what stands behind the open quote, or the last `=` or `:`, and quotes nothing.
    Bash,
    /// Replaces the whole word, and quotes it.
    Zsh,
    /// The same.
    Fish,
}

impl Shell {
    fn dialect(self) -> Dialect {
        match self {
            Shell::Bash | Shell::Zsh => Dialect::Posix,
            Shell::Fish => Dialect::Fish,
        }
    }
}

/// Whether a command's first word is a server that it connects to.
fn connects(command: &str) -> bool {
    matches!(
        command,
        "call" | "prompt" | "prompts" | "reconnect" | "resources" | "skill" | "skills" | "tools"
    )
}

/// Whether a command's first word is a server, whatever stands against connecting to it.
fn takes_any_server(command: &str) -> bool {
    let changes = ["approve", "reject", "enable", "disable", "remove", "rm"];
    let shows = ["get", "show", "explain", "logs", "audit", "permissions"];
    changes.contains(&command) || shows.contains(&command)
}

/// What is to be completed.
struct Unfinished {
    server: ServerName,
    wanted: Wish,
    /// The finished words behind what is named there.
    before: Vec<String>,
    /// The word at the cursor.
    word: String,
}

enum Wish {
    /// The name of a tool, by itself or with its server's.
    ToolName { flat: bool },
    /// An argument of this tool.
    ToolArgument(String),
    /// The name of a prompt, by itself or with its server's.
    PromptName { flat: bool },
    /// An argument of this prompt.
    PromptArgument(String),
    /// The name of a skill.
    SkillName,
    /// A variable of this template.
    Variable(String),
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &CompleteArgs, cli: Command) -> Outcome {
    let Some(line) = Line::read(&args.line, args.shell.dialect(), cli) else {
        return Ok(Exit::Success);
    };
    let mut text = String::new();
    let charset = Charset::of(context.environment());
    for candidate in candidates(context, &line).unwrap_or_default() {
        if !candidate.starts_with(&line.word) || !spelling::is_offered(&candidate, charset) {
            continue;
        }
        let given = match args.shell {
            Shell::Bash => args
                .replaced
                .as_ref()
                .and_then(|replaced| spelling::for_bash(&candidate, &args.line, replaced)),
            Shell::Zsh | Shell::Fish => Some(candidate),
        };
        if let Some(given) = given {
            text.push_str(&given);
            text.push('\n');
        }
    }
    context.output.verbatim(&text)?;
    Ok(Exit::Success)
}

fn candidates(context: &Context, line: &Line) -> Option<Vec<String>> {
    let Line {
        command,
        before,
        word,
    } = line;
    let plan = context.plan();
    let takes_name =
        matches!(command.as_str(), "call" | "tools" | "prompt") && word.starts_with(FLAT);
    if before.is_empty() && !takes_name {
        let own = match command.as_str() {
            "call" | "permissions" => &RESERVED[..],
            _ => &[],
        };
        let own = own.iter().map(|name| (*name).to_owned());
        if connects(command) {
            return Some(names(plan).into_iter().chain(own).collect());
        }
        if takes_any_server(command) {
            let mut names: Vec<String> =
                plan.servers.iter().map(|it| it.name.to_string()).collect();
            names.dedup();
            return Some(names.into_iter().chain(own).collect());
        }
    }
    if before.is_empty() && takes_name {
        let owners = flat_owners(plan, word);
        let [only] = &owners[..] else {
            return Some(owners.iter().map(flat).collect());
        };
        let wanted = match command.as_str() {
            "call" | "tools" => Wish::ToolName { flat: true },
            _ => Wish::PromptName { flat: true },
        };
        let unfinished = Unfinished {
            server: only.clone(),
            wanted,
            before: Vec::new(),
            word: word.clone(),
        };
        return asked(context, plan, &unfinished);
    }
    if command == "read" && before.is_empty() {
        return Some(uris(context, plan, word));
    }
    // What the host's own tools take is known without asking a server.
    if let ("call", [tool, given @ ..]) = (command.as_str(), before.as_slice())
        && let Some(own) = builtin::own(tool)
        && plan.winner(tool).is_none()
    {
        return arguments_of(own.input_schema(), &self::given(given), word);
    }
    let (server, wanted, before) = match command.as_str() {
        "tools" if before.len() != 1 || admitted(plan, &before[0]).is_none() => return None,
        "call" | "tools" => match owner(plan, before)? {
            (server, Some((tool, before))) => (server, Wish::ToolArgument(tool.to_owned()), before),
            (server, None) => (server, Wish::ToolName { flat: false }, &[][..]),
        },
        "prompt" => match owner(plan, before)? {
            (server, Some((prompt, before))) => {
                (server, Wish::PromptArgument(prompt.to_owned()), before)
            }
            (server, None) => (server, Wish::PromptName { flat: false }, &[][..]),
        },
        "skill" if before.len() == 1 => (admitted(plan, &before[0])?, Wish::SkillName, &[][..]),
        "read" if before[0].contains('{') => {
            let server = template_server(plan, &before[1..])?;
            (server, Wish::Variable(before[0].clone()), &before[1..])
        }
        "read" if before.len() == 1 => return Some(names(plan)),
        _ => return None,
    };
    let unfinished = Unfinished {
        server,
        wanted,
        before: before.to_vec(),
        word: word.clone(),
    };
    asked(context, plan, &unfinished)
}

fn names(plan: &Plan) -> Vec<String> {
    plan.admitted()
        .map(|(server, _)| server.name.to_string())
        .collect()
}

fn admitted(plan: &Plan, name: &str) -> Option<ServerName> {
    plan.admitted()
        .map(|(server, _)| &server.name)
        .find(|server| server.as_str() == name)
        .cloned()
}

/// The server that words name, alone or in a name such as `mcp__<server>__<tool>`; and what they
/// name of it, with the words behind that.
#[expect(
    clippy::type_complexity,
    reason = "taken apart at once by both callers"
)]
fn owner<'a>(
    plan: &Plan,
    words: &'a [String],
) -> Option<(ServerName, Option<(&'a str, &'a [String])>)> {
    let (first, rest) = words.split_first()?;
    if let Some(server) = admitted(plan, first) {
        let named = rest.split_first();
        return Some((server, named.map(|(name, rest)| (name.as_str(), rest))));
    }
    let owners = plan
        .admitted()
        .map(|(server, _)| &server.name)
        .filter(|name| first.starts_with(&flat(name)));
    let server = owners.max_by_key(|name| name.as_str().len())?.clone();
    Some((server, Some((first, rest))))
}

/// How the whole names of what a server has begin.
fn flat(server: &ServerName) -> String {
    format!("{FLAT}{}__", server.normalized().as_str())
}

/// The servers that an unfinished whole name can be of; the one with the longest name where it is
/// written out.
fn flat_owners(plan: &Plan, word: &str) -> Vec<ServerName> {
    let all = || plan.admitted().map(|(server, _)| &server.name);
    let written = all().filter(|name| word.starts_with(&flat(name)));
    match written.max_by_key(|name| name.as_str().len()) {
        Some(server) => vec![server.clone()],
        None => all()
            .filter(|name| flat(name).starts_with(word))
            .cloned()
            .collect(),
    }
}

/// A template's server is named, or is the only one there is: a tab does not start them all.
fn template_server(plan: &Plan, words: &[String]) -> Option<ServerName> {
    let mut all = plan.admitted().map(|(server, _)| server.name.clone());
    words
        .iter()
        .find_map(|name| admitted(plan, name))
        .or_else(|| all.next().filter(|_| all.next().is_none()))
}

/// What stands on the line already.
fn given(before: &[String]) -> BTreeMap<String, String> {
    let pairs = before.iter().filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(key, value)| (key.trim_end_matches(':').to_owned(), value.to_owned()))
        .collect()
}

/// A tool's arguments by its schema, and their values where those are counted there.
fn arguments_of(
    schema: &Value,
    given: &BTreeMap<String, String>,
    word: &str,
) -> Option<Vec<String>> {
    let schema = Schema::new(schema);
    let Some((key, _)) = word.split_once('=') else {
        let known = schema.arguments().known;
        // Behind a dot stand the members of what is before it.
        if let Some((outer, _)) = word.rsplit_once('.')
            && !known.iter().any(|name| name.starts_with(word))
        {
            let inner = schema.members(&steps(outer, &schema).ok()?);
            let whole = inner.iter().map(|name| format!("{outer}.{name}"));
            let open = whole.filter(|name| !given.contains_key(name));
            return Some(open.map(|name| format!("{name}=")).collect());
        }
        let open = known.iter().filter(|name| !given.contains_key(*name));
        return Some(open.map(|name| format!("{name}=")).collect());
    };
    let kind = schema.within(&steps(key, &schema).ok()?);
    let values: Vec<&str> = match kind.values() {
        [] if kind.is_boolean() => vec!["true", "false"],
        [] => return None,
        values => values.iter().filter_map(|value| value.as_str()).collect(),
    };
    Some(
        values
            .iter()
            .map(|value| format!("{key}={value}"))
            .collect(),
    )
}
