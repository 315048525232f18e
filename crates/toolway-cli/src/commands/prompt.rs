//! `toolway prompt`: renders one prompt.
//!
//! Owns reading what was typed (which prompt, which arguments) and how the messages are printed.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Map, Value};
use toolway::catalog::CatalogPrompt;
use toolway::view::{ContentBlock, PromptMessage, ResourceBody};
use toolway::{CallError, CallFault, CallOptions, Catalog, Consent, Offering, PromptOutcome};
use toolway_rows::ServerAnswer;
use toolway_types::name::{as_word, shell_word};
use toolway_types::{ServerName, Untrusted, nearest};

use super::admitted::find_by_exposed;
use super::offers::{Servers, pairs};
use crate::connect::{self, TypedCommand};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};
use crate::typed::is_url;

/// Render a prompt
///
/// Arguments are `key=value`, or `key=@file` to read one from a file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway prompt mcp__github__review pr=17
  toolway prompt github review pr=17
  toolway prompt github review pr=17 --json")]
pub(crate) struct PromptArgs {
    /// The server and the prompt, or the prompt's whole name, then the arguments
    #[arg(required = true, num_args = 1.., value_names = ["SERVER", "PROMPT", "KEY=VALUE"])]
    words: Vec<String>,

    /// Print the whole MCP result as JSON
    #[arg(long)]
    json: bool,

    /// Accept that the prompt's definition changed since it was last rendered
    #[arg(long)]
    accept_change: bool,

    #[command(flatten)]
    command: TypedCommand,
}

/// Which prompt was meant: the server as typed, the prompt, and the words behind.
type Target<'a> = (Option<String>, &'a str, &'a [String]);

fn target<'a>(context: &Context, args: &'a PromptArgs) -> Result<Target<'a>, Report> {
    let words = &args.words;
    let first = words.first().map_or("", String::as_str);
    if !args.command.is_empty() {
        return Ok((None, first, &words[1..]));
    }
    let plan = context.plan();
    if first.starts_with("mcp__") && plan.winner(first).is_none() {
        let (server, _) = find_by_exposed(context, plan, first)?;
        return Ok((Some(server.to_string()), first, &words[1..]));
    }
    if let Some(prompt) = words.get(1).filter(|word| !word.contains('=')) {
        return Ok((Some(first.to_owned()), prompt, &words[2..]));
    }
    let hint = format!("see its prompts with `toolway prompts {}`", as_word(first));
    Err(Report::usage(format!("which prompt of `{first}`?")).hint(hint))
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &PromptArgs) -> Outcome {
    let (server, name, rest) = target(context, args)?;
    let servers = Servers::find(context, server.as_deref(), &args.command)?;
    let given = pairs(context, rest)?;
    let place = match &server {
        Some(url) if is_url(url) => url.clone(),
        _ => servers
            .only
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    };
    connect::with_user(
        context,
        servers.plan.clone(),
        servers.wanted(),
        async |host| {
            let wanted = Offering::GetPrompt;
            let snapshot = servers.settle(context, host, wanted).await?;
            let prompt = find(&snapshot.catalog, servers.only.as_ref(), name)?;
            let arguments = arguments(context, prompt, &place, given)?;
            let options = CallOptions::new(if args.accept_change {
                Consent::Reviewed
            } else {
                Consent::Typed
            });
            let (server, name) = (&prompt.key.server, &prompt.key.tool);
            let rendered = host.get_prompt_as(server, name, arguments, &options).await;
            let rendered = rendered.map_err(|error| {
                // How it is called is not what is wrong then.
                let is_refused = matches!(
                    error,
                    CallError::NeedsAuth { .. } | CallError::Failed(_, CallFault::Refused(_))
                );
                let usage =
                    (!is_refused).then(|| format!("it is called as `{}`", usage(prompt, &place)));
                Report::from(error).better_hint(usage)
            })?;
            print(context, &rendered, args.json)?;
            Ok(Exit::Success)
        },
    )
}

/// The prompt that was meant: by its whole name, or by its own.
pub(super) fn find<'a>(
    catalog: &'a Catalog,
    server: Option<&ServerName>,
    wanted: &str,
) -> Result<&'a CatalogPrompt, Report> {
    let of_server =
        |prompt: &&CatalogPrompt| server.is_none_or(|server| prompt.key.server == *server);
    let prompts: Vec<&CatalogPrompt> = catalog.prompts().filter(of_server).collect();
    let found = prompts
        .iter()
        .find(|prompt| prompt.key.tool == wanted)
        .or_else(|| prompts.iter().find(|prompt| prompt.name == wanted))
        .or_else(|| prompts.iter().find(|prompt| prompt.key.spelled() == wanted));
    if let Some(prompt) = found {
        return Ok(prompt);
    }
    let whole = wanted.starts_with("mcp__");
    let names = prompts.iter().map(|prompt| {
        if whole {
            prompt.name.as_str()
        } else {
            prompt.shown.as_str()
        }
    });
    let near = nearest(wanted, names);
    let shown = Untrusted::new(wanted);
    let message = match server {
        Some(server) if !whole => format!("server `{server}` has no prompt `{}`", shown.line()),
        _ => format!("no prompt `{}`", shown.line()),
    };
    let report = Report::usage(message);
    Err(match (near, server) {
        (Some(near), _) => report.hint(format!("did you mean `{near}`?")),
        (None, Some(server)) => report.hint(format!(
            "see its prompts with `toolway prompts {}`",
            as_word(server.as_str())
        )),
        (None, None) => report.hint("see all prompts with `toolway prompts`"),
    })
}

