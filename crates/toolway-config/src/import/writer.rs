//! Who wrote a client's file: the user, or another author.
//!
//! Decided by where the file is and who owns it, never by its content nor by marks that a
//! repository can leave out. What follows is the caller's choice.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{ClientLocations, ImportClient};

/// The permission bit of a file that every user may write.
const WRITABLE_BY_ALL: u32 = 0o002;

/// Who wrote a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileWriter {
    /// The user: it is where their clients keep their own settings, and only they can write there.
    Person,
    /// Another author, as far as can be told.
    Stranger(StrangerReason),
}

/// Why a file is not taken for the user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StrangerReason {
    /// It lies in a project.
    #[error("it came with this project")]
    Project,
    /// It belongs to another user.
    #[error("it belongs to another user")]
    Owner,
    /// Every user may write it.
    #[error("every user may write it")]
    WritableByAll,
    /// It lies in none of the places where the client keeps its settings.
    #[error("it is none of your client's own settings")]
    Elsewhere,
}

/// Who wrote this file of a client.
pub(super) fn of(places: &ClientLocations, client: ImportClient, path: &Path) -> FileWriter {
    match stranger(places, client, path) {
        Some(stranger) => FileWriter::Stranger(stranger),
        None => FileWriter::Person,
    }
}

fn stranger(places: &ClientLocations, client: ImportClient, path: &Path) -> Option<StrangerReason> {
    let path = &places.cwd.join(path);
    let is_same = |other: &PathBuf| other == path || real(other) == real(path);
    let mut of_project = client.project_files().iter();
    let is_of_project =
        of_project.any(|file| places.at_project(file).as_ref().is_some_and(is_same));
    if is_of_project || places.is_moved_into_a_tree(path) {
        return Some(StrangerReason::Project);
    }
    if !client.files(places).iter().any(is_same) {
        return Some(StrangerReason::Elsewhere);
    }
    let facts = fs::metadata(path).ok()?;
    let own = rustix::process::geteuid().as_raw();
    // Root needs no file of ours.
    if facts.uid() != own && facts.uid() != 0 {
        return Some(StrangerReason::Owner);
    }
    (facts.mode() & WRITABLE_BY_ALL != 0).then_some(StrangerReason::WritableByAll)
}

impl ClientLocations {
    /// Whether a variable of the environment makes this a client's own file, and leads into a
    /// working tree or next to the working directory: an unpacked archive has no mark that shows
    /// where it begins.
    fn is_moved_into_a_tree(&self, path: &Path) -> bool {
        let usual = self.at_home(".config");
        let moved = [
            Some(&self.config_dir).filter(|dir| Some(*dir) != usual.as_ref()),
            self.claude_config_dir.as_ref(),
            self.codex_home.as_ref(),
        ];
        moved.into_iter().flatten().any(|directory| {
            let real = real(directory);
            let in_tree = |tree: &PathBuf| real.starts_with(tree);
            path.starts_with(directory)
                && (self.working_trees.iter().any(in_tree) || self.is_beside_cwd(&real))
        })
    }

    /// Whether a directory and the working directory lie in one directory below the home, or
    /// both outside of it in one below the root.
    fn is_beside_cwd(&self, directory: &Path) -> bool {
        let cwd = real(&self.cwd);
        let home = self.home.as_deref().map(real);
        let below = |path: &Path| match &home {
            Some(home) if path.starts_with(home) => home.clone(),
            _ => PathBuf::from("/"),
        };
        let root = below(&cwd);
        let first = |path: &Path| {
            let mut parts = path.strip_prefix(&root).ok()?.components();
            parts.next().map(|part| part.as_os_str().to_owned())
        };
        root == below(directory) && first(&cwd).is_some() && first(&cwd) == first(directory)
    }
}

/// Without links, where it exists.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
