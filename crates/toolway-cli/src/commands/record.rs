//! `toolway record`: keep what is said to servers and by them, for `toolway replay`.
//!
//! Owns what the words behind `--` mean: a command of Toolway, whose conversations with servers are
//! kept, or a server's own command line, which is passed on (`passed.rs`). What is kept of a message,
//! and that it holds no secret, is the library's.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use toolway::Recorder;
use toolway::journal::timestamp;
use toolway::toolway_recording::RecordingFile;
use toolway_types::Secret;
use toolway_types::name::{as_word, shell_word};
use toolway_types::secret::parts::names_a_secret;

use crate::context::Context;
use crate::report::{Outcome, Report};
use crate::typed::is_url;

mod passed;

/// Keep what is said to servers and by them, to replay it later
///
/// Behind `--` stands a command of Toolway, such as `call` or `serve`, or the command that starts a
/// server. The first runs as ever, and what it says to servers is kept. The second is for a client's
/// configuration: Toolway starts the server in its place, passes everything on, and keeps it. A
/// program that is called like a command of Toolway is written with its path, `./serve`.
///
/// Secrets are left out. A file that is there already is added to, if it is a recording.
#[derive(Debug, Args)]
#[command(
    override_usage = "toolway record [OPTIONS] <FILE> -- <COMMAND>...",
    after_help = "Examples:
  toolway record t.jsonl -- call everything echo message=hi
  toolway record t.jsonl -- serve
  toolway record t.jsonl -- npx -y @modelcontextprotocol/server-everything
  toolway replay t.jsonl"
)]
pub(crate) struct RecordArgs {
    /// The file
    file: PathBuf,

    /// What the server is called in the file, where its own command is recorded
    #[arg(long, default_value = "server")]
    name: String,

    /// A command of Toolway, or one that starts a server
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs words as if they were typed, with a recorder.
pub(crate) type RunRecorded = fn(&Context, Vec<OsString>, Recorder) -> Outcome;

/// Runs the command. `commands` are those of Toolway.
pub(crate) fn run(
    context: &Context,
    args: &RecordArgs,
    commands: &clap::Command,
    run: RunRecorded,
) -> Outcome {
    let words = args.command.as_slice();
    // `-- toolway call …` is what is typed without this command.
    let words = match words {
        [first, rest @ ..] if first == "toolway" && !rest.is_empty() => rest,
        words => words,
    };
    let first = words
        .first()
        .and_then(|word| word.to_str())
        .unwrap_or_default();
    let is_command = commands.find_subcommand(first).is_some() || first.starts_with('-');
    if matches!(first, "record" | "replay" | "daemon") {
        return Err(Report::usage(format!("`{first}` cannot be recorded"))
            .hint("record a command that talks to servers, such as `call` or `serve`"));
    }
    if !is_command {
        require_program(context, args, first, words.len())?;
    }
    let path = context.path(&args.file);
    let time = timestamp(SystemTime::now());
    let file = RecordingFile::open(&path, env!("CARGO_PKG_VERSION"), &time).map_err(|error| {
        Report::configuration(error.to_string())
            .hint("name another file: `toolway record <file> -- …`")
    })?;
    let recorder = Recorder::new(file, own_secrets(context));
    let outcome = if is_command {
        let mut typed = vec![OsString::from("toolway")];
        typed.extend(words.iter().cloned());
        run(context, typed, recorder.clone())
    } else {
        passed::run(context, &args.name, words, &recorder)
    };
    let file = recorder.file();
    if let Some(why) = file.ended() {
        context.warn(format!("the recording is not whole: {why}"));
    } else if file.messages() == 0 && outcome.is_ok() {
        context.warn("nothing was recorded: no server was talked to");
    } else if is_command {
        let shown = args.file.display().to_string();
        context.say(format!(
            "recorded {} messages: replay them with `toolway replay {}`",
            file.messages(),
            as_word(&shown)
        ));
    }
    outcome
}

/// Values that no recording may hold, whoever says them.
fn own_secrets(context: &Context) -> Vec<Secret> {
    let variables = context.environment().variables();
    let secrets = variables
        .into_iter()
        .filter(|(name, _)| names_a_secret(name));
    secrets.map(|(_, value)| Secret::new(value)).collect()
}

/// Says what was probably meant by a word that starts nothing.
fn require_program(
    context: &Context,
    args: &RecordArgs,
    first: &str,
    count: usize,
) -> Result<(), Report> {
    let file = shell_word(&args.file.display().to_string()).into_owned();
    if is_url(first) {
        return Err(
            Report::usage(format!("`{first}` is an address, not a command")).hint(format!(
                "record a command: `toolway record {file} -- tools {first}`"
            )),
        );
    }
    if count == 1 && context.plan().winner(first).is_some() {
        let word = as_word(first);
        return Err(
            Report::usage(format!("`{first}` is a configured server, not a command")).hint(
                format!("record a command: `toolway record {file} -- tools {word}`"),
            ),
        );
    }
    Ok(())
}
