//! One request and its answer, over one connection that lasts as long: as JSON, or as events where
//! something is said before the answer.
//!
//! Owns the choice between both, and exchanges that belong to no session. When the client goes
//! away, the request is dropped, which cancels it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::ACCEPT;
use toolway_types::Era;
use toolway_wire::Id;

use super::events::{self, EventSource, KEEPALIVE};
use super::lazy_timer::LazyTimer;
use super::lease::leased;
use super::lookup::values;
use super::respond::{self, HttpResponse};
use crate::conversation::{AccessLease, Answer, AnswerFuture};
use crate::error::status_of;
use crate::outlet::Outlet;

/// What a client can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// JSON alone.
    Json,
    /// Events alone.
    Events,
    /// Either.
    Both,
}

impl Reads {
    /// By its `Accept`. Who says nothing reads everything.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut kinds = values(headers, &ACCEPT).peekable();
        if kinds.peek().is_none() {
            return Self::Both;
        }
        let (mut json, mut events) = (false, false);
        for kind in kinds.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')) {
            let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default();
            match essence.trim_ascii() {
                b"*/*" => (json, events) = (true, true),
                b"application/json" | b"application/*" => json = true,
                b"text/event-stream" | b"text/*" => events = true,
                _ => {}
            }
        }
        match (json, events) {
            (false, true) => Self::Events,
            (true, true) => Self::Both,
            // What asks for neither gets what every client reads.
            (_, false) => Self::Json,
        }
    }
}

/// How a request's answer begins.
pub(super) enum Beginning<A> {
    /// With itself: nothing was said before.
    Answer(A),
    /// With something else, or not for a while. Where the answer is there already, this is it.
    Stream(Option<A>),
}

/// Waits for the answer, or for something before it.
pub(super) async fn begin<A>(
    mut answer: impl Future<Output = A> + Unpin,
    outlet: &Outlet,
    reads: Reads,
    patience: (&LazyTimer, Duration),
) -> Beginning<A> {
    if reads == Reads::Json {
        // Nothing can be said to this client but the answer.
        outlet.close();
        return Beginning::Answer(answer.await);
    }
    let (patience, time) = patience;
    let mut is_set = false;
    std::future::poll_fn(|context| {
        if let Poll::Ready(answer) = Pin::new(&mut answer).poll(context) {
            let is_alone = reads == Reads::Both && !outlet.is_waiting();
            return Poll::Ready(if is_alone {
                Beginning::Answer(answer)
            } else {
                Beginning::Stream(Some(answer))
            });
        }
        if reads == Reads::Events || outlet.poll_waiting(context) == Poll::Ready(true) {
            return Poll::Ready(Beginning::Stream(None));
        }
        if !std::mem::replace(&mut is_set, true) {
            patience.set_in(time);
        }
        patience.poll(context).map(|()| Beginning::Stream(None))
    })
    .await
}

/// An exchange that belongs to no session.
pub(super) struct SingleExchange {
    pub(super) id: Id,
    pub(super) era: Era,
    pub(super) answer: AnswerFuture,
    pub(super) outlet: Outlet,
    /// What is given back when it ends.
    #[expect(dead_code, reason = "it is held, not looked at")]
    pub(super) held: Box<dyn Send + Sync>,
}

impl SingleExchange {
    /// How it is answered. `stream` gives what a stream has to hold, or nothing where there must
    /// not be one more.
    pub(super) async fn respond(
        mut self,
        reads: Reads,
        lease: &AccessLease,
        patience: &LazyTimer,
        stream: impl FnOnce() -> Option<Box<dyn Send>>,
    ) -> HttpResponse {
        let answer = match begin(&mut self.answer, &self.outlet, reads, (patience, KEEPALIVE)).await
        {
            Beginning::Answer(answer) => answer,
            Beginning::Stream(answer) => {
                if let Some(held) = stream() {
                    let source = SingleStream {
                        exchange: self,
                        answer,
                        has_ended: false,
                    };
                    return respond::events(leased(Box::new(source), held, lease));
                }
                self.outlet.close();
                match answer {
                    Some(answer) => answer,
                    None => (&mut self.answer).await,
                }
            }
        };
        let status = status_of(self.era, answer.error());
        respond::answer(status, &answer, &self.id)
    }
}

/// Later sends fail, because the client is gone or has its answer.
impl Drop for SingleExchange {
    fn drop(&mut self) {
        self.outlet.close();
    }
}

/// What is said in an exchange, up to its answer.
struct SingleStream {
    exchange: SingleExchange,
    answer: Option<Answer>,
    has_ended: bool,
}

impl EventSource for SingleStream {
    fn poll_events(
        &mut self,
        context: &mut Context<'_>,
        ready: &mut VecDeque<Bytes>,
    ) -> Poll<bool> {
        if self.has_ended {
            return Poll::Ready(false);
        }
        if self.answer.is_none()
            && let Poll::Ready(answer) = self.exchange.answer.as_mut().poll(context)
        {
            self.answer = Some(answer);
        }
        // What was said before the answer comes before it.
        while let Poll::Ready(Some(message)) = self.exchange.outlet.poll_next(context) {
            ready.push_back(events::message(None, &message));
        }
        if let Some(answer) = &self.answer {
            let parts = answer.parts(&self.exchange.id);
            events::message_of_parts(None, &parts, ready);
            self.has_ended = true;
        }
        if ready.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_says_what_it_reads() {
        let reads = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ACCEPT, value.parse().unwrap());
            }
            Reads::of(&headers)
        };
        assert_eq!(reads(&[]), Reads::Both);
        assert_eq!(reads(&["*/*"]), Reads::Both);
        assert_eq!(reads(&["application/json, text/event-stream"]), Reads::Both);
        assert_eq!(
            reads(&["application/json;q=0.5", "text/event-stream"]),
            Reads::Both
        );
        assert_eq!(reads(&["application/json"]), Reads::Json);
        assert_eq!(reads(&["text/event-stream"]), Reads::Events);
        assert_eq!(reads(&["text/html"]), Reads::Json);
    }
}
