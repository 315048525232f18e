//! A service linked into the host's own program, without sockets or pipes.

use std::sync::Arc;

use toolway::{InProcessServer, ServerEnd};

use crate::conversation::{Peer, Service};
use crate::ordered::OrderedClient;

/// The service as a server that a host can connect to. Every connection is a client of its own.
pub fn in_process(service: Arc<dyn Service>) -> InProcessServer {
    Arc::new(move |end| Box::pin(converse(Arc::clone(&service), end)))
}

/// Ends when either side closes; what still runs is then dropped, which cancels it.
async fn converse(service: Arc<dyn Service>, end: ServerEnd) {
    let ServerEnd {
        mut incoming,
        outgoing,
    } = end;
    let mut client = match OrderedClient::new(&*service, &Peer::owner("in-process")) {
        Ok(client) => client,
        Err(error) => {
            tracing::warn!(%error, "a client inside the program is turned away");
            return;
        }
    };
    let outlet = client.outlet().clone();
    let writing = async {
        while outgoing.send(outlet.next().await).await.is_ok() {
            outlet.written();
        }
    };
    let talking = async {
        loop {
            tokio::select! {
                message = incoming.recv(), if client.has_room() => match message {
                    Some(message) => client.accept(&message),
                    None => return,
                },
                () = client.carry_on() => {}
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = talking => {}
    }
}
