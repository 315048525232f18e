//! `toolway import`: takes over servers from other clients' files.
//!
//! Owns the preview and the choice; reading each client's format, and telling who wrote a file, is
//! `toolway-config`'s work. What the person did not write is taken only from a file that they name,
//! and starts nothing before it is approved, unless they say that it is to be their own.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};
use toolway_config::import::{self, Client, Found, Imported, Places, Stranger, Writer};
use toolway_config::{Existing, Plan, PlannedServer, Verdict, signature};
use toolway_types::name::as_word;
use toolway_types::text::{Nature, legible};
use toolway_types::{Scope, ServerName, Severity};
use unicode_width::UnicodeWidthStr as _;

use crate::commands::add::{WritableScope, say_written};
use crate::commands::get::{redacted, redacted_url};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report, render_diagnosis};
use crate::screen::{Screen, Sheet, name};

/// Import servers from other clients
///
/// Reads the files of Claude Desktop, Claude Code, Cursor, VS Code, Codex, Gemini CLI, Windsurf,
/// Zed, opencode and Goose, shows what would be added and what cannot be carried over, and adds
/// it after you say yes. Servers you already have are skipped.
///
/// Files that came with a project, or that others can write, are shown and left out. Name one with
/// `--from` to take it: into the project's own file, where every server waits for `toolway
/// approve`, or where `--scope` says.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway import
  toolway import cursor codex --yes
  toolway import cursor --from .cursor/mcp.json
  toolway import claude-desktop --from ~/claude_desktop_config.json -s user")]
pub(crate) struct ImportArgs {
    /// The clients to read; all that are found when absent
    #[arg(value_parser = clients())]
    clients: Vec<Client>,

    /// Read this file in the client's format instead of the client's own files
    #[arg(long, value_name = "FILE", requires = "clients")]
    from: Option<PathBuf>,

    /// Which file to write to; `user` when absent, `project` for a file that you did not write
    #[arg(short, long, value_enum)]
    scope: Option<WritableScope>,

    /// Only show what would be added
    #[arg(long)]
    dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Print the preview as JSON and change nothing unless `--yes` is given
    #[arg(long)]
    json: bool,
}

/// Clients by their ids, so that help, completion and near misses know them all.
fn clients() -> impl TypedValueParser<Value = Client> {
    PossibleValuesParser::new(Client::ALL.iter().map(Client::id)).try_map(|word| {
        Client::ALL
            .into_iter()
            .find(|client| client.id() == word)
            .ok_or("no such client")
    })
}

/// One server on its way in.
struct Candidate<'a> {
    found: &'a Found,
    server: &'a Imported,
    fate: Fate,
}

#[derive(Clone, PartialEq, Eq)]
enum Fate {
    Add,
    Skip(String),
    /// Shown and left out: somebody else wrote the file, and nobody named it.
    LeaveOut(Stranger),
}

/// Where servers go, and on whose word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// As if the person had typed them.
    Vouched(Scope),
    /// Into the project's file, to be approved.
    Proposed,
}

impl Target {
    fn of(args: &ImportArgs, found: &[Found]) -> Self {
        let is_own = |found: &Found| found.writer == Writer::Person;
        // Nothing but a named file is taken from a stranger, and that one alone.
        let is_named = args.from.is_some() && !found.iter().all(is_own);
        match args.scope {
            None | Some(WritableScope::Project) if is_named => Self::Proposed,
            None => Self::Vouched(Scope::User),
            Some(scope) => Self::Vouched(scope.scope()),
        }
    }

