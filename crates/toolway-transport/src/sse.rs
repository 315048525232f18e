//! Legacy HTTP+SSE (2024-11-05): one long GET on which the server speaks, and POSTs to it.
//!
//! Owns the order of the two: the stream first, then the `endpoint` event that says where to post.
//! The stream *is* the connection: when it ends, so does the channel, and its opener opens another.
//! Requests, redirects and the decoder are those of [`crate::http`].

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method};
use reqwest::Response;
use tokio::sync::mpsc;
use tokio::time::timeout;
use toolway_types::{RemoteSpec, Untrusted};
use url::Url;

use crate::channel::{
    Channel, ChannelEvent, ChannelLimits, CommandInbox, OutgoingMessage, deliver, report_end,
};
use crate::error::{CloseReason, OpenError, SendFailure};
use crate::error_text::root_cause;
use crate::http::CLOSE_TIMEOUT;
use crate::http::endpoint::{Endpoint, HttpAnswer};
use crate::http::posts::PendingPosts;
use crate::http::stream::watchdog::SilenceWatchdog;
use crate::http::stream::{EventDecoder, EventTooLarge, StreamEvent};
use crate::options::OpenOptions;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Opens a channel. The stream is asked for as soon as the driver runs.
pub(crate) fn open(spec: &RemoteSpec, options: &OpenOptions) -> Result<Channel, OpenError> {
    let endpoint = Endpoint::new(spec, options)?;
    let url = spec.url.clone();
    Ok(Channel::driven(None, |commands, events| async move {
        let mut inbox = CommandInbox::new(commands);
        let reason = match inbox.while_opening(SseStream::open(&endpoint, &url)).await {
            None => CloseReason::Asked,
            Some(Err(reason)) => reason,
            Some(Ok((stream, target))) => match endpoint.at(target) {
                // Two loops side by side: a full queue in one direction must not hold up the other.
                Ok(endpoint) => tokio::select! {
                    biased;
                    reason = stream.carry_up(&events) => reason,
                    () = carry_down(&endpoint, inbox, &events) => CloseReason::Asked,
                },
                Err(error) => CloseReason::Broken(error.to_string()),
            },
        };
        report_end(&events, reason).await;
    }))
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
            endpoint.admits(&target)?;
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
            if deliver(events, event, None).await.is_err() {
                return CloseReason::Asked;
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

/// Posts until the end is asked for. An abandoned request's answer would come on the stream that
/// all share; but a server that has not even taken it need not be waited for.
async fn carry_down(
    endpoint: &Endpoint,
    mut inbox: CommandInbox,
    events: &mpsc::Sender<ChannelEvent>,
) {
    let mut posts = PendingPosts::default();
    let post = |outgoing: OutgoingMessage| {
        let endpoint = endpoint.clone();
        async move {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, JSON);
            headers.extend(outgoing.headers);
            let limit = endpoint.limits.within(outgoing.answer_timeout);
            endpoint.deliver(&headers, &outgoing.bytes, limit).await
        }
    };
    posts.carry_down(&mut inbox, events, post).await;
    // The last messages, such as cancellations, are still delivered.
    posts.finish(CLOSE_TIMEOUT).await;
}

/// Why the stream was not opened.
fn close_reason(failure: SendFailure) -> CloseReason {
    match failure {
        SendFailure::Cut(message) => CloseReason::lost(message),
        SendFailure::TimedOut { .. } => CloseReason::lost(failure.to_string()),
        SendFailure::NotMcp { content_type } => CloseReason::Broken(format!(
            "the server answered `{}`, which is not an event stream",
            Untrusted::new(content_type).line()
        )),
        SendFailure::Encoded { .. }
        | SendFailure::Redirected { .. }
        | SendFailure::TooLarge { .. } => CloseReason::Broken(failure.to_string()),
        failure => CloseReason::Failed(failure),
    }
}
