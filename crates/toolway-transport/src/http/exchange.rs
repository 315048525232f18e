//! One message sent by POST and everything that comes back for it; and the GET stream beside it.
//!
//! Owns reading answers, resuming a stream that was cut, and reporting the one failure a request
//! can have. Each function is a future that the channel's driver polls beside the others.

use std::time::Duration;

use futures_util::FutureExt as _;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use reqwest::Response;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use toolway_types::limits;
use toolway_wire::{Id, Message, envelope};

use super::body::{BodyError, bounded};
use super::endpoint::{Endpoint, HttpAnswer};
use super::session::{HttpSession, MessageRules};
use super::stream::watchdog::SilenceWatchdog;
use super::stream::{EventDecoder, EventTooLarge, StreamEvent};
use crate::channel::{ChannelEvent, OutgoingMessage, RequestTag, deliver};
use crate::credentials::CredentialsError;
use crate::error::SendFailure;
use crate::error_text::root_cause;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// How long is waited before a cut stream is resumed, when the server does not say.
const RETRY: Duration = Duration::from_secs(1);

/// The longest wait between two attempts, whatever the server says.
const MAX_RETRY: Duration = Duration::from_secs(30);

/// The longest wait that a server can ask for where it refuses a stream (`Retry-After`).
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// How often in a row one request's stream is resumed without anything new arriving. Servers may
/// end it after every event and say when to come back, so there is no limit to all of them.
const MAX_RESUMES: u32 = limits::connection::RESUMES;

/// The shortest wait once a stream was resumed that often, whatever the server says.
const MIN_RETRY: Duration = Duration::from_millis(100);

/// How long a stream is read on after its answer, so that the connection can be used again.
const AFTER_ANSWER: Duration = Duration::from_millis(250);

/// What an exchange needs of its channel.
#[derive(Clone)]
pub(super) struct ExchangeContext {
    pub(super) endpoint: Endpoint,
    pub(super) session: HttpSession,
    pub(super) events: mpsc::Sender<ChannelEvent>,
}