    fn scope(self) -> Scope {
        match self {
            Self::Vouched(scope) => scope,
            Self::Proposed => Scope::Project,
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ImportArgs) -> Outcome {
    let found = find(context, args)?;
    for diagnosis in found.iter().flat_map(|found| &found.diagnoses) {
        context.output.say(&render_diagnosis(diagnosis));
    }
    let faulty = found
        .iter()
        .flat_map(|found| &found.diagnoses)
        .any(|diagnosis| diagnosis.severity == Severity::Error);
    let done = if faulty {
        Exit::Configuration
    } else {
        Exit::Success
    };
    let target = Target::of(args, &found);
    let candidates = choose(context.plan(), &found, args, target.scope());
    let seen = if args.json {
        context.output.json(&preview_json(&candidates))?;
        true
    } else {
        let preview = preview(&candidates, context.output.result_screen());
        show(context, args, &preview)?
    };
    say_left_out(context, &candidates);
    let adding = candidates
        .iter()
        .filter(|candidate| candidate.fate == Fate::Add)
        .count();
    if adding == 0 {
        if !found.is_empty() {
            context.output.say("nothing to import");
        }
        return Ok(done);
    }
    if args.dry_run || (args.json && !args.yes) {
        return Ok(done);
    }
    if !args.yes {
        if !context.output.can_ask() {
            context
                .output
                .say("nothing was changed: nobody is there to confirm this");
            context
                .output
                .say("hint: run it again with `--yes` to add them");
            return Ok(done);
        }
        let question = format!("Add {adding} to the {} scope?", target.scope());
        if !seen || !context.output.confirm(&question)? {
            context.output.say("nothing was changed");
            return Ok(done);
        }
    }
    for candidate in candidates
        .iter()
        .filter(|candidate| candidate.fate == Fate::Add)
    {
        add(context, candidate, target)?;
    }
    Ok(done)
}

fn find(context: &Context, args: &ImportArgs) -> Result<Vec<Found>, Report> {
    let places = Places::from(&context.environment);
    if let Some(path) = &args.from {
        let [client] = args.clients.as_slice() else {
            return Err(Report::new(
                Exit::Usage,
                "`--from` reads one file in one client's format",
            )
            .hint(format!(
                "name one client: `toolway import {} --from {}`",
                args.clients.first().map_or("claude-desktop", Client::id),
                path.display()
            )));
        };
        return Ok(vec![import::read_file(&places, *client, path)]);
    }
    let clients = if args.clients.is_empty() {
        Client::ALL.to_vec()
    } else {
        args.clients.clone()
    };
    let mut found: Vec<Found> = clients
        .iter()
        .flat_map(|client| import::discover(&places, *client))
        .collect();
    // What somebody else wrote stands apart, and takes no name away from the person's own.
    found.sort_by_key(|found| found.writer != Writer::Person);
    if found.is_empty() {
        context.output.say("no file of these clients was found");
        context
            .output
            .say("hint: name one yourself: `toolway import <client> --from <file>`");
    }
    Ok(found)
}

/// Decides each server's fate: what is there already, by name or by signature, is skipped; what
/// somebody else wrote is left out, unless the person named the file (SEC-01). What nobody has
/// approved is not there: a repository must not keep the person's own servers out.
fn choose<'a>(
    plan: &Plan,
    found: &'a [Found],
    args: &ImportArgs,
    target: Scope,
) -> Vec<Candidate<'a>> {
    let counts = |server: &&PlannedServer| {
        server.scope == target || matches!(server.verdict, Verdict::Admitted(_))
    };
    let mut known: Vec<(String, Option<String>, String)> = plan
        .servers
        .iter()
        .filter(counts)
        .map(|server| {
            (
                server.name.to_string(),
                signature(&server.definition),
                server.origin.to_string(),
            )
        })
        .collect();
    let mut candidates = Vec::new();
    for file in found {
        for server in &file.servers {
            let own = signature(&server.definition);
            let same = known.iter().find(|(name, signature, _)| {
                *name == server.name || (own.is_some() && *signature == own)
            });
            let fate = match (same, ServerName::new(server.name.as_str())) {
                (_, Err(error)) => Fate::Skip(error.to_string()),
                (Some((name, signature, place)), _)
                    if *name == server.name && own.is_some() && *signature == own =>
                {
                    Fate::Skip(format!("already there: {place}"))
                }
                (Some((name, _, place)), _) if *name == server.name => {
                    Fate::Skip(format!("the name is taken by {place}"))
                }
                (Some((name, _, place)), _) => {
                    Fate::Skip(format!("the same as `{name}` of {place}"))
                }
                (None, Ok(_)) => match file.writer {
                    Writer::Stranger(stranger) if args.from.is_none() => Fate::LeaveOut(stranger),
                    Writer::Stranger(_) | Writer::Person => Fate::Add,
                },
            };
            if fate == Fate::Add {
                let place = format!("this import ({})", file.client.title());
                known.push((server.name.clone(), own, place));
            }
            candidates.push(Candidate {
                found: file,
                server,
                fate,
            });
        }
    }
    candidates
}

