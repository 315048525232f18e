//! `toolway import`: takes over servers from other clients' files.
//!
//! Owns the choice and the questions; the preview is `import/preview.rs`; formats, and who wrote a
//! file, are `toolway-config`'s. What the user did not write waits for approval, unless they name
//! the file and choose a scope of their own.

pub(super) mod preview;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Map, Value, json};
use toolway_config::import::{
    self, ClientFile, ClientLocations, FileWriter, ImportClient, ImportedServer, StrangerReason,
};
use toolway_config::{Existing, Plan, PlannedServer, ServerVerdict, signature, starts_toolway};
use toolway_types::name::as_word;
use toolway_types::{Scope, ServerName, Severity};

use crate::commands::add::{WritableScope, say_written};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};
use crate::screen::name;

/// Import servers from other clients
///
/// Reads the files of Claude Desktop, Claude Code, Cursor, VS Code, Codex, Gemini CLI, Windsurf,
/// Zed, opencode and Goose, shows what would be added and what cannot be carried over, and asks
/// about each: `y` adds it, `a` adds it and all that follow. Servers you already have are skipped.
///
/// What lies in a project goes into the project's own `.mcp.json`, where every server waits for
/// `toolway approve`; with `--yes` only when you say `-s project` or name the file with `--from`.
/// Files that others can write are shown and left out, unless you name them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway import
  toolway import cursor codex --yes
  toolway import cursor --from .cursor/mcp.json
  toolway import claude-desktop --from ~/claude_desktop_config.json -s user")]
pub(crate) struct ImportArgs {
    /// The clients to read; all that are found when absent
    #[arg(value_parser = clients())]
    clients: Vec<ImportClient>,

    /// Read this file in the client's format instead of the client's own files
    #[arg(long, value_name = "FILE", requires = "clients")]
    from: Option<PathBuf>,

    /// Which file to write to; `user` when absent, `project` for what you did not write
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
pub(super) fn clients() -> impl TypedValueParser<Value = ImportClient> {
    PossibleValuesParser::new(ImportClient::ALL.iter().map(ImportClient::id)).try_map(|word| {
        ImportClient::ALL
            .into_iter()
            .find(|client| client.id() == word)
            .ok_or("no such client")
    })
}

/// One server on its way in.
pub(super) struct Candidate<'a> {
    found: &'a ClientFile,
    pub(super) server: &'a ImportedServer,
    pub(super) fate: Fate,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Add(Target),
    /// It is there, defined alike.
    Same(String),
    Skip(String),
    /// Shown and left out: the user neither wrote the file nor named it.
    LeaveOut(StrangerReason),
}

/// Where a server goes, and on whose word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// As if the user had typed it.
    Vouched(Scope),
    /// Into the project's file, to be approved.
    Proposed,
}

/// Whether the user is asked about each server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Eyes {
    Open,
    Closed,
}

impl Target {
    /// Where the servers of a file go. What lies in a project stays the project's, and is taken
    /// where the user sees it or says so; other files that they did not write only when they name
    /// them (SEC-01).
    fn of(args: &ImportArgs, file: &ClientFile, eyes: Eyes) -> Result<Self, StrangerReason> {
        let wanted = args.scope.map(WritableScope::scope);
        let stranger = match file.writer {
            FileWriter::Person => return Ok(Self::Vouched(wanted.unwrap_or(Scope::User))),
            FileWriter::Stranger(stranger) => stranger,
        };
        let is_named = args.from.is_some();
        match wanted {
            Some(Scope::Project) if stranger == StrangerReason::Project => Ok(Self::Proposed),
            None if stranger == StrangerReason::Project && eyes == Eyes::Open => Ok(Self::Proposed),
            None | Some(Scope::Project) if is_named => Ok(Self::Proposed),
            Some(scope) if is_named => Ok(Self::Vouched(scope)),
            _ => Err(stranger),
        }
    }

