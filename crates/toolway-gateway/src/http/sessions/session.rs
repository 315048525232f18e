//! One session: its conversation, the requests under way in it, and its streams.
//!
//! Owns keeping ids apart (SEC-25), cancelling by id, and finding the stream that a client comes
//! back to. A request goes on when its client goes away: that is no cancellation in this era.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::{AbortHandle, Abortable, Aborted, BoxFuture};
use tokio::time::{Duration, Instant};
use toolway_types::limits;
use toolway_wire::Id;

use super::replay::{KeptRoom, NoReplay, ReplayReader, ReplayStream, event_of};
use crate::conversation::{
    AccessLease, Answer, AnswerFuture, Conversation, Endpoint, IncomingRequest, Peer,
};
use crate::error::RequestRefusal;
use crate::http::quota::Permit;
use crate::outlet::Outlet;

/// How many streams of one session that have ended are kept.
const MAX_ENDED: usize = 16;

/// The number of the stream of what is said unasked.
const UNASKED: u64 = 0;

/// A session.
pub(in crate::http) struct HttpSession {
    principal: Arc<str>,
    profile: Option<Arc<str>>,
    endpoint: Endpoint,
    lease: AccessLease,
    conversation: Arc<dyn Conversation>,
    unasked: Arc<ReplayStream>,
    room: Arc<KeptRoom>,
    state: Mutex<SessionState>,
    _place: Permit,
}

struct SessionState {
    running: HashMap<Id, AbortHandle>,
    streams: Vec<Arc<ReplayStream>>,
    last_stream: u64,
    used: Instant,
    has_ended: bool,
}

impl HttpSession {
    pub(super) fn new(
        peer: &Peer,
        conversation: Arc<dyn Conversation>,
        unasked: Outlet,
        room: Arc<KeptRoom>,
        place: Permit,
    ) -> Arc<Self> {
        Arc::new(Self {
            principal: Arc::clone(&peer.principal),
            profile: peer.profile.clone(),
            endpoint: peer.endpoint.clone(),
            lease: peer.lease.clone(),
            conversation,
            unasked: ReplayStream::new(UNASKED, unasked, Arc::clone(&room)),
            room,
            state: Mutex::new(SessionState {
                running: HashMap::new(),
                streams: Vec::new(),
                last_stream: UNASKED,
                used: Instant::now(),
                has_ended: false,
            }),
            _place: place,
        })
    }

    pub(super) fn principal(&self) -> &Arc<str> {
        &self.principal
    }

    /// Whether it began with this peer, at this endpoint. The same principal with a token for another
    /// profile is another peer.
    pub(super) fn is_of(&self, peer: &Peer) -> bool {
        self.principal == peer.principal
            && self.profile == peer.profile
            && self.endpoint == peer.endpoint
    }

    /// Whether whoever began it is let in no longer.
    pub(super) fn is_revoked(&self) -> bool {
        self.lease.is_over()
    }

    pub(in crate::http) fn conversation(&self) -> Arc<dyn Conversation> {
        Arc::clone(&self.conversation)
    }

    /// It is used now.
    pub(super) fn touch(&self) {
        self.state().used = Instant::now();
    }

