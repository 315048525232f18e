//! Answers over HTTP: their heads and bodies.
//!
//! Owns the forms that a body can have, and the heads that go with them. A large payload is sent as
//! the bytes it came in, between what stands before and behind it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use toolway_wire::Id;
use toolway_wire::headers::SESSION_ID;

use super::events::EventStream;
use crate::conversation::Answer;

/// From this size on, a payload is not copied.
const LARGE: usize = 16 * 1024;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// An answer as it is sent.
pub(super) type HttpResponse = Response<AnswerBody>;

/// The body of an answer.
pub(super) enum AnswerBody {
    /// One piece, maybe none.
    Whole(Bytes),
    /// Three pieces, and how many of them are sent.
    Parts([Bytes; 3], usize),
    /// As long as there is something to say.
    Events(Box<EventStream>),
}

impl AnswerBody {
    /// The message of an answer.
    fn of(answer: &Answer, id: &Id) -> Self {
        if answer.size() < LARGE {
            Self::Whole(answer.message(id))
        } else {
            Self::Parts(answer.parts(id), 0)
        }
    }

    fn rest(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Parts(parts, sent) => parts[*sent..].iter().map(Bytes::len).sum(),
            Self::Events(_) => 0,
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut *self {
            Self::Whole(bytes) => std::mem::take(bytes),
            Self::Parts(parts, sent) => {
                while parts.get(*sent).is_some_and(Bytes::is_empty) {
                    *sent += 1;
                }
                let part = parts.get_mut(*sent).map(std::mem::take);
                *sent = (*sent + 1).min(parts.len());
                part.unwrap_or_default()
            }
            Self::Events(stream) => return stream.poll_frame(context),
        };
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        !matches!(self, Self::Events(_)) && self.rest() == 0
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Events(_) => SizeHint::default(),
            _ => SizeHint::with_exact(self.rest() as u64),
        }
    }
}

/// A message of JSON.
pub(super) fn json(status: StatusCode, body: Bytes) -> HttpResponse {
    with_type(status, JSON, AnswerBody::Whole(body))
}

/// The answer of a service.
pub(super) fn answer(status: StatusCode, answer: &Answer, id: &Id) -> HttpResponse {
    with_type(status, JSON, AnswerBody::of(answer, id))
}

/// A line for people.
pub(super) fn text(status: StatusCode, body: impl Into<Bytes>) -> HttpResponse {
    with_type(status, TEXT, AnswerBody::Whole(body.into()))
}

/// Numbers for Prometheus.
pub(super) fn metrics(text: String) -> HttpResponse {
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    with_type(StatusCode::OK, kind, AnswerBody::Whole(text.into()))
}

/// Nothing but the status.
pub(super) fn empty(status: StatusCode) -> HttpResponse {
    let mut response = Response::new(AnswerBody::Whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// A stream of events.
pub(super) fn events(stream: EventStream) -> HttpResponse {
    let mut response = with_type(StatusCode::OK, EVENTS, AnswerBody::Events(Box::new(stream)));
    let headers = response.headers_mut();
    // Whatever stands between must pass on each event at once (REL-23).
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// The method is none of those that the route has.
pub(super) fn method_not_allowed(allowed: &'static str) -> HttpResponse {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Says when to try again.
pub(super) fn retry_after(mut response: HttpResponse, seconds: u64) -> HttpResponse {
    response.headers_mut().insert(RETRY_AFTER, seconds.into());
    response
}

/// Says which token is wanted.
pub(super) fn challenge(mut response: HttpResponse, challenge: HeaderValue) -> HttpResponse {
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

/// Says which session the client has from now on.
pub(super) fn in_session(mut response: HttpResponse, id: HeaderValue) -> HttpResponse {
    response.headers_mut().insert(SESSION_ID, id);
    response
}

/// Nothing more is read from its connection.
pub(super) fn last(response: &mut HttpResponse) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
}

fn with_type(status: StatusCode, kind: HeaderValue, body: AnswerBody) -> HttpResponse {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    // Answers are for one principal.
    headers.insert(CACHE_CONTROL, NO_STORE);
    response
}
