//! The owner's conversation: what every client may ask, and the methods below `toolway/`.
//!
//! Owns those methods. Only who is given an [`OwnerService`] can use them: it is the owner's socket's,
//! and no peer becomes an owner by what it says. All else is the conversation of a client like any
//! other, begun when it is first wanted: who only looks is no client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use serde_json::json;
use serde_json::value::to_raw_value;
use toolway::journal::timestamp;
use toolway::types::Era;
use toolway::{
    AnswerError, Askee, ElicitationAnswer, Host, KeepIn, OpenQuestion, PermissionAnswer,
    QuestionAnswer, QuestionId, RuleReach,
};
use toolway_rows::{
    GatewayStatus, GivenAnswer, ListeningRow, QuestionListing, QuestionRow, StateRow,
};
use toolway_wire::{Id, RawJson, RpcError, error};

use super::answers;
use super::client::HostedClient;
use super::owner_methods::{self, is_owners};
use super::service::HostService;
use crate::conversation::{
    Answer, AnswerFuture, Conversation, IncomingRequest, NoConversation, Peer, Service,
};
use crate::outlet::Outlet;

/// A host's service for its owner.
pub struct OwnerService(Arc<OwnedGateway>);

struct OwnedGateway {
    service: Arc<HostService>,
    since: SystemTime,
    directory: String,
    listens: Mutex<Vec<ListeningRow>>,
}

impl OwnerService {
    /// For the owner of what this service serves, which was started in this directory.
    pub fn new(service: Arc<HostService>, directory: &str) -> Self {
        Self(Arc::new(OwnedGateway {
            service,
            since: SystemTime::now(),
            directory: directory.to_owned(),
            listens: Mutex::default(),
        }))
    }

    /// Notes a way in, by which clients come from now on.
    pub fn listens(&self, way: &'static str, address: Option<String>) {
        let way = way.into();
        self.0.listening().push(ListeningRow { way, address });
    }

    /// Tells of every question that only the owner can answer, once each, for as long as it is
    /// polled.
    pub async fn tell_waiting(host: &Host, tell: impl Fn(&OpenQuestion)) {
        let mut watch = host.watch_questions();
        let mut told: Vec<QuestionId> = Vec::new();
        loop {
            let shown = watch.shown();
            told.retain(|id| shown.iter().any(|question| question.id == *id));
            let waiting = shown.iter().filter(|it| it.put_to == Askee::Owner);
            for question in waiting {
                if !told.contains(&question.id) {
                    told.push(question.id.clone());
                    let (server, tool) = (&question.server, question.tool.as_ref());
                    let tool = tool.map(|tool| &*tool.tool);
                    tracing::info!(id = %question.id, %server, tool, "a call waits for the owner");
                    tell(question);
                }
            }
            watch.changed().await;
        }
    }
}

impl Service for OwnerService {
    fn open(&self, peer: &Peer, unasked: Outlet) -> Result<Arc<dyn Conversation>, NoConversation> {
        Ok(self.0.converse(peer, Some(unasked)))
    }

    fn visit(&self, peer: &Peer) -> Result<Arc<dyn Conversation>, NoConversation> {
        Ok(self.0.converse(peer, None))
    }
}

impl OwnedGateway {
    fn listening(&self) -> MutexGuard<'_, Vec<ListeningRow>> {
        self.listens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn converse(self: &Arc<Self>, peer: &Peer, unasked: Option<Outlet>) -> Arc<OwnerConversation> {
        Arc::new(OwnerConversation {
            gateway: Arc::clone(self),
            peer: peer.clone(),
            unasked,
            client: Mutex::default(),
        })
    }

    fn host(&self) -> &Host {
        self.service.host()
    }

    fn answer(&self, request: &IncomingRequest) -> Answer {
        match request.method.as_str() {
            owner_methods::STATUS => written(&self.status(), request.era),
            owner_methods::QUESTIONS => written(&self.questions(), request.era),
            owner_methods::ANSWER => match self.give(request.params.as_ref()) {
                Ok(given) => written(&given, request.era),
                Err(refusal) => refusal.into(),
            },
            unknown => answers::no_method(unknown),
        }
    }

