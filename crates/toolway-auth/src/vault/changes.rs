//! Notices changes of the vault, by this process or another.
//!
//! Owns the watch on the list's file. A notice of the system only says when to look; whether
//! something changed is told by the file itself. Where there are no notices it is looked at every
//! two seconds.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::watch;
use toolway_files::private_file::open_directory;
use tracing::info;

/// How often to look when nothing can be noticed.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

pub(super) struct VaultChanges {
    path: PathBuf,
    /// Started by the first subscriber.
    watching: OnceLock<FileWatch>,
}

struct FileWatch {
    eye: Arc<WatchedFile>,
    // Held for its drop.
    _notices: Option<RecommendedWatcher>,
}

/// What was seen last, and who is told.
struct WatchedFile {
    path: PathBuf,
    last: Mutex<Option<VaultFileStamp>>,
    count: watch::Sender<u64>,
}

/// A file that was replaced is another one.
type VaultFileStamp = (u64, u64, i64, i64, u64);

impl VaultChanges {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            watching: OnceLock::new(),
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        let watching = self.watching.get_or_init(|| FileWatch::start(&self.path));
        watching.eye.count.subscribe()
    }
}

impl FileWatch {
    fn start(path: &Path) -> Self {
        let eye = Arc::new(WatchedFile {
            path: path.to_owned(),
            last: Mutex::new(None),
            count: watch::Sender::new(0),
        });
        let notices = notices(&eye);
        *eye.last.lock().unwrap_or_else(PoisonError::into_inner) = mark(path);
        if notices.is_none() {
            let eye = Arc::downgrade(&eye);
            // Without a thread nothing is heard; what is read is right all the same.
            let _ = std::thread::Builder::new()
                .name("vault watch".to_owned())
                .spawn(move || poll(&eye));
        }
        Self {
            eye,
            _notices: notices,
        }
    }
}

fn notices(eye: &Arc<WatchedFile>) -> Option<RecommendedWatcher> {
    let folder = eye.path.parent()?;
    let made = open_directory(folder).map_err(notify::Error::io);
    let seer = Arc::clone(eye);
    made.and_then(|_| {
        let mut watcher = notify::recommended_watcher(move |_| seer.look())?;
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    })
    .inspect_err(|error| info!(%error, "the vault is looked at every two seconds"))
    .ok()
}

fn poll(eye: &Weak<WatchedFile>) {
    loop {
        std::thread::sleep(POLL_INTERVAL);
        let Some(eye) = eye.upgrade() else {
            return;
        };
        eye.look();
    }
}

impl WatchedFile {
    fn look(&self) {
        let now = mark(&self.path);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != now {
            *last = now;
            self.count.send_modify(|count| *count += 1);
        }
    }
}

fn mark(path: &Path) -> Option<VaultFileStamp> {
    let facts = path.symlink_metadata().ok()?;
    Some((
        facts.dev(),
        facts.ino(),
        facts.mtime(),
        facts.mtime_nsec(),
        facts.size(),
    ))
}