    pub(super) fn scope(self) -> Scope {
        match self {
            Self::Vouched(scope) => scope,
            Self::Proposed => Scope::Project,
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ImportArgs) -> Outcome {
    let found = find(context, args)?;
    let mut findings = found.iter().flat_map(|found| &found.diagnoses);
    context.say_findings(findings.clone());
    let done = if findings.any(|finding| finding.severity == Severity::Error) {
        Exit::Configuration
    } else {
        Exit::Success
    };
    let asks = context.output.can_ask() && !args.yes && !args.json;
    let eyes = if asks { Eyes::Open } else { Eyes::Closed };
    let candidates = choose(context.plan(), &found, args, eyes);
    let seen = if args.json {
        context.output.json(&preview::listing(&candidates))?;
        true
    } else {
        let preview = preview::render(&candidates, context.output.result_screen());
        preview::show(context, args, &preview)?
    };
    preview::say_left_out(context, &candidates);
    let adding: Vec<(&Candidate<'_>, Target)> = candidates
        .iter()
        .filter_map(|candidate| match candidate.fate {
            Fate::Add(target) => Some((candidate, target)),
            Fate::Same(_) | Fate::Skip(_) | Fate::LeaveOut(_) => None,
        })
        .collect();
    if adding.is_empty() {
        if !found.is_empty() {
            context.say("nothing to import");
        }
        return Ok(done);
    }
    if args.dry_run || (args.json && !args.yes) {
        return Ok(done);
    }
    if !args.yes {
        if !context.output.can_ask() {
            context.say("nothing was changed: nobody is there to confirm this");
            context.hint("run it again with `--yes` to add them");
            return Ok(done);
        }
        if !seen || ask_each(context, &adding)? == 0 {
            context.say("nothing was changed");
        }
        return Ok(done);
    }
    for (candidate, target) in adding {
        add(context, candidate, target)?;
    }
    Ok(done)
}

/// Asks about one server after the other and adds those that are wanted, each at once. Gives how
/// many there were.
fn ask_each(context: &Context, adding: &[(&Candidate<'_>, Target)]) -> Result<usize, Report> {
    let mut added = 0;
    let mut all = false;
    if adding.len() > 1 {
        context.say("y adds a server, n leaves it out, a adds it and all that follow, q ends");
    }
    for (place, (candidate, target)) in adding.iter().enumerate() {
        if !all {
            let name = name(&candidate.server.name);
            let question = match target {
                Target::Vouched(scope) => format!("Add `{name}` to the {scope} scope?"),
                Target::Proposed => {
                    format!("Put `{name}` into the project's `.mcp.json`, to be approved?")
                }
            };
            match answer(context, &question, place + 1 < adding.len())? {
                Answer::Yes => {}
                Answer::No => continue,
                Answer::All => all = true,
                Answer::Enough => break,
            }
        }
        add(context, candidate, *target)?;
        added += 1;
    }
    Ok(added)
}

enum Answer {
    Yes,
    No,
    All,
    Enough,
}

fn answer(context: &Context, question: &str, more_follow: bool) -> std::io::Result<Answer> {
    let keys = if more_follow { "[y/N/a/q]" } else { "[y/N]" };
    loop {
        let Some(word) = context.output.answer(&format!("{question} {keys} "))? else {
            context.output.leave_line();
            return Ok(Answer::Enough);
        };
        return Ok(match word.to_ascii_lowercase().as_str() {
            "y" | "yes" => Answer::Yes,
            "" | "n" | "no" => Answer::No,
            "a" | "all" if more_follow => Answer::All,
            "q" | "quit" => Answer::Enough,
            _ => continue,
        });
    }
}

fn find(context: &Context, args: &ImportArgs) -> Result<Vec<ClientFile>, Report> {
    let places = ClientLocations::from(context.environment());
    if let Some(path) = &args.from {
        let [client] = args.clients.as_slice() else {
            return Err(
                Report::usage("`--from` reads one file in one client's format").hint(format!(
                    "name one client: `toolway import {} --from {}`",
                    args.clients
                        .first()
                        .map_or("claude-desktop", ImportClient::id),
                    path.display()
                )),
            );
        };
        return Ok(vec![import::read_file(&places, *client, path)]);
    }
    let clients = if args.clients.is_empty() {
        ImportClient::ALL.to_vec()
    } else {
        args.clients.clone()
    };
    let mut found: Vec<ClientFile> = clients
        .iter()
        .flat_map(|client| import::discover(&places, *client))
        .collect();
    // Foreign files come last, and take no name away from the user's own.
    found.sort_by_key(|found| found.writer != FileWriter::Person);
    if found.is_empty() {
        context.say("no file of these clients was found");
        context.hint("name one yourself: `toolway import <client> --from <file>`");
    }
    Ok(found)
}

/// A server that is there already.
struct Known<'a> {
    name: &'a str,
    signature: Option<String>,
    definition: &'a Map<String, Value>,
    place: String,
}

/// What becomes of a file's servers where the user sees each and is asked about all.
pub(super) fn offered<'a>(plan: &Plan, found: &'a ClientFile) -> Vec<Candidate<'a>> {
    let args = ImportArgs {
        clients: vec![found.client],
        from: None,
        scope: None,
        dry_run: false,
        yes: false,
        json: false,
    };
    choose(plan, std::slice::from_ref(found), &args, Eyes::Open)
}

/// Decides each server's fate: what is there already, by name or by signature, is skipped; what is
/// foreign is left out, unless the user sees it or named the file (SEC-01). What is not approved is
/// not there: a repository must not keep the user's own servers out.
fn choose<'a>(
    plan: &Plan,
    found: &'a [ClientFile],
    args: &ImportArgs,
    eyes: Eyes,
) -> Vec<Candidate<'a>> {
    let mut taken: Vec<Known<'_>> = Vec::new();
    let mut candidates = Vec::new();
    for file in found {
        let target = Target::of(args, file, eyes);
        let scope = target.map_or(Scope::User, Target::scope);
        let counts = |server: &&PlannedServer| {
            server.scope == scope || matches!(server.verdict, ServerVerdict::Admitted(_))
        };
        let there = plan.servers.iter().filter(counts).map(|server| Known {
            name: server.name.as_str(),
            signature: signature(&server.definition),
            definition: &server.definition,
            place: server.origin.to_string(),
        });
        let there: Vec<Known<'_>> = there.collect();
        for server in &file.servers {
            let own = signature(&server.definition);
            let mut known = there.iter().chain(&taken);
            let same = known.find(|known| {
                known.name == server.name || (own.is_some() && known.signature == own)
            });
            let fate = match (same, ServerName::new(server.name.as_str())) {
                (_, Err(error)) => Fate::Skip(error.to_string()),
                (_, Ok(_)) if starts_toolway(&server.definition) => {
                    Fate::Skip("it is Toolway itself".to_owned())
                }
                (Some(known), Ok(_)) => there_already(known, server, own.as_ref()),
                (None, Ok(_)) => match target {
                    Ok(target) => Fate::Add(target),
                    Err(stranger) => Fate::LeaveOut(stranger),
                },
            };
            if matches!(fate, Fate::Add(_)) {
                taken.push(Known {
                    name: &server.name,
                    signature: own,
                    definition: &server.definition,
                    place: format!("this import ({})", file.client.title()),
                });
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

/// A server whose name or signature another one has.
fn there_already(known: &Known<'_>, server: &ImportedServer, own: Option<&String>) -> Fate {
    let Known { name, place, .. } = known;
    let is_same = own.is_some() && known.signature.as_ref() == own;
    let words = if *name == server.name && is_same {
        format!("already there: {place}")
    } else if *name == server.name {
        return Fate::Skip(format!("the name is taken by {place}"));
    } else {
        format!("the same as `{name}` of {place}")
    };
    let without_switch = |definition: &Map<String, Value>| {
        let mut definition = definition.clone();
        definition.shift_remove("disabled");
        definition
    };
    if without_switch(known.definition) == server.definition {
        Fate::Same(words)
    } else {
        Fate::Skip(words)
    }
}

pub(super) fn add(
    context: &Context,
    candidate: &Candidate<'_>,
    target: Target,
) -> Result<(), Report> {
    let name = ServerName::new(candidate.server.name.as_str())
        .map_err(|error| Report::configuration(error.to_string()))?;
    let mut definition = candidate.server.definition.clone();
    if !candidate.server.enabled {
        definition.insert("disabled".to_owned(), json!(true));
    }
    let scope = target.scope();
    let environment = context.environment();
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
        context.hint(format!(
            "it does not start before you approve it: `toolway approve {}`",
            as_word(name.as_str())
        ));
    }
    Ok(())
}
