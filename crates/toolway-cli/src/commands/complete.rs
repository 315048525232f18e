//! `toolway __complete`: what could come next on a command line that names a server, and there a
//! tool, a prompt or a template.
//!
//! Owns reading the unfinished line and asking the one server it names. A shell waits while this
//! runs: it takes two seconds at most and says nothing when it fails.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use toolway::builtin::{self, RESERVED};
use toolway::template::UriTemplate;
use toolway::{CompletionReference, Host, ToolTarget};
use toolway_config::Plan;
use toolway_types::name::shell_word;
use toolway_types::text::is_hidden;
use toolway_types::{ServerName, ToolKey};

use super::call::Schema;
use super::prompt;
use crate::connect::{self, Wanted};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// The longest a shell is kept waiting.
const PATIENCE: Duration = Duration::from_secs(2);

/// What could come next on a command line, for shells
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,

    /// The line up to the cursor
    #[arg(allow_hyphen_values = true)]
    line: String,
}

/// The shells that ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Shell {
    /// Replaces only what stands behind the last `=` or `:`, and quotes nothing.
    Bash,
    /// Replaces the whole word, and quotes it.
    Zsh,
    /// The same.
    Fish,
}

/// Commands whose first word is a server, whatever stands against connecting to it.
const OF_ANY_SERVER: [&str; 12] = [
    "approve",
    "audit",
    "disable",
    "enable",
    "explain",
    "get",
    "logs",
    "reject",
    "remove",
    "rm",
    "show",
    "permissions",
];

/// Commands whose first word is a server that they connect to.
const OF_A_CONNECTED_SERVER: [&str; 8] = [
    "call",
    "prompt",
    "prompts",
    "reconnect",
    "resources",
    "skill",
    "skills",
    "tools",
];

/// What is to be completed.
struct Unfinished {
    server: ServerName,
    wanted: Wish,
}

enum Wish {
    /// The name of a tool.
    ToolName,
    /// An argument of a tool.
    ToolArgument {
        tool: String,
        before: Vec<String>,
        word: String,
    },
    /// The name of a prompt.
    PromptName,
    /// An argument of a prompt: those before it, and how it begins.
    PromptArgument {
        prompt: String,
        before: Vec<String>,
        word: String,
    },
    /// A variable of a template.
    Variable {
        template: String,
        before: Vec<String>,
        word: String,
    },
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &CompleteArgs) -> Outcome {
    let words = words(&args.line);
    let word = words.last().cloned().unwrap_or_default();
    let candidates = candidates(context, &words).unwrap_or_default();
    let mut text = String::new();
    for candidate in candidates {
        // What a server calls something must not become a flag of ours.
        let safe = !candidate.starts_with('-') && !candidate.contains(is_hidden);
        if !safe || !candidate.starts_with(&word) {
            continue;
        }
        if args.shell == Shell::Bash {
            // Bash takes `a=b` for three words.
            let kept = word.rfind(['=', ':']).map_or(0, |at| at + 1);
            text.push_str(&shell_word(candidate.get(kept..).unwrap_or_default()));
        } else {
            text.push_str(&candidate);
        }
        text.push('\n');
    }
    context.output.verbatim(&text)?;
    Ok(Exit::Success)
}

/// The words of the line, the last of which is unfinished, without the program's own name.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = line.split_whitespace().skip(1).map(unquoted).collect();
    if line.ends_with(char::is_whitespace) {
        words.push(String::new());
    }
    words
}

/// Quotes are how a shell is told that braces are meant.
fn unquoted(word: &str) -> String {
    word.chars()
        .filter(|c| !matches!(c, '\'' | '"' | '\\'))
        .collect()
}

