//! One child process, leader of its own group: started clean, ended whole.
//!
//! Owns starting it with exactly the environment it was given, and the way to its end. A process
//! never outlives this value: dropping it kills the group. Descendants that left the group are
//! not seen here.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use toolway_types::StdioSpec;

use super::shield::{Shield, ShieldError};
use super::{Pipes, descriptors};
use crate::error::OpenError;

/// How long is waited before each signal; the first wait follows the closing of stdin.
const LADDER: [(Duration, Signal); 3] = [
    (Duration::from_millis(100), Signal::INT),
    (Duration::from_millis(100), Signal::TERM),
    (Duration::from_millis(400), Signal::KILL),
];

/// How often is looked whether the rest of the group is gone: it has no parent that tells us.
const LOOK: Duration = Duration::from_millis(5);

/// The longest a killed process is waited for: one stuck in the kernel must not hold the host.
const AFTER_KILL: Duration = Duration::from_secs(2);

pub(super) struct Process {
    child: Child,
    group: Option<Pid>,
}

impl Process {
    pub(super) fn spawn(spec: &StdioSpec, shield: &Shield) -> Result<(Self, Pipes), OpenError> {
        let unshielded = |source| OpenError::Shield {
            command: spec.command.clone(),
            source,
        };
        let failed = |source| match ShieldError::behind(&source) {
            Some(source) => unshielded(source),
            None => OpenError::Spawn {
                command: spec.command.clone(),
                source,
            },
        };
        let mut command = Command::new(&spec.command);
        if let Some(directory) = &spec.cwd {
            // The system would say only "no such file", as if the program were missing.
            if !directory.is_dir() {
                return Err(OpenError::Directory(directory.clone()));
            }
            command.current_dir(directory);
        }
        command
            .args(&spec.args)
            .env_clear()
            .envs(
                spec.environment()
                    .map(|(name, value)| (name, value.expose())),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(armed) = shield
            .arm(spec.shield, spec.cwd.as_deref())
            .map_err(unshielded)?
        {
            armed.guard(command.as_std_mut());
        }
        descriptors::seal().map_err(failed)?;
        let mut child = command.spawn().map_err(failed)?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self { child, group };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        Ok((
            process,
            Pipes {
                stdin,
                stdout,
                stderr,
            },
        ))
    }

    /// Waits for the leader and reaps it. May be dropped and called again.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks it to end with growing insistence; returns when leader and group are gone. Stdin is
    /// closed by now, and a server that ends on that alone ends at once.
    pub(super) async fn stop(&mut self) {
        for (patience, signal) in LADDER {
            if timeout(patience, self.gone()).await.is_ok() {
                self.group = None;
                return;
            }
            self.signal(signal);
        }
        let _ = timeout(AFTER_KILL, self.gone()).await;
        self.group = None;
    }

    /// Kills whatever is left of the group.
    pub(super) fn kill_group(&mut self) {
        self.signal(Signal::KILL);
    }

    async fn gone(&mut self) {
        let _ = self.child.wait().await;
        while self
            .group
            .is_some_and(|group| test_kill_process_group(group).is_ok())
        {
            sleep(LOOK).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It may be gone already, which is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The leader itself is killed and reaped by the runtime; this is for its children.
        self.kill_group();
    }
}
