//! Legacy HTTP+SSE (2024-11-05): one long GET on which the server speaks, and POSTs to it.
//!
//! Owns the order of the two: the stream first, then the `endpoint` event that says where to post.
//! The stream *is* the connection: when it ends, so does the channel, and its opener opens another.
//! Requests, redirects and the decoder are those of [`crate::http`].

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method};
use reqwest::Response;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use toolway_types::{RemoteSpec, Untrusted};
use toolway_wire::envelope;
use url::Url;

use crate::channel::{
    Channel, ChannelCommand, ChannelEvent, ChannelLimits, CommandInbox, OutgoingMessage, QUEUE_LEN,
    RequestTag, report_end,
};
use crate::error::{CloseReason, OpenError, SendFailure};
use crate::error_text::root_cause;
use crate::http::endpoint::{Endpoint, HttpAnswer};
use crate::http::stream::watchdog::SilenceWatchdog;
use crate::http::stream::{EventDecoder, EventTooLarge, StreamEvent};
use crate::options::OpenOptions;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// How long later messages wait for a notification to arrive before them.
const NOTIFICATION_HOLD: Duration = Duration::from_secs(2);

/// Opens a channel. The stream is asked for as soon as the driver runs.
pub(crate) fn open(spec: &RemoteSpec, options: &OpenOptions) -> Result<Channel, OpenError> {
    let (commands, command_queue) = mpsc::channel(QUEUE_LEN);
    let (event_queue, events) = mpsc::channel(QUEUE_LEN);
    let endpoint = Endpoint::new(spec, options)?;
    let url = spec.url.clone();
    let driver = Box::pin(async move {
        let mut inbox = CommandInbox::new(command_queue);
        let reason = match inbox.while_opening(SseStream::open(&endpoint, &url)).await {
            None => CloseReason::Asked,
            Some(Err(reason)) => reason,
            Some(Ok((stream, target))) => match endpoint.at(target) {
                Ok(endpoint) => run(inbox, stream, PendingPosts::new(endpoint), &event_queue).await,
                Err(error) => CloseReason::Broken(error.to_string()),
            },
        };
        report_end(&event_queue, reason).await;
    });
    Ok(Channel {
        commands,
        events,
        driver,
        log: None,
    })
}

/// Carries messages both ways until one side ends.
async fn run(
    inbox: CommandInbox,
    stream: SseStream,
    posts: PendingPosts,
    events: &mpsc::Sender<ChannelEvent>,
) -> CloseReason {
    // Two loops side by side: a full queue in one direction must not hold up the other.
    tokio::select! {
        biased;
        reason = stream.carry_up(events) => reason,
        () = posts.carry_down(inbox, events) => CloseReason::Asked,
    }
}

/// The stream on which everything comes.
struct SseStream {
    response: Response,
    decoder: EventDecoder,
    watchdog: SilenceWatchdog,
    limits: ChannelLimits,
}

impl SseStream {
    /// Opens the stream and waits until it says where to post. A proxy that holds back the first
    /// bytes makes this fail in time, instead of leaving a session that never answers (REL-23).
    async fn open(endpoint: &Endpoint, url: &Url) -> Result<(Self, Url), CloseReason> {
        let opening = async {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, STREAM);
            let answer = endpoint.send(&Method::GET, &headers, None, None).await;
            let response = match answer.map_err(close_reason)? {
                HttpAnswer::Stream(response) => response,
                HttpAnswer::Json(_) | HttpAnswer::Empty(_) => {
                    let message = "the server answered something else than an event stream";
                    return Err(CloseReason::Broken(message.to_owned()));
                }
            };
            let limits = endpoint.limits.clone();
            let mut stream = Self {
                response,
                decoder: EventDecoder::new(limits.sse_event),
                watchdog: SilenceWatchdog::new(limits.keepalive, None),
                limits,
            };
            let target = stream.endpoint(url).await?;
            endpoint
                .admits(&target)
                .map_err(|message| CloseReason::Denied { message })?;
            Ok((stream, target))
        };
        let patience = endpoint.limits.first_byte;
        timeout(patience, opening).await.unwrap_or_else(|_| {
            Err(CloseReason::lost(format!(
                "no `endpoint` event within {} s; a proxy may be holding the stream back",
                patience.as_secs_f32()
            )))
        })
    }

    /// Waits for the event that says where to post. Only the same origin may be named: what is
    /// posted carries the configured headers.
    async fn endpoint(&mut self, url: &Url) -> Result<Url, CloseReason> {
        loop {
            let text = match self.next_event().await? {
                StreamEvent::Endpoint(data) => String::from_utf8_lossy(&data).into_owned(),
                // Nothing has been asked yet, so nothing else can matter.
                StreamEvent::Message(_) | StreamEvent::Oversized(_) => continue,
            };
            let target = self.response.url().join(text.trim()).ok();
            return target
                .filter(|target| target.origin() == url.origin())
                .ok_or_else(|| {
                    let shown = Untrusted::new(text.as_str());
                    CloseReason::Broken(format!(
                        "the server wants messages posted to another origin: `{}`",
                        shown.line()
                    ))
                });
        }
    }

    async fn carry_up(mut self, events: &mpsc::Sender<ChannelEvent>) -> CloseReason {
        loop {
            let event = match self.next_event().await {
                Ok(StreamEvent::Message(data)) => data,
                Ok(StreamEvent::Oversized(id_hint)) => {
                    let limit = self.limits.sse_event;
                    let _ = events
                        .send(ChannelEvent::Oversized { id_hint, limit })
                        .await;
                    continue;
                }
                // Only the first one counts; a server cannot move a session.
                Ok(StreamEvent::Endpoint(_)) => continue,
                Err(reason) => return reason,
            };
            let parts = match envelope::split_batch(&event) {
                None => vec![event],
                Some(parts) => parts
                    .iter()
                    .map(|part| bytes::Bytes::copy_from_slice(part.get().as_bytes()))
                    .collect(),
            };
            for part in parts {
                // A closed receiver means that the channel is about to end.
                if events.send(ChannelEvent::Message(part)).await.is_err() {
                    return CloseReason::Asked;
                }
            }
        }
    }

    /// The next event, or how the stream ended.
    async fn next_event(&mut self) -> Result<StreamEvent, CloseReason> {
        loop {
            match self.decoder.next_event() {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(EventTooLarge) => {
                    self.decoder.skip();
                    continue;
                }
            }
            let chunk = self.response.chunk();
            match self.watchdog.guard(&self.decoder, chunk).await {
                Ok(Ok(Some(chunk))) => self.decoder.feed(&chunk),
                Ok(Ok(None)) => return Err(CloseReason::EndOfStream { stderr: Vec::new() }),
                Ok(Err(error)) => return Err(CloseReason::lost(root_cause(&error))),
                Err(silent) => return Err(CloseReason::lost(silent.to_string())),
            }
        }
    }
}

