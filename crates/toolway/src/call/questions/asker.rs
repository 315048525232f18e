//! How one caller comes to be asked: every question to it goes through here into the book.
//!
//! Owns that a question is shown by the caller's prompter or client handler, where it has one, and
//! stands in the book meanwhile: the first answer counts, whoever gives it, and the other way is
//! dropped, so that a dialog goes away. Owns how long a question stands, and that it ends with the
//! call that caused it. When anybody is asked at all is decided elsewhere (`dispatch/permission.rs`,
//! `session/question.rs`, `auth/step_up.rs`).

use std::collections::HashSet;
use std::future::pending;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::SystemTime;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::value::RawValue;
use tokio::sync::{Mutex, Semaphore};
use toolway_types::{ServerName, ToolKey, limits};
use toolway_wire::{RpcError, error};
use tracing::warn;

use super::book::{PartyId, QuestionBook, QuestionEnd};
use super::{AskedPermission, Askee, OpenQuestion, QuestionAnswer, QuestionId, QuestionKind};
use crate::call::attention::Attention;
use crate::call::{Caller, PermissionAnswer, PermissionQuestion, Prompter};
use crate::client_handler::{ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, Root};
use crate::lock::lock;

/// How many calls of one caller ask for permission at a time; others wait until one is answered.
const AT_ONCE: usize = limits::call::OPEN_QUESTIONS / 2;

/// A request that may have caused a question.
pub(crate) trait CausingRequest: Send + Sync {
    /// The tool that it calls, by its own name; none where it is no call.
    fn tool(&self) -> Option<&str>;

    /// Resolves when it is over.
    fn over(&self) -> BoxFuture<'_, ()>;
}

/// Who can be asked in a caller's place, and where the questions stand.
#[derive(Default)]
pub(crate) struct AskedSide {
    /// Where they stand.
    pub(crate) book: Arc<QuestionBook>,
    /// Whether this is the owner of the host.
    pub(crate) is_owner: bool,
    /// Asks whether calls may run.
    pub(crate) prompter: Option<Arc<dyn Prompter>>,
    /// Answers servers.
    pub(crate) client_handler: Option<Arc<dyn ClientHandler>>,
    /// Whether questions stand although neither shows them.
    pub(crate) open_questions: bool,
}

/// What one caller is asked through.
pub(crate) struct QuestionAsker {
    side: AskedSide,
    party: PartyId,
    caller: Caller,
    attention: Attention,
    /// The prompter's, which shows one question at a time.
    turn: Mutex<()>,
    places: Semaphore,
    /// The servers whose last page was agreed to elsewhere than with the client handler.
    elsewhere: StdMutex<HashSet<ServerName>>,
}

/// A question that is about to be asked.
struct Draft {
    kind: QuestionKind,
    server: ServerName,
    tool: Option<ToolKey>,
    askee: Askee,
}

impl QuestionAsker {
    pub(crate) fn new(caller: Caller, side: AskedSide, attention: Attention) -> Self {
        Self {
            party: if side.is_owner {
                PartyId::OWNER
            } else {
                side.book.new_party()
            },
            side,
            caller,
            attention,
            turn: Mutex::new(()),
            places: Semaphore::new(AT_ONCE),
            elsewhere: StdMutex::default(),
        }
    }

    /// Whose asker it is.
    pub(crate) fn party(&self) -> PartyId {
        self.party
    }

