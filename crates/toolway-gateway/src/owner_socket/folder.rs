//! The folder of owners' sockets: names, and which of them somebody listens on.
//!
//! Owns that nothing in it is trusted for its name: what is no socket of ours is left alone, and a
//! dead process's socket is removed. Never guesses by process ids.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use tokio::net::UnixStream;
use toolway_files::private_file;

use super::client::{OwnerCallError, OwnerClient};

/// How the name of a socket ends that somebody listens on.
const SOCKET: &str = "sock";

/// How it ends before that.
const UNFINISHED: &str = "new";

/// After this nobody is about to listen on it.
const ABANDONED: Duration = Duration::from_mins(1);

/// The longest path of a socket, with the zero behind it, where the shortest system draws the line.
const MAX_PATH: usize = 104;

/// The most sockets that are looked at.
const MOST: usize = 256;

/// The folder, open and ours.
#[derive(Debug)]
pub struct SocketFolder {
    directory: OwnedFd,
    path: PathBuf,
}

/// Why there is no way in.
#[derive(Debug, thiserror::Error)]
pub enum SocketFolderError {
    /// The folder cannot be used.
    #[error("the folder `{}` of the owner's sockets cannot be used: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The path of a socket there would be too long for the system.
    #[error(
        "the folder `{}` has too long a path for a socket, and this system offers no shorter one",
        path.display()
    )]
    TooLong {
        /// Which.
        path: PathBuf,
    },
    /// The socket could not be made.
    #[error("no socket could be made in `{}`: {source}", path.display())]
    Socket {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A gateway whose socket is there.
#[derive(Debug)]
pub struct FoundGateway {
    /// What its socket is called.
    pub name: String,
    /// The way in, or why there is none.
    pub reached: Result<OwnerClient, OwnerCallError>,
}

/// What came of connecting to one socket.
#[derive(Debug)]
pub enum Reached {
    /// Somebody is there.
    Gateway(Box<FoundGateway>),
    /// Nobody listens, or it is nothing of ours.
    Nothing,
}

impl SocketFolder {
    /// Opens the folder, made for one user where it is absent, and closes it to others.
    pub fn open(path: &Path) -> Result<Self, SocketFolderError> {
        match private_file::open_directory(path) {
            Ok(directory) => Ok(Self::of(directory, path)),
            Err(source) => Err(unusable(path, source)),
        }
    }

    /// The same where there is one: where nothing ever served, there is none.
    pub fn open_if_there(path: &Path) -> Result<Option<Self>, SocketFolderError> {
        match private_file::open_directory_if_there(path) {
            Ok(directory) => Ok(directory.map(|directory| Self::of(directory, path))),
            Err(source) => Err(unusable(path, source)),
        }
    }

    fn of(directory: OwnedFd, path: &Path) -> Self {
        let path = path.to_owned();
        Self { directory, path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// What a socket there is bound or connected by. By the open folder, where the system has such
    /// paths: they are short, and lead to the folder that was looked at whatever became of its path.
    pub(crate) fn address(&self, name: &str) -> Result<PathBuf, SocketFolderError> {
        let descriptor = self.directory.as_fd().as_raw_fd();
        let open = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
        let address = if open.is_dir() {
            open.join(name)
        } else {
            self.path.join(name)
        };
        if address.as_os_str().len() >= MAX_PATH {
            let path = self.path.clone();
            return Err(SocketFolderError::TooLong { path });
        }
        Ok(address)
    }

    /// A name that is free, and what it is called until somebody listens.
    pub(super) fn new_name() -> io::Result<(String, String)> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let base = format!("{}-{}", machine(), hex::encode(random));
        Ok((format!("{base}.{SOCKET}"), format!("{base}.{UNFINISHED}")))
    }

    /// Lets a socket be seen: ours alone, and under its name.
    pub(crate) fn publish(&self, unfinished: &str, name: &str) -> io::Result<()> {
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::chmodat(&self.directory, unfinished, mode, AtFlags::empty())?;
        rustix::fs::renameat(&self.directory, unfinished, &self.directory, name)?;
        Ok(())
    }

    /// Takes a name away; that it is gone already is fine.
    pub(crate) fn remove(&self, name: &str) {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => tracing::debug!(name, %error, "a socket could not be removed"),
        }
    }

    /// All gateways of this user that can be found, by the names of their sockets. What dead
    /// processes left is removed.
    pub async fn gateways(&self) -> Vec<FoundGateway> {
        let names = self.names();
        for name in names.iter().filter(|name| has_ending(name, UNFINISHED)) {
            self.sweep_unfinished(name);
        }
        let sockets = names.iter().filter(|name| has_ending(name, SOCKET));
        let reached = join_all(sockets.map(|name| self.reach(name))).await;
        let found = reached.into_iter().filter_map(|reached| match reached {
            Reached::Gateway(found) => Some(*found),
            Reached::Nothing => None,
        });
        found.collect()
    }

    fn names(&self) -> Vec<String> {
        let entries = rustix::fs::Dir::read_from(&self.directory);
        let entries = entries.into_iter().flatten().filter_map(Result::ok);
        let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        let mut names: Vec<String> = names
            .filter(|name| has_ending(name, SOCKET) || has_ending(name, UNFINISHED))
            .take(MOST)
            .collect();
        names.sort_unstable();
        names
    }

    /// Connects to one socket.
    pub async fn reach(&self, name: &str) -> Reached {
        let is_ours = self.stat(name).is_some_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Socket && is_own(&stat)
        });
        if !is_ours {
            tracing::warn!(name, "what lies among the owner's sockets is none of ours");
            return Reached::Nothing;
        }
        let reached = match self.address(name) {
            Ok(address) => UnixStream::connect(address).await,
            Err(error) => Err(io::Error::other(error)),
        };
        let reached = match reached {
            Ok(stream) => OwnerClient::over(stream),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // Its process is dead. On a disk that machines share it may be another's, which
                // only that one can tell.
                if name.starts_with(&machine()) {
                    self.remove(name);
                }
                return Reached::Nothing;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Reached::Nothing,
            Err(error) => Err(OwnerCallError::Unreachable(error)),
        };
        let name = name.to_owned();
        Reached::Gateway(Box::new(FoundGateway { name, reached }))
    }

    /// Removes what a process left that died before it listened.
    fn sweep_unfinished(&self, name: &str) {
        let age = self.stat(name).filter(is_own).and_then(|stat| {
            let changed = Duration::from_secs(u64::try_from(stat.st_mtime).ok()?);
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            now.ok()?.checked_sub(changed)
        });
        if age.is_some_and(|age| age > ABANDONED) {
            self.remove(name);
        }
    }

    fn stat(&self, name: &str) -> Option<Stat> {
        rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }
}

fn unusable(path: &Path, source: io::Error) -> SocketFolderError {
    let path = path.to_owned();
    // A link is refused by the system in words that nobody understands.
    let source = match fs::symlink_metadata(&path) {
        Ok(facts) if facts.is_symlink() => io::Error::other("a link lies in its place"),
        Ok(facts) if !facts.is_dir() => io::Error::other("something else lies in its place"),
        _ => source,
    };
    SocketFolderError::Folder { path, source }
}

fn is_own(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == ending)
}

/// This machine, as names begin here.
fn machine() -> String {
    let name = rustix::system::uname();
    let digest = Sha256::digest(name.nodename().to_bytes());
    hex::encode(&digest[..4])
}
