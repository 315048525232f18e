//! The process that was typed, where the daemon runs its command: it hands over its streams, passes
//! signals on and ends as the command did.
//!
//! Owns whether the daemon is asked at all, and what is said when it is lost in the middle.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use toolway::StateFiles;
use toolway_config::Environment;
use toolway_gateway::daemon_socket::{
    AttachError, DaemonClient, RunEnd, RunOutcome, RunRefusal, RunRequest, SignalFeed,
};

use crate::args::{Cli, Command};
use crate::daemon::request::request_for;
use crate::daemon::{relay, start};
use crate::daemon_use::{DaemonUse, use_of_daemon};
use crate::exit::Exit;
use crate::report::Report;

/// How often a daemon is looked for: once for one that has to be started, and once for one that makes
/// way for this build.
const LOOKS: u32 = 3;

/// What became of a command that may run in the daemon.
pub(crate) enum AttachEnd {
    /// It ran there, and ended so.
    Ended(RunEnd),
    /// It is for this process to run.
    Here,
}

/// Has the daemon run the command that was typed, where it is to.
pub(crate) fn attach(cli: &Cli, environment: &Environment) -> Result<AttachEnd, Report> {
    if !cli.command.may_attach() || cli.global.runs_alone() {
        return Ok(AttachEnd::Here);
    }
    let is_pipe = matches!(cli.command, Command::Serve(_));
    let use_of_it = use_of_daemon(
        environment,
        if is_pipe {
            DaemonUse::Start
        } else {
            DaemonUse::Attach
        },
    )?;
    if use_of_it == DaemonUse::Off {
        return Ok(AttachEnd::Here);
    }
    let Some(request) = request(environment) else {
        return Ok(AttachEnd::Here);
    };
    if is_pipe {
        let served = relay::run(environment, &request, use_of_it)?;
        return Ok(served.map_or(AttachEnd::Here, AttachEnd::Ended));
    }
    let folder = StateFiles::of(environment).daemon();
    let mut is_started = false;
    let mut looks = 0;
    while looks < LOOKS {
        looks += 1;
        let client = match DaemonClient::connect(&folder) {
            Ok(Some(client)) => client,
            Ok(None)
                if (use_of_it == DaemonUse::Start || is_started)
                    && start::start(environment).is_ok() =>
            {
                continue;
            }
            Ok(None) => break,
            Err(error) => {
                unusable(&error);
                break;
            }
        };
        let streams = [
            rustix::stdio::stdin(),
            rustix::stdio::stdout(),
            rustix::stdio::stderr(),
        ];
        match client.run(&request, streams, &mut ProcessSignals::listen()?) {
            Ok(RunOutcome::Ended(end)) => return Ok(AttachEnd::Ended(end)),
            // What it printed last it prints again, of another daemon or by itself.
            Ok(RunOutcome::Lost) if cli.command.follows() => looks = 0,
            Ok(RunOutcome::Lost) => return Err(lost(&cli.command)),
            // A daemon that somebody wanted is wanted of this build too.
            Ok(RunOutcome::Refused(refused)) if refused.data.reason == RunRefusal::Outdated => {
                is_started = true;
            }
            Ok(RunOutcome::Refused(refused)) => {
                tracing::debug!(why = refused.message, "the daemon does not run this");
                break;
            }
            Ok(RunOutcome::NotBegun) => {}
            Err(error) => {
                unusable(&error);
                break;
            }
        }
    }
    Ok(AttachEnd::Here)
}

/// Nothing has happened, so the command runs here.
fn unusable(error: &AttachError) {
    tracing::debug!(%error, "the daemon cannot be used");
}

/// What is asked for; nothing where it cannot be said in full.
fn request(environment: &Environment) -> Option<RunRequest> {
    let words = std::env::args_os().skip(1);
    let words: Option<Vec<String>> = words.map(|word| word.into_string().ok()).collect();
    request_for(environment, words?)
}

/// What to say of a command whose daemon is gone.
fn lost(command: &Command) -> Report {
    let word = command.word();
    let message = if command.acts() {
        format!("the daemon ended before `{word}` did: whether it was carried out is not known")
    } else {
        format!("the daemon ended before `{word}` did")
    };
    let hint = if command.acts() {
        "see what was sent with `toolway audit`; it is not sent again by itself"
    } else {
        "run it again: it starts what it needs by itself"
    };
    Report::new(Exit::Connection, message).hint(hint)
}

/// The signals of this process, as bytes to read.
struct ProcessSignals {
    pipes: [(i32, UnixStream); 3],
    has_answer: bool,
}

impl ProcessSignals {
    /// Takes over from the system's own way: the command is told, and ends in an orderly way.
    fn listen() -> io::Result<Self> {
        let pipe = |signal: i32| {
            let (read, write) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            signal_hook::low_level::pipe::register(signal, write)?;
            Ok::<_, io::Error>((signal, read))
        };
        Ok(Self {
            pipes: [pipe(SIGINT)?, pipe(SIGTERM)?, pipe(SIGHUP)?],
            has_answer: false,
        })
    }
}

impl SignalFeed for ProcessSignals {
    fn wait(&mut self, daemon: &UnixStream) -> io::Result<Vec<i32>> {
        let mut watched: Vec<PollFd<'_>> = vec![PollFd::new(daemon, PollFlags::IN)];
        let pipes = self.pipes.iter();
        watched.extend(pipes.map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        self.has_answer = !watched[0].revents().is_empty();
        let mut told = Vec::new();
        for (signal, pipe) in &mut self.pipes {
            let mut bytes = [0; 16];
            // Nothing is there for the others.
            let count = pipe.read(&mut bytes).unwrap_or_default();
            told.extend(std::iter::repeat_n(*signal, count));
        }
        Ok(told)
    }

    fn has_answer(&self) -> bool {
        self.has_answer
    }
}
