//! `toolway daemon`: the process that keeps servers for all commands.
//!
//! Owns the flags and what is shown. What a daemon does is `crate::daemon`'s.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolway::launcher::Launcher;
use toolway_gateway::daemon_socket::{
    AttachError, DaemonClient, DaemonSocket, DaemonSocketError, method,
};
use toolway_rows::DaemonStatus;
use toolway_types::limits;
use toolway_types::text::{clean_line, counted};

use crate::context::Context;
use crate::daemon::runs::{Daemon, ReadWords};
use crate::daemon::start;
use crate::exit::Exit;
use crate::report::{Outcome, Report};
use crate::{age, connect};

/// How long the daemon may take to say what it does.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// How many daemons in a row may end just when they are asked.
const DAEMONS: u32 = 5;

/// How long it may take to end: what runs has half a minute, and servers a little.
const ENDS_WITHIN: Duration = Duration::from_secs(90);

/// How long a daemon that has the lock may take to listen, and how often is looked.
const LISTENS_WITHIN: Duration = Duration::from_secs(5);
const LOOKS_EVERY: Duration = Duration::from_millis(2);

/// How many lines of the log are shown.
const LINES: usize = 200;

/// Keep servers running between commands
///
/// The daemon is one process of yours that keeps servers, and runs commands for other processes on
/// their own terminal: while it runs, `toolway call`, `tools`, `list` and the like attach to it, print
/// what they print without it, and no server is started twice. A server rests when nobody used it for
/// a quarter of an hour; the daemon ends when nobody came for half an hour.
///
/// `TOOLWAY_DAEMON` says whether commands use it: `attach` where one runs (as by itself), `auto` (one
/// is started), `off`. So does `--no-daemon` for one command.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    #[command(subcommand)]
    command: DaemonCommand,
}

#[derive(Debug, Subcommand)]
enum DaemonCommand {
    Start(DaemonStartArgs),
    Stop(DaemonStopArgs),
    Status(DaemonStatusArgs),
    Logs(DaemonLogsArgs),
}

/// Start it, unless it runs
#[derive(Debug, Args)]
struct DaemonStartArgs {
    /// Be the daemon, until a signal or `toolway daemon stop`; for service managers
    #[arg(long)]
    foreground: bool,

    /// Belong to no terminal.
    #[arg(long, hide = true, requires = "foreground")]
    detached: bool,
}

/// Stop it, after the commands that it runs
#[derive(Debug, Args)]
struct DaemonStopArgs {
    /// End the commands that it runs as well
    #[arg(long)]
    now: bool,
}

/// Show what it runs and keeps
#[derive(Debug, Args)]
struct DaemonStatusArgs {
    /// Print JSON; null when none runs
    #[arg(long)]
    json: bool,
}

/// Show what it said last
#[derive(Debug, Args)]
struct DaemonLogsArgs {}

