//! Streamable HTTP: every message is a POST, every answer a document or a stream.
//!
//! Owns the channel: which exchanges are in flight, in what order they start, and the end. One
//! driver polls them all; none is spawned. How one goes is in [`exchange`], what they share of a
//! session in [`session`], requests and redirects in [`endpoint`], what can go wrong with them in
//! [`failure`], event streams in [`stream`].

mod body;
pub(crate) mod endpoint;
mod exchange;
pub(crate) mod failure;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod session;
pub(crate) mod stream;

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use toolway_types::RemoteSpec;

use crate::channel::{
    Channel, ChannelCommand, ChannelEvent, OutgoingMessage, QUEUE_LEN, RequestTag, report_end,
};
use crate::error::{CloseReason, OpenError, SendFailure};
use crate::options::OpenOptions;
use endpoint::Endpoint;
use exchange::ExchangeContext;
use session::{HttpSession, MessageRules};

/// How long later messages wait for a notification to arrive before them.
const NOTIFICATION_HOLD: Duration = Duration::from_secs(2);

/// How long the end of a session may take.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Opens a channel. Nothing is sent before the first message.
pub(crate) fn open(spec: &RemoteSpec, options: &OpenOptions) -> Result<Channel, OpenError> {
    let (commands, command_queue) = mpsc::channel(QUEUE_LEN);
    let (event_queue, events) = mpsc::channel(QUEUE_LEN);
    let context = ExchangeContext {
        endpoint: Endpoint::new(spec, options)?,
        session: HttpSession::default(),
        events: event_queue,
    };
    let driver = Box::pin(RunningExchanges::new(context).run(command_queue));
    Ok(Channel {
        commands,
        events,
        driver,
        log: None,
    })
}

/// The exchanges that are running.
struct RunningExchanges {
    context: ExchangeContext,
    exchanges: FuturesUnordered<BoxFuture<'static, ExchangeEnd>>,
    abort: HashMap<RequestTag, AbortHandle>,
    /// The notification that later messages wait for, and until when.
    held_until: Option<Instant>,
    listens: bool,
}

/// How an exchange ended.
enum ExchangeEnd {
    /// A request; its failure has been reported.
    Request(RequestTag),
    /// A notification or an answer of ours.
    Untagged(MessageRules, Result<(), SendFailure>),
    /// The GET stream, which the server does not offer.
    Listening,
}

impl RunningExchanges {
    fn new(context: ExchangeContext) -> Self {
        Self {
            context,
            exchanges: FuturesUnordered::new(),
            abort: HashMap::new(),
            held_until: None,
            listens: false,
        }
    }

    async fn run(mut self, mut commands: mpsc::Receiver<ChannelCommand>) {
        loop {
            let hold = self.held_until;
            tokio::select! {
                command = commands.recv(), if hold.is_none() => match command {
                    Some(ChannelCommand::Send(outgoing)) => self.start(outgoing),
                    Some(ChannelCommand::Abandon(tag)) => {
                        if let Some(handle) = self.abort.remove(&tag) {
                            handle.abort();
                        }
                    }
                    None => break,
                },
                Some(landed) = self.exchanges.next() => self.land(landed),
                () = sleep_until(hold.unwrap_or_else(Instant::now)), if hold.is_some() => {
                    self.held_until = None;
                }
            }
        }
        // Dropping the exchanges closes their streams, which cancels the requests.
        self.exchanges.clear();
        if self.context.session.has_id() {
            let _ = timeout(CLOSE_TIMEOUT, self.context.delete()).await;
        }
        report_end(&self.context.events, CloseReason::Asked).await;
    }

    fn start(&mut self, outgoing: OutgoingMessage) {
        let context = self.context.clone();
        let Some(tag) = outgoing.tag else {
            // `initialized` must not be overtaken by the first real request.
            self.held_until = Some(Instant::now() + NOTIFICATION_HOLD);
            let rules = MessageRules::of(&outgoing);
            self.exchanges.push(Box::pin(async move {
                ExchangeEnd::Untagged(rules, context.post(outgoing).await)
            }));
            return;
        };
        let (handle, registration) = AbortHandle::new_pair();
        self.abort.insert(tag, handle);
        let exchange = async move {
            if let Err(failure) = context.post(outgoing).await {
                let _ = context
                    .events
                    .send(ChannelEvent::Failed { tag, failure })
                    .await;
            }
        };
        self.exchanges.push(Box::pin(async move {
            // Aborted: no report is expected.
            let _ = Abortable::new(exchange, registration).await;
            ExchangeEnd::Request(tag)
        }));
    }

    fn land(&mut self, landed: ExchangeEnd) {
        match landed {
            ExchangeEnd::Request(tag) => {
                self.abort.remove(&tag);
            }
            ExchangeEnd::Untagged(rules, result) => {
                self.held_until = None;
                match result {
                    Ok(()) if rules == MessageRules::Legacy => self.listen(),
                    Ok(()) => {}
                    Err(failure) => tracing::debug!(?failure, "a notification was not delivered"),
                }
            }
            ExchangeEnd::Listening => {}
        }
    }

    /// Opens the GET stream once the session is up: the first notification a legacy client sends
    /// says that it is.
    fn listen(&mut self) {
        if self.listens || !self.context.session.is_up() {
            return;
        }
        self.listens = true;
        let context = self.context.clone();
        self.exchanges.push(Box::pin(async move {
            context.listen().await;
            ExchangeEnd::Listening
        }));
    }
}
