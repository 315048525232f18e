//! A session that is open, and what its requests say about it.
//!
//! Owns the judgement of outcomes: three broken requests in a row, or one refused connection, put
//! the session in doubt, and so does a login that is refused, or a server that forgot it; and the
//! messages of calls whose session was ended under them.
//! Does not own the session's end or its successor (`connection.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolway_transport::{CloseReason, CredentialsError, SendFailure};
use toolway_types::{ConnectionState, Era, MessageDelivery, Untrusted};

use crate::error::{RequestError, RequestResult};
use crate::session::Session;

/// How many broken requests in a row end a connection.
const BROKEN_IN_A_ROW: u32 = 3;

/// Why a call ends with the session that it was in.
pub(super) const FORGOTTEN: &str = "the server forgot the session";

/// A session that stands, and who uses it.
pub(crate) struct OpenSession {
    /// The session.
    pub session: Session,
    calls: TaskTracker,
    doubt: watch::Sender<Option<Doubt>>,
    broken: AtomicU32,
    /// Whether the server may forget the session before the connection ends.
    expires: bool,
    /// Whether it ends because another was ordered.
    gave_way: AtomicBool,
}

/// Why a session that still stands is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The server does not know the session any more.
    Expired,
    /// Requests do not get through.
    Unreachable(String),
    /// The login does not hold any more; with what the server said.
    Login(Untrusted),
}

impl OpenSession {
    /// For a session that was just settled.
    pub(crate) fn new(session: Session, delivery: MessageDelivery) -> Arc<Self> {
        let expires = delivery == MessageDelivery::PerRequest && session.facts().era == Era::Legacy;
        let calls = TaskTracker::new();
        // It counts; nothing is spawned on it.
        calls.close();
        Arc::new(Self {
            session,
            calls,
            doubt: watch::Sender::default(),
            broken: AtomicU32::new(0),
            expires,
            gave_way: AtomicBool::new(false),
        })
    }

    /// It is about to end because another was ordered: calls in flight say so.
    pub(super) fn give_way(&self) {
        self.gave_way.store(true, Ordering::Relaxed);
    }

    /// Counts a call, until what is given is dropped.
    pub(super) fn token(&self) -> TaskTrackerToken {
        self.calls.token()
    }

    /// Whether the server may forget the session before the connection ends.
    pub(super) fn expires(&self) -> bool {
        self.expires
    }

    /// Whether it has neither ended nor is in doubt.
    pub(super) fn is_of_use(&self) -> bool {
        self.doubt.borrow().is_none() && self.session.closed().now_or_never().is_none()
    }

    /// Waits until the session is in doubt.
    pub(crate) async fn doubted(&self) -> Doubt {
        let mut doubt = self.doubt.subscribe();
        let found = doubt.wait_for(Option::is_some).await;
        match found.ok().and_then(|doubt| doubt.clone()) {
            Some(doubt) => doubt,
            None => std::future::pending().await,
        }
    }

    /// Waits until no call uses the session. Only of use once the slot has another one.
    pub(crate) async fn unused(&self) {
        self.calls.wait().await;
    }

    pub(super) fn cast_doubt(&self, why: Doubt) {
        // The first reason stays, so that all calls that find out share one new session.
        self.doubt.send_if_modified(|doubt| {
            let first = doubt.is_none();
            if first {
                *doubt = Some(why);
            }
            first
        });
    }

    /// What the failure of a request that was no call says about the session.
    pub(super) fn note_failure(&self, error: &RequestError) {
        self.judge(&Err(error.clone()));
    }

    /// What the outcome of a request says about the session. True when the server does not know
    /// the session any more, and so never saw the request.
    pub(super) fn judge(&self, outcome: &RequestResult) -> bool {
        match outcome {
            Err(RequestError::Send(SendFailure::Status {
                status: 404,
                had_session: true,
                ..
            })) => {
                self.cast_doubt(Doubt::Expired);
                return true;
            }
            // A wider login, asked for with 403, is the affair of the one call that needs it.
            Err(RequestError::Send(SendFailure::Status {
                status: 401,
                www_authenticate,
                ..
            })) => {
                let challenge = www_authenticate.clone().unwrap_or_default();
                self.cast_doubt(Doubt::Login(Untrusted::new(challenge)));
            }
            Err(RequestError::Send(SendFailure::Credentials(CredentialsError::Login(why)))) => {
                self.cast_doubt(Doubt::Login(Untrusted::new(why.as_str())));
            }
            Err(RequestError::Send(SendFailure::Unreachable {
                refused: true,
                message,
            })) => self.cast_doubt(Doubt::Unreachable(message.clone())),
            // The next connection finds out, and says what is to be done.
            Err(RequestError::Send(failure @ SendFailure::Certificate { .. })) => {
                self.cast_doubt(Doubt::Unreachable(failure.to_string()));
            }
            Err(RequestError::Send(
                SendFailure::Unreachable { message, .. } | SendFailure::Cut(message),
            )) => {
                if self.broken.fetch_add(1, Ordering::Relaxed) + 1 >= BROKEN_IN_A_ROW {
                    self.cast_doubt(Doubt::Unreachable(message.clone()));
                }
            }
            // Silence says nothing either way.
            Err(
                RequestError::TimedOut
                | RequestError::Idle { .. }
                | RequestError::Closed(_)
                | RequestError::Send(SendFailure::TimedOut { .. }),
            ) => {}
            _ => self.broken.store(0, Ordering::Relaxed),
        }
        false
    }

    pub(super) fn explain(&self, error: RequestError) -> RequestError {
        match error {
            // We closed it, but not because the caller wanted it so.
            RequestError::Closed(CloseReason::Asked) => match &*self.doubt.borrow() {
                Some(Doubt::Expired) => broken(FORGOTTEN),
                Some(Doubt::Unreachable(message)) => broken(message),
                Some(Doubt::Login(detail)) => {
                    RequestError::Unavailable(ConnectionState::NeedsAuth {
                        detail: detail.clone(),
                        // A login that is missing or over, not one that is short.
                        unnamed_scopes: false,
                    })
                }
                None if self.gave_way.load(Ordering::Relaxed) => {
                    broken("somebody asked for the server to be connected anew")
                }
                None => error,
            },
            error => error,
        }
    }
}

pub(super) fn broken(message: &str) -> RequestError {
    RequestError::Closed(CloseReason::Broken(message.to_owned()))
}
