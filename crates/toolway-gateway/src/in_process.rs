//! A service linked into the host's own program, without sockets or pipes.

use std::sync::Arc;

use toolway::{InProcessServer, ServerEnd};

use crate::serve::{Conversation, Service};

/// The service as a server that a host can connect to. Every connection is a client of its own.
pub fn in_process(service: Arc<dyn Service>) -> InProcessServer {
    Arc::new(move |end| Box::pin(converse(Arc::clone(&service), end)))
}

/// Ends when either side closes; what still runs is then dropped, which cancels it.
async fn converse(service: Arc<dyn Service>, mut end: ServerEnd) {
    let mut conversation = Conversation::new(service);
    loop {
        let answer = tokio::select! {
            message = end.incoming.recv(), if conversation.has_room() => match message {
                Some(message) => conversation.accept(&message),
                None => return,
            },
            answer = conversation.answer() => Some(answer),
        };
        if let Some(answer) = answer
            && end.outgoing.send(answer).await.is_err()
        {
            return;
        }
    }
}
