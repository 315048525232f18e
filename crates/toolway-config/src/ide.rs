//! Editors that run on this machine, found by their lock files.
//!
//! Owns which lock files are trusted, which of them are about this workspace, and how their editors
//! are reached. An editor writes `<port>.lock` below `ide/` of the config home or of Claude Code's.
//! It decides what is connected to and holds a token, so only the user's own files count.
//! Does not own: connecting. Nothing here opens a socket.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, geteuid, test_kill_process};
use serde::Deserialize;
use toolway_types::{Diagnosis, Origin, RemoteKind, Secret, Untrusted};

use crate::Environment;
use crate::error::{Distrust, FileReadError};
use crate::file::{MAX_BYTES, open_no_link, text_of};
use crate::http_syntax::header_value;

/// The header an editor's token goes in.
pub(crate) const TOKEN_HEADER: &str = "X-Claude-Code-Ide-Authorization";

/// More editors than run at once.
const ENOUGH: usize = 256;

/// One editor that runs.
#[derive(Debug, Clone)]
pub(crate) struct Editor {
    /// [`RemoteKind::WsIde`] or [`RemoteKind::SseIde`].
    pub(crate) kind: RemoteKind,
    pub(crate) port: u16,
    pub(crate) token: Option<Secret>,
    pub(crate) lock_file: PathBuf,
    /// Whether it has the working directory open.
    pub(crate) is_here: bool,
    name: String,
}

/// The editors that run, by port.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningEditors {
    found: Vec<Editor>,
    /// What is wrong with lock files.
    pub(crate) diagnoses: Vec<Diagnosis>,
}

/// A lock file, as editors write it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EditorLock {
    pid: i32,
    workspace_folders: Vec<PathBuf>,
    #[serde(default)]
    ide_name: String,
    /// The first editors wrote none, and spoke SSE.
    #[serde(default)]
    transport: EditorTransport,
    auth_token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EditorTransport {
    Ws,
    #[default]
    Sse,
}

impl Editor {
    /// Where it listens: always on this machine, by address.
    pub(crate) fn url(&self) -> String {
        match self.kind {
            RemoteKind::WsIde => format!("ws://127.0.0.1:{}", self.port),
            _ => format!("http://127.0.0.1:{}/sse", self.port),
        }
    }

    /// For messages.
    fn describe(&self) -> String {
        let name = Untrusted::new(self.name.as_str());
        format!("`{}` on port {}", name.line(), self.port)
    }
}

impl RunningEditors {
    /// Reads the lock files.
    pub(crate) fn look(environment: &Environment) -> Self {
        let mut editors = Self::default();
        for directory in directories(environment) {
            editors.read_directory(environment, &directory);
        }
        editors.found.sort_by_key(|editor| editor.port);
        editors
    }

    /// The editors that have the working directory open.
    pub(crate) fn here(&self) -> Vec<&Editor> {
        self.found.iter().filter(|editor| editor.is_here).collect()
    }

    /// The editor on a port.
    pub(crate) fn on_port(&self, port: u16) -> Option<&Editor> {
        self.found.iter().find(|editor| editor.port == port)
    }

    /// The one editor with the working directory that speaks this way, or why there is none.
    pub(crate) fn only(&self, kind: RemoteKind) -> Result<&Editor, String> {
        let here: Vec<_> = self.here();
        let fitting: Vec<_> = here.iter().filter(|editor| editor.kind == kind).collect();
        match (&fitting[..], &here[..]) {
            ([only], _) => Ok(only),
            ([], []) => Err("no editor with this workspace is running".to_owned()),
            ([], [other, ..]) => Err(format!(
                "the editor with this workspace ({}) speaks `{}`",
                other.describe(),
                other.kind.facts().word
            )),
            (several, _) => Err(ambiguous(several.iter().copied().copied())),
        }
    }

