//! A server that is a child of this process, leader of its own group.
//!
//! Owns stopping it. On Linux, processes that left the group are found by a mark in their
//! environment; when this process is killed itself, they stay.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use toolway_types::StdioSpec;

#[cfg(target_os = "linux")]
use super::environment_mark::EnvironmentMark;
use crate::stdio::descriptors;
use crate::stdio::pipes::ChildEnds;
#[cfg(target_os = "linux")]
use crate::stdio::proc;
use crate::stdio::shield::ArmedShield;
use crate::stdio::stop_sequence::{AFTER_KILL, STOP_SEQUENCE};

/// How often is looked whether the rest of the group is gone: it has no parent that tells us.
const LOOK: Duration = Duration::from_millis(5);

pub(crate) struct DirectChild {
    child: Child,
    group: Option<Pid>,
    #[cfg(target_os = "linux")]
    mark: Option<EnvironmentMark>,
}

impl DirectChild {
    pub(super) fn spawn(
        spec: &StdioSpec,
        directory: &Path,
        shield: Option<ArmedShield>,
        ends: ChildEnds,
    ) -> io::Result<Self> {
        let mut command = Command::new(spec.file());
        command.arg0(&spec.command);
        command
            .current_dir(directory)
            .args(&spec.args)
            .env_clear()
            .envs(
                spec.environment()
                    .map(|(name, value)| (name, value.expose())),
            )
            .stdin(ends.stdin)
            .stdout(ends.stdout)
            .stderr(ends.stderr)
            .process_group(0)
            .kill_on_drop(true);
        #[cfg(target_os = "linux")]
        let mark = EnvironmentMark::put_on(&mut command);
        if let Some(shield) = shield {
            shield.guard(command.as_std_mut());
        }
        descriptors::close_on_exec_all()?;
        let child = command.spawn()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        Ok(Self {
            child,
            group,
            #[cfg(target_os = "linux")]
            mark: Some(mark),
        })
    }

    /// Waits for the leader and reaps it. May be dropped and called again.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Goes through the stop sequence until nothing is left.
    pub(super) async fn stop(&mut self) {
        for (patience, signal) in STOP_SEQUENCE {
            if timeout(patience, self.gone()).await.is_ok() {
                break;
            }
            self.signal(signal);
        }
        let _ = timeout(AFTER_KILL, self.gone()).await;
        // From here on the id may belong to another process.
        self.group = None;
        self.kill();
        #[cfg(target_os = "linux")]
        if let Some(mark) = self.mark.take() {
            // A killed process takes a moment to end.
            let _ = timeout(AFTER_KILL, async {
                while mark.kill_all() {
                    sleep(LOOK).await;
                }
            })
            .await;
        }
    }

    /// Kills what is left of the group, and the processes that left it.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
        #[cfg(target_os = "linux")]
        if let Some(mark) = &self.mark {
            let _ = mark.kill_all();
        }
    }

    async fn gone(&mut self) {
        let _ = self.child.wait().await;
        while self.group.is_some_and(is_alive) {
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

/// Whether any process of the group runs. Orphans that have ended are reaped by another process,
/// perhaps seconds later or never.
fn is_alive(group: Pid) -> bool {
    if test_kill_process_group(group).is_err() {
        return false;
    }
    #[cfg(target_os = "linux")]
    return proc::all_processes()
        .filter_map(proc::process_info)
        .any(|it| it.group == group && it.is_running);
    #[cfg(not(target_os = "linux"))]
    true
}

impl Drop for DirectChild {
    fn drop(&mut self) {
        // The leader itself is killed and reaped by the runtime; this is for the others.
        self.kill();
    }
}
