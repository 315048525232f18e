//! Which users' files count as the user's own.
//!
//! Owns that comparison: the user, the user before `sudo`, and root. Which files must belong to
//! them is decided by their readers.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The user ids that count as the user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnUserIds {
    now: u32,
    before_sudo: Option<u32>,
}

impl OwnUserIds {
    /// Of this process; `sudo` is the variable `SUDO_UID`.
    pub(crate) fn of_process(sudo: Option<&str>) -> Self {
        let now = rustix::process::geteuid().as_raw();
        Self {
            now,
            before_sudo: sudo.filter(|_| now == 0).and_then(|id| id.parse().ok()),
        }
    }

    pub(crate) fn have(self, facts: &Metadata) -> bool {
        self.are(facts.uid())
    }

    /// Whether this is one of them, or root.
    pub(crate) fn are(self, owner: u32) -> bool {
        owner == 0 || owner == self.now || Some(owner) == self.before_sudo
    }

    /// Whether what lies here, a link itself and not what it leads to, is theirs.
    pub(crate) fn have_at(self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|facts| self.have(&facts))
    }
}
