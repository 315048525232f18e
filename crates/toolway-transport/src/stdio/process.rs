//! One process, of a server or of a program that is run to its end.
//!
//! Owns who starts it: the [launcher](super::launcher), or this process itself.
//! Nothing of it outlives this value.

mod direct;
mod directory;
#[cfg(target_os = "linux")]
mod environment_mark;

use std::io;
use std::process::ExitStatus;

use toolway_types::StdioSpec;

use super::launcher::Launcher;
use super::pipes::{self, Pipes};
use super::shield::{ArmedShield, Shield, refusal_behind};
use crate::error::{OpenError, ShieldError};
use direct::DirectChild;

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
        shield: &Shield,
        launcher: &Launcher,
    ) -> Result<(Self, Pipes), OpenError> {
        let failed = |source| match refusal_behind(&source) {
            Some(source) => unshielded(spec, source),
            None => OpenError::Spawn {
                command: spec.command.clone(),
                source,
            },
        };
        let directory = directory::ready(&spec.cwd)?;
        let armed = shield
            .arm(spec.shield, Some(&directory), launcher.file().as_deref())
            .map_err(|source| unshielded(spec, source))?;
        let (pipes, ends) = pipes::open().map_err(failed)?;
        #[cfg(target_os = "linux")]
        if launcher.is_wanted() {
            use super::launcher::LaunchError;
            let starting = launcher.start(spec, &directory, armed.as_ref(), &ends);
            match starting.await {
                Ok(process) => return Ok((Self::Launched(process), pipes)),
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

fn unshielded(spec: &StdioSpec, source: ShieldError) -> OpenError {
    OpenError::Shield {
        command: spec.command.clone(),
        source,
    }
}
