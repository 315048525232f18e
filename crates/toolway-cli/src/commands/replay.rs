//! `toolway replay`: a server on stdio that says again what was recorded.
//!
//! Owns its streams, and which server of a recording it is. What is answered is `toolway_recording`'s.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;

use clap::Args;
use toolway::toolway_recording::{Matching, ReadError, Recording, Replay, ReplayStep};
use toolway_types::limits::message::STDIO_LINE;
use toolway_types::name::{as_word, shell_word};
use toolway_types::nearest;

use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// Be a server on stdio that answers from a recording
///
/// A request gets the answer that was recorded for the same method and arguments, in whatever order
/// requests come; made again, it gets the next one that was recorded, and the last one from then on.
/// What was not recorded gets an error that names the nearest that was.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway record t.jsonl -- tools github
  toolway replay t.jsonl
  toolway replay t.jsonl --list
  toolway replay t.jsonl --server github --exact
  toolway tools -- toolway replay t.jsonl

As an entry: {\"command\": \"toolway\", \"args\": [\"replay\", \"t.jsonl\"]}")]
pub(crate) struct ReplayArgs {
    /// The recording
    file: PathBuf,

    /// Which server of it; needed where it holds several
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Take requests only in the order in which they were recorded
    #[arg(long, conflicts_with = "match_arguments")]
    exact: bool,

    /// Find answers by their arguments, as without this flag
    #[arg(long = "match")]
    match_arguments: bool,

    /// Show which servers it holds, and answer nothing
    #[arg(long)]
    list: bool,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ReplayArgs) -> Outcome {
    let path = context.path(&args.file);
    let recording = Recording::open(&path).map_err(|error| {
        let hint = match &error {
            ReadError::Newer(..) => "use a newer Toolway, or record it again",
            _ => "make one with `toolway record <file> -- <command>`",
        };
        Report::configuration(error.to_string()).hint(hint)
    })?;
    if recording.damaged > 0 {
        let lines = if recording.damaged == 1 {
            "line is"
        } else {
            "lines are"
        };
        context.warn(format!(
            "{} {lines} damaged and passed over in `{}`",
            recording.damaged,
            path.display()
        ));
    }
    if recording.left_out > 0 {
        context.warn(format!(
            "{} messages were left out of `{}` when it was recorded",
            recording.left_out,
            path.display()
        ));
    }
    if args.list {
        let rows = recording
            .servers()
            .into_iter()
            .map(|it| vec![it.server, it.requests.to_string(), it.calls.to_string()]);
        context
            .output
            .table(&["SERVER", "REQUESTS", "CALLS"], rows)?;
        return Ok(Exit::Success);
    }
    let server = chosen(args, &recording)?;
    let matching = if args.exact {
        Matching::Order
    } else {
        Matching::Arguments
    };
    let Some(mut replay) = Replay::new(recording, &server, matching) else {
        return Err(Report::configuration(format!(
            "nothing of `{server}` was recorded"
        )));
    };
    if context.output.stdin_is_terminal() {
        let file = shell_word(&args.file.display().to_string()).into_owned();
        context.say(format!(
            "this is a server on stdio, for clients; try `toolway tools -- toolway replay {file}`"
        ));
    }
    let mut input = BufReader::new(context.output.streams().reader());
    loop {
        let mut line = Vec::new();
        let most = u64::try_from(STDIO_LINE).unwrap_or(u64::MAX);
        let count = input.by_ref().take(most).read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(Exit::Success);
        }
        for step in replay.hear(&String::from_utf8_lossy(&line)) {
            match step {
                ReplayStep::Send(line) => {
                    let line = format!("{line}\n");
                    context.output.streams().write_output(line.as_bytes())?;
                }
                ReplayStep::Tell(what) => context.warn(toolway_types::text::spelled_out(&what)),
            }
        }
    }
}

/// The server that is replayed.
fn chosen(args: &ReplayArgs, recording: &Recording) -> Result<String, Report> {
    let names: Vec<String> = recording
        .servers()
        .into_iter()
        .map(|it| it.server)
        .collect();
    let file = shell_word(&args.file.display().to_string()).into_owned();
    let hint = |name: &str| {
        format!(
            "name one: `toolway replay {file} --server {}`",
            as_word(name)
        )
    };
    match (&args.server, names.as_slice()) {
        (_, []) => Err(Report::configuration(format!(
            "`{}` holds no messages",
            args.file.display()
        ))
        .hint("make one with `toolway record <file> -- <command>`")),
        (Some(name), names) if names.contains(name) => Ok(name.clone()),
        (Some(name), names) => {
            let near = nearest(name, names.iter().map(String::as_str));
            let near = near.unwrap_or(&names[0]).to_owned();
            let message = format!(
                "nothing of server `{name}` was recorded in `{}`",
                args.file.display()
            );
            Err(Report::configuration(message).hint(format!("did you mean `{near}`?")))
        }
        (None, [only]) => Ok(only.clone()),
        (None, [first, ..]) => {
            let all: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let message = format!(
                "`{}` holds several servers: {}",
                args.file.display(),
                all.join(", ")
            );
            Err(Report::usage(message).hint(hint(first)))
        }
    }
}