/// What became of a message.
struct PostOutcome {
    tag: Option<RequestTag>,
    result: Result<(), SendFailure>,
}

/// The messages on their way to the server.
struct PendingPosts {
    endpoint: Endpoint,
    under_way: FuturesUnordered<BoxFuture<'static, PostOutcome>>,
    abort: HashMap<RequestTag, AbortHandle>,
    /// Until when later messages wait for a notification.
    held_until: Option<Instant>,
}

impl PendingPosts {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            under_way: FuturesUnordered::new(),
            abort: HashMap::new(),
            held_until: None,
        }
    }

    /// Posts until the end is asked for.
    async fn carry_down(mut self, mut inbox: CommandInbox, events: &mpsc::Sender<ChannelEvent>) {
        loop {
            let hold = self.held_until;
            tokio::select! {
                command = inbox.next(), if hold.is_none() => match command {
                    Some(ChannelCommand::Send(outgoing)) => self.start(outgoing),
                    // Its answer would come on the stream that all share; but a server that has
                    // not even taken it need not be waited for.
                    Some(ChannelCommand::Abandon(tag)) => {
                        if let Some(handle) = self.abort.remove(&tag) {
                            handle.abort();
                        }
                    }
                    None => break,
                },
                Some(posted) = self.under_way.next() => match (posted.tag, posted.result) {
                    (Some(tag), result) => {
                        self.abort.remove(&tag);
                        if let Err(failure) = result {
                            let _ = events.send(ChannelEvent::Failed { tag, failure }).await;
                        }
                    }
                    (None, Err(failure)) => {
                        tracing::debug!(?failure, "a notification was not delivered");
                        self.held_until = None;
                    }
                    (None, Ok(())) => self.held_until = None,
                },
                () = sleep_until(hold.unwrap_or_else(Instant::now)), if hold.is_some() => {
                    self.held_until = None;
                }
            }
        }
        // The last messages, such as cancellations, are still delivered.
        let rest = async { while self.under_way.next().await.is_some() {} };
        let _ = timeout(crate::http::CLOSE_TIMEOUT, rest).await;
    }

    fn start(&mut self, outgoing: OutgoingMessage) {
        let OutgoingMessage {
            bytes,
            tag,
            headers: own,
            answer_timeout,
        } = outgoing;
        if tag.is_none() {
            // `initialized` must not be overtaken by the first real request.
            self.held_until = Some(Instant::now() + NOTIFICATION_HOLD);
        }
        let endpoint = self.endpoint.clone();
        let (handle, registration) = AbortHandle::new_pair();
        if let Some(tag) = tag {
            self.abort.insert(tag, handle);
        }
        self.under_way.push(Box::pin(async move {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, JSON);
            headers.extend(own);
            let limit = endpoint.limits.within(answer_timeout);
            let posting = endpoint.deliver(&headers, &bytes, limit);
            // Aborted: no report is expected.
            let result = Abortable::new(posting, registration)
                .await
                .unwrap_or(Ok(()));
            PostOutcome { tag, result }
        }));
    }
}

/// Why the stream was not opened.
fn close_reason(failure: SendFailure) -> CloseReason {
    let shown = |text: &str| Untrusted::new(text).line().to_string();
    match failure {
        SendFailure::Unreachable { refused, message } => {
            CloseReason::Unreachable { refused, message }
        }
        SendFailure::Certificate { fault, message } => CloseReason::Certificate { fault, message },
        SendFailure::Cut(message) => CloseReason::lost(message),
        SendFailure::Credentials(error) => CloseReason::Credentials(error),
        SendFailure::TimedOut { after } => {
            CloseReason::lost(format!("no answer within {} s", after.as_secs_f32()))
        }
        SendFailure::Status {
            status,
            www_authenticate,
            body,
            retry_after,
            ..
        } => CloseReason::Refused {
            status,
            www_authenticate,
            body,
            retry_after,
        },
        SendFailure::NotMcp { content_type } => CloseReason::Broken(format!(
            "the server answered `{}`, which is not an event stream",
            shown(&content_type)
        )),
        SendFailure::Encoded { encoding } => CloseReason::Broken(format!(
            "the server compressed its answer (`{}`), which was not asked for",
            shown(&encoding)
        )),
        SendFailure::Redirected { location } => CloseReason::Broken(format!(
            "the server redirects to another origin: `{}`",
            shown(&location)
        )),
        SendFailure::Denied { message } => CloseReason::Denied { message },
        SendFailure::TooLarge { limit } => {
            CloseReason::Broken(format!("the answer is larger than {limit} bytes"))
        }
    }
}
