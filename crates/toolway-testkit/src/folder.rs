//! A temporary folder in which no secret of a test may be left (`marked.rs`).
//!
//! Owns the folder, what may stand where in it, and looking when it goes. What a program finds
//! there is `home.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use crate::marked::{self, SecretAllowance};

/// Gone when dropped. No file below it may hold a secret then, but for those that the test wrote
/// with [`ScannedFolder::write`] or gave leave to.
#[derive(Debug)]
pub struct ScannedFolder {
    _folder: TempDir,
    /// Without symbolic links: the product resolves them, and paths are compared.
    path: PathBuf,
    /// Files in which secrets may stand; the last word about a path counts.
    leave: Mutex<Vec<(PathBuf, SecretAllowance)>>,
}

impl Default for ScannedFolder {
    fn default() -> Self {
        Self::new()
    }
}

impl ScannedFolder {
    /// Makes an empty one.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("toolway-test-")
            .tempdir()
            .expect("a temporary directory can be made");
        let path = folder.path().canonicalize();
        Self {
            path: path.expect("the temporary directory exists"),
            _folder: folder,
            leave: Mutex::default(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file, in which secrets may stand, making its directories.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(path);
        let directory = path.parent().expect("a file has a directory");
        fs::create_dir_all(directory).expect("the file's directory can be made");
        fs::write(&path, text).expect("the file can be written");
        self.leave(&path, SecretAllowance::Input);
        path
    }

    /// Secrets may stand in this file, or below this folder: the test or a program of it writes
    /// them there.
    pub fn may_hold_secrets(&self, path: impl AsRef<Path>) {
        self.leave(&self.path.join(path), SecretAllowance::Input);
    }

    /// Secrets may stand in this file, or below this folder, if only its owner can read it: the
    /// test asked the product for that.
    pub fn may_keep_secrets(&self, path: impl AsRef<Path>) {
        self.leave(&self.path.join(path), SecretAllowance::Private);
    }

    fn leave(&self, path: &Path, leave: SecretAllowance) {
        let mut all = self.leave.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((path.to_path_buf(), leave));
    }

    /// Panics with every file in which a secret stands without leave.
    pub fn assert_no_secrets(&self) {
        let all = self.leave.lock().unwrap_or_else(PoisonError::into_inner);
        marked::assert_clean(&self.path, &|path| {
            let given = all.iter().rev().find(|(known, _)| path.starts_with(known));
            given.map_or(SecretAllowance::None, |(_, leave)| *leave)
        });
    }
}

impl Drop for ScannedFolder {
    fn drop(&mut self) {
        // A test that failed already is not helped by a second reason.
        if !std::thread::panicking() {
            self.assert_no_secrets();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a secret stands in")]
    fn a_secret_that_is_left_is_found_when_the_folder_goes() {
        let folder = ScannedFolder::new();
        folder.write("input", marked::MARK);
        fs::write(folder.path().join("left"), marked::MARK).unwrap();
    }

    #[test]
    fn what_was_given_leave_may_stay() {
        let folder = ScannedFolder::new();
        let input = folder.write("deep/input", marked::MARK);
        assert_eq!(fs::read_to_string(input).unwrap(), marked::MARK);
        folder.may_hold_secrets("seen");
        folder.may_keep_secrets("kept");
        fs::create_dir(folder.path().join("seen")).unwrap();
        fs::write(folder.path().join("seen/it"), marked::MARK).unwrap();
        folder.assert_no_secrets();
    }
}
