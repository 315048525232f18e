//! `toolway read`: what a resource holds, once or as often as it changes.
//!
//! Owns reading what was typed and printing what was read; whose resource it is stands in
//! `read/target.rs`, how `--output` is written in `read/file.rs`.

pub(super) mod file;
mod target;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use toolway::view::ResourceBody;
use toolway::{
    CallError, CallFault, CallOptions, Consent, Offering, ResourceOutcome, SubscribeError,
};
use toolway_rows::ServerAnswer;
use toolway_types::name::as_word;
use toolway_types::{ServerName, Untrusted};

use self::target::Target;
use super::offers::Servers;
use crate::connect::{self, CommandHost, TypedCommand};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};
use crate::signals::stdout_closed;

/// Read a resource
///
/// Text goes to stdout, anything else to a private file whose path is printed. A URI with
/// variables, as `toolway resources --templates` lists them, is filled in from `key=value`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway read file:///notes/today.md
  toolway read docs://guide/intro docs
  toolway read 'docs://page/{name}' name=intro
  toolway read img://logo --output logo.png
  toolway read log://today --follow")]
pub(crate) struct ReadArgs {
    /// Its URI, or a template
    uri: String,

    /// The server, where several have it or none lists it, and values for a template
    #[arg(value_names = ["SERVER", "KEY=VALUE"])]
    words: Vec<String>,

    /// Write it to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Let `--output` replace a file
    #[arg(long, requires = "output")]
    force: bool,

    /// Print the whole MCP result as JSON
    #[arg(long, conflicts_with = "output")]
    json: bool,

    /// Accept that the server's templates changed since an address of it was last read
    #[arg(long)]
    accept_change: bool,

    /// Stay, and print it again whenever it changes, until Ctrl-C
    #[arg(short, long, conflicts_with = "output")]
    follow: bool,

    #[command(flatten)]
    command: TypedCommand,
}

impl ReadArgs {
    /// Whether it goes on until it is ended.
    pub(crate) fn follows(&self) -> bool {
        self.follow
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ReadArgs) -> Outcome {
    let target = Target::parse(context, &args.uri, &args.words)?;
    let servers = Servers::find(context, target.server, &args.command)?;
    if let (Some(path), false) = (&args.output, args.force) {
        // Said before anything is started; the file is not written over in any case.
        if context.path(path).symlink_metadata().is_ok() {
            return Err(exists(path));
        }
    }
    let work = async |host: &CommandHost<'_>| {
        let wanted = Offering::ReadResource;
        let snapshot = servers.settle(context, host, wanted).await?;
        let server = target.choose(&snapshot, servers.only.as_ref())?;
        if args.follow {
            follow(context, host, &target, &server, args).await?;
        } else {
            let read = read(host, &target, &server, args).await?;
            show(context, host, &target, &server, &read, args).await?;
        }
        Ok(Exit::Success)
    };
    let (plan, wanted) = (servers.plan.clone(), servers.wanted());
    if args.follow {
        // To be told to end is how following succeeds.
        connect::with_host_until(context, plan, wanted, work, |_| Ok(Exit::Success))
    } else {
        connect::with_user(context, plan, wanted, work)
    }
}

async fn read(
    host: &CommandHost<'_>,
    target: &Target<'_>,
    server: &ServerName,
    args: &ReadArgs,
) -> Result<ResourceOutcome, Report> {
    let options = CallOptions::new(if args.accept_change {
        Consent::Reviewed
    } else {
        Consent::Typed
    });
    host.read_resource_as(server, &target.uri, &options)
        .await
        .map_err(|error| failed(host, target, server, error))
}

/// A request for it that came to nothing. Where the server does not know it, what is near it is
/// named.
fn failed(
    host: &CommandHost<'_>,
    target: &Target<'_>,
    server: &ServerName,
    error: CallError,
) -> Report {
    let unknown = matches!(error, CallError::Failed(_, CallFault::Protocol { .. }));
    let report = Report::from(error);
    if unknown {
        target.near(&host.snapshot(), report, Some(server))
    } else {
        report
    }
}

/// Prints it now, and again with every change.
async fn follow(
    context: &Context,
    host: &CommandHost<'_>,
    target: &Target<'_>,
    server: &ServerName,
    args: &ReadArgs,
) -> Result<(), Report> {
    let unfollowed = |error| match error {
        SubscribeError::Call(error) => failed(host, target, server, error),
        error => unfollowed(server, &error),
    };
    let mut subscription = host
        .subscribe_resource(server, &target.uri)
        .await
        .map_err(unfollowed)?;
    let mut closed = std::pin::pin!(stdout_closed(context.output.streams()));
    loop {
        let read = read(host, target, server, args).await?;
        show(context, host, target, server, &read, args).await?;
        tokio::select! {
            updated = subscription.updated() => updated.map_err(unfollowed)?,
            () = &mut closed => return Ok(()),
        }
    }
}

