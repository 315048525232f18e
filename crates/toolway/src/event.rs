//! What a host tells of: changes of state, of the catalogue and of the plan, questions, calls.
//!
//! Owns the values that [`Host::subscribe`](crate::Host::subscribe) sends and that applying a
//! plan gives back. They are news for the eye: they may be lost by a slow reader, and nothing
//! inside the host depends on them. What is true now stands in the snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;
use toolway_config::Plan;
use toolway_types::{ConnectionState, ServerName, Untrusted};

use crate::audit::CallEnd;
use crate::call::questions::{QuestionEnd, QuestionId, QuestionNews};
use crate::call::{CallResult, Caller, ToolTarget};

/// How many events wait for a slow reader before the oldest are dropped.
pub(crate) const EVENTS_LEN: usize = 1024;

/// Something happened to a host.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "a field that says what it is has no comment")]
pub enum HostEvent {
    /// A server's connection moved from one state to another.
    StateChanged {
        server: ServerName,
        /// Where it stood.
        from: ConnectionState,
        /// Where it stands.
        to: ConnectionState,
    },
    /// What a server offers changed, and there is a new catalogue.
    CatalogChanged { revision: u64, server: ServerName },
    /// A server says that the content of one of its resources changed.
    ResourceUpdated {
        server: ServerName,
        /// The resource, as the server names it.
        uri: Untrusted,
    },
    /// A new plan took the place of the old one.
    Reloaded(Changes),
    /// A call begins. Its arguments are never told.
    CallStarted {
        /// What tells it from other calls of the host.
        call: u64,
        /// Who calls.
        caller: Caller,
        /// The tool; what was asked for, where there is no such tool.
        tool: ToolTarget,
    },
    /// A call ended.
    CallFinished {
        /// The number that it began with.
        call: u64,
        /// Who called.
        caller: Caller,
        /// The tool; what was asked for, where there is no such tool.
        tool: ToolTarget,
        took: Duration,
        outcome: CallEnd,
    },
    /// A server logged a line, or something is to be said of its connection: as it stands in the
    /// journal, clean and without secrets. Told only where there is a journal.
    LogLine { server: ServerName, line: String },
    /// A login came or went, or is wanted.
    LoginChanged {
        server: ServerName,
        login: LoginChange,
    },
    /// Somebody is asked something. What, stands among the open questions.
    QuestionOpened {
        id: QuestionId,
        /// `permission`, `form`, `page` or `login`.
        kind: &'static str,
        server: ServerName,
        /// Whose question it is, as it tells itself from others.
        caller: Arc<str>,
    },
    /// A question does not stand any more.
    QuestionClosed {
        id: QuestionId,
        server: ServerName,
        /// Whose question it was, as it tells itself from others.
        caller: Arc<str>,
        end: QuestionEnd,
    },
    /// Something worth a line that changes nothing.
    Notice {
        server: ServerName,
        /// The line.
        message: String,
    },
}

/// What happened to the login of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginChange {
    /// The server wants one.
    Wanted,
    /// Somebody logged in here, or a login got more rights.
    LoggedIn,
    /// It was given up here.
    LoggedOut,
}

impl LoginChange {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wanted => "wanted",
            Self::LoggedIn => "logged-in",
            Self::LoggedOut => "logged-out",
        }
    }
}

/// A call that is told of. Dropped before its end, it was cancelled.
pub(crate) struct ToldCall {
    events: broadcast::Sender<HostEvent>,
    call: u64,
    caller: Caller,
    tool: ToolTarget,
    begun: Instant,
    outcome: CallEnd,
}

impl ToldCall {
    /// Tells that a call begins; nothing where nobody listens.
    pub(crate) fn begin(
        events: &broadcast::Sender<HostEvent>,
        calls: &AtomicU64,
        caller: &Caller,
        tool: impl FnOnce() -> ToolTarget,
    ) -> Option<Box<Self>> {
        if events.receiver_count() == 0 {
            return None;
        }
        let told = Box::new(Self {
            events: events.clone(),
            call: calls.fetch_add(1, Ordering::Relaxed) + 1,
            caller: caller.clone(),
            tool: tool(),
            begun: Instant::now(),
            outcome: CallEnd::Cancelled,
        });
        tell(events, || HostEvent::CallStarted {
            call: told.call,
            caller: told.caller.clone(),
            tool: told.tool.clone(),
        });
        Some(told)
    }

    /// Notes how it ended, which is told when this is dropped.
    pub(crate) fn note_end(&mut self, outcome: &CallResult) {
        self.outcome = match outcome {
            Ok(outcome) => CallEnd::of_answer(outcome.is_error),
            Err(error) => CallEnd::from(error),
        };
    }
}

impl Drop for ToldCall {
    fn drop(&mut self) {
        tell(&self.events, || HostEvent::CallFinished {
            call: self.call,
            caller: self.caller.clone(),
            tool: self.tool.clone(),
            took: self.begun.elapsed(),
            outcome: self.outcome,
        });
    }
}

impl From<QuestionNews<'_>> for HostEvent {
    fn from(news: QuestionNews<'_>) -> Self {
        match news {
            QuestionNews::Opened(question) => Self::QuestionOpened {
                id: question.id.clone(),
                kind: question.kind.as_str(),
                server: question.server.clone(),
                caller: Arc::clone(&question.caller.id),
            },
            QuestionNews::Closed(question, end) => Self::QuestionClosed {
                id: question.id.clone(),
                server: question.server.clone(),
                caller: Arc::clone(&question.caller.id),
                end,
            },
        }
    }
}

/// Sends an event that is made only where somebody listens.
pub(crate) fn tell(events: &broadcast::Sender<HostEvent>, event: impl FnOnce() -> HostEvent) {
    if events.receiver_count() > 0 {
        // The last listener may go this very moment.
        let _ = events.send(event());
    }
}

/// What applying a plan did, by server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// New, or allowed to connect now.
    pub started: Vec<ServerName>,
    /// Gone, or not allowed to connect any more.
    pub stopped: Vec<ServerName>,
    /// Defined in another way: a new connection takes over from the old one.
    pub replaced: Vec<ServerName>,
    /// Untouched.
    pub kept: Vec<ServerName>,
}

impl Changes {
    /// Whether every server was left as it was.
    pub fn is_empty(&self) -> bool {
        self.started.is_empty() && self.stopped.is_empty() && self.replaced.is_empty()
    }
}

/// Where a host gets a fresh plan from when it is asked to reload. Runs on a thread that may
/// block.
pub type Replan = Arc<dyn Fn() -> Plan + Send + Sync>;

/// No server of this name is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no server `{0}`")]
pub struct UnknownServer(pub String);

/// The host was not told where fresh plans come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this host has no source of plans to reload from")]
pub struct NoPlanSource;