    fn status(&self) -> GatewayStatus {
        let host = self.host();
        let clients = self.service.all_clients();
        let mut rows: Vec<_> = clients.iter().map(|client| client.row()).collect();
        rows.sort_by(|one, other| (&one.since, &one.id).cmp(&(&other.since, &other.id)));
        let calls = clients.iter().flat_map(|client| client.running_calls());
        let mut calls: Vec<_> = calls.collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.milliseconds));
        let snapshot = host.snapshot();
        GatewayStatus {
            pid: std::process::id(),
            since: timestamp(self.since),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            directory: self.directory.clone(),
            listens: self.listening().clone(),
            servers: snapshot
                .servers
                .iter()
                .map(|it| StateRow::from(&**it))
                .collect(),
            parked: rows.iter().map(|client| client.parked).sum(),
            clients: rows,
            calls,
            questions: host.questions().len(),
        }
    }

    fn questions(&self) -> QuestionListing {
        let questions = self.host().questions();
        let clients = self.service.all_clients();
        let named = |question: &OpenQuestion| {
            let mut row = QuestionRow::from(question);
            let asks = |it: &&Arc<HostedClient>| it.attached.caller().id == question.caller.id;
            row.client = clients.iter().find(asks).and_then(|it| it.own_name());
            row
        };
        QuestionListing {
            questions: questions.iter().map(|it| named(it)).collect(),
        }
    }

    /// Gives the owner's answer to a question.
    fn give(&self, params: Option<&RawJson>) -> Result<GivenAnswer, RpcError> {
        let params = params.map_or("{}", RawJson::get);
        let given: GivenAnswer = serde_json::from_str(params)
            .map_err(|error| RpcError::new(error::INVALID_PARAMS, error.to_string()))?;
        let host = self.host();
        let ids = host.question_ids(&given.id);
        let exact = ids.iter().find(|id| id.as_str() == given.id);
        let id = match (exact, ids.as_slice()) {
            (Some(id), _) | (None, [id]) if !given.id.is_empty() => id,
            (_, []) => {
                let unknown = AnswerError::Unknown(QuestionId::new(&given.id));
                return Err(refused(&unknown));
            }
            _ => {
                let message = format!("several questions begin with `{}`", given.id);
                return Err(refusal(message, "ambiguous"));
            }
        };
        let questions = host.questions();
        let open = questions.iter().find(|question| question.id == *id);
        if let Some(question) = open {
            let row = QuestionRow::from(&**question);
            let is_offered = row.choices.iter().any(|it| it.answer == given.answer);
            if !is_offered {
                let choices: Vec<&str> = row.choices.iter().map(|it| &*it.answer).collect();
                let why = format!("it takes {}", choices.join(", "));
                let id = id.clone();
                return Err(refused(&AnswerError::Unfit { id, why }));
            }
        }
        let answer = answer_of(&given).ok_or_else(|| {
            let message = format!("`{}` is no answer to any question", given.answer);
            refusal(message, "unfit")
        })?;
        host.answer(id, answer).map_err(|error| refused(&error))?;
        Ok(GivenAnswer {
            id: id.to_string(),
            ..given
        })
    }
}

/// What a word of [`toolway_rows::ChoiceRow`] means. Rules that the owner makes here are kept in the
/// user's own settings: which project is meant cannot be known.
fn answer_of(given: &GivenAnswer) -> Option<QuestionAnswer> {
    let always = |reach| {
        let keep_in = KeepIn::User;
        PermissionAnswer::Always { reach, keep_in }
    };
    let permission = match &*given.answer {
        "yes" => PermissionAnswer::Yes,
        "session" => PermissionAnswer::Session,
        "always-tool" => always(RuleReach::Tool),
        "always-server" => always(RuleReach::Server),
        "no" => match &given.reason {
            Some(reason) => PermissionAnswer::NoBecause(reason.clone()),
            None => PermissionAnswer::No,
        },
        other => {
            let elicitation = match other {
                "accept" => ElicitationAnswer::Accept(None),
                "decline" => ElicitationAnswer::Decline,
                "cancel" => ElicitationAnswer::Cancel,
                _ => return None,
            };
            return Some(QuestionAnswer::Elicitation(elicitation));
        }
    };
    Some(QuestionAnswer::Permission(permission))
}

fn refused(why: &AnswerError) -> RpcError {
    let word = match why {
        AnswerError::Unknown(_) => "unknown",
        AnswerError::AlreadyAnswered(_) => "answered",
        AnswerError::Ended(_) => "ended",
        AnswerError::NotYours(_) => "not-yours",
        AnswerError::Unfit { .. } => "unfit",
    };
    refusal(why.to_string(), word)
}

fn refusal(message: String, word: &str) -> RpcError {
    let mut refusal = RpcError::new(error::INVALID_PARAMS, message);
    refusal.data = to_raw_value(&json!({ "reason": word })).ok();
    refusal
}

fn written(row: &impl Serialize, era: Era) -> Answer {
    match serde_json::to_value(row) {
        Ok(value) => answers::own(&value, era),
        Err(error) => RpcError::new(error::INTERNAL_ERROR, error.to_string()).into(),
    }
}

/// The owner's talk with its gateway.
struct OwnerConversation {
    gateway: Arc<OwnedGateway>,
    peer: Peer,
    unasked: Option<Outlet>,
    /// The conversation of a client, once one is wanted.
    client: Mutex<Option<Arc<dyn Conversation>>>,
}

impl OwnerConversation {
    fn known(&self) -> Option<Arc<dyn Conversation>> {
        let client = self.client.lock();
        client.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn client(&self) -> Result<Arc<dyn Conversation>, NoConversation> {
        let client = self.client.lock();
        let mut client = client.unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*client {
            return Ok(Arc::clone(client));
        }
        let service = &self.gateway.service;
        let begun = match &self.unasked {
            Some(unasked) => service.open(&self.peer, unasked.clone()),
            None => service.visit(&self.peer),
        }?;
        Ok(Arc::clone(client.insert(begun)))
    }
}

impl Conversation for OwnerConversation {
    fn request(self: Arc<Self>, request: IncomingRequest, outlet: Outlet) -> AnswerFuture {
        if is_owners(&request.method) {
            let answer = self.gateway.answer(&request);
            return Box::pin(std::future::ready(answer));
        }
        match self.client() {
            Ok(client) => client.request(request, outlet),
            Err(error) => {
                let refusal = RpcError::new(error::INVALID_REQUEST, error.to_string());
                Box::pin(std::future::ready(refusal.into()))
            }
        }
    }

    fn notified(self: Arc<Self>, method: &str, params: Option<RawJson>) {
        if let Some(client) = self.known().filter(|_| !is_owners(method)) {
            client.notified(method, params);
        }
    }

    fn answered(&self, id: Id, outcome: Result<RawJson, RpcError>) {
        if let Some(client) = self.known() {
            client.answered(id, outcome);
        }
    }
}