impl DaemonArgs {
    /// Whether this process is to be the daemon.
    pub(crate) fn is_daemon(&self) -> bool {
        matches!(&self.command, DaemonCommand::Start(args) if args.foreground)
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &DaemonArgs, read: ReadWords) -> Outcome {
    match &args.command {
        DaemonCommand::Start(args) if args.foreground => foreground(context, args, read),
        DaemonCommand::Start(_) => begin(context),
        DaemonCommand::Stop(args) => stop(context, args),
        DaemonCommand::Status(args) => status(context, args),
        DaemonCommand::Logs(_) => logs(context),
    }
}

fn folder(context: &Context) -> PathBuf {
    context.setup.files().daemon()
}

fn client(context: &Context) -> Result<Option<DaemonClient>, Report> {
    Ok(DaemonClient::connect(&folder(context))?)
}

/// What a running daemon says of itself. One that ends just then says nothing, and another may have
/// taken its place.
fn ask_status(context: &Context) -> Result<Option<DaemonStatus>, Report> {
    for _ in 0..DAEMONS {
        let Some(client) = client(context)? else {
            return Ok(None);
        };
        match client.ask(method::STATUS, &json!({}), ANSWERS_WITHIN) {
            Err(AttachError::Gone) => {}
            status => return Ok(Some(status?)),
        }
    }
    Err(AttachError::Gone.into())
}

fn begin(context: &Context) -> Outcome {
    if let Some(status) = ask_status(context)? {
        context.say(format!("the daemon runs already (process {})", status.pid));
        return Ok(Exit::Success);
    }
    start::start(context.environment()).map_err(|error| {
        Report::new(
            Exit::Unexpected,
            format!("the daemon could not be started: {error}"),
        )
        .hint("see what it says with `toolway daemon start --foreground`")
    })?;
    let status = ask_status(context)?;
    let pid = status.map_or_else(String::new, |status| format!(" (process {})", status.pid));
    context.say(format!("the daemon runs{pid}"));
    Ok(Exit::Success)
}

fn foreground(context: &Context, args: &DaemonStartArgs, read: ReadWords) -> Outcome {
    if args.detached {
        // Refused only to who leads a group already.
        let _ = rustix::process::setsid();
    }
    connect::block_on(async {
        let mut signals = context.signals();
        let folder = folder(context);
        let socket = match inherited_socket() {
            Some(listener) => DaemonSocket::adopt(&folder, listener),
            None if args.detached => bind_or_find(&folder).await,
            None => DaemonSocket::bind(&folder),
        };
        let socket = match socket {
            Ok(socket) => socket,
            // Started in the same moment: whoever wanted one has one.
            Err(DaemonSocketError::Taken) if args.detached => {
                context.output.verbatim(&format!("{}\n", start::READY))?;
                return Ok(Exit::Success);
            }
            Err(error) => return Err(error.into()),
        };
        if args.detached {
            context.output.verbatim(&format!("{}\n", start::READY))?;
        } else {
            context.say("the daemon runs here until Ctrl-C or `toolway daemon stop`");
        }
        toolway::memory::return_large_blocks();
        let launcher = Launcher::same_program();
        let environment = context.environment().clone();
        let idle = limits::daemon::IDLE;
        Daemon::serve(read, environment, socket, launcher, &mut signals, idle).await;
        Ok(Exit::Success)
    })
}

/// Listens, unless another daemon can be asked. One that was started in the same moment has the lock
/// some time before it listens: whoever is told too early that there is one finds none.
async fn bind_or_find(folder: &Path) -> Result<DaemonSocket, DaemonSocketError> {
    let until = Instant::now() + LISTENS_WITHIN;
    loop {
        let taken = match DaemonSocket::bind(folder) {
            Err(taken @ DaemonSocketError::Taken) => taken,
            bound => return bound,
        };
        let is_there = matches!(DaemonClient::connect(folder), Ok(Some(_)));
        if is_there || Instant::now() > until {
            return Err(taken);
        }
        tokio::time::sleep(LOOKS_EVERY).await;
    }
}

/// A socket that is listened on already, as a service manager hands it over in place of stdin.
fn inherited_socket() -> Option<OwnedFd> {
    let stdin = rustix::stdio::stdin();
    let listens = rustix::net::sockopt::socket_acceptconn(stdin).unwrap_or_default();
    let is_unix = rustix::net::getsockname(stdin)
        .is_ok_and(|it| it.address_family() == rustix::net::AddressFamily::UNIX);
    (listens && is_unix).then(|| stdin.try_clone_to_owned().ok())?
}

fn stop(context: &Context, args: &DaemonStopArgs) -> Outcome {
    let Some(client) = client(context)? else {
        say_none(context);
        return Ok(Exit::Success);
    };
    let asked = client.ask_until_end(method::STOP, &json!({ "now": args.now }), ENDS_WITHIN);
    let (answered, ended): (Value, _) = match asked {
        // It was on its way out already.
        Err(AttachError::Gone) => (Value::Null, true),
        asked => asked?,
    };
    if !ended {
        let runs = answered["runs"].as_u64().unwrap_or_default();
        return Err(Report::new(
            Exit::TimedOut,
            format!(
                "the daemon has not ended after {}: it still ran {}",
                age::short(ENDS_WITHIN),
                counted(usize::try_from(runs).unwrap_or_default(), "command"),
            ),
        )
        .hint("end what it runs as well with `toolway daemon stop --now`"));
    }
    context.say("the daemon has ended");
    Ok(Exit::Success)
}

fn say_none(context: &Context) {
    context.say("no daemon is running");
    context.hint("start one with `toolway daemon start`");
}

fn status(context: &Context, args: &DaemonStatusArgs) -> Outcome {
    let status = ask_status(context)?;
    if args.json {
        return context.json(&status);
    }
    let Some(status) = status else {
        say_none(context);
        return Ok(Exit::Success);
    };
    let lasting = age::since(&status.since).unwrap_or_default();
    let memory = status
        .memory
        .map(|bytes| format!(", {} MB", bytes / 1_000_000));
    context.output.result(&format!(
        "Daemon {}: toolway {}, running for {}{}\n",
        status.pid,
        clean_line(&status.version),
        age::short(lasting),
        memory.unwrap_or_default(),
    ))?;
    if !status.servers.is_empty() {
        let rows = status.servers.iter().map(|row| {
            let users = match row.users {
                0 => "kept".to_owned(),
                users => counted(users, "user"),
            };
            vec![clean_line(&row.server).into_owned(), users]
        });
        context.output.result("\n")?;
        context.output.table(&["SERVER", "USED BY"], rows)?;
    }
    if !status.runs.is_empty() {
        let rows = status.runs.iter().map(|run| {
            let since = age::since(&run.since).unwrap_or_default();
            let directory = clean_line(&run.directory).into_owned();
            vec![run.command.clone(), age::short(since), directory]
        });
        context.output.result("\n")?;
        context
            .output
            .table(&["COMMAND", "FOR", "DIRECTORY"], rows)?;
    }
    Ok(Exit::Success)
}

fn logs(context: &Context) -> Outcome {
    let path = start::log(context.environment());
    let log = match std::fs::read(&path) {
        Ok(log) => String::from_utf8_lossy(&log).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Report::configuration("no daemon was ever started here")
                .hint("start one with `toolway daemon start`"));
        }
        Err(error) => return Err(error.into()),
    };
    let lines: Vec<&str> = log.lines().collect();
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        context.output.result(&format!("{line}\n"))?;
    }
    Ok(Exit::Success)
}

impl From<AttachError> for Report {
    fn from(error: AttachError) -> Self {
        match error {
            AttachError::Folder(error) => error.into(),
            AttachError::Silent { ref lock } => {
                let lock = lock.display();
                Report::new(Exit::TimedOut, error.to_string()).hint(format!(
                    "end its process, `kill -9 $(cat {lock})`, or do without: `TOOLWAY_DAEMON=off`"
                ))
            }
            other => Report::new(Exit::Connection, other.to_string()).hint(
                "end it with `toolway daemon stop --now`, or do without: `TOOLWAY_DAEMON=off`",
            ),
        }
    }
}

impl From<DaemonSocketError> for Report {
    fn from(error: DaemonSocketError) -> Self {
        match error {
            DaemonSocketError::Folder(error) => error.into(),
            DaemonSocketError::Taken => Report::new(Exit::Unexpected, error.to_string())
                .hint("see what it does with `toolway daemon status`"),
            DaemonSocketError::Lock {
                ref folder,
                ref source,
            } => {
                let hint = crate::report::unwritable(folder, source.kind());
                Report::configuration(error.to_string()).hint(hint)
            }
        }
    }
}
