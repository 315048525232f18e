//! Who owns a project's file.
//!
//! A file in a directory above may be another user's, who then chooses what runs here (SEC-55; git
//! calls it `safe.directory`). The file and its directory must belong to the user, or to the
//! system; `safeDirectories` in the user's or the organisation's settings names exceptions.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

#[cfg(not(target_os = "linux"))]
use rustix::fs::{AtFlags, statat};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, readlinkat};
use toolway_types::{Diagnosis, Origin};

use super::Loader;
use crate::Environment;
use crate::environment::{PROJECT_FOLDER, agents_project};
use crate::error::FileReadError;
use crate::file;
use crate::keys::spelled_out;
use crate::raw::{self, RawFile};
use crate::source::{FileKind, TextSource};

/// Whether a file is where a repository may have put it.
pub(super) fn is_projects(kind: FileKind) -> bool {
    matches!(
        kind,
        FileKind::Project | FileKind::Local | FileKind::Repository
    )
}

/// A project's file as it was opened.
pub(super) struct OpenedProjectFile {
    pub(super) file: Result<(File, Metadata), FileReadError>,
    /// All owners involved: of the project, its folder, links and the file.
    owners: Vec<u32>,
}

/// Opens a project's file step by step, so that its owner cannot change between checking and
/// opening. A link to the user's own file counts as its creator's.
pub(super) fn open_in_project(path: &Path) -> OpenedProjectFile {
    let mut owners = Vec::new();
    let file = walk(path, &mut owners);
    OpenedProjectFile { file, owners }
}

fn walk(path: &Path, owners: &mut Vec<u32>) -> Result<(File, Metadata), FileReadError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(FileReadError::NotAFile);
    };
    let project = project_of(path);
    let project_folder = directory(CWD, project.as_os_str(), owners)?;
    let folder = match folder.strip_prefix(project) {
        Ok(below) if !below.as_os_str().is_empty() => {
            directory(&project_folder, below.as_os_str(), owners)?
        }
        _ => project_folder,
    };
    let target = look(&folder, name, owners)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match target {
        // The user's own link may lead anywhere.
        Some(target) => openat(&folder, target.as_str(), flags, Mode::empty()),
        None => openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty()),
    };
    let file = File::from(opened.map_err(io::Error::from)?);
    let facts = file.metadata()?;
    owners.push(facts.uid());
    if facts.is_file() {
        Ok((file, facts))
    } else {
        Err(FileReadError::NotAFile)
    }
}

/// A directory that is only passed through need not be readable.
#[cfg(target_os = "linux")]
const PASSED: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASSED: OFlags = OFlags::RDONLY;

fn directory(at: impl AsFd, name: &OsStr, owners: &mut Vec<u32>) -> Result<OwnedFd, FileReadError> {
    let target = look(&at, name, owners)?;
    let flags = PASSED | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match target {
        Some(target) => openat(&at, target.as_str(), flags, Mode::empty()),
        None => openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty()),
    };
    let opened = opened.map_err(io::Error::from)?;
    owners.push(fstat(&opened).map_err(io::Error::from)?.st_uid);
    Ok(opened)
}

/// Records the owner of a name, and returns the target if it is a link: both of the same link.
fn look(
    at: impl AsFd,
    name: &OsStr,
    owners: &mut Vec<u32>,
) -> Result<Option<String>, FileReadError> {
    #[cfg(target_os = "linux")]
    let (facts, read) = {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(&at, name, flags, Mode::empty()).map_err(io::Error::from)?;
        let facts = fstat(&handle).map_err(io::Error::from)?;
        (facts, move || readlinkat(handle, "", Vec::new()))
    };
    #[cfg(not(target_os = "linux"))]
    let (facts, read) = {
        let facts = statat(&at, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from)?;
        (facts, || readlinkat(&at, name, Vec::new()))
    };
    owners.push(facts.st_uid);
    if FileType::from_raw_mode(facts.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    let target = read().map_err(io::Error::from)?;
    // A link to a name that is not text leads nowhere that we know.
    target
        .into_string()
        .map(Some)
        .map_err(|_| FileReadError::Link)
}

/// The owner of a project's file, or of the place where it would be, if that is another user and
/// neither the user nor the organisation trusts that directory.
pub(crate) fn strangers_place(environment: &Environment, path: &Path) -> Option<u32> {
    let mut loader = Loader::new(environment);
    loader.system();
    loader.user();
    loader.stranger(path, &open_in_project(path))
}

/// A file that a repository may have put where it is, and the other user whose it is, if it is one's
/// whom nobody trusts here.
pub(crate) fn read_in_project(
    environment: &Environment,
    path: &Path,
) -> (Option<u32>, Result<Option<String>, FileReadError>) {
    let mut loader = Loader::new(environment);
    loader.system();
    loader.user();
    let opened = open_in_project(path);
    let stranger = loader.stranger(path, &opened);
    (stranger, file::read_opened(opened.file, file::MAX_BYTES))
}

impl Loader<'_> {
    /// Another user who owns a project's file, unless its directory is trusted.
    pub(super) fn stranger(&self, path: &Path, opened: &OpenedProjectFile) -> Option<u32> {
        let ours = self.environment.owners();
        let owner = opened.owners.iter().copied().find(|id| !ours.are(*id))?;
        let listed = self
            .layers
            .iter()
            .flat_map(|layer| &layer.settings.safe_directories);
        let listed = listed.map(|named| named.name.as_str());
        (!is_safe(self.environment, project_of(path), listed)).then_some(owner)
    }

    /// The servers of another user's file, to be shown and not used; its settings say nothing.
    pub(super) fn strangers_file(
        &mut self,
        text: Option<String>,
        source: &TextSource,
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
        _ => agents_project(path),
    }
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
