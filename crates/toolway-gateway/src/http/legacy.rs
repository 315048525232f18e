//! What happens in sessions of the legacy era: how they begin and end, requests in them, and the
//! streams that clients open and come back to.
//!
//! Owns the answers over HTTP. Sessions themselves are [`sessions`](super::sessions)'.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Aborted;
use http::{HeaderMap, HeaderName, StatusCode};
use toolway_types::Era;
use toolway_wire::headers::SESSION_ID;

use super::exchange::{Beginning, Reads, begin};
use super::front::Front;
use super::headers::{check_version, knows_priming};
use super::lease::leased;
use super::lookup::{has, only};
use super::respond::{self, HttpResponse};
use super::sessions::{HttpSession, NoReplay, ReplayReader, SessionCall};
use super::visitor::Visitor;
use crate::conversation::{IncomingRequest, Peer};
use crate::error::{RequestRefusal, status_of};
use crate::outlet::Outlet;

/// How long a request may take before its answer becomes a stream, so that nothing on the way gives
/// it up.
const PATIENCE: Duration = Duration::from_millis(250);

/// The event that a client saw last.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Begins a session with a handshake.
pub(super) async fn initialize(
    front: &Arc<Front>,
    peer: &Peer,
    request: IncomingRequest,
) -> HttpResponse {
    let id = request.id.clone();
    let place = match front.sessions.reserve(&peer.principal, &front.quotas) {
        Ok(place) => place,
        Err(refusal) => return front.refuse(&refusal, Some(&id)),
    };
    let unasked = Outlet::default();
    let conversation = match front.service.open(peer, unasked.clone()) {
        Ok(conversation) => conversation,
        Err(none) => return front.refuse(&none.into(), Some(&id)),
    };
    // Nothing is said before a handshake's answer.
    let nothing = Outlet::default();
    nothing.close();
    let answer = Arc::clone(&conversation).request(request, nothing).await;
    let status = status_of(Era::Legacy, answer.error());
    let response = respond::answer(status, &answer, &id);
    if answer.error().is_some() {
        return response;
    }
    let begun = front.sessions.begin(place, peer, conversation, unasked);
    match begun.and_then(super::sessions::SessionId::header) {
        Some(header) => respond::in_session(response, header),
        None => front.refuse(&RequestRefusal::Internal, Some(&id)),
    }
}

/// Answers a request in a session. It goes on when the client goes away.
pub(super) async fn call(
    front: &Arc<Front>,
    visitor: &Visitor,
    peer: &Peer,
    session: &Arc<HttpSession>,
    request: IncomingRequest,
    held: Box<dyn Send + Sync>,
) -> HttpResponse {
    let id = request.id.clone();
    let (reads, is_primed) = match &request.headers {
        Some(headers) => (Reads::of(headers), knows_priming(headers)),
        None => (Reads::Json, false),
    };
    let call = match session.call(request, held) {
        Ok(call) => call,
        Err(refusal) => return front.refuse(&refusal, Some(&id)),
    };
    let outlet = call.outlet().clone();
    let mut call = GoingOn {
        front,
        call: Some(call),
    };
    let answer = match begin(&mut call, &outlet, reads, (&visitor.patience, PATIENCE)).await {
        Beginning::Answer(answer) => answer,
        Beginning::Stream(answer) => {
            let held = visitor.stream(front, &peer.principal).ok();
            if let Some(held) = held
                && let Some(call) = call.call.take()
            {
                let (reader, work) = call.into_stream(answer, is_primed);
                front.carry_on(work);
                return respond::events(leased(Box::new(reader), held, &peer.lease));
            }
            // One stream too many: the answer comes alone.
            outlet.close();
            match answer {
                Some(answer) => answer,
                None => (&mut call).await,
            }
        }
    };
    call.call = None;
    match answer {
        Ok(answer) => respond::answer(status_of(Era::Legacy, answer.error()), &answer, &id),
        // The client asked not to be answered.
        Err(Aborted) => respond::empty(StatusCode::ACCEPTED),
    }
}

/// A request that goes on when nobody waits for it any more.
struct GoingOn<'a> {
    front: &'a Arc<Front>,
    call: Option<SessionCall>,
}

impl Future for GoingOn<'_> {
    type Output = <SessionCall as Future>::Output;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        match &mut self.call {
            Some(call) => std::pin::Pin::new(call).poll(context),
            None => std::task::Poll::Pending,
        }
    }
}

impl Drop for GoingOn<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.front.carry_on(call.alone());
        }
    }
}

/// Opens the stream of what is said unasked, or goes on with one that was cut.
pub(super) fn listen(
    front: &Arc<Front>,
    visitor: &Visitor,
    peer: &Peer,
    headers: &HeaderMap,
) -> HttpResponse {
    if !has(headers, &SESSION_ID) {
        return no_session_header();
    }
    let session = match named(front, peer, headers) {
        Ok(session) => session,
        Err(refusal) => return front.refuse(&refusal, None),
    };
    if Reads::of(headers) == Reads::Json {
        return respond::empty(StatusCode::NOT_ACCEPTABLE);
    }
    let reader = if has(headers, &LAST_EVENT_ID) {
        let last = only(headers, &LAST_EVENT_ID);
        last.map_or(Err(NoReplay::Unknown), |last| session.resume(last))
    } else {
        session.listen(knows_priming(headers))
    };
    match reader {
        Ok(reader) => stream(front, visitor, peer, reader),
        // Nobody's stream is taken away by another one (SEC-26).
        Err(NoReplay::Taken) => {
            respond::text(StatusCode::CONFLICT, "this session has a stream already\n")
        }
        Err(NoReplay::Unknown) => respond::text(
            StatusCode::BAD_REQUEST,
            "there is no such event, or it is kept no longer\n",
        ),
    }
}

fn stream(
    front: &Arc<Front>,
    visitor: &Visitor,
    peer: &Peer,
    reader: ReplayReader,
) -> HttpResponse {
    match visitor.stream(front, &peer.principal) {
        Ok(held) => {
            let source = super::closing::UntilClosing::new(Box::new(reader), &front.closing);
            respond::events(leased(Box::new(source), held, &peer.lease))
        }
        Err(refusal) => front.refuse(&refusal, None),
    }
}

/// Ends a session.
pub(super) fn end(front: &Arc<Front>, peer: &Peer, headers: &HeaderMap) -> HttpResponse {
    if !has(headers, &SESSION_ID) {
        return no_session_header();
    }
    if let Err(refusal) = named(front, peer, headers) {
        return front.refuse(&refusal, None);
    }
    let is_ended = only(headers, &SESSION_ID).is_some_and(|id| front.sessions.end(id, peer));
    if is_ended {
        respond::empty(StatusCode::NO_CONTENT)
    } else {
        front.refuse(&RequestRefusal::NoSession, None)
    }
}

/// The modern era has neither sessions nor streams of their own.
fn no_session_header() -> HttpResponse {
    respond::method_not_allowed("POST")
}

/// The session that a request without a body names.
fn named(
    front: &Arc<Front>,
    peer: &Peer,
    headers: &HeaderMap,
) -> Result<Arc<HttpSession>, RequestRefusal> {
    check_version(headers)?;
    let session = only(headers, &SESSION_ID).and_then(|id| front.sessions.find(id, peer));
    session.ok_or(RequestRefusal::NoSession)
}
