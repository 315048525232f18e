//! Event streams: how messages are written as events, and the body that carries them.
//!
//! Owns the text of events and what keeps a quiet stream alive (REL-23). What is said on a stream is
//! its [`EventSource`]'s.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::Frame;
use memchr::memchr2;
use tokio::time::{Instant, Sleep};

/// How long a stream may be quiet before a comment is sent.
pub const KEEPALIVE: Duration = Duration::from_secs(15);

/// After how many milliseconds a client may come back for the rest of a stream.
const RETRY: u64 = 1000;

/// Nobody reads it: it makes proxies pass on that there is a stream.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// What is said on a stream.
pub(super) trait EventSource: Send {
    /// Puts the next events behind `ready`, as they are written. Gives `false` when there will be
    /// none any more.
    fn poll_events(&mut self, context: &mut Context<'_>, ready: &mut VecDeque<Bytes>)
    -> Poll<bool>;
}

/// The body of an answer that is a stream. What it holds beside its source is given back with it.
pub(super) struct EventStream {
    source: Box<dyn EventSource>,
    ready: VecDeque<Bytes>,
    keepalive: Pin<Box<Sleep>>,
    has_ended: bool,
    _held: Box<dyn Send>,
}

impl EventStream {
    /// A stream that says at once that it is one.
    pub(super) fn new(source: Box<dyn EventSource>, held: Box<dyn Send>) -> Self {
        Self {
            source,
            ready: VecDeque::from([COMMENT]),
            keepalive: Box::pin(tokio::time::sleep(KEEPALIVE)),
            has_ended: false,
            _held: held,
        }
    }

    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.has_ended {
                return Poll::Ready(None);
            }
            match self.source.poll_events(context, &mut self.ready) {
                Poll::Ready(has_more) => self.has_ended = !has_more,
                Poll::Pending => {
                    if self.keepalive.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    self.keepalive.as_mut().reset(Instant::now() + KEEPALIVE);
                    self.ready.push_back(COMMENT);
                }
            }
        }
    }
}

/// A message as an event, with the id to come back with where it has one.
pub(super) fn message(id: Option<&str>, json: &[u8]) -> Bytes {
    let mut text = BytesMut::with_capacity(json.len() + 64);
    text.extend_from_slice(&before(id));
    let from = text.len();
    text.extend_from_slice(json);
    // Inside strings JSON has no bare line breaks, so each stands between tokens.
    let mut at = from;
    while let Some(step) = memchr2(b'\n', b'\r', &text[at..]) {
        at += step;
        text[at] = b' ';
    }
    text.extend_from_slice(b"\n\n");
    text.freeze()
}

/// The same of a message in parts, without a copy of what is large.
pub(super) fn message_of_parts(id: Option<&str>, parts: &[Bytes], ready: &mut VecDeque<Bytes>) {
    let is_broken = |part: &Bytes| memchr2(b'\n', b'\r', part).is_some();
    if parts.iter().any(is_broken) {
        ready.push_back(message(id, &parts.concat()));
        return;
    }
    ready.push_back(before(id));
    ready.extend(parts.iter().filter(|part| !part.is_empty()).cloned());
    ready.push_back(Bytes::from_static(b"\n\n"));
}

fn before(id: Option<&str>) -> Bytes {
    match id {
        None => Bytes::from_static(b"event: message\ndata: "),
        Some(id) => format!("event: message\nid: {id}\ndata: ").into(),
    }
}

/// The event that a client can come back with before anything was said.
pub(super) fn priming(id: &str) -> Bytes {
    format!("id: {id}\nretry: {RETRY}\ndata: \n\n").into()
}

/// An event of a kind of its own.
pub(super) fn named(kind: &str, data: &str) -> Bytes {
    format!("event: {kind}\ndata: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_event_whatever_breaks_its_lines() {
        let text = message(Some("1-2"), b"{\"a\":\r\n1,\n\n\"b\":2}");
        assert_eq!(
            text,
            "event: message\nid: 1-2\ndata: {\"a\":  1,  \"b\":2}\n\n"
        );
    }

    #[test]
    fn parts_are_passed_on_as_they_are() {
        let parts = [
            Bytes::from_static(b"{\"result\":"),
            Bytes::from_static(b"[1]"),
            Bytes::from_static(b"}"),
        ];
        let mut ready = VecDeque::new();
        message_of_parts(None, &parts, &mut ready);
        assert_eq!(ready[2].as_ptr(), parts[1].as_ptr());
        let text: Vec<u8> = ready.iter().flatten().copied().collect();
        assert_eq!(text, b"event: message\ndata: {\"result\":[1]}\n\n");
        let mut ready = VecDeque::new();
        message_of_parts(None, &[Bytes::from_static(b"[1,\n2]")], &mut ready);
        assert_eq!(ready[0], "event: message\ndata: [1, 2]\n\n");
    }
}
