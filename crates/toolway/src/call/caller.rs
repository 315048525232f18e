//! Who asks: the caller that every request carries.
//!
//! Owns a caller's identity, who answers servers in its place, and its roots. What a caller holds of
//! a host is `host/attached.rs`; what it was permitted for its session is `dispatch/answers.rs`.

use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use toolway_wire::RawJson;

use super::attention::Attention;
use super::{CallOptions, LogSink};
use crate::client_handler::{ClientHandler, Root};
use crate::lock::lock;

/// Who asks. Two callers of one host share servers, and nothing else: no answer, no question, no
/// root and no call of one is another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// What tells it from other callers: a process, a session, a client.
    pub id: Arc<str>,
    /// What it is.
    pub kind: CallerKind,
    /// For whom it acts: the user, the subject of a token.
    pub principal: Arc<str>,
    /// What people are shown of it, and the audit says.
    pub shown: Arc<str>,
}

impl Caller {
    /// A caller that acts for the owner of the host and is shown by this name.
    pub fn new(kind: CallerKind, name: &str) -> Self {
        let name: Arc<str> = name.into();
        Self {
            id: Arc::clone(&name),
            kind,
            principal: OWNER.into(),
            shown: name,
        }
    }
}

impl Caller {
    /// Whether it is a person who is the owner of the host, by whatever name.
    pub(crate) fn is_owner(&self) -> bool {
        self.kind == CallerKind::Person && *self.principal == *OWNER && self.id == self.shown
    }
}

impl Default for Caller {
    /// The owner of the host.
    fn default() -> Self {
        Self::new(CallerKind::Person, OWNER)
    }
}

/// The principal of all that acts for whom the host runs for.
const OWNER: &str = "owner";

/// The kinds of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerKind {
    /// A person at a front-end of ours, or a program that embeds the host.
    Person,
    /// A model's session that this program runs.
    Agent,
    /// A client that is served over MCP.
    Client,
    /// A hook.
    Hook,
}

impl CallerKind {
    /// The word for it in the audit and to hooks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent => "agent",
            Self::Client => "client",
            Self::Hook => "hook",
        }
    }
}

impl fmt::Display for CallerKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One caller while it is attached, as far as requests carry it to servers. Told apart by identity:
/// two of equal names are two.
pub struct CallerSide {
    pub(crate) caller: Caller,
    /// Who answers what servers ask because of its requests.
    pub(crate) client_handler: Option<Arc<dyn ClientHandler>>,
    /// Its roots of this moment.
    pub(crate) roots: watch::Sender<Arc<[Root]>>,
    /// Whether it is being asked anything.
    pub(crate) attention: Attention,
}

impl CallerSide {
    /// A caller whose requests cause such questions to be answered by `client_handler`, if by any.
    pub fn new(
        caller: Caller,
        client_handler: Option<Arc<dyn ClientHandler>>,
        roots: Vec<Root>,
    ) -> Self {
        let attention = Attention::default();
        Self {
            caller,
            client_handler: client_handler.map(|handler| attention.of_client_handler(handler)),
            roots: watch::Sender::new(Arc::from(roots)),
            attention,
        }
    }

    /// The same one acting in another name: what it causes is asked of the same person.
    pub(crate) fn acting_as(&self, kind: CallerKind, name: &str) -> Self {
        Self {
            caller: Caller {
                principal: Arc::clone(&self.caller.principal),
                ..Caller::new(kind, name)
            },
            client_handler: self.client_handler.clone(),
            roots: watch::Sender::new(Arc::clone(&self.roots.borrow())),
            attention: self.attention.clone(),
        }
    }
}

impl Default for CallerSide {
    /// The owner, of whom nothing can be asked.
    fn default() -> Self {
        Self::new(Caller::default(), None, Vec::new())
    }
}

impl fmt::Debug for CallerSide {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.caller.fmt(formatter)
    }
}

/// What one request was sent for. A server's question that it causes is asked of this caller, and
/// what there is to say about the question is said with this request.
pub(crate) struct RequestOrigin {
    pub(crate) caller: Arc<CallerSide>,
    remarks: Mutex<Vec<String>>,
    logs: Option<LogSink>,
    stated: Option<RawJson>,
}

impl fmt::Debug for RequestOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.caller.fmt(formatter)
    }
}

impl RequestOrigin {
    #[cfg(test)]
    pub(crate) fn of(caller: &Arc<CallerSide>) -> Arc<Self> {
        Arc::new(Self::new(caller, None, None))
    }

    /// The same under these conditions.
    pub(crate) fn under(caller: &Arc<CallerSide>, options: &CallOptions) -> Arc<Self> {
        let (logs, stated) = (options.logs.clone(), options.capabilities.clone());
        Arc::new(Self::new(caller, logs, stated))
    }

    fn new(caller: &Arc<CallerSide>, logs: Option<LogSink>, stated: Option<RawJson>) -> Self {
        Self {
            caller: Arc::clone(caller),
            remarks: Mutex::default(),
            logs,
            stated,
        }
    }

    /// Where goes what the server logs because of it, where the request says so itself.
    pub(crate) fn logs(&self) -> Option<&LogSink> {
        self.logs.as_ref()
    }

    /// What the caller can be asked because of it, where the request says so itself.
    pub(crate) fn stated(&self) -> Option<&RawJson> {
        self.stated.as_ref()
    }

    /// Notes something: clean, on one line.
    pub(crate) fn remark(&self, remark: &str) {
        let mut remarks = lock(&self.remarks);
        if remarks.len() < MOST_REMARKS {
            remarks.push(remark.to_owned());
        }
    }

    /// What was noted.
    pub(crate) fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.remarks))
    }
}

/// How many remarks one request carries.
const MOST_REMARKS: usize = 16;
