//! Whose a project's file is.
//!
//! Owns that one question, which git asks as `safe.directory`: a file in a directory above may be
//! another user's, who then chooses what runs here (SEC-55). The file and its directory must belong
//! to the person, or to the system; `safeDirectories` in the person's or the organisation's
//! settings says where others are trusted.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toolway_types::{Diagnosis, Origin};

use super::Loader;
use crate::Environment;
use crate::environment::PROJECT_FOLDER;
use crate::raw::keys::spelled_out;
use crate::raw::{self, FileKind, RawFile, Source};

/// Whether a file lies where a repository, or anybody who can write there, may have put it.
pub(super) fn is_projects(kind: FileKind) -> bool {
    matches!(
        kind,
        FileKind::Project | FileKind::Local | FileKind::Repository
    )
}

impl Loader<'_> {
    /// Who else a project's file belongs to, unless the person trusts its directory.
    pub(super) fn stranger(&self, path: &Path, file: &Metadata) -> Option<u32> {
        let owner = stranger(self.environment, path, file)?;
        let directory = project_of(path);
        let listed = self
            .layers
            .iter()
            .flat_map(|layer| &layer.settings.safe_directories);
        let listed = listed.map(|named| named.name.as_str());
        (!is_safe(self.environment, directory, listed)).then_some(owner)
    }

    /// The servers of another user's file, to be shown and not used; its settings say nothing.
    pub(super) fn strangers_file(
        &mut self,
        text: Option<String>,
        source: &Source,
        kind: FileKind,
        owner: u32,
    ) -> Option<RawFile> {
        let origin = source.origin(1);
        let directory = match &origin {
            Origin::File { path, .. } => project_of(path).to_path_buf(),
            _ => PathBuf::new(),
        };
        self.diagnoses.push(
            Diagnosis::warning(format!(
                "the file, or its directory, belongs to another user (id {owner}): nothing in it \
                 counts"
            ))
            .at(origin)
            .hint(format!(
                "if you trust that user, add `{}` to `safeDirectories` in your settings",
                spelled_out(&directory.to_string_lossy())
            )),
        );
        let read = raw::read(&text?, source, kind).ok()?;
        Some(RawFile {
            stranger: Some(owner),
            servers: read.servers,
            ..RawFile::default()
        })
    }
}

/// The directory whose project a file belongs to.
fn project_of(path: &Path) -> &Path {
    let folder = path.parent().unwrap_or(path);
    match folder.parent() {
        Some(project) if folder.ends_with(PROJECT_FOLDER) => project,
        _ => folder,
    }
}

/// The user id of somebody else, if a file or its directory is theirs. The facts are those of the
/// opened file, so nobody can change the answer afterwards.
fn stranger(environment: &Environment, path: &Path, file: &Metadata) -> Option<u32> {
    let directory = path.parent().and_then(|parent| parent.metadata().ok());
    let project = project_of(path).metadata().ok();
    // A link to the person's own file is still the word of whoever made the link.
    let link = path.symlink_metadata().ok();
    let owners = [
        Some(file),
        directory.as_ref(),
        project.as_ref(),
        link.as_ref(),
    ];
    let ours = us(environment);
    owners
        .into_iter()
        .flatten()
        .map(Metadata::uid)
        .find(|owner| *owner != 0 && !ours.contains(&Some(*owner)))
}

/// Who the person is: with `sudo`, also who they were before.
fn us(environment: &Environment) -> [Option<u32>; 2] {
    let now = rustix::process::geteuid().as_raw();
    let before = (now == 0)
        .then(|| environment.var("SUDO_UID")?.parse().ok())
        .flatten();
    [Some(now), before]
}

/// Whether a list of safe directories covers one: by its path, by `<path>/*` for everything below
/// it, or by `*`.
fn is_safe<'a>(
    environment: &Environment,
    directory: &Path,
    listed: impl Iterator<Item = &'a str>,
) -> bool {
    let real = |written: &str| {
        let below_home = written
            .strip_prefix('~')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let path = match (below_home, environment.home()) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(written),
        };
        path.canonicalize().ok().filter(|_| path.is_absolute())
    };
    let directory = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    listed.into_iter().any(|written| {
        if written == "*" {
            return true;
        }
        match written.strip_suffix("/*") {
            Some(parent) => real(parent).is_some_and(|parent| directory.starts_with(parent)),
            None => real(written).is_some_and(|safe| safe == directory),
        }
    })
}
