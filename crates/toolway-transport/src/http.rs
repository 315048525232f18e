//! Streamable HTTP: every message is a POST, every answer a document or a stream.
//!
//! Owns the channel: when the stream beside the messages opens, and the end. Messages in flight are
//! in [`posts`], how one goes in [`exchange`], what they share of a session in [`session`], requests
//! and redirects in [`endpoint`], what can go wrong with them in [`failure`], event streams in
//! [`stream`].

mod body;
pub(crate) mod endpoint;
mod exchange;
pub(crate) mod failure;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
pub(crate) mod posts;
mod session;
pub(crate) mod stream;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use toolway_types::RemoteSpec;

use crate::channel::{Channel, ChannelCommand, CommandInbox, OutgoingMessage, report_end};
use crate::error::{CloseReason, OpenError};
use crate::options::OpenOptions;
use endpoint::Endpoint;
use exchange::ExchangeContext;
use posts::PendingPosts;
use session::{HttpSession, MessageRules};

/// How long the end of a session may take.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Opens a channel. Nothing is sent before the first message.
pub(crate) fn open(spec: &RemoteSpec, options: &OpenOptions) -> Result<Channel, OpenError> {
    let endpoint = Endpoint::new(spec, options)?;
    Ok(Channel::driven(None, |commands, events| {
        let context = ExchangeContext {
            endpoint,
            session: HttpSession::default(),
            events,
        };
        drive(context, commands)
    }))
}

async fn drive(context: ExchangeContext, commands: mpsc::Receiver<ChannelCommand>) {
    let (mut inbox, mut posts) = (CommandInbox::new(commands), PendingPosts::default());
    let is_up = Arc::new(Notify::new());
    let post = |outgoing: OutgoingMessage| {
        let (context, is_up) = (context.clone(), Arc::clone(&is_up));
        async move {
            // The first notification a legacy client sends says that the session is up.
            let is_sign =
                outgoing.tag.is_none() && MessageRules::of(&outgoing) == MessageRules::Legacy;
            context.post(outgoing).await?;
            if is_sign && context.session.is_up() {
                is_up.notify_one();
            }
            Ok(())
        }
    };
    let listening = async {
        is_up.notified().await;
        context.listen().await;
        // The server offers no such stream.
        pending::<()>().await;
    };
    tokio::select! {
        () = posts.carry_down(&mut inbox, &context.events, post) => {}
        () = listening => {}
    }
    // Closing their streams cancels the requests.
    drop(posts);
    if context.session.has_id() {
        let _ = timeout(CLOSE_TIMEOUT, context.delete()).await;
    }
    report_end(&context.events, CloseReason::Asked).await;
}