impl ExchangeContext {
    /// Posts one message and delivers what comes back.
    pub(super) async fn post(&self, outgoing: OutgoingMessage) -> Result<(), SendFailure> {
        let rules = MessageRules::of(&outgoing);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, BOTH);
        headers.insert(CONTENT_TYPE, JSON);
        headers.extend(outgoing.headers.iter().cloned());
        let had_session = rules == MessageRules::Legacy && self.session.has_id();
        if rules == MessageRules::Legacy {
            self.session.note_sent(&headers);
            self.session.stamp(&mut headers);
        }
        let within = self.endpoint.limits.within(outgoing.answer_timeout);
        let answer = self
            .endpoint
            .send(&Method::POST, &headers, Some(&outgoing.bytes), within)
            .await
            .map_err(|failure| self.with_session(failure, had_session))?;
        if rules == MessageRules::Legacy {
            // Before the message is delivered: its reader may send the next request at once.
            self.session.note_answer(match &answer {
                HttpAnswer::Json(response) | HttpAnswer::Stream(response) => response.headers(),
                HttpAnswer::Empty(headers) => headers,
            });
        }
        self.take(answer, &outgoing, rules).await
    }

    /// Delivers what an answer brings.
    pub(super) async fn take(
        &self,
        answer: HttpAnswer,
        outgoing: &OutgoingMessage,
        rules: MessageRules,
    ) -> Result<(), SendFailure> {
        match answer {
            HttpAnswer::Empty(_) if outgoing.tag.is_none() => Ok(()),
            HttpAnswer::Empty(_) => Err(SendFailure::Cut(
                "the server accepted the request without answering it".into(),
            )),
            HttpAnswer::Json(response) if outgoing.tag.is_none() => {
                // Nothing was requested, so the body answers nothing.
                let within = Some(self.endpoint.limits.first_byte);
                let _ = bounded(response, 64 * 1024, within).await;
                Ok(())
            }
            HttpAnswer::Json(response) => {
                let within = self.endpoint.limits.within(outgoing.answer_timeout);
                self.json(response, &AwaitedAnswer::by(outgoing), within)
                    .await
            }
            HttpAnswer::Stream(response) => {
                let awaited = outgoing.tag.map(|_| AwaitedAnswer::by(outgoing));
                self.answer_stream(response, rules, awaited.as_ref()).await
            }
        }
    }

    fn with_session(&self, mut failure: SendFailure, carried: bool) -> SendFailure {
        if let SendFailure::Status {
            status,
            had_session,
            ..
        } = &mut failure
        {
            *had_session = carried;
            // 2025-11-25, session management: the session has expired.
            if *status == 404 && carried {
                self.session.forget();
            }
        }
        failure
    }

    async fn json(
        &self,
        response: Response,
        awaited: &AwaitedAnswer,
        within: Option<Duration>,
    ) -> Result<(), SendFailure> {
        let limit = self.endpoint.limits.response;
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let body = bounded(response, limit, within)
            .await
            .map_err(|unread| match unread {
                BodyError::Stalled { after } => SendFailure::TimedOut { after },
                BodyError::TooLarge(_) => SendFailure::TooLarge { limit },
                BodyError::Cut(message) => SendFailure::Cut(message),
            })?;
        let text = body.trim_ascii_start();
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        match text.first() {
            Some(b'{' | b'[') => {
                let answered = awaited.is_answered_by(&body);
                let _ = deliver(&self.events, body, awaited.tag).await;
                if !answered {
                    // Nothing more can come for it.
                    let message = "the answer is not to this request";
                    return Err(SendFailure::Cut(message.to_owned()));
                }
            }
            None => return Err(SendFailure::Cut("the answer is empty".to_owned())),
            Some(_) => {
                let content_type = content_type.unwrap_or_default();
                return Err(SendFailure::NotMcp { content_type });
            }
        }
        Ok(())
    }

    /// Reads the stream that answers a request, resuming it where the era allows.
    async fn answer_stream(
        &self,
        mut response: Response,
        rules: MessageRules,
        awaited: Option<&AwaitedAnswer>,
    ) -> Result<(), SendFailure> {
        let mut decoder = EventDecoder::new(self.endpoint.limits.sse_event);
        let (mut resumes, mut in_vain) = (0_u32, 0);
        loop {
            let known = decoder.last_id().map(ToOwned::to_owned);
            let reading = awaited.map_or(ReadUntil::ToItsEnd, ReadUntil::UntilAnswer);
            let cut = match self.read(response, &mut decoder, reading).await {
                StreamEnd::Answered => return Ok(()),
                StreamEnd::TooLarge => {
                    return Err(SendFailure::TooLarge {
                        limit: self.endpoint.limits.sse_event,
                    });
                }
                StreamEnd::Ended if awaited.is_none() => return Ok(()),
                StreamEnd::Ended => "the stream ended before the answer".to_owned(),
                StreamEnd::Cut(message) => message,
            };
            if decoder.last_id() != known.as_deref() {
                in_vain = 0;
            }
            let mut asked = Duration::ZERO;
            response = loop {
                let Some(last_id) = decoder.last_id().filter(|_| rules == MessageRules::Legacy)
                else {
                    return Err(SendFailure::Cut(cut));
                };
                if in_vain == MAX_RESUMES {
                    return Err(SendFailure::Cut(cut));
                }
                let shortest = match resumes {
                    0..MAX_RESUMES => Duration::ZERO,
                    _ => MIN_RETRY,
                };
                resumes = resumes.saturating_add(1);
                in_vain += 1;
                let pause = decoder.retry().unwrap_or(RETRY).clamp(shortest, MAX_RETRY);
                sleep(pause.max(asked)).await;
                match self.get(Some(last_id)).await {
                    Ok(response) => break response,
                    // A status is final; anything else may be temporary.
                    Err(failure) if is_final(&failure) => return Err(SendFailure::Cut(cut)),
                    Err(failure) => asked = asked_for(&failure),
                }
            };
            decoder.restart();
        }
    }

    /// The stream on which a legacy server speaks unasked. Ends when the server offers none.
    pub(super) async fn listen(&self) {
        let mut decoder = EventDecoder::new(self.endpoint.limits.sse_event);
        let mut pause = RETRY;
        loop {
            let before = decoder.last_id().map(ToOwned::to_owned);
            let begun = Instant::now();
            let after = self.endpoint.limits.stream_idle;
            let opening = timeout(after, self.get(before.as_deref())).await;
            let asked = match opening.unwrap_or(Err(SendFailure::TimedOut { after })) {
                Ok(response) => {
                    decoder.restart();
                    self.read(response, &mut decoder, ReadUntil::Unasked).await;
                    Duration::ZERO
                }
                // 405 says that there is no such stream; other refusals are as final.
                Err(failure) if is_final(&failure) => return,
                Err(
                    SendFailure::NotMcp { .. }
                    | SendFailure::Redirected { .. }
                    | SendFailure::Denied { .. },
                ) => return,
                Err(failure) => asked_for(&failure),
            };
            // A server that closes its stream at once must not be asked again at once forever,
            // whatever it says about waiting.
            let was_useful = decoder.last_id() != before.as_deref() || begun.elapsed() > MAX_RETRY;
            if was_useful {
                pause = RETRY;
                let wait = decoder.retry().unwrap_or(pause).min(MAX_RETRY);
                sleep(wait.max(asked)).await;
            } else {
                let wait = decoder.retry().unwrap_or(pause).max(pause).min(MAX_RETRY);
                sleep(wait.max(asked)).await;
                pause = (pause * 2).min(MAX_RETRY);
            }
        }
    }

    async fn get(&self, last_id: Option<&str>) -> Result<Response, SendFailure> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, STREAM);
        self.session.stamp(&mut headers);
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        // Some servers send nothing on a GET stream, not even its head, before the first event.
        match self
            .endpoint
            .send(&Method::GET, &headers, None, None)
            .await?
        {
            HttpAnswer::Stream(response) => Ok(response),
            HttpAnswer::Json(_) | HttpAnswer::Empty(_) => Err(SendFailure::NotMcp {
                content_type: String::new(),
            }),
        }
    }

    /// Ends the session on the server.
    pub(super) async fn delete(&self) {
        let mut headers = HeaderMap::new();
        self.session.stamp(&mut headers);
        let within = Some(self.endpoint.limits.first_byte);
        let deleting = self.endpoint.send(&Method::DELETE, &headers, None, within);
        if let Err(failure) = deleting.await {
            // Servers need not allow it; the session ends by itself then.
            tracing::debug!(?failure, "the session was not deleted");
        }
    }

    /// Delivers the events of one connection.
    async fn read(
        &self,
        mut response: Response,
        decoder: &mut EventDecoder,
        reading: ReadUntil<'_>,
    ) -> StreamEnd {
        let limits = &self.endpoint.limits;
        // Opening this stream again costs nothing, so it is done even when it may be alive.
        let otherwise = matches!(reading, ReadUntil::Unasked).then_some(limits.stream_idle);
        let mut watchdog = SilenceWatchdog::new(limits.keepalive, otherwise);
        let during = match reading {
            ReadUntil::UntilAnswer(awaited) => awaited.tag,
            ReadUntil::ToItsEnd | ReadUntil::Unasked => None,
        };
        loop {
            let chunk = match watchdog.guard(decoder, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return StreamEnd::Ended,
                Ok(Err(error)) => return StreamEnd::Cut(root_cause(&error)),
                Err(silent) => return StreamEnd::Cut(silent.to_string()),
            };
            decoder.feed(&chunk);
            loop {
                match decoder.next_event() {
                    Ok(Some(StreamEvent::Message(data))) => {
                        let _ = deliver(&self.events, data.clone(), during).await;
                        if let ReadUntil::UntilAnswer(awaited) = reading
                            && awaited.is_answered_by(&data)
                        {
                            finish(response).await;
                            return StreamEnd::Answered;
                        }
                    }
                    Ok(Some(StreamEvent::Oversized(id_hint))) => {
                        let limit = limits.sse_event;
                        let event = ChannelEvent::Oversized { id_hint, limit };
                        let _ = self.events.send(event).await;
                    }
                    Ok(Some(StreamEvent::Endpoint(_))) => {}
                    Ok(None) => break,
                    // The call it most likely answers must not wait until all of it has come.
                    Err(EventTooLarge) if matches!(reading, ReadUntil::UntilAnswer(_)) => {
                        return StreamEnd::TooLarge;
                    }
                    Err(EventTooLarge) => decoder.skip(),
                }
            }
        }
    }
}