    /// Whom to ask whether a call may run; none where nobody could answer. The prompter of the
    /// request comes before the caller's own.
    pub(crate) fn prompter<'a>(
        &'a self,
        of_request: Option<&'a Arc<dyn Prompter>>,
    ) -> Option<AskedPrompter<'a>> {
        let shows = of_request.or(self.side.prompter.as_ref());
        let has_person = shows.is_some() || self.side.open_questions;
        let goes_to_owner = self.side.book.owner_answers && !has_person;
        (has_person || goes_to_owner).then_some(AskedPrompter {
            asker: self,
            shows: shows.map(|shows| &**shows),
            askee: if goes_to_owner {
                Askee::Owner
            } else {
                Askee::Caller
            },
        })
    }

    /// Who answers what servers ask because of these requests; none where nobody does. The handler
    /// of a request comes before the caller's own.
    pub(crate) fn client_handler(
        self: &Arc<Self>,
        cause: Vec<Arc<dyn CausingRequest>>,
        of_request: Option<Arc<dyn ClientHandler>>,
    ) -> Option<Arc<dyn ClientHandler>> {
        let shows = of_request.or_else(|| self.side.client_handler.clone());
        if shows.is_none() && !self.side.open_questions {
            return None;
        }
        Some(Arc::new(AskedHandler {
            asker: Arc::clone(self),
            shows,
            cause,
        }))
    }

    /// Has a question stand until it is answered, its time is over or `cause` has ended.
    async fn put(
        &self,
        draft: Draft,
        shown: Option<BoxFuture<'_, QuestionAnswer>>,
        cause: impl Future<Output = ()>,
    ) -> Option<Answered> {
        let _attention = self.attention.open();
        let limit = match &shown {
            Some(_) => limits::call::QUESTION_SHOWN,
            None => limits::call::QUESTION_OPEN,
        };
        let asked_at = SystemTime::now();
        let question = OpenQuestion {
            id: QuestionId::random()?,
            kind: draft.kind,
            server: draft.server,
            tool: draft.tool,
            caller: self.caller.clone(),
            put_to: draft.askee,
            asked_at,
            expires_at: asked_at + limit,
        };
        let opened = self.side.book.open(question, self.party);
        let Some(mut pending_answer) = opened else {
            warn!(caller = %self.caller.shown, "too many questions are open: one was not asked");
            return None;
        };
        let shown = async {
            match shown {
                Some(shown) => shown.await,
                None => pending().await,
            }
        };
        let (given, end) = tokio::select! {
            biased;
            answer = pending_answer.answer() => return answer.map(Answered::elsewhere),
            answer = shown => (Some(answer), QuestionEnd::Answered),
            () = cause => (None, QuestionEnd::Withdrawn),
            () = tokio::time::sleep(limit) => (None, QuestionEnd::Expired),
        };
        match pending_answer.end(end) {
            Ok(()) => given.map(|answer| Answered {
                answer,
                by_adapter: true,
            }),
            Err(quicker) => quicker.map(Answered::elsewhere),
        }
    }
}

/// An answer, and whether the caller's own prompter or client handler gave it.
struct Answered {
    answer: QuestionAnswer,
    by_adapter: bool,
}

impl Answered {
    fn elsewhere(answer: QuestionAnswer) -> Self {
        Self {
            answer,
            by_adapter: false,
        }
    }
}

/// Asks a caller whether a call may run.
pub(crate) struct AskedPrompter<'a> {
    asker: &'a QuestionAsker,
    /// Who shows the question, where anybody does.
    shows: Option<&'a dyn Prompter>,
    askee: Askee,
}

impl AskedPrompter<'_> {
    /// Whether the owner of the host alone can answer, for a caller that cannot be asked.
    pub(crate) fn asks_owner(&self) -> bool {
        self.askee == Askee::Owner
    }
}

impl Prompter for AskedPrompter<'_> {
    fn ask<'a>(&'a self, question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async move {
            let asker = self.asker;
            let _attention = asker.attention.open();
            // Never closed.
            let _place = asker.places.acquire().await;
            let shown = self.shows.map(|prompter| {
                async move {
                    let _turn = if prompter.takes_several() {
                        None
                    } else {
                        Some(asker.turn.lock().await)
                    };
                    QuestionAnswer::Permission(prompter.ask(question).await)
                }
                .boxed()
            });
            let draft = Draft {
                kind: QuestionKind::Permission(Box::new(AskedPermission::of(question))),
                server: question.key.server.clone(),
                tool: Some(question.key.clone()),
                askee: self.askee,
            };
            // What asks is dropped with its call.
            let answered = asker.put(draft, shown, pending()).await;
            match answered.map(|answered| answered.answer) {
                Some(QuestionAnswer::Permission(answer)) => answer,
                _ => PermissionAnswer::Unanswered,
            }
        })
    }

    fn takes_several(&self) -> bool {
        true
    }

    fn shares_answers(&self) -> bool {
        self.shows.is_none_or(Prompter::shares_answers)
    }
}

