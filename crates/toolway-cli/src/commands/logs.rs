//! `toolway logs`: what a server logged, and what was said to it.
//!
//! Owns the choice of lines and their printing. The files, and that no secret stands in them, are
//! the library's (`toolway::journal`).

use std::path::Path;

use clap::Args;
use toolway::journal::{self, JournalLine, JournalLineKind, JournalName};
use toolway_config::ServerVerdict;
use toolway_rows::LogRow;
use toolway_types::name::as_word;
use toolway_types::{Scope, ServerName, ServerShare, nearest};

use super::follow::follow;
use crate::context::{Context, unknown_server};
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// Show what a server logged and what was said to it
///
/// Every connection of this machine's Toolway processes writes down what the server prints to
/// stderr, each message in both directions (the first 2 KiB of it), and what became of the
/// connection. Secrets are taken out before anything is written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway logs github
  toolway logs github -f --stderr
  toolway logs github -n 20 --protocol --json")]
pub(crate) struct LogsArgs {
    /// Its name; also of a server that is not configured any more
    server: String,

    /// Stay, and show what comes until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// How many of the last lines to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200)]
    lines: usize,

    /// Only what the server printed to stderr
    #[arg(long, conflicts_with = "protocol")]
    stderr: bool,

    /// Only messages
    #[arg(long)]
    protocol: bool,

    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

impl LogsArgs {
    fn wants(&self, kind: JournalLineKind) -> bool {
        match kind {
            _ if self.stderr => kind == JournalLineKind::Stderr,
            _ if self.protocol => kind.is_protocol(),
            _ => true,
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &LogsArgs) -> Outcome {
    let directory = context.setup.files().logs();
    let server =
        ServerName::new(args.server.as_str()).map_err(|error| Report::usage(error.to_string()))?;
    let name = journal_of(context, &server);
    let read = journal::read_last(&directory, &name, args.lines, |kind| args.wants(kind));
    let found = read.map_err(|error| {
        Report::new(
            Exit::Unexpected,
            format!("the log of server `{server}` cannot be read: {error}"),
        )
        .hint(format!("look at `{}`", directory.display()))
    })?;
    let Some((lines, follower)) = found else {
        return Err(no_log(context, &directory, &server));
    };
    for line in &lines {
        put(context, line, args)?;
    }
    if !args.follow {
        if lines.is_empty() {
            context.say("no such lines were written down");
        }
        return Ok(Exit::Success);
    }
    follow(context, follower, |line| {
        if args.wants(line.kind) {
            put(context, line, args)?;
        }
        Ok(())
    })
}

/// The journal of what this name means here: a project's server has its own.
fn journal_of(context: &Context, server: &ServerName) -> JournalName {
    let planned = context.plan().winner(server.as_str());
    let project = || ServerShare::Project(context.environment().project_root().to_owned());
    let share = planned.map(|planned| match &planned.verdict {
        ServerVerdict::Admitted(spec) => spec.share.clone(),
        _ if matches!(planned.scope, Scope::Project | Scope::Local) => project(),
        _ => ServerShare::User,
    });
    JournalName::of(server, &share.unwrap_or_default())
}

fn put(context: &Context, line: &JournalLine, args: &LogsArgs) -> Result<(), Report> {
    if args.json {
        context.output.json_line(&LogRow::from(line))?;
    } else {
        context.output.paragraphs(&format!("{line}\n"), None)?;
    }
    Ok(())
}

/// Why there is nothing to show, and how to get something.
fn no_log(context: &Context, directory: &Path, server: &ServerName) -> Report {
    let plan = context.plan();
    let word = as_word(server.as_str());
    if let Some(known) = plan.winner(server.as_str()) {
        let hint = if matches!(known.verdict, ServerVerdict::Admitted(_)) {
            format!("connect to it once, e.g. with `toolway tools {word}`")
        } else {
            format!("it may not connect; see why with `toolway explain {word}`")
        };
        return Report::configuration(format!(
            "server `{server}` has no log yet: nothing was connected to it"
        ))
        .hint(hint);
    }
    // A server that is gone from the configuration may still have a log.
    let logged = journal::logged_servers(directory);
    let near = nearest(server.as_str(), logged.iter().map(ServerName::as_str));
    match near {
        Some(near) if plan.suggest(server.as_str()).is_none() => {
            Report::configuration(format!("there is no log of a server named `{server}`"))
                .hint(format!("did you mean `{near}`?"))
        }
        _ => unknown_server(plan, server.as_str()),
    }
}