/// Says how each file that was left out can be taken all the same.
fn say_left_out(context: &Context, candidates: &[Candidate<'_>]) {
    let mut said: Option<&Found> = None;
    for candidate in candidates {
        let Fate::LeaveOut(stranger) = candidate.fate else {
            continue;
        };
        let file = candidate.found;
        if said.is_some_and(|said| std::ptr::eq(said, file)) {
            continue;
        }
        said = Some(file);
        let path = file.path.display().to_string();
        context
            .output
            .say(&format!("warning: `{path}` was left out: {stranger}"));
        let path = as_word(&path);
        let hint = match stranger {
            Stranger::WritableByAll => format!("keep others out of it: `chmod o-w {path}`"),
            Stranger::Project | Stranger::Owner | Stranger::Elsewhere => {
                let client = file.client.id();
                format!("look at it, then name it: `toolway import {client} --from {path}`")
            }
        };
        context.output.say(&format!("hint: {hint}"));
    }
}

/// What a file holds is its writer's word: no row of it can pass for one of ours (SEC-52).
fn preview(candidates: &[Candidate<'_>], screen: Screen) -> String {
    let words = |text: &str| legible(text, Nature::Prose);
    let mut sheet = screen.sheet();
    let mut file: Option<&Found> = None;
    let mut width = 0;
    for candidate in candidates {
        if file.is_none_or(|file| !std::ptr::eq(file, candidate.found)) {
            file = Some(candidate.found);
            let names = candidate.found.servers.iter();
            width = names
                .map(|server| name(&server.name).width())
                .max()
                .unwrap_or(0);
            sheet.row(&format!(
                "{} ({})",
                candidate.found.client.title(),
                legible(&candidate.found.path.display().to_string(), Nature::Code)
            ));
            if let Writer::Stranger(stranger) = candidate.found.writer {
                sheet.row(&format!("  not your own: {stranger}"));
            }
        }
        let name = name(&candidate.server.name);
        let name = format!("{name}{}", " ".repeat(width.saturating_sub(name.width())));
        match &candidate.fate {
            Fate::Add => add_row(&mut sheet, &format!("  + {name}  "), candidate.server),
            Fate::Skip(reason) => {
                sheet.row(&format!("  = {name}  skipped: {}", words(reason)));
            }
            Fate::LeaveOut(_) => add_row(&mut sheet, &format!("  - {name}  "), candidate.server),
        }
        if candidate.fate == Fate::Add {
            if candidate.found.writer != Writer::Person {
                whole(&mut sheet, candidate.server);
            }
            if !candidate.server.enabled {
                sheet.row("      switched off there, so switched off here");
            }
            for note in &candidate.server.notes {
                sheet.row(&format!("      ~ {}", words(note.trim_end_matches('.'))));
            }
            for loss in &candidate.server.dropped {
                sheet.row(&format!("      ! {}", words(loss.trim_end_matches('.'))));
            }
        }
    }
    sheet.finish()
}

/// A definition as it would be written, for a file that the person did not write: what stands in
/// `env` may be code, so it is shown as `approve` would show it.
fn whole(sheet: &mut Sheet, server: &Imported) {
    let shown = serde_json::to_string_pretty(&server.definition).unwrap_or_default();
    for line in shown.lines() {
        sheet.row(&format!("      {}", legible(line, Nature::Source)));
    }
}

/// A server that would be added: what it reaches or runs, exactly, and what else decides that.
fn add_row(sheet: &mut Sheet, lead: &str, server: &Imported) {
    let word = |key: &str| server.definition.get(key).and_then(Value::as_str);
    match (word("url"), word("command")) {
        (Some(url), _) => {
            let url = legible(&redacted_url(url), Nature::Code);
            sheet.row(&format!("{lead}{url}"));
        }
        (None, Some(command)) => {
            let args = server.definition.get("args").and_then(Value::as_array);
            let args = args.into_iter().flatten().filter_map(Value::as_str);
            let words: Vec<&str> = std::iter::once(command).chain(args).collect();
            sheet.command(lead, &words);
        }
        (None, None) => sheet.row(lead),
    }
    for key in ["cwd", "headersHelper"] {
        if let Some(text) = word(key) {
            sheet.row(&format!("      {key}: {}", legible(text, Nature::Code)));
        }
    }
    // Their values may be secrets; their names tell which of them are code.
    if let Some(Value::Object(variables)) = server.definition.get("env") {
        let names: Vec<_> = variables.keys().map(|key| name(key)).collect();
        if !names.is_empty() {
            sheet.row(&format!("      env: {}", names.join(", ")));
        }
    }
}

/// Shows the preview, page by page where a person is asked about it next. False when they turned
/// away before its end.
fn show(context: &Context, args: &ImportArgs, preview: &str) -> std::io::Result<bool> {
    let asks = !args.yes && !args.dry_run && context.output.can_ask();
    if asks && context.output.stdout_is_terminal() {
        context.output.lay_before(preview)
    } else {
        context.output.result(preview).map(|()| true)
    }
}

fn preview_json(candidates: &[Candidate<'_>]) -> Value {
    let servers: Vec<Value> = candidates
        .iter()
        .map(|candidate| {
            json!({
                "name": candidate.server.name,
                "client": candidate.found.client.id(),
                "source": {
                    "path": candidate.found.path.display().to_string(),
                    "line": candidate.server.line,
                },
                "writer": match candidate.found.writer {
                    Writer::Person => "person",
                    Writer::Stranger(_) => "stranger",
                },
                "definition": redacted(&candidate.server.definition),
                "enabled": candidate.server.enabled,
                "notes": candidate.server.notes,
                "dropped": candidate.server.dropped,
                "skipped": match &candidate.fate {
                    Fate::Add => Value::Null,
                    Fate::Skip(reason) => json!(reason),
                    Fate::LeaveOut(stranger) => json!(stranger.to_string()),
                },
            })
        })
        .collect();
    json!({ "servers": servers })
}

fn add(context: &Context, candidate: &Candidate<'_>, target: Target) -> Result<(), Report> {
    let name = ServerName::new(candidate.server.name.as_str())
        .map_err(|error| Report::new(Exit::Configuration, error.to_string()))?;
    let mut definition = candidate.server.definition.clone();
    if !candidate.server.enabled {
        definition.insert("disabled".to_owned(), json!(true));
    }
    let scope = target.scope();
    let environment = &context.environment;
    let edited = match target {
        Target::Vouched(scope) => {
            toolway_config::add_server(environment, scope, &name, &definition, Existing::Keep)
        }
        Target::Proposed => toolway_config::propose_server(environment, &name, &definition),
    };
    let edited = edited.map_err(|error| Report::for_edit(error, name.as_str(), scope))?;
    say_written(
        context,
        &format!("added `{name}` to the {scope} scope"),
        &edited,
    );
    if target == Target::Proposed {
        context.output.say(&format!(
            "hint: it does not start before you approve it: `toolway approve {}`",
            as_word(name.as_str())
        ));
    }
    Ok(())
}
