//! Watching: configuration files that change, and requests of other processes to reconnect.
//!
//! Owns the task that looks ([`ConfigWatch`]) and what follows from what it sees: a changed file
//! makes a host reload, a stamp (`watch/stamp.rs`) makes it reconnect one server. How changes are
//! noticed is `watch/path_watcher.rs`.
//! Does not own: which files matter (`toolway_config::watched_paths`), or what a reload does.
//!
//! A change is told when nothing more has happened for 200 ms, or after a second at the latest,
//! so that saving a file in three steps is one change and a file that never rests is still read.
//! While a file cannot be parsed its servers stay as they are; see `toolway_config::Planner`.

mod path_watcher;
mod stamp;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};
use toolway_types::ServerName;
use tracing::{info, warn};

use crate::host::Host;
use crate::tasks::{self, Task};
use crate::watch::path_watcher::PathWatcher;

pub use stamp::request_reconnect;

/// How long nothing must happen before a change is told.
const QUIET: Duration = Duration::from_millis(200);

/// When it is told although things still happen.
const LATEST: Duration = Duration::from_secs(1);

/// How many changes wait to be taken; then looking waits too, and nothing is lost by that.
const CHANGES_LEN: usize = 16;

/// What to watch.
#[derive(Clone)]
pub struct Watched {
    /// The files whose change matters, asked anew after each change. Runs on a thread that may
    /// block.
    pub paths: Arc<dyn Fn() -> Vec<PathBuf> + Send + Sync>,
    /// The directory where [`request_reconnect`] leaves its stamps.
    pub reconnects: Option<PathBuf>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Watched")
            .field("reconnects", &self.reconnects)
            .finish_non_exhaustive()
    }
}

/// Something to react to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigChange {
    /// One or more files are not what they were.
    Files,
    /// A user wants this server to be connected anew.
    Reconnect(ServerName),
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct ConfigWatch {
    changes: mpsc::Receiver<ConfigChange>,
    // Held for its drop.
    _task: Task<()>,
}

impl ConfigWatch {
    /// Starts watching. What changes after this returns is told, so start it before the plan is
    /// made. Must run inside a tokio runtime.
    pub fn start(watched: Watched) -> Self {
        let dirty = Arc::new(Notify::new());
        let eyes = PathWatcher::open(watched, &dirty);
        let (sender, changes) = mpsc::channel(CHANGES_LEN);
        Self {
            changes,
            _task: tasks::spawn("config watch", look_on(eyes, dirty, sender)),
        }
    }

    /// The next change. `None` when watching has ended, which only a bug of ours can bring about.
    pub async fn next(&mut self) -> Option<ConfigChange> {
        self.changes.recv().await
    }

    /// Lets a host follow: it reloads when files change and reconnects what it is asked to. Runs
    /// until it is dropped; a server that takes long to connect holds up nothing else.
    pub async fn follow(mut self, host: &Host) {
        let mut reconnecting = FuturesUnordered::new();
        loop {
            let change = tokio::select! {
                change = self.next() => change,
                Some(()) = reconnecting.next() => continue,
            };
            match change {
                Some(ConfigChange::Files) => {
                    // Without a source of plans there is nothing to follow, and never will be.
                    if let Err(error) = host.reload().await {
                        warn!(%error, "files changed and nothing follows");
                    }
                }
                Some(ConfigChange::Reconnect(server)) => reconnecting.push(reconnect(host, server)),
                None => return,
            }
        }
    }
}

async fn reconnect(host: &Host, server: ServerName) {
    // Others may have asked for a server that is none of ours.
    if let Ok(state) = host.reconnect(server.as_str()).await {
        info!(%server, state = state.as_str(), "connected anew because somebody asked for it");
    }
}

async fn look_on(mut eyes: PathWatcher, dirty: Arc<Notify>, changes: mpsc::Sender<ConfigChange>) {
    loop {
        if timeout(eyes.patience(), dirty.notified()).await.is_ok() {
            settle(&dirty).await;
        }
        // Files may lie on a disk that does not answer.
        let look = tokio::task::spawn_blocking(move || {
            let seen = eyes.look();
            (eyes, seen)
        });
        let Ok((back, seen)) = look.await else {
            return;
        };
        eyes = back;
        for change in seen {
            if changes.send(change).await.is_err() {
                return;
            }
        }
    }
}

/// Waits until nothing has happened for a while.
async fn settle(dirty: &Notify) {
    let latest = Instant::now() + LATEST;
    while Instant::now() < latest && timeout(QUIET, dirty.notified()).await.is_ok() {}
}
