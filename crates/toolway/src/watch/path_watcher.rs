//! Seeing that a file changed.
//!
//! Owns the operating system's notices and the comparison that decides. A notice only says when
//! to look: whether something changed is told by comparing what `stat` says now with what it said
//! before. So a lost notice costs time and never a change, and where there are no notices (their
//! number is limited, network disks send none) the same look is taken every two seconds.
//!
//! Directories are watched, not files: editors save by renaming, and a file that does not exist
//! yet must be seen appearing. For a directory that is absent the nearest one above it is watched.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::lock::lock;
use crate::watch::stamp::Stamps;
use crate::watch::{ConfigChange, Watched};

/// How often to look although nothing was noticed.
const SELDOM: Duration = Duration::from_secs(10);

/// How often to look when nothing can be noticed.
const OFTEN: Duration = Duration::from_secs(2);

/// What was seen last, and the notices.
pub(super) struct PathWatcher {
    watched: Watched,
    marks: BTreeMap<PathBuf, PathMark>,
    stamps: Option<Stamps>,
    notices: Option<Notices>,
}

impl PathWatcher {
    /// Looks for the first time; `dirty` is told when there may be something to see.
    pub(super) fn open(watched: Watched, dirty: &Arc<Notify>) -> Self {
        let stamps = watched.reconnects.clone().map(Stamps::read);
        let mut eyes = Self {
            watched,
            marks: BTreeMap::new(),
            stamps,
            notices: Notices::start(dirty),
        };
        eyes.marks = eyes.look_at_files();
        eyes
    }

    /// How long to wait for a notice before looking anyway.
    pub(super) fn patience(&self) -> Duration {
        match &self.notices {
            Some(notices) if !notices.is_blind => SELDOM,
            _ => OFTEN,
        }
    }

    /// What changed since the last look.
    pub(super) fn look(&mut self) -> Vec<ConfigChange> {
        let mut changes = Vec::new();
        let marks = self.look_at_files();
        if marks != self.marks {
            self.marks = marks;
            changes.push(ConfigChange::Files);
        }
        if let Some(stamps) = &mut self.stamps {
            changes.extend(stamps.news().into_iter().map(ConfigChange::Reconnect));
        }
        changes
    }

    fn look_at_files(&mut self) -> BTreeMap<PathBuf, PathMark> {
        let paths = (self.watched.paths)();
        if let Some(notices) = &mut self.notices {
            // Before looking: what happens behind the look is noticed.
            notices.aim(&paths, self.watched.reconnects.as_deref());
        }
        paths
            .into_iter()
            .map(|path| (path.clone(), PathMark::of(&path)))
            .collect()
    }

    #[cfg(test)]
    pub(super) fn go_blind(&mut self) {
        self.notices = None;
    }
}

/// What tells a path apart from what it was: the file itself, what a link leads to, and who may
/// write the directory, which decides whether a policy is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PathMark {
    own: Option<FileFacts>,
    target: Option<FileFacts>,
    directory: Option<(u32, u32)>,
}

/// Device, inode, size, and the times of content and of the inode.
type FileFacts = (u64, u64, u64, (i64, i64), (i64, i64));

impl PathMark {
    fn of(path: &Path) -> Self {
        let facts = |metadata: std::fs::Metadata| {
            (
                metadata.dev(),
                metadata.ino(),
                metadata.size(),
                (metadata.mtime(), metadata.mtime_nsec()),
                (metadata.ctime(), metadata.ctime_nsec()),
            )
        };
        let rights = |metadata: std::fs::Metadata| (metadata.mode(), metadata.uid());
        Self {
            own: path.symlink_metadata().ok().map(facts),
            target: path.metadata().ok().map(facts),
            directory: path
                .parent()
                .and_then(|directory| directory.metadata().ok())
                .map(rights),
        }
    }
}

/// Which notices concern us.
#[derive(Default)]
struct NoticeFilter {
    /// These paths.
    paths: BTreeSet<PathBuf>,
    /// Everything in this folder.
    folder: Option<PathBuf>,
}

impl NoticeFilter {
    fn holds(&self, event: &notify::Event) -> bool {
        let in_folder =
            |path: &Path| self.folder.is_some() && path.parent() == self.folder.as_deref();
        event
            .paths
            .iter()
            .any(|path| self.paths.contains(path) || in_folder(path))
    }
}

/// The operating system's notices.
struct Notices {
    watcher: RecommendedWatcher,
    /// The directories watched, and which ones they were: one that was replaced is another.
    directories: BTreeMap<PathBuf, (u64, u64)>,
    interest: Arc<Mutex<NoticeFilter>>,
    /// Some directory cannot be watched.
    is_blind: bool,
}

impl Notices {
    fn start(dirty: &Arc<Notify>) -> Option<Self> {
        let interest: Arc<Mutex<NoticeFilter>> = Arc::default();
        let (dirty, wanted) = (Arc::clone(dirty), Arc::clone(&interest));
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let wanted = lock(&wanted);
            let concerns = match &event {
                Ok(event) => matters(event) && (event.need_rescan() || wanted.holds(event)),
                // Better one look too many.
                Err(_) => true,
            };
            if concerns {
                dirty.notify_one();
            }
        });
        let watcher = watcher
            .inspect_err(|error| tracing::info!(%error, "files are looked at every two seconds"))
            .ok()?;
        Some(Self {
            watcher,
            directories: BTreeMap::new(),
            interest,
            is_blind: false,
        })
    }

    /// Watches the directories of these paths and the folder of stamps, and no others.
    fn aim(&mut self, paths: &[PathBuf], folder: Option<&Path>) {
        let mut interest = NoticeFilter {
            folder: folder.map(Path::to_owned),
            ..NoticeFilter::default()
        };
        let mut wanted = BTreeMap::new();
        let directories = paths.iter().filter_map(|path| path.parent()).chain(folder);
        for directory in directories {
            let nearest = directory
                .ancestors()
                .find_map(|directory| Some((directory, identity(directory)?)));
            if let Some((directory, identity)) = nearest {
                wanted.insert(directory.to_owned(), identity);
            }
            // A directory on the way may be what appears or goes.
            interest
                .paths
                .extend(directory.ancestors().map(Path::to_owned));
        }
        interest.paths.extend(paths.iter().cloned());
        *lock(&self.interest) = interest;
        for (directory, identity) in &self.directories {
            if wanted.get(directory) != Some(identity) {
                // It may be gone, and its watch with it.
                let _ = self.watcher.unwatch(directory);
            }
        }
        self.is_blind = false;
        let mut watching = BTreeMap::new();
        for (directory, identity) in wanted {
            let known = self.directories.get(&directory) == Some(&identity);
            let watched = known
                || self
                    .watcher
                    .watch(&directory, RecursiveMode::NonRecursive)
                    .inspect_err(|error| tracing::info!(%error, "a directory cannot be watched"))
                    .is_ok();
            if watched {
                watching.insert(directory, identity);
            } else {
                self.is_blind = true;
            }
        }
        self.directories = watching;
    }
}

fn identity(directory: &Path) -> Option<(u64, u64)> {
    let metadata = directory
        .metadata()
        .ok()
        .filter(std::fs::Metadata::is_dir)?;
    Some((metadata.dev(), metadata.ino()))
}

/// Reading is no change.
fn matters(event: &notify::Event) -> bool {
    match event.kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}
