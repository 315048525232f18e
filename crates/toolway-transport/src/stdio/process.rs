//! One process, of a server or of a program that is run to its end.
//!
//! Owns the pipes and who starts it: the [launcher](super::launcher), or this process itself.
//! Nothing of it outlives this value.

mod direct;
mod directory;
#[cfg(target_os = "linux")]
mod environment_mark;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tokio::net::unix::pipe;
use toolway_types::StdioSpec;

use super::shield::{ArmedShield, ShieldError};
use crate::OpenOptions;
use crate::error::OpenError;
use direct::DirectChild;

/// How long is waited before each signal; the first wait follows the closing of stdin.
pub(super) const STOP_SEQUENCE: [(Duration, Signal); 3] = [
    (Duration::from_millis(100), Signal::INT),
    (Duration::from_millis(100), Signal::TERM),
    (Duration::from_millis(400), Signal::KILL),
];

/// Our ends of the three pipes.
pub(crate) struct Pipes {
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

/// The server's ends.
pub(super) struct ChildEnds {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

fn pipes() -> io::Result<(Pipes, ChildEnds)> {
    let (stdin, our_stdin) = io::pipe()?;
    let (our_stdout, stdout) = io::pipe()?;
    let (our_stderr, stderr) = io::pipe()?;
    let pipes = Pipes {
        stdin: pipe::Sender::from_owned_fd(our_stdin.into())?,
        stdout: pipe::Receiver::from_owned_fd(our_stdout.into())?,
        stderr: pipe::Receiver::from_owned_fd(our_stderr.into())?,
    };
    let ends = ChildEnds {
        stdin: stdin.into(),
        stdout: stdout.into(),
        stderr: stderr.into(),
    };
    Ok((pipes, ends))
}

pub(crate) enum ChildProcess {
    /// A child of this process.
    Direct(DirectChild),
    /// A child of its reaper.
    #[cfg(target_os = "linux")]
    Launched(super::launcher::LaunchedProcess),
}

impl ChildProcess {
    pub(crate) async fn spawn(
        spec: &StdioSpec,
        options: &OpenOptions,
    ) -> Result<(Self, Pipes), OpenError> {
        let failed = |source| match ShieldError::behind(&source) {
            Some(source) => unshielded(spec, source),
            None => OpenError::Spawn {
                command: spec.command.clone(),
                source,
            },
        };
        let directory = directory::ready(&spec.cwd)?;
        let armed = arm(spec, &directory, options)?;
        let (pipes, ends) = pipes().map_err(failed)?;
        #[cfg(target_os = "linux")]
        if options.launcher.is_wanted() {
            use super::launcher::LaunchError;
            let starting = options
                .launcher
                .start(spec, &directory, armed.as_ref(), &ends);
            match starting.await {
                Ok(launched) => return Ok((Self::Launched(launched), pipes)),
                Err(LaunchError::Refused(error)) => return Err(failed(error)),
                Err(LaunchError::NoLauncher(error)) => tracing::warn!(
                    %error,
                    "there is no launcher: if this process is killed, its servers stay"
                ),
            }
        }
        // A child of this process would expose its secrets for a moment.
        #[cfg(target_os = "linux")]
        if armed.as_ref().is_some_and(ArmedShield::lays_open) {
            return Err(unshielded(spec, ShieldError::Closed));
        }
        let direct = DirectChild::spawn(spec, &directory, armed, ends).map_err(failed)?;
        Ok((Self::Direct(direct), pipes))
    }

    /// Waits for the server's own process. May be dropped and called again.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Direct(direct) => direct.wait().await,
            #[cfg(target_os = "linux")]
            Self::Launched(launched) => launched.wait().await,
        }
    }

    /// Kills what the server's own process has left behind when it ended.
    pub(crate) fn sweep(&mut self) {
        match self {
            Self::Direct(direct) => direct.kill(),
            // Its reaper does that.
            #[cfg(target_os = "linux")]
            Self::Launched(_) => {}
        }
    }

    /// Stops it by the stop sequence; returns when nothing of it is left. Stdin is closed by now.
    pub(crate) async fn stop(&mut self) {
        match self {
            Self::Direct(direct) => direct.stop().await,
            #[cfg(target_os = "linux")]
            Self::Launched(launched) => launched.stop().await,
        }
    }
}

fn arm(
    spec: &StdioSpec,
    directory: &Path,
    options: &OpenOptions,
) -> Result<Option<ArmedShield>, OpenError> {
    options
        .shield
        .arm(spec.shield, Some(directory), &options.launcher)
        .map_err(|source| unshielded(spec, source))
}

fn unshielded(spec: &StdioSpec, source: ShieldError) -> OpenError {
    OpenError::Shield {
        command: spec.command.clone(),
        source,
    }
}
