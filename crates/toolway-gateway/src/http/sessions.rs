//! Sessions of the legacy era over HTTP.
//!
//! Owns which there are: their ids, whom they belong to, how many there may be and when they end
//! without being asked to. A session is found only by the principal that began it, at the endpoint
//! where it began (SEC-26). What happens in one is [`session`]'s.

mod replay;
mod session;

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use tokio::time::{Duration, Instant};

use self::replay::KeptRoom;
pub(super) use self::replay::{NoReplay, ReplayReader};
pub(super) use self::session::{HttpSession, SessionCall};
use super::counters::{Counter as _, FrontCounters};
use super::options::HttpLimits;
use super::quota::{Counted, Permit, Quotas};
use crate::conversation::{Conversation, Peer};
use crate::error::RequestRefusal;
use crate::outlet::Outlet;

/// How long the end of a stream is kept for a client that comes back.
const KEPT: Duration = Duration::from_mins(2);

/// The id of a session: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionId([u8; 16]);

impl SessionId {
    /// A new one, unless the system has no random bits.
    pub(super) fn random() -> Option<Self> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).ok()?;
        Some(Self(bits))
    }

    /// The id that a client shows; only in the one spelling that it was given in.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut bits = [0; 16];
        let is_ours = text.bytes().all(|byte| !byte.is_ascii_uppercase());
        hex::decode_to_slice(text, &mut bits).ok()?;
        is_ours.then_some(Self(bits))
    }

    /// As clients are given it.
    pub(super) fn text(self) -> String {
        hex::encode(self.0)
    }

    /// The same as the value of a header that no log shows.
    pub(super) fn header(self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&self.text()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// All sessions.
pub(super) struct HttpSessions {
    open: Mutex<HashMap<SessionId, Arc<HttpSession>>>,
    limits: HttpLimits,
    counters: Arc<FrontCounters>,
    room: Arc<KeptRoom>,
}

/// Room for a session that is about to begin.
pub(super) struct SessionPlace(Permit);

impl HttpSessions {
    pub(super) fn new(limits: HttpLimits, counters: Arc<FrontCounters>) -> Self {
        Self {
            open: Mutex::default(),
            limits,
            counters,
            room: Arc::new(KeptRoom {
                used: AtomicUsize::new(0),
                limit: limits.all_kept_events,
                all: None,
            }),
        }
    }

    /// Makes room for one more session of a principal. Where all places are taken, the longest idle
    /// session gives way: of this principal if it has too many, else of anybody.
    pub(super) fn reserve(
        &self,
        principal: &Arc<str>,
        quotas: &Quotas,
    ) -> Result<SessionPlace, RequestRefusal> {
        let load = quotas.of(principal);
        let of_principal = |session: &HttpSession| session.principal() == principal;
        if !load.has_room(Counted::Session, self.limits.sessions) {
            self.give_way(of_principal);
        }
        if self.open().len() >= self.limits.all_sessions && !self.give_way(|_| true) {
            return Err(RequestRefusal::NoRoom);
        }
        load.take(Counted::Session, self.limits.sessions)
            .map(SessionPlace)
            .ok_or(RequestRefusal::TooMany { what: "sessions" })
    }

    /// Begins a session.
    pub(super) fn begin(
        &self,
        place: SessionPlace,
        peer: &Peer,
        conversation: Arc<dyn Conversation>,
        unasked: Outlet,
    ) -> Option<SessionId> {
        let id = SessionId::random()?;
        let room = KeptRoom {
            used: AtomicUsize::new(0),
            limit: self.limits.kept_events,
            all: Some(Arc::clone(&self.room)),
        };
        let session = HttpSession::new(peer, conversation, unasked, Arc::new(room), place.0);
        self.open().insert(id, session);
        self.counters.sessions.up();
        Some(id)
    }

    /// The session that a client names, if it is this peer's.
    pub(super) fn find(&self, id: &str, peer: &Peer) -> Option<Arc<HttpSession>> {
        let id = SessionId::read(id)?;
        let session = self.open().get(&id).cloned()?;
        session.is_of(peer).then(|| {
            session.touch();
            session
        })
    }

    /// Ends the session that a client names, if it is this peer's.
    pub(super) fn end(&self, id: &str, peer: &Peer) -> bool {
        let Some(id) = SessionId::read(id) else {
            return false;
        };
        let mut open = self.open();
        if !open.get(&id).is_some_and(|session| session.is_of(peer)) {
            return false;
        }
        let session = open.remove(&id);
        drop(open);
        if let Some(session) = session {
            session.end();
        }
        true
    }

    /// Ends those that nobody used for long, or that nobody may use any more, and forgets what nobody comes back for.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        let mut idle = Vec::new();
        self.open().retain(|_, session| {
            session.forget_ended(now, KEPT);
            let is_idle = (session.idle_since())
                .is_some_and(|since| now.duration_since(since) >= self.limits.session_idle);
            let is_over = is_idle || session.is_revoked();
            if is_over {
                idle.push(Arc::clone(session));
            }
            !is_over
        });
        // Without the lock: what a service does then is its own.
        for session in idle {
            session.end();
            self.counters.expired_sessions.up();
        }
    }

    /// Ends all.
    pub(super) fn end_all(&self) {
        let open = std::mem::take(&mut *self.open());
        for session in open.into_values() {
            session.end();
        }
    }

    /// Ends the longest idle session of those that may be ended; says whether there was one.
    fn give_way(&self, may_end: impl Fn(&HttpSession) -> bool) -> bool {
        let mut open = self.open();
        let longest = open
            .iter()
            .filter(|(_, session)| may_end(session))
            .filter_map(|(id, session)| Some((session.idle_since()?, *id)))
            .min_by_key(|(since, _)| *since);
        let session = longest.and_then(|(_, id)| open.remove(&id));
        drop(open);
        let Some(session) = session else {
            return false;
        };
        session.end();
        self.counters.expired_sessions.up();
        true
    }

    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<HttpSession>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