fn unfollowed(server: &ServerName, error: &SubscribeError) -> Report {
    let message = error.to_string();
    match error {
        SubscribeError::NotOffered { .. } => {
            Report::new(Exit::ToolError, message).hint("leave out `--follow`")
        }
        SubscribeError::Call(_) | SubscribeError::Ended => Report::new(Exit::Connection, message)
            .hint(format!(
                "see what happened with `toolway logs {}`",
                as_word(server.as_str())
            )),
    }
}

async fn show(
    context: &Context,
    host: &CommandHost<'_>,
    target: &Target<'_>,
    server: &ServerName,
    read: &ResourceOutcome,
    args: &ReadArgs,
) -> Result<(), Report> {
    for warning in &read.warnings {
        context.warn(warning);
    }
    if args.json {
        context
            .output
            .json(&ServerAnswer::from(read.raw.as_raw()))?;
        return Ok(());
    }
    if let Some(path) = &args.output {
        return write(context, read, path, args.force);
    }
    let parts = &read.result.contents;
    if parts.is_empty() && read.result.faults.is_empty() {
        context.say("the resource is empty");
    }
    let (saved, warnings) = host.save_resource(read).await;
    let is_saved = |index: usize| saved.iter().find(|file| file.block == index);
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        if parts.len() > 1 {
            let uri = Untrusted::new(&part.uri);
            let _ = writeln!(text, "<{}>", uri.line());
        }
        match &part.body {
            ResourceBody::Text(words) => {
                text.push_str(words);
                // One text alone is printed as it is, to the byte. Versions and parts are kept
                // apart.
                let is_alone = parts.len() == 1 && !args.follow;
                if !is_alone && !words.ends_with('\n') {
                    text.push('\n');
                }
            }
            ResourceBody::Blob(_) => match is_saved(index) {
                Some(file) => {
                    let path = file.path.display();
                    let _ = writeln!(text, "[{}, {} bytes: {path}]", file.mime_type, file.bytes);
                }
                None => text.push_str("[binary content that could not be saved]\n"),
            },
        }
    }
    if context.output.stdout_is_terminal() && !text.ends_with('\n') {
        text.push('\n');
    }
    context.output.text(&text)?;
    let is_blob = |index: &usize| matches!(parts[*index].body, ResourceBody::Blob(_));
    let mut lost = (0..parts.len())
        .filter(is_blob)
        .filter(|index| is_saved(*index).is_none())
        .peekable();
    if lost.peek().is_none() && read.result.faults.is_empty() {
        for warning in warnings {
            context.warn(&warning);
        }
        return Ok(());
    }
    let is_ours = lost.any(|index| read.bytes(index).is_ok());
    Err(undelivered(target, server, read, warnings, is_ours))
}

/// What was read but is not here. It is ours where the bytes are fine and only saving them failed,
/// otherwise the server's.
fn undelivered(
    target: &Target<'_>,
    server: &ServerName,
    read: &ResourceOutcome,
    warnings: Vec<String>,
    is_ours: bool,
) -> Report {
    let uri = Untrusted::new(&target.uri);
    let message = format!(
        "`{}` of server `{server}` was not delivered whole",
        uri.line()
    );
    let faults = read.result.faults.iter().map(|fault| {
        let reason = Untrusted::new(&fault.reason);
        format!("part {} cannot be read: {}", fault.index, reason.line())
    });
    let (exit, hint) = match (is_ours, read.result.contents.len()) {
        (true, 1) => (
            Exit::Unexpected,
            "mend what is named above, or choose a file with `--output`",
        ),
        (true, _) => (
            Exit::Unexpected,
            "mend what is named above, or take all of it with `--json`",
        ),
        (false, _) => (Exit::ToolError, "see what came with `--json`"),
    };
    Report::new(exit, message)
        .details(faults.chain(warnings))
        .hint(hint)
}

fn write(
    context: &Context,
    read: &ResourceOutcome,
    path: &Path,
    force: bool,
) -> Result<(), Report> {
    let (parts, faults) = (&read.result.contents, &read.result.faults);
    let unreadable = |why: &str| {
        Report::new(
            Exit::ToolError,
            format!("the resource cannot be read: {why}"),
        )
        .hint("see what came with `--json`")
    };
    let bytes = match (parts.len(), &faults[..]) {
        (1, []) => read.bytes(0).map_err(|why| unreadable(&why))?,
        (0, [fault]) => {
            let reason = Untrusted::new(&fault.reason);
            return Err(unreadable(&reason.line()));
        }
        (parts, faults) => {
            let count = parts + faults.len();
            return Err(Report::new(
                Exit::ToolError,
                format!("the resource has {count} parts, and one file holds one"),
            )
            .hint("leave out `--output`: each part is printed, or saved to a file of its own"));
        }
    };
    let umask = context.environment().umask();
    // From the directory where it was typed.
    file::write(&context.path(path), &bytes, force, umask).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => Report::new(
            Exit::Unexpected,
            format!("cannot write `{}`: {error}", path.display()),
        )
        .hint("choose another file with `--output`"),
    })?;
    context.say(format!("{} bytes: {}", bytes.len(), path.display()));
    Ok(())
}

fn exists(path: &Path) -> Report {
    Report::usage(format!(
        "`{}` exists already; nothing was written",
        path.display()
    ))
    .hint("replace it with `--force`")
}
