//! Listening on the owner's socket.
//!
//! Owns making the socket, letting nobody but its user in, and the bounds: connections, and how long
//! one may say nothing. The length of messages is stdio's.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::{UnixListener, UnixStream};
use toolway_types::limits;

use super::client::is_own;
use super::folder::{SocketFolder, SocketFolderError};
use crate::conversation::{Peer, Service};
use crate::stdio::{PipeTimes, serve_within};

/// How many connections there are at a time; more wait.
const MAX_CONNECTIONS: usize = limits::gateway::OWNER_CONNECTIONS;

/// How long connections may say nothing.
const TIMES: PipeTimes = PipeTimes {
    first: Some(limits::gateway::OWNER_FIRST),
    idle: Some(limits::gateway::OWNER_IDLE),
};

/// How long to wait when no connection can be taken, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket that is listened on. Dropping it takes it away.
#[derive(Debug)]
pub struct OwnerSocket {
    folder: SocketFolder,
    name: String,
    listener: UnixListener,
}

impl OwnerSocket {
    /// Makes a socket of this process in the folder. What dead processes left there is removed.
    pub async fn bind(folder: &Path) -> Result<Self, SocketFolderError> {
        let folder = SocketFolder::open(folder)?;
        // Those who are there are not disturbed: nothing is said to them.
        drop(folder.gateways().await);
        let failed = |source| SocketFolderError::Socket {
            path: folder.path().to_owned(),
            source,
        };
        let (name, unfinished) = SocketFolder::new_name().map_err(failed)?;
        let address = folder.address(&unfinished)?;
        let listener = UnixListener::bind(address).map_err(failed)?;
        if let Err(error) = folder.publish(&unfinished, &name) {
            folder.remove(&unfinished);
            return Err(failed(error));
        }
        Ok(Self {
            folder,
            name,
            listener,
        })
    }

    /// Serves whoever connects and is the same user, for as long as this is polled.
    pub async fn serve(&self, service: Arc<dyn Service>) {
        let peer = Peer::owner("owner");
        serve_connections(&self.listener, MAX_CONNECTIONS, |stream| {
            talk(Arc::clone(&service), &peer, stream, TIMES)
        })
        .await;
    }
}

/// Talks with all who connect, so many at a time, for as long as this is polled.
pub(crate) async fn serve_connections<Talk: Future<Output = ()>>(
    listener: &UnixListener,
    most: usize,
    talk: impl Fn(UnixStream) -> Talk,
) {
    let mut talking = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if talking.len() < most => match accepted {
                Ok((stream, _)) => talking.push(talk(stream)),
                Err(error) => {
                    tracing::warn!(%error, "a socket takes no connection");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(()) = talking.next() => {}
        }
    }
}

impl Drop for OwnerSocket {
    fn drop(&mut self) {
        self.folder.remove(&self.name);
    }
}

/// Talks with one who connected, if it is the same user.
pub(crate) async fn talk(
    service: Arc<dyn Service>,
    peer: &Peer,
    mut stream: UnixStream,
    times: PipeTimes,
) {
    match stream.peer_cred() {
        Ok(other) if is_own(&other) => {}
        Ok(other) => {
            tracing::warn!(uid = other.uid(), "another user is turned away");
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "whose connection it is cannot be told");
            return;
        }
    }
    let (input, output) = stream.split();
    let ended = serve_within(service, peer, input, output, times).await;
    if let Err(error) = ended
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        tracing::debug!(%error, "a connection ended");
    }
}