    fn read_directory(&mut self, environment: &Environment, directory: &Path) {
        let Ok(entries) = fs::read_dir(directory) else {
            return; // Most people have none.
        };
        let mut locks: Vec<(u16, PathBuf)> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                if path.extension() != Some(OsStr::new("lock")) {
                    return None;
                }
                let port = path.file_stem()?.to_str()?.parse().ok()?;
                Some((port, path))
            })
            .take(ENOUGH)
            .collect();
        // A lock file's name is the port that its token is sent to.
        if let Some(why) = fs::metadata(directory).ok().as_ref().and_then(distrust)
            && !locks.is_empty()
        {
            let message = format!("the editors' lock files here are not believed: {why}");
            let origin = Origin::file(directory, 1);
            let hint = format!("run `chmod 700 {}`", directory.display());
            self.diagnoses
                .push(Diagnosis::warning(message).at(origin).hint(hint));
            return;
        }
        locks.sort();
        for (port, path) in locks {
            match read(&path) {
                Ok(Some(lock)) => self.add(environment, port, path, lock),
                Ok(None) => {}
                Err(why) => self.diagnoses.push(
                    Diagnosis::warning(format!("the editor's lock file {why}"))
                        .at(Origin::file(path, 1))
                        .hint("delete it if that editor is not running; editors write a new one"),
                ),
            }
        }
    }

    fn add(&mut self, environment: &Environment, port: u16, lock_file: PathBuf, lock: EditorLock) {
        // Both directories may hold the same editor's.
        if !is_alive(lock.pid) || self.on_port(port).is_some() {
            return;
        }
        let is_here = lock.workspace_folders.iter().any(|folder| {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            folder.is_absolute() && environment.cwd().starts_with(folder)
        });
        self.found.push(Editor {
            kind: match lock.transport {
                EditorTransport::Ws => RemoteKind::WsIde,
                EditorTransport::Sse => RemoteKind::SseIde,
            },
            port,
            token: lock.auth_token.map(Secret::new),
            lock_file,
            is_here,
            name: lock.ide_name,
        });
    }
}

/// What to say when several would do.
pub(crate) fn ambiguous<'a>(editors: impl Iterator<Item = &'a Editor>) -> String {
    let names: Vec<_> = editors.map(Editor::describe).collect();
    format!(
        "several editors with this workspace are running: {}",
        names.join(", ")
    )
}

fn directories(environment: &Environment) -> Vec<PathBuf> {
    let claude = match environment.var("CLAUDE_CONFIG_DIR") {
        Some(directory) if !directory.is_empty() => Some(environment.cwd().join(directory)),
        _ => environment.home().map(|home| home.join(".claude")),
    };
    let own = Some(environment.config_home().to_path_buf());
    [own, claude]
        .into_iter()
        .flatten()
        .filter(|directory| !may_be_a_repositorys(environment, directory))
        .map(|directory| directory.join("ide"))
        .collect()
}

/// The folders where editors leave lock files, and the lock files that lie there.
pub(crate) fn lock_files(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    directories(environment).into_iter().flat_map(|folder| {
        let locks: Vec<PathBuf> = folder
            .read_dir()
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension() == Some(OsStr::new("lock")))
            .collect();
        std::iter::once(folder).chain(locks)
    })
}

/// Whether a repository could have brought the directory (SEC-08): its files belong to the user
/// as well.
fn may_be_a_repositorys(environment: &Environment, directory: &Path) -> bool {
    let root = environment.project_root();
    let real = directory.canonicalize();
    let directory = real.as_deref().unwrap_or(directory);
    // A project in the home directory has no other place.
    let holds_home = environment
        .home()
        .is_some_and(|home| home.starts_with(root));
    directory.starts_with(root) && !holds_home
}

/// Reads a lock file; `None` when its editor removed it meanwhile. The reason never repeats what
/// stands in it, which may be a token.
fn read(path: &Path) -> Result<Option<EditorLock>, String> {
    // Checked on the opened file itself, so that it cannot be swapped in between.
    let (file, facts) = match open_no_link(path) {
        Ok(opened) => opened,
        Err(FileReadError::Io(error)) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            return Err("is not believed: it is a symbolic link".to_owned());
        }
        Err(FileReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    if let Some(why) = distrust(&facts) {
        return Err(format!("is not believed: {why}"));
    }
    let text = text_of(file, &facts, MAX_BYTES).map_err(|error| error.to_string())?;
    let lock: EditorLock = serde_json::from_str(&text).map_err(|error| {
        format!(
            "is not understood (line {}): it needs `pid`, `workspaceFolders` and, if any, \
             `transport` as `ws` or `sse`",
            error.line()
        )
    })?;
    match lock.auth_token.as_deref().map(header_value) {
        Some(Err(why)) => Err(format!("is not usable: its `authToken` {why}")),
        _ => Ok(Some(lock)),
    }
}

/// Why a file may be another user's.
fn distrust(facts: &Metadata) -> Option<Distrust> {
    let (owner, expected) = (facts.uid(), geteuid().as_raw());
    let mode = facts.mode() & 0o7777;
    if owner != expected {
        Some(Distrust::Owner { owner, expected })
    } else if mode & 0o022 != 0 {
        Some(Distrust::Writable { mode })
    } else {
        None
    }
}

/// Whether a process runs, of any user.
fn is_alive(pid: i32) -> bool {
    // Numbers below one stand for groups of processes.
    let Some(pid) = (pid > 0).then(|| Pid::from_raw(pid)).flatten() else {
        return false;
    };
    !matches!(test_kill_process(pid), Err(Errno::SRCH))
}
