//! The way into one agent's endpoint: a unix socket in a private folder, for the program that is run
//! with it.
//!
//! Owns both of its ends: listening, and finding out who listens; the folder is
//! `agent_socket/folder.rs`. Framed like stdio, and it talks MCP:
//! what an agent's service answers and nothing else, so that nobody is an owner here.
//!
//! Invariants: the folder is ours and 0700, the socket ours and 0600; each end knows that the other is
//! the same user's before it reads a byte. A socket is taken away by whoever listens on it, unless
//! another one stands under its name by then.

mod folder;

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::AtFlags;
use tokio::net::{UnixListener, UnixStream};
use toolway_types::limits;

pub use self::folder::RunFolder;
use crate::conversation::{Peer, Service};
use crate::owner_socket::{SocketFolder, SocketFolderError, is_own, serve_connections, talk};
use crate::stdio::PipeTimes;

/// What the socket is called in its folder.
pub const NAME: &str = "mcp.sock";

/// What it is called until somebody listens.
const UNFINISHED: &str = "mcp.new";

/// A socket that is listened on. Dropping it takes it away.
#[derive(Debug)]
pub struct AgentSocket {
    folder: SocketFolder,
    listener: UnixListener,
    /// Tells it from one that took its place.
    inode: u64,
}

/// Why nobody is reached.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// Its folder cannot be used.
    #[error(transparent)]
    Folder(#[from] SocketFolderError),
    /// There is none.
    #[error("there is none")]
    Gone,
    /// It is there, and nobody listens, for the moment or for good.
    #[error("nobody listens there")]
    Nobody,
    /// Another user listens there.
    #[error("it is another user's (uid {uid})")]
    Stranger {
        /// Whose.
        uid: u32,
    },
    /// It cannot be connected to.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl AgentSocket {
    /// Listens in this folder, in the place of whoever listened there before.
    pub fn bind(folder: &Path) -> Result<Self, SocketFolderError> {
        let folder = SocketFolder::open(folder)?;
        folder.remove(UNFINISHED);
        let failed = |source| SocketFolderError::Socket {
            path: folder.path().to_owned(),
            source,
        };
        let listener = UnixListener::bind(folder.address(UNFINISHED)?).map_err(failed)?;
        let inode = inode(&folder, UNFINISHED).map_err(failed)?;
        folder.publish(UNFINISHED, NAME).map_err(failed)?;
        Ok(Self {
            folder,
            listener,
            inode,
        })
    }

    /// Serves whoever connects and is the same user, for as long as this is polled. All of them are
    /// `peer`.
    pub async fn serve(&self, service: Arc<dyn Service>, peer: &Peer) {
        serve_connections(
            &self.listener,
            limits::gateway::AGENT_CONNECTIONS,
            |stream| talk(Arc::clone(&service), peer, stream, PipeTimes::default()),
        )
        .await;
    }
}

impl Drop for AgentSocket {
    fn drop(&mut self) {
        if inode(&self.folder, NAME).is_ok_and(|inode| inode == self.inode) {
            self.folder.remove(NAME);
        }
    }
}

fn inode(folder: &SocketFolder, name: &str) -> io::Result<u64> {
    let facts = rustix::fs::statat(folder.directory(), name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(facts.st_ino)
}

/// Connects to the socket of an agent, if the same user listens there.
pub async fn reach(socket: &Path) -> Result<UnixStream, ReachError> {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(ReachError::Gone);
    };
    let Some(folder) = SocketFolder::open_if_there(folder)? else {
        return Err(ReachError::Gone);
    };
    let address = folder.address(&name.to_string_lossy())?;
    let stream = match UnixStream::connect(address).await {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ReachError::Gone),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(ReachError::Nobody);
        }
        Err(error) => return Err(error.into()),
    };
    let peer = stream.peer_cred()?;
    if is_own(&peer) {
        Ok(stream)
    } else {
        Err(ReachError::Stranger { uid: peer.uid() })
    }
}