/// Whether asking for a stream again would end the same way. Too slow, too early, too many: all
/// of them pass.
fn is_final(failure: &SendFailure) -> bool {
    match failure {
        SendFailure::Status { status, .. } => *status < 500 && !matches!(status, 408 | 425 | 429),
        SendFailure::Credentials(error) => !matches!(error, CredentialsError::Unavailable(_)),
        _ => false,
    }
}

/// The wait that the server asked for.
fn asked_for(failure: &SendFailure) -> Duration {
    match failure {
        SendFailure::Status { retry_after, .. } => retry_after.unwrap_or_default(),
        _ => Duration::ZERO,
    }
    .min(MAX_RETRY_AFTER)
}

/// How long a stream is read.
#[derive(Debug, Clone, Copy)]
enum ReadUntil<'a> {
    /// It answers a request.
    UntilAnswer(&'a AwaitedAnswer),
    /// It follows a notification.
    ToItsEnd,
    /// The server speaks on it when it likes.
    Unasked,
}

enum StreamEnd {
    Answered,
    Ended,
    Cut(String),
    TooLarge,
}

/// The answer that a request waits for. A server may send others on the same stream, late ones
/// and wrong ones among them (REL-22); they must not end it.
#[derive(Debug)]
struct AwaitedAnswer {
    id: Option<Id>,
    tag: Option<RequestTag>,
}

impl AwaitedAnswer {
    fn by(outgoing: &OutgoingMessage) -> Self {
        let id = match envelope::parse(&outgoing.bytes) {
            Ok(Message::Request { id, .. }) => Some(id),
            _ => None,
        };
        Self {
            id,
            tag: outgoing.tag,
        }
    }

    fn is_answered_by(&self, data: &[u8]) -> bool {
        let answers = |bytes| match envelope::parse(bytes) {
            Ok(Message::Response { id: Some(id), .. }) => self.is(&id),
            _ => false,
        };
        match envelope::split_batch(data) {
            None => answers(data),
            Some(parts) => parts.iter().any(|part| answers(part.get().as_bytes())),
        }
    }

    /// Whether it is the same id, whatever type it came back with.
    fn is(&self, id: &Id) -> bool {
        let Some(asked) = &self.id else {
            return true;
        };
        id == asked || (id.as_ours().is_some() && id.as_ours() == asked.as_ours())
    }
}

/// Reads what little follows an answer; a server that keeps the stream open loses it.
async fn finish(mut response: Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _ = timeout(AFTER_ANSWER, rest.boxed()).await;
}
