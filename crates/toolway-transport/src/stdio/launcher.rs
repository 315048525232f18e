//! Starts servers that are processes, so that none outlives the host, however it ends.
//!
//! Owns the choice between the two ways, and the host's side. With a launcher, each server runs
//! below a reaper that kills all of it when the host is gone; why, and what it costs, is
//! `docs/decisions/0007-the-launcher.md`. Without one ([`Launcher::none`], and always on systems
//! other than Linux) servers are direct children of this process: those of a host that is killed
//! itself stay, and so do processes that left the group and cleared the mark in their environment.

#[cfg(target_os = "linux")]
mod command_line;
#[cfg(target_os = "linux")]
mod early;
#[cfg(target_os = "linux")]
mod handle;
#[cfg(target_os = "linux")]
mod message;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(target_os = "linux")]
mod reaper;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod tree;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_os = "linux")]
use std::sync::{Arc, Weak};

#[cfg(target_os = "linux")]
pub(super) use handle::LaunchError;
#[cfg(target_os = "linux")]
pub(crate) use handle::LaunchedProcess;

/// The `argv[0]` of a launcher; its stdin must also be a socket.
#[cfg(target_os = "linux")]
const MARK: &str = "tw-launcher";

/// Whether this program called [`run_if_requested`]: otherwise a second copy of it would not become
/// a launcher.
static CAN_SERVE: AtomicBool = AtomicBool::new(false);

/// Runs the launcher, or a probe of the shield, and never returns, if this process was started for
/// that. Otherwise returns at once; [`Launcher::same_program`] then works.
///
/// Must be the first thing in `main`, before threads and before anything is read or opened.
pub fn run_if_requested() {
    #[cfg(target_os = "linux")]
    if std::env::args_os()
        .next()
        .is_some_and(|first| first == MARK)
        && let Some(host) = serve::host_socket()
    {
        serve::run(host);
    }
    #[cfg(target_os = "linux")]
    super::shield::run_if_requested();
    CAN_SERVE.store(true, Ordering::Relaxed);
}

/// Forks the launcher of [`Launcher::same_program`] from this process, so that the first server
/// need not wait until the program was executed a second time. Without effect where that cannot be
/// done: the launcher is then executed with the first server.
///
/// To be called after [`run_if_requested`], before a secret is read and while there is one thread;
/// a process that has more is not forked.
pub fn fork_early() {
    #[cfg(target_os = "linux")]
    if let Err(error) = early::fork() {
        tracing::debug!(%error, "the launcher is not forked early");
    }
}

/// Ends the launcher of [`fork_early`] if no [`Launcher`] has taken it, and waits for its end.
pub fn end_unused() {
    #[cfg(target_os = "linux")]
    early::end();
}

/// Starts servers that are processes. Clones share one launcher process, which is started with the
/// first server and ends with the last clone that was not [lent](Launcher::lent).
#[derive(Debug, Clone, Default)]
pub struct Launcher {
    #[cfg(target_os = "linux")]
    shared: Option<LauncherShare>,
}

/// A hold on a launcher process.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone)]
enum LauncherShare {
    /// Keeps it.
    Owned(Arc<handle::LauncherHandle>),
    /// Uses it as long as somebody else keeps it.
    Lent(Weak<handle::LauncherHandle>),
}

impl Launcher {
    /// No launcher: servers are direct children of this process.
    pub fn none() -> Self {
        Self::default()
    }

    /// A second process of this program, which must call [`run_if_requested`] first of all: one
    /// that has not is not started again, and servers are direct children.
    pub fn same_program() -> Self {
        if !CAN_SERVE.load(Ordering::Relaxed) {
            tracing::warn!(
                "this program cannot keep its servers: `run_if_requested` was not called"
            );
            return Self::none();
        }
        #[cfg(target_os = "linux")]
        return Self {
            // The link leads to this very file, even when it was replaced on disk.
            shared: Some(LauncherShare::Owned(Arc::new(handle::LauncherHandle::new(
                PathBuf::from("/proc/self/exe"),
                early::take(),
            )))),
        };
        #[cfg(not(target_os = "linux"))]
        Self::none()
    }

    /// A process of another program, which must call [`run_if_requested`] first of all.
    #[cfg(target_os = "linux")]
    pub fn program(path: PathBuf) -> Self {
        Self {
            shared: Some(LauncherShare::Owned(Arc::new(handle::LauncherHandle::new(
                path, None,
            )))),
        }
    }

    /// A process of another program, on systems where there are launchers.
    #[cfg(not(target_os = "linux"))]
    pub fn program(_: PathBuf) -> Self {
        Self::none()
    }

    /// The same launcher for those who only start servers: however long they keep it, it ends with
    /// the last clone of whoever lent it.
    #[must_use]
    pub fn lent(&self) -> Self {
        #[cfg(target_os = "linux")]
        return Self {
            shared: self.shared.as_ref().map(|shared| match shared {
                LauncherShare::Owned(handle) => LauncherShare::Lent(Arc::downgrade(handle)),
                LauncherShare::Lent(handle) => LauncherShare::Lent(Weak::clone(handle)),
            }),
        };
        #[cfg(not(target_os = "linux"))]
        self.clone()
    }

    /// The launcher's program, if there is a launcher.
    pub fn file(&self) -> Option<PathBuf> {
        #[cfg(target_os = "linux")]
        return self.handle().map(|handle| handle.program().to_owned());
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Waits until the launcher, and with it everything it ever started, is gone. Only the last
    /// clone ends it: servers of another clone may still run.
    pub async fn end(self) {
        #[cfg(target_os = "linux")]
        if let Some(LauncherShare::Owned(handle)) = self.shared
            && let Some(handle) = Arc::into_inner(handle)
        {
            handle.end().await;
        }
    }

    /// The launcher, if there is one and somebody keeps it.
    #[cfg(target_os = "linux")]
    fn handle(&self) -> Option<Arc<handle::LauncherHandle>> {
        match self.shared.as_ref()? {
            LauncherShare::Owned(handle) => Some(Arc::clone(handle)),
            LauncherShare::Lent(handle) => handle.upgrade(),
        }
    }

    /// The launcher's process id, while it is known to run.
    pub fn process_id(&self) -> Option<u32> {
        #[cfg(target_os = "linux")]
        return self.handle()?.process_id();
        #[cfg(not(target_os = "linux"))]
        None
    }
}
