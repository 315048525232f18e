//! A service linked into the host's own program, without sockets or pipes.

use std::sync::Arc;

use toolway::{InProcessServer, ServerEnd};

use crate::serve::{ClientSession, Service};

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
    let mut conversation = ClientSession::new(service);
    let client = conversation.client().clone();
    let writing = async {
        while outgoing.send(client.next().await).await.is_ok() {
            client.written();
        }
    };
    let talking = async {
        loop {
            tokio::select! {
                message = incoming.recv(), if conversation.has_room() => match message {
                    Some(message) => conversation.accept(&message),
                    None => return,
                },
                () = conversation.carry_on() => {}
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = talking => {}
    }
}
