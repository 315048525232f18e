//! The last good content of each file, for a run that plans more than once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::raw::RawFile;

/// What each file said when it could last be read.
#[derive(Debug, Default)]
pub(crate) struct LastGoodFiles {
    files: BTreeMap<PathBuf, RawFile>,
    recalled: bool,
}

impl LastGoodFiles {
    pub(crate) fn keep(&mut self, path: &Path, file: &RawFile) {
        self.files.insert(path.to_owned(), file.clone());
    }

    /// Its content, without the diagnoses, which were reported then.
    pub(crate) fn recall(&mut self, path: &Path) -> Option<RawFile> {
        let mut file = self.files.get(path)?.clone();
        self.recalled = true;
        file.diagnoses.clear();
        Some(file)
    }

    /// A file that is gone takes its servers with it.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.files.remove(path);
    }

    /// Whether an older reading was used since this was last asked.
    pub(crate) fn take_recalled(&mut self) -> bool {
        std::mem::take(&mut self.recalled)
    }

    pub(crate) fn has_servers(&self, path: &Path) -> bool {
        let file = self.files.get(path);
        file.is_some_and(|file| !file.servers.is_empty())
    }
}