/// Answers what servers ask because of some requests of a caller.
struct AskedHandler {
    asker: Arc<QuestionAsker>,
    /// Who puts the question to somebody, where anybody does.
    shows: Option<Arc<dyn ClientHandler>>,
    cause: Vec<Arc<dyn CausingRequest>>,
}

impl AskedHandler {
    fn inner(&self) -> Option<&dyn ClientHandler> {
        self.shows.as_deref()
    }

    /// The tool that was called, where all that can have caused the question called the same.
    fn tool(&self, server: &ServerName) -> Option<ToolKey> {
        let mut tools = self.cause.iter().map(|origin| origin.tool());
        let first = tools.next()??;
        let same = tools.all(|tool| tool == Some(first));
        same.then(|| ToolKey::new(server.clone(), first))
    }

    /// Resolves when all that can have caused a question has ended.
    async fn over(&self) {
        if self.cause.is_empty() {
            pending::<()>().await;
        }
        for origin in &self.cause {
            origin.over().await;
        }
    }
}

impl ClientHandler for AskedHandler {
    fn offers(&self) -> ClientOffers {
        let offers = self.inner().map(ClientHandler::offers).unwrap_or_default();
        let open = self.asker.side.open_questions;
        ClientOffers {
            form: offers.form || open,
            url: offers.url || open,
            ..offers
        }
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let asker = &self.asker;
            let kind = QuestionKind::of_elicitation(&request);
            let is_form = matches!(kind, QuestionKind::Form { .. });
            let is_login = matches!(kind, QuestionKind::Login { .. });
            let inner = self.inner().filter(|inner| {
                let offers = inner.offers();
                if is_form { offers.form } else { offers.url }
            });
            if inner.is_none() && !asker.side.open_questions {
                return ElicitationAnswer::Cancel;
            }
            let shown = inner.map(|inner| {
                // Asked when the question stands: a handler may begin when it is called.
                let elicited = async move { inner.elicit(server, request).await };
                elicited.map(QuestionAnswer::Elicitation).boxed()
            });
            let draft = Draft {
                kind,
                server: server.clone(),
                tool: self.tool(server),
                askee: Askee::Caller,
            };
            let cause = async {
                // A login serves every call that waits for it, and ends with the last of them.
                if is_login {
                    pending::<()>().await;
                } else {
                    self.over().await;
                }
            };
            let Some(answered) = asker.put(draft, shown, cause).await else {
                return ElicitationAnswer::Cancel;
            };
            let mut elsewhere = lock(&asker.elsewhere);
            if !is_form && !answered.by_adapter {
                elsewhere.insert(server.clone());
            } else {
                elsewhere.remove(server);
            }
            match answered.answer {
                QuestionAnswer::Elicitation(answer) => answer,
                QuestionAnswer::Permission(_) => ElicitationAnswer::Cancel,
            }
        })
    }

    fn visited<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, ()> {
        // Who was not asked about a page cannot say that it is dealt with.
        let elsewhere = lock(&self.asker.elsewhere).contains(server);
        match self.inner().filter(|_| !elsewhere) {
            Some(inner) => inner.visited(server),
            None => Box::pin(pending()),
        }
    }

    fn roots<'a>(&'a self, server: &'a ServerName) -> Option<BoxFuture<'a, Vec<Root>>> {
        self.inner()?.roots(server)
    }

    fn sample<'a>(
        &'a self,
        server: &'a ServerName,
        request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        if let Some(inner) = self.inner() {
            return inner.sample(server, request);
        }
        let nobody = RpcError::new(error::METHOD_NOT_FOUND, "method not found");
        Box::pin(std::future::ready(Err(nobody)))
    }
}
