//! `toolway skills` and `toolway skill`: instructions that servers publish beside their tools.
//!
//! Owns the rows and the printing. That nothing is shown which is not what was listed is the
//! library's (`toolway::skills`).

use clap::Args;
use toolway::rows::skill_row;
use toolway::view::SkillFiles;
use toolway::{HostSnapshot, ListedSkill, Offering, SkillError};
use toolway_rows::{SkillListing, SkillRow, SkillTextRow};
use toolway_types::name::as_word;
use toolway_types::{ConnectionState, ServerName, nearest};

use super::offers::Servers;
use crate::connect::{self, CommandHost, TypedCommand};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::first_line;
use crate::report::{Outcome, Report};

/// List the skills of all servers, or of one
///
/// A skill is shown only if its files are what its server lists. `--verify` reads each one to find
/// out; without it, only what the list itself gives away is told.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway skills
  toolway skills docs --verify
  toolway skills --json")]
pub(crate) struct SkillsArgs {
    /// A server's name, or a URL
    server: Option<String>,

    /// Read each skill, and say which are not what was listed
    #[arg(long)]
    verify: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    command: TypedCommand,
}

/// Show a skill's instructions
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway skill docs writing-guides
  toolway skill docs writing-guides --file notes.md
  toolway skill writing-guides -- npx some-server")]
pub(crate) struct SkillArgs {
    /// A server's name or a URL, and the skill's name or URI
    #[arg(required = true, num_args = 1..=2, value_names = ["SERVER", "NAME"])]
    words: Vec<String>,

    /// Another file of the skill, by its path
    #[arg(long, value_name = "PATH")]
    file: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    command: TypedCommand,
}

/// The server as typed, and the skill.
fn target(args: &SkillArgs) -> Result<(Option<&str>, &str), Report> {
    match (&args.words[..], args.command.is_empty()) {
        ([server, name], true) => Ok((Some(server), name)),
        ([name], false) => Ok((None, name)),
        ([server, ..], true) => Err(Report::usage(format!("which skill of `{server}`?")).hint(
            format!("see its skills with `toolway skills {}`", as_word(server)),
        )),
        (_, false) => Err(Report::usage(
            "the command behind `--` is the server; no other can be named",
        )
        .hint("write `toolway skill <name> -- <command>`")),
        ([], true) => {
            Err(Report::usage("which skill?").hint("see all skills with `toolway skills`"))
        }
    }
}

/// Runs `toolway skills`.
pub(crate) fn run(context: &Context, args: &SkillsArgs) -> Outcome {
    let servers = Servers::find(context, args.server.as_deref(), &args.command)?;
    let rows = connect::with_host(
        context,
        servers.plan.clone(),
        servers.wanted(),
        async |host| {
            let snapshot = servers.settle(context, host, Offering::ListSkills).await?;
            list(context, host, &snapshot, servers.only.as_ref(), args.verify).await
        },
    )?;
    if args.json {
        let skills = rows.into_iter().map(|(row, _)| row).collect();
        return context.json(&SkillListing { skills });
    }
    if rows.is_empty() {
        context.say("no skills");
        return Ok(Exit::Success);
    }
    let cells = rows.iter().map(|(row, is_plain)| {
        let text = first_line(&row.description);
        let text = if *is_plain {
            format!("(no digest) {text}").trim_end().to_owned()
        } else {
            text
        };
        vec![row.name.clone(), row.server.to_string(), text]
    });
    let head = ["NAME", "SERVER", "DESCRIPTION"];
    context.output.table(&head, cells)?;
    for (row, _) in &rows {
        if let Some(problem) = &row.problem {
            context.warn(problem);
        }
    }
    Ok(Exit::Success)
}