fn candidates(context: &Context, words: &[String]) -> Option<Vec<String>> {
    let (command, rest) = words.split_first()?;
    let (word, before) = rest.split_last()?;
    if word.starts_with('-') {
        return None;
    }
    let plan = context.plan();
    let own = match command.as_str() {
        "call" | "permissions" => &RESERVED[..],
        _ => &[],
    };
    let own = own.iter().map(|name| (*name).to_owned());
    if before.is_empty() && OF_A_CONNECTED_SERVER.contains(&command.as_str()) {
        return Some(names(plan).into_iter().chain(own).collect());
    }
    if before.is_empty() && OF_ANY_SERVER.contains(&command.as_str()) {
        let mut names: Vec<String> = plan.servers.iter().map(|it| it.name.to_string()).collect();
        names.dedup();
        return Some(names.into_iter().chain(own).collect());
    }
    // What the host's own tools take is known without asking anybody.
    if let ("call", [tool, given @ ..]) = (command.as_str(), before)
        && let Some(own) = builtin::own(tool)
        && plan.winner(tool).is_none()
    {
        return arguments_of(own.input_schema(), &self::given(given), word);
    }
    let unfinished = match command.as_str() {
        "call" => tool_of(plan, before, word)?,
        "prompt" => prompt_of(plan, before, word)?,
        "read" => template_of(plan, before, word)?,
        _ => return None,
    };
    let wanted = Wanted::Only(unfinished.server.clone());
    let found = connect::with_host(context, plan.clone(), wanted, async |host| {
        let asked = tokio::time::timeout(PATIENCE, ask(host, &unfinished)).await;
        Ok::<_, Report>(asked.ok().flatten())
    });
    found.ok().flatten()
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

fn tool_of(plan: &Plan, before: &[String], word: &str) -> Option<Unfinished> {
    let (server, rest) = owner(plan, before)?;
    let wanted = match rest {
        Some((tool, before)) => Wish::ToolArgument {
            tool: tool.to_owned(),
            before: before.to_vec(),
            word: word.to_owned(),
        },
        None => Wish::ToolName,
    };
    Some(Unfinished { server, wanted })
}

fn prompt_of(plan: &Plan, before: &[String], word: &str) -> Option<Unfinished> {
    let (server, rest) = owner(plan, before)?;
    let wanted = match rest {
        Some((prompt, before)) => Wish::PromptArgument {
            prompt: prompt.to_owned(),
            before: before.to_vec(),
            word: word.to_owned(),
        },
        None => Wish::PromptName,
    };
    Some(Unfinished { server, wanted })
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
    let flat = first.strip_prefix("mcp__")?;
    let owners = plan
        .admitted()
        .map(|(server, _)| &server.name)
        .filter(|name| {
            flat.strip_prefix(name.normalized().as_str())
                .is_some_and(|rest| rest.starts_with("__"))
        });
    let server = owners.max_by_key(|name| name.as_str().len())?.clone();
    Some((server, Some((first, rest))))
}

/// A template's server is named, or is the only one there is: a tab does not start them all.
fn template_of(plan: &Plan, before: &[String], word: &str) -> Option<Unfinished> {
    let template = before.first().filter(|uri| uri.contains('{'))?;
    let named = before[1..].iter().find_map(|name| admitted(plan, name));
    let mut all = plan.admitted().map(|(server, _)| server.name.clone());
    let only = match (all.next(), all.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    Some(Unfinished {
        server: named.or(only)?,
        wanted: Wish::Variable {
            template: template.clone(),
            before: before[1..].to_vec(),
            word: word.to_owned(),
        },
    })
}

async fn ask(host: &Host, unfinished: &Unfinished) -> Option<Vec<String>> {
    let server = &unfinished.server;
    host.ready(server.as_str()).await;
    let snapshot = host.snapshot();
    let (reference, known, before, word) = match &unfinished.wanted {
        Wish::ToolName => {
            let catalog = &snapshot.catalog;
            let tools = catalog.tools_of(server).iter().map(|tool| {
                // As it is shown.
                catalog.alias(&tool.key).unwrap_or(&tool.key.tool)
            });
            let own = catalog.built_in().iter();
            let own = own.filter(|tool| tool.key.server == *server);
            let all = tools.chain(own.map(|tool| tool.key.tool.as_str()));
            return Some(all.map(str::to_owned).collect());
        }
        Wish::ToolArgument { tool, before, word } => {
            let target = if tool.starts_with("mcp__") {
                ToolTarget::Exposed(tool.clone())
            } else {
                ToolTarget::Key(ToolKey::new(server.clone(), tool))
            };
            let tool = snapshot.catalog.find(&target).ok()?;
            let schema: Value = serde_json::from_str(tool.input_schema.get()).ok()?;
            return arguments_of(&schema, &given(before), word);
        }
        Wish::PromptName => {
            let prompts = snapshot.catalog.prompts.iter();
            let of_server = prompts.filter(|prompt| prompt.key.server == *server);
            return Some(of_server.map(|prompt| prompt.key.tool.clone()).collect());
        }
        Wish::PromptArgument {
            prompt,
            before,
            word,
        } => {
            let prompt = prompt::find(&snapshot.catalog, Some(server), prompt).ok()?;
            let known: Vec<String> = prompt
                .arguments
                .iter()
                .map(|argument| argument.name.clone())
                .collect();
            let reference = CompletionReference::Prompt(prompt.key.tool.clone());
            (reference, known, before, word)
        }
        Wish::Variable {
            template,
            before,
            word,
        } => {
            let parsed = UriTemplate::parse(template).ok()?;
            let known = parsed.variables().into_iter().map(str::to_owned).collect();
            let reference = CompletionReference::Template(template.clone());
            (reference, known, before, word)
        }
    };
    let given = given(before);
    let Some((key, value)) = word.split_once('=') else {
        let open = known.iter().filter(|name| !given.contains_key(*name));
        return Some(open.map(|name| format!("{name}=")).collect());
    };
    let found = host
        .complete(server, &reference, key, value, &given)
        .await
        .ok()?;
    let values = found.values.iter();
    Some(
        values
            .map(|value| format!("{key}={}", value.as_received()))
            .collect(),
    )
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
        let open = known.iter().filter(|name| !given.contains_key(*name));
        return Some(open.map(|name| format!("{name}=")).collect());
    };
    let kind = schema.argument(key);
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
