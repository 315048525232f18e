//! What this program offers to the server at the other end of one channel.
//!
//! Owns whose word a question is put to: that of the caller whose request caused it, or of the host's
//! own where no request did.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::watch;
use toolway_types::ServerName;
use toolway_wire::{RawJson, RpcError, error};

use crate::call::{CallerSide, Remarks, RequestOrigin, ServerLogs};
use crate::client_handler::{ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, Root};
use crate::dispatch::hooks::HookRunner;
use crate::session::habits::ServerHabits;

/// What this program offers to the server at the other end of one channel.
#[derive(Clone)]
pub(crate) struct ClientSide {
    /// The server, as the client handler is told.
    pub server: ServerName,
    /// Whose side this is, where requests of others are sent on the same channel.
    pub caller: Option<Arc<CallerSide>>,
    /// Who listens to its log.
    pub logs: ServerLogs,
    /// What alone may be asked, where a request says so itself.
    pub stated: Option<RawJson>,
    /// Who answers.
    pub client_handler: Option<Arc<dyn ClientHandler>>,
    /// Who is asked before them.
    pub hooks: Arc<HookRunner>,
    /// The roots of this moment.
    pub roots: watch::Receiver<Arc<[Root]>>,
    /// Whether these are the roots whoever asks: the server's entry names them.
    pub has_fixed_roots: bool,
    /// What a person should know about what became of its questions.
    pub remarks: Arc<Remarks>,
    /// What the server was seen to ask.
    pub habits: Arc<ServerHabits>,
}

impl ClientSide {
    /// Whether a request is of the caller whose side this is.
    pub(super) fn is_of(&self, origin: &RequestOrigin) -> bool {
        let own = self.caller.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(own, &origin.caller))
    }

    /// The same for questions that these requests of one caller cause.
    pub(crate) fn during(&self, requests: &[Arc<RequestOrigin>]) -> Self {
        let Some(first) = requests.first() else {
            return self.clone();
        };
        let caller = &first.caller;
        Self {
            // Of several on one pipe the first that says so: they are of one caller.
            stated: requests.iter().find_map(|it| it.stated().cloned()),
            client_handler: caller.asked_about(requests),
            // Of hosts that share a connection, each has hooks of its own.
            hooks: caller.hooks().unwrap_or_else(|| Arc::clone(&self.hooks)),
            roots: if self.has_fixed_roots {
                self.roots.clone()
            } else {
                caller.roots.subscribe()
            },
            remarks: Arc::new(self.remarks.about(requests)),
            ..self.clone()
        }
    }

    /// The same for a question of which nothing says who caused it, among several callers. None of
    /// them is asked: another's answer would be worse than none.
    pub(super) fn of_unclear_caller(&self, declared: &ClientOffers) -> Self {
        let decliner = UnclearCaller {
            offers: declared.clone(),
            remarks: Arc::clone(&self.remarks),
            habits: Arc::clone(&self.habits),
        };
        Self {
            client_handler: Some(Arc::new(decliner)),
            ..self.clone()
        }
    }
}

/// Declines what is asked of nobody in particular.
struct UnclearCaller {
    offers: ClientOffers,
    remarks: Arc<Remarks>,
    habits: Arc<ServerHabits>,
}

impl UnclearCaller {
    fn remark(&self, server: &ServerName) {
        self.habits.note_unclear_question(server);
        self.remarks.make(&format!(
            "server `{server}` asked a question while requests of several callers were under way, \
             and did not say which of them it belongs to: it heard a no"
        ));
    }
}

impl ClientHandler for UnclearCaller {
    fn offers(&self) -> ClientOffers {
        self.offers.clone()
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        _request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        self.remark(server);
        Box::pin(std::future::ready(ElicitationAnswer::Decline))
    }

    fn sample<'a>(
        &'a self,
        server: &'a ServerName,
        _request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        self.remark(server);
        let refusal = RpcError::new(
            error::INVALID_REQUEST,
            "several requests are under way, and nothing says which of them this belongs to",
        );
        Box::pin(std::future::ready(Err(refusal)))
    }
}
