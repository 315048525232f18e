//! The text files of the repository, in memory.
//!
//! Owns reading them once. What they must look like is for the rules of `tidy`, what is counted in
//! them for `shape`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::workspace::Workspace;

/// The text files of the repository by their path from the root, with `/` between parts.
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let mut files = BTreeMap::new();
        for path in workspace.files()? {
            // A picture has no lines; a file deleted but not yet committed has no content.
            if let Ok(text) = fs::read_to_string(workspace.path(&path)) {
                files.insert(path, text);
            }
        }
        Ok(Self { files })
    }

    #[cfg(test)]
    pub(crate) fn of<const N: usize>(files: [(&str, &str); N]) -> Self {
        Self {
            files: files
                .map(|(path, text)| (path.to_owned(), text.to_owned()))
                .into(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Files whose name ends in `.extension`.
    pub(crate) fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&str, &str)> {
        self.iter().filter(move |(path, _)| {
            Path::new(path)
                .extension()
                .is_some_and(|found| found == extension)
        })
    }
}
