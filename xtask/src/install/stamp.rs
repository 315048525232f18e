//! Whether an installation is the wanted one: a stamp and the files that prove it.
//!
//! Owns the stamp. A stamp holds the whole manifest it was installed from and is written last, so
//! an interrupted install is done again. What is installed, and how, is `install.rs`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// One folder of installed packages, as its stamp knows it.
pub(super) struct Installation {
    stamp: PathBuf,
    wanted: String,
    /// Files that must be there whatever the stamp says.
    proof: Vec<PathBuf>,
}

impl Installation {
    pub(super) fn new(stamp: PathBuf, facts: &[String], proof: Vec<PathBuf>) -> Self {
        Self {
            stamp,
            wanted: facts.join("\n"),
            proof,
        }
    }

    pub(super) fn is_current(&self) -> bool {
        fs::read_to_string(&self.stamp).is_ok_and(|found| found == self.wanted)
            && self.proof.iter().all(|file| file.exists())
    }

    pub(super) fn begin(&self) -> Result<()> {
        match fs::remove_file(&self.stamp) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove `{}`", self.stamp.display()))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn finish(&self) -> Result<()> {
        if let Some(missing) = self.proof.iter().find(|file| !file.exists()) {
            bail!("the install succeeded but left no `{}`", missing.display());
        }
        fs::write(&self.stamp, &self.wanted)
            .with_context(|| format!("cannot write `{}`", self.stamp.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_is_current_only_with_the_same_manifest_and_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let proof = folder.path().join("server.js");
        let stamp = folder.path().join("stamp");
        let of = |facts: &str| {
            Installation::new(stamp.clone(), &[facts.to_owned()], vec![proof.clone()])
        };
        let installation = of("version 1");
        assert!(!installation.is_current(), "nothing is installed yet");
        assert!(
            installation.finish().is_err(),
            "the promised file is missing"
        );
        fs::write(&proof, "").unwrap();
        installation.finish().unwrap();
        assert!(installation.is_current());
        assert!(!of("version 2").is_current(), "the manifest changed");
        fs::remove_file(&proof).unwrap();
        assert!(!installation.is_current(), "somebody deleted the packages");
    }

    #[test]
    fn an_interrupted_install_leaves_no_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let installation = Installation::new(folder.path().join("stamp"), &[], Vec::new());
        installation.finish().unwrap();
        installation.begin().unwrap();
        assert!(!installation.is_current());
    }
}