async fn list(
    context: &Context,
    host: &CommandHost<'_>,
    snapshot: &HostSnapshot,
    only: Option<&ServerName>,
    verify: bool,
) -> Result<Vec<(SkillRow, bool)>, Report> {
    let mut rows = Vec::new();
    let connected = snapshot
        .servers
        .iter()
        .filter(|server| only.is_none_or(|only| *only == server.name))
        .filter(|server| matches!(server.state, ConnectionState::Connected(_)));
    for server in connected {
        let listed = match host.skills(&server.name).await {
            Ok(listed) => listed,
            Err(SkillError::NotOffered { .. }) => continue,
            Err(error) if only.is_some() => return Err(failed(error)),
            // One server's failure does not hide the others' skills.
            Err(error) => {
                context.warn(&error);
                continue;
            }
        };
        for warning in &listed.warnings {
            context.warn(format!("server `{}`: {warning}", server.name));
        }
        for skill in &listed.skills {
            rows.push((row(host, skill, verify).await, skill.is_plain()));
        }
    }
    Ok(rows)
}

async fn row(host: &CommandHost<'_>, skill: &ListedSkill, verify: bool) -> SkillRow {
    let is_listed = matches!(skill.files(), SkillFiles::Listed(_));
    // Without digests nothing can be verified, and nothing is read to find that out.
    let loaded = if skill.is_plain() {
        None
    } else if verify || !is_listed {
        Some(host.load_skill(skill).await.map(drop))
    } else {
        None
    };
    skill_row(skill, loaded)
}

/// Runs `toolway skill`.
pub(crate) fn show(context: &Context, args: &SkillArgs) -> Outcome {
    let (server, name) = target(args)?;
    let servers = Servers::find(context, server, &args.command)?;
    connect::with_host(
        context,
        servers.plan.clone(),
        servers.wanted(),
        async |host| {
            servers.settle(context, host, Offering::ListSkills).await?;
            match &servers.only {
                Some(server) => print(context, host, server, name, args).await,
                None => Ok(Exit::Success),
            }
        },
    )
}

async fn print(
    context: &Context,
    host: &CommandHost<'_>,
    server: &ServerName,
    name: &str,
    args: &SkillArgs,
) -> Outcome {
    let loaded = match host.read_skill(server, name).await {
        Ok(loaded) => loaded,
        Err(error @ SkillError::Unknown { .. }) => {
            let listed = host.skills(server).await.map(|list| list.skills);
            let listed = listed.unwrap_or_default();
            let names = listed.iter().map(|skill| skill.name().as_received());
            let near = nearest(name, names).map(|near| format!("did you mean `{near}`?"));
            return Err(failed(error).better_hint(near));
        }
        Err(error) => return Err(failed(error)),
    };
    let text = match &args.file {
        None => loaded.text().as_received().to_owned(),
        Some(path) => {
            let file = host.read_skill_file(&loaded, path).await.map_err(failed)?;
            String::from_utf8(file.bytes).map_err(|_| {
                Report::new(Exit::ToolError, format!("`{path}` is not text")).hint(format!(
                    "save it with `toolway read {} {} --output <file>`",
                    toolway_types::name::shell_word(&file.uri),
                    as_word(server.as_str())
                ))
            })?
        }
    };
    if args.json {
        let listed = loaded.listed();
        return context.json(&SkillTextRow {
            name: listed.name().as_received().to_owned(),
            server: server.clone(),
            uri: listed.uri().to_owned(),
            text,
        });
    }
    context.output.text(&text)?;
    Ok(Exit::Success)
}

fn failed(error: SkillError) -> Report {
    let message = error.to_string();
    let server = error.server().map(ToString::to_string).unwrap_or_default();
    let list = format!("see its skills with `toolway skills {}`", as_word(&server));
    match error {
        SkillError::Call(error) => Report::from(error),
        SkillError::NotOffered { .. } => {
            Report::usage(message).hint("see all skills with `toolway skills`")
        }
        SkillError::Unknown { .. } | SkillError::Ambiguous { .. } => {
            Report::usage(message).hint(list)
        }
        SkillError::NoSuchFile { .. } => Report::usage(message)
            .hint("give its path from the skill's folder, as in `--file notes.md`"),
        SkillError::Unverifiable { .. }
        | SkillError::TooManyFiles { .. }
        | SkillError::TooLarge { .. }
        | SkillError::Unreadable { .. }
        | SkillError::Unverified { .. } => Report::refused(message).hint(list),
    }
}