    /// Since when nobody uses it.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        let is_idle = state.running.is_empty()
            && !self.unasked.has_reader()
            && !state.streams.iter().any(|stream| stream.has_reader());
        is_idle.then_some(state.used)
    }

    /// Begins a request.
    pub(in crate::http) fn call(
        self: &Arc<Self>,
        request: IncomingRequest,
        held: Box<dyn Send + Sync>,
    ) -> Result<SessionCall, RequestRefusal> {
        let id = request.id.clone();
        let (handle, registration) = AbortHandle::new_pair();
        {
            let mut state = self.state();
            if state.has_ended {
                return Err(RequestRefusal::NoSession);
            }
            if state.running.len() >= limits::gateway::IN_FLIGHT {
                return Err(RequestRefusal::TooMany { what: "requests" });
            }
            if state.running.contains_key(&id) {
                // Two answers with one id cannot be told apart (SEC-25).
                return Err(RequestRefusal::DuplicateId);
            }
            state.running.insert(id.clone(), handle);
        }
        let place = RunningPlace {
            session: Arc::clone(self),
            id,
        };
        let outlet = Outlet::default();
        // Not under the lock: what a service does here is its own.
        let answer = self.conversation().request(request, outlet.clone());
        Ok(SessionCall {
            answer: Abortable::new(answer, registration),
            outlet,
            place,
            _held: held,
        })
    }

    /// Drops the request that a client does not want answered any more.
    pub(in crate::http) fn cancel(&self, id: &Id) {
        if let Some(handle) = self.state().running.get(id) {
            handle.abort();
        }
    }

    /// The stream of what is said unasked, if nobody reads it.
    pub(in crate::http) fn listen(&self, is_primed: bool) -> Result<ReplayReader, NoReplay> {
        self.unasked.read(is_primed)
    }

    /// The rest of the stream to which an event belonged.
    pub(in crate::http) fn resume(&self, last: &str) -> Result<ReplayReader, NoReplay> {
        let (number, event) = event_of(last).ok_or(NoReplay::Unknown)?;
        if number == UNASKED {
            return self.unasked.resume(event);
        }
        let stream = {
            let state = self.state();
            let mut streams = state.streams.iter();
            streams.find(|stream| stream.number == number).cloned()
        };
        stream.ok_or(NoReplay::Unknown)?.resume(event)
    }

    /// Forgets streams that ended a while ago.
    pub(super) fn forget_ended(&self, now: Instant, kept: Duration) {
        let is_old = |ended: Instant| now.duration_since(ended) >= kept;
        let mut state = self.state();
        (state.streams).retain(|stream| !stream.ended().is_some_and(is_old));
    }

    /// Ends it, with all that runs in it.
    pub(super) fn end(&self) {
        let (running, streams) = {
            let mut state = self.state();
            state.has_ended = true;
            (
                std::mem::take(&mut state.running),
                std::mem::take(&mut state.streams),
            )
        };
        for handle in running.values() {
            handle.abort();
        }
        for stream in streams.iter().chain([&self.unasked]) {
            stream.end();
        }
    }

    /// A stream for a request, and who reads it first.
    fn open_stream(&self, outlet: Outlet, is_primed: bool) -> (Arc<ReplayStream>, ReplayReader) {
        let mut state = self.state();
        state.last_stream += 1;
        let stream = ReplayStream::new(state.last_stream, outlet, Arc::clone(&self.room));
        if !state.has_ended {
            state.streams.push(Arc::clone(&stream));
        }
        let reader = stream.read_first(is_primed);
        (stream, reader)
    }

    /// Forgets the oldest ended streams where there is too much of them.
    fn trim(&self) {
        let mut state = self.state();
        loop {
            let ended = |stream: &&Arc<ReplayStream>| stream.ended().is_some();
            let count = state.streams.iter().filter(ended).count();
            if count <= MAX_ENDED && !(count > 1 && self.room.is_over()) {
                return;
            }
            let oldest = (state.streams.iter()).position(|stream| stream.ended().is_some());
            let Some(oldest) = oldest else { return };
            state.streams.remove(oldest);
        }
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a request among those under way.
struct RunningPlace {
    session: Arc<HttpSession>,
    id: Id,
}

impl Drop for RunningPlace {
    fn drop(&mut self) {
        let mut state = self.session.state();
        state.running.remove(&self.id);
        state.used = Instant::now();
    }
}

/// A request under way in a session. Gives the answer, or nothing where it was cancelled.
pub(in crate::http) struct SessionCall {
    answer: Abortable<AnswerFuture>,
    outlet: Outlet,
    place: RunningPlace,
    /// What is given back when it ends.
    _held: Box<dyn Send + Sync>,
}

impl SessionCall {
    /// What is said before the answer.
    pub(in crate::http) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Nobody waits for it any more, and it goes on.
    pub(in crate::http) fn alone(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            drop(self.await);
        })
    }

    /// Makes a stream of it: what reads it first, and what carries on with it. Where the answer is
    /// there already, `answer` is it.
    pub(in crate::http) fn into_stream(
        self,
        answer: Option<Result<Answer, Aborted>>,
        is_primed: bool,
    ) -> (ReplayReader, BoxFuture<'static, ()>) {
        let session = Arc::clone(&self.place.session);
        let (stream, reader) = session.open_stream(self.outlet.clone(), is_primed);
        let id = self.place.id.clone();
        let work = async move {
            let answered = match answer {
                Some(answered) => answered,
                None => self.await,
            };
            match answered {
                Ok(answer) => stream.finish(&answer.parts(&id)),
                // The client asked not to be answered.
                Err(Aborted) => stream.end(),
            }
            session.trim();
        };
        (reader, Box::pin(work))
    }
}

impl Future for SessionCall {
    type Output = Result<Answer, Aborted>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(context)
    }
}