/// The arguments by the prompt's own declaration: what it needs is there, and what it does not
/// know is told.
fn arguments(
    context: &Context,
    prompt: &CatalogPrompt,
    place: &str,
    given: std::collections::BTreeMap<String, Vec<String>>,
) -> Result<Map<String, Value>, Report> {
    let server = &prompt.key.server;
    let missing: Vec<&str> = prompt
        .arguments
        .iter()
        .filter(|argument| argument.required && !given.contains_key(&argument.name))
        .map(|argument| argument.name.as_str())
        .collect();
    let usage = || format!("it is called as `{}`", usage(prompt, place));
    if !missing.is_empty() {
        return Err(Report::usage(format!(
            "the arguments do not fit `{}` of server `{server}`",
            prompt.shown
        ))
        .details(missing.iter().map(|name| format!("`{name}` is missing")))
        .hint(usage()));
    }
    let mut arguments = Map::new();
    for (key, mut values) in given {
        if values.len() > 1 {
            return Err(Report::usage(format!(
                "`{key}` was given {} times, and takes one value",
                values.len()
            ))
            .hint(usage()));
        }
        if !prompt.arguments.iter().any(|known| known.name == key) {
            let known = prompt.arguments.iter().map(|known| known.name.as_str());
            let near = match nearest(&key, known) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            };
            context.warn(format!("`{}` has no argument `{key}`{near}", prompt.shown));
        }
        arguments.insert(key, Value::String(values.pop().unwrap_or_default()));
    }
    Ok(arguments)
}

/// How it is called, as a line to type.
fn usage(prompt: &CatalogPrompt, place: &str) -> String {
    let mut words = vec!["toolway prompt".to_owned()];
    if place.is_empty() {
        words.push(shell_word(&prompt.name).into_owned());
    } else {
        words.push(shell_word(place).into_owned());
        words.push(shell_word(&prompt.key.tool).into_owned());
    }
    words.extend(usage_of_arguments(prompt));
    Untrusted::new(words.join(" ")).line().into_owned()
}

/// Its arguments as they are typed: those that are needed first, the others in brackets.
pub(super) fn usage_of_arguments(prompt: &CatalogPrompt) -> Vec<String> {
    let (needed, others): (Vec<_>, Vec<_>) = prompt
        .arguments
        .iter()
        .partition(|argument| argument.required);
    let pair = |name: &str| format!("{}=<text>", shell_word(name));
    needed
        .iter()
        .map(|argument| pair(&argument.name))
        .chain(
            others
                .iter()
                .map(|argument| format!("[{}]", pair(&argument.name))),
        )
        .collect()
}

fn print(context: &Context, rendered: &PromptOutcome, json: bool) -> Result<(), Report> {
    if json {
        context
            .output
            .json(&ServerAnswer::from(rendered.raw.as_raw()))?;
        return Ok(());
    }
    context.output.text(&as_text(&rendered.result.messages))?;
    for warning in &rendered.warnings {
        context.warn(warning);
    }
    for fault in &rendered.result.faults {
        let reason = Untrusted::new(&fault.reason);
        context.warn(format!(
            "message {} cannot be read: {}",
            fault.index,
            reason.line()
        ));
    }
    if rendered.result.messages.is_empty() {
        context.say("the prompt has no messages");
    }
    Ok(())
}

/// Each message under its role; what is no text is noted.
fn as_text(messages: &[PromptMessage]) -> String {
    let mut text = String::new();
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let _ = writeln!(text, "[{}]", Untrusted::new(&message.role).line());
        let words = match &message.content {
            ContentBlock::Text { text } => text.clone(),
            ContentBlock::Image { data, mime_type } | ContentBlock::Audio { data, mime_type } => {
                noted(mime_type, data)
            }
            ContentBlock::Resource {
                body: ResourceBody::Text(words),
                uri,
                ..
            } => format!("<{}>\n{words}", Untrusted::new(uri).line()),
            ContentBlock::Resource {
                body: ResourceBody::Blob(data),
                mime_type,
                uri,
            } => format!(
                "<{}>\n{}",
                Untrusted::new(uri).line(),
                noted(mime_type.as_deref().unwrap_or("binary"), data)
            ),
            ContentBlock::ResourceLink { uri, .. } => uri.clone(),
            ContentBlock::Unknown { raw, .. } => raw.get().to_owned(),
        };
        text.push_str(&words);
        if !words.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

fn noted(mime_type: &str, base64: &str) -> String {
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    let kind = Untrusted::new(mime_type);
    format!("[{}, {bytes} bytes: see it with `--json`]", kind.line())
}
