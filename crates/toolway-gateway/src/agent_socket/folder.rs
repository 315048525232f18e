//! The private folder of one run: its socket, the file for clients, and the lock that says whose it is.
//!
//! Owns what is in it and that it goes: with the run, with what serves it, and where both were killed
//! at once, with the next run. Where folders may be is for who makes one to say.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use serde_json::json;
use toolway_files::private_file;

use super::{NAME, UNFINISHED};
use crate::owner_socket::SocketFolderError;

/// The file that clients read.
const CONFIG: &str = "mcp.json";
/// Held for as long as the run.
const LOCK: &str = "lock";
/// All that is ever in it.
const FILES: [&str; 4] = [NAME, UNFINISHED, CONFIG, LOCK];

/// The longest path of a socket that every client can connect to.
const MAX_PATH: usize = 100;

/// A folder without a lock that is older is nobody's.
const ABANDONED: Duration = Duration::from_mins(1);

/// How often one is made whose lock somebody else had.
const TRIES: u32 = 8;

/// A run's folder. Dropping it takes it away.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Makes one in the first of these places whose path is short enough, and takes away what killed
    /// runs left in any of them.
    pub fn make(places: &[PathBuf]) -> Result<Self, SocketFolderError> {
        for place in places {
            sweep(place);
        }
        let fits = |place: &&PathBuf| {
            let socket = place.join("0123456789ab").join(NAME);
            socket.as_os_str().len() < MAX_PATH
        };
        let Some(place) = places.iter().find(fits) else {
            let path = places.first().cloned().unwrap_or_default();
            return Err(SocketFolderError::TooLong { path });
        };
        let failed = |source| SocketFolderError::Folder {
            path: place.clone(),
            source,
        };
        // The folder above as well: nobody else is to see which runs there are.
        private_file::open_directory(place).map_err(failed)?;
        for _ in 0..TRIES {
            if let Some(made) = Self::made(place).map_err(failed)? {
                return Ok(made);
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// One more; nothing where another run took it for abandoned before it was locked.
    fn made(place: &Path) -> io::Result<Option<Self>> {
        let mut random = [0; 6];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let path = place.join(hex::encode(random));
        let directory = private_file::open_directory(&path)?;
        let lock = private_file::open_file(&directory, LOCK, OFlags::RDWR | OFlags::CREATE)?;
        lock.lock()?;
        Ok(path
            .join(LOCK)
            .exists()
            .then_some(Self { path, _lock: lock }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where clients connect.
    pub fn socket(&self) -> PathBuf {
        self.path.join(NAME)
    }

    /// Where clients read how.
    pub fn config(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    /// Writes the file for clients that are told of servers by one: this command, which talks to the
    /// endpoint over its stdin and stdout.
    pub fn write_config(&self, command: &[String]) -> io::Result<()> {
        let (program, words) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let config = json!({ "mcpServers": { "toolway": { "command": program, "args": words } } });
        let directory = private_file::open_directory(&self.path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = private_file::open_file(&directory, CONFIG, flags)?;
        file.write_all(format!("{config:#}\n").as_bytes())
    }

    /// Takes the folder of a run away if its process is gone.
    pub fn remove_if_abandoned(folder: &Path) {
        let lock = File::open(folder.join(LOCK));
        // Held while it goes, so that whoever sweeps sees that.
        if lock.as_ref().is_ok_and(|lock| lock.try_lock().is_ok()) {
            Self::remove(folder);
        }
    }

    /// Takes the folder of a run away whose process is gone. That it is gone already is fine.
    fn remove(folder: &Path) {
        for name in FILES {
            let _ = fs::remove_file(folder.join(name));
        }
        let _ = fs::remove_dir(folder);
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        Self::remove(&self.path);
    }
}

/// Takes away what runs left that were killed together with what served them.
fn sweep(place: &Path) {
    // Only what is ours: anybody may make a folder of that name in `/tmp`.
    let Ok(Some(_)) = private_file::open_directory_if_there(place) else {
        return;
    };
    let entries = place.read_dir().into_iter().flatten();
    for folder in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        // Held while its folder goes, so that whoever makes it sees that.
        let lock = File::open(folder.join(LOCK));
        let is_nobodys = if let Ok(lock) = &lock {
            lock.try_lock().is_ok()
        } else {
            let made = folder.metadata().and_then(|facts| facts.modified()).ok();
            let age = made.and_then(|made| SystemTime::now().duration_since(made).ok());
            age.is_some_and(|age| age > ABANDONED)
        };
        if is_nobodys {
            RunFolder::remove(&folder);
        }
    }
}
