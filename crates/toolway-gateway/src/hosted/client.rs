//! One client of a hosted service: its conversation.
//!
//! Owns what a conversation remembers: what the client declared, what it follows, what it is being
//! asked. Which request means what in which era is `client/legacy.rs` and
//! `client/modern.rs`; a request that a server answers is `work.rs`'s.

mod following;
mod legacy;
mod listen;
mod modern;
mod skills;
mod tasks;

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolway::journal::timestamp;
use toolway::types::Era;
use toolway::{
    CallError, CallFault, CallOptions, ListKind, LogLevel, LogSink, Progress, RequestAsked,
    ServerNotice, ToolPool,
};
use toolway_rows::{CallRow, ServedClientRow};
use toolway_wire::edit::{Replacement, rewritten};
use toolway_wire::era::method;
use toolway_wire::{Id, RawJson, RpcError, envelope, request_head};

use self::listen::Listeners;
use super::answers::{self, Caching};
use super::capabilities::ClientCapabilities;
use super::endpoint::{EndpointClient, ToolOffer, era_of};
use super::lists::{ServedList, ServedLists, ToldLists};
use super::owner_methods::is_owners;
use super::parked::{CurrentOutlet, ParkedCalls};
use super::party::ClientParty;
use super::scope::EndpointScope;
use super::traced;
use super::work::{self, ServerWork};
use crate::client_questions::ClientQuestions;
use crate::conversation::{Answer, AnswerFuture, Conversation, Endpoint, IncomingRequest, Peer};
use crate::outlet::Outlet;

/// A client.
pub(super) struct HostedClient {
    party: Arc<ClientParty>,
    /// Where is said what it did not ask for; nowhere for single exchanges.
    unasked: Option<Outlet>,
    questions: Arc<ClientQuestions>,
    parked: ParkedCalls,
    listeners: Listeners,
    state: Mutex<ClientState>,
}

impl Deref for HostedClient {
    type Target = Arc<ClientParty>;

    fn deref(&self) -> &Arc<ClientParty> {
        &self.party
    }
}

/// What a legacy client said of itself, and what it follows.
#[derive(Default)]
struct ClientState {
    /// The lists as it knows them, once it has shaken hands.
    known: Option<ToldLists>,
    capabilities: Arc<ClientCapabilities>,
    level: Option<LogLevel>,
    /// The revision that was settled with it.
    version: Option<&'static str>,
    following: following::Following,
    roots: legacy::RootsInquiry,
}

impl HostedClient {
    pub(super) fn new(party: ClientParty, unasked: Option<Outlet>) -> Self {
        let program = party.core.program.as_ref();
        let questions = program.map(|program| Arc::clone(&program.questions));
        Self {
            party: Arc::new(party),
            unasked,
            questions: questions.unwrap_or_default(),
            parked: ParkedCalls::default(),
            listeners: Listeners::default(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anything of it waits here.
    pub(super) fn is_idle(&self) -> bool {
        self.parked.count() == 0 && self.listeners.is_empty()
    }

    /// What people are shown of it.
    pub(super) fn row(&self) -> ServedClientRow {
        let (info, era) = self.record.info();
        let (since, last) = self.record.times();
        let caller = self.attached.caller();
        ServedClientRow {
            id: caller.id.to_string(),
            principal: caller.principal.to_string(),
            shown: caller.shown.to_string(),
            name: info.name,
            version: info.version,
            era,
            endpoint: shown_endpoint(&self.peer),
            since: timestamp(since),
            last_seen: timestamp(last),
            calls: self.record.calls(),
            parked: self.parked.count(),
        }
    }

    /// What it calls itself, if anything.
    pub(super) fn own_name(&self) -> Option<String> {
        let (info, _) = self.record.info();
        let name = info.name?;
        Some(match info.version {
            Some(version) => format!("{name} {version}"),
            None => name,
        })
    }

    /// Its calls that run.
    pub(super) fn running_calls(&self) -> Vec<CallRow> {
        self.record.rows(self.attached.caller())
    }

    /// One page of a list.
    async fn list(&self, list: ServedList, request: &IncomingRequest) -> Answer {
        self.endpoint.listable().await;
        let params = request.params.as_ref();
        let cursor = request_head::text_param(params, "cursor");
        let lists = self.endpoint.lists();
        match lists.page(list, request.era, cursor.as_deref(), self.pool.as_ref()) {
            Ok(page) => {
                if let (Era::Legacy, Some(known)) = (request.era, &mut self.state().known) {
                    known.learn(list, &lists);
                }
                Answer::result(page)
            }
            Err(error) => error.into(),
        }
    }

    /// The conditions of a request that a server answers.
    fn options(
        &self,
        request: &IncomingRequest,
        work: &ServerWork,
        outlet: &CurrentOutlet,
        asked: RequestAsked,
    ) -> CallOptions {
        let endpoint = &self.endpoint.options;
        let mut options = CallOptions::new(self.endpoint.consent());
        options.delivery = work::delivery(endpoint.results);
        options.continuations = work.continuations();
        options.pool.clone_from(&self.pool);
        options.asked = asked;
        options.trace.clone_from(&request.trace);
        let level = match request.era {
            Era::Modern => {
                options.capabilities.clone_from(&request.head.capabilities);
                let level = request.head.log_level.as_ref();
                level.and_then(|level| {
                    serde_json::from_str::<String>(level.get())
                        .ok()?
                        .parse()
                        .ok()
                })
            }
            Era::Legacy => self.state().level,
        };
        if request.head.progress_token.is_some() {
            let outlet = outlet.clone();
            options.progress = Some(Arc::new(move |progress| {
                if let Some((outlet, token)) = outlet.for_progress() {
                    outlet.notify(progress_message(&progress, &token));
                }
            }));
        }
        if let Some(level) = level {
            let outlet = outlet.clone();
            let sink = Arc::new(move |message: toolway::LogMessage| {
                let params = message.raw.as_raw();
                let logged = envelope::notification(method::MESSAGE, Some(params));
                outlet.get().notify(logged);
            });
            options.logs = Some(LogSink { level, sink });
        }
        if !self.endpoint.scope.is_merged() {
            let outlet = outlet.clone();
            options.notices = Some(Arc::new(move |notice: ServerNotice| {
                let params = notice.params.as_ref().map(RawJson::as_raw);
                let told = envelope::notification(&notice.method, params);
                outlet.get().notify(told);
            }));
        }
        options
    }
}

impl EndpointClient for HostedClient {
    fn lists_changed(&self, lists: &ServedLists) {
        self.listeners.lists_changed(lists);
        let known = &mut self.state().known;
        let changed = known.as_mut().map(|known| known.update(lists));
        if let Some(unasked) = &self.unasked {
            for list in changed.into_iter().flatten() {
                unasked.notify(envelope::notification(changed_method(list), None));
            }
        }
    }

    fn sweep(&self) {
        // Its pipe or its session may have ended.
        if self.unasked.as_ref().is_some_and(Outlet::is_gone) {
            self.parked.clear();
        } else {
            self.parked.sweep();
        }
    }

    fn parked(&self) -> usize {
        self.parked.count()
    }
}

impl Conversation for HostedClient {
    fn request(self: Arc<Self>, mut request: IncomingRequest, outlet: Outlet) -> AnswerFuture {
        // Never passed on either, whatever the endpoint: they are between a gateway and its owner.
        if is_owners(&request.method) {
            let answer = answers::no_method(&request.method);
            return Box::pin(std::future::ready(answer));
        }
        self.record
            .asked(request.era, request.head.client_info.as_ref());
        let tracer = self.core.tracer.as_ref();
        let span = traced::begin(tracer, &self.party, &mut request);
        let span = span.map(|mut span| {
            let session = self.unasked.as_ref().map(|_| &*self.attached.caller().id);
            match request.era {
                Era::Legacy => span.told(self.state().version, session),
                Era::Modern => span.told(request.head.version.as_deref(), None),
            }
            span
        });
        let span = span.map(|span| (span, Arc::clone(&self.party)));
        let answer = match request.era {
            Era::Legacy => self.legacy_request(request, outlet),
            Era::Modern => self.modern_request(request, outlet),
        };
        let Some((span, party)) = span else {
            return answer;
        };
        Box::pin(async move {
            let answer = answer.await;
            span.end(&party, &answer);
            answer
        })
    }

    fn notified(self: Arc<Self>, method: &str, params: Option<RawJson>) {
        self.record.seen();
        match method {
            method::INITIALIZED => {
                self.learn_roots();
                self.hear_notices();
            }
            method::ROOTS_CHANGED => self.learn_roots(),
            owners if is_owners(owners) => {}
            _ => self.pass_on_notice(method, params),
        }
    }

    fn answered(&self, id: Id, outcome: Result<RawJson, RpcError>) {
        self.record.seen();
        self.questions.answered(&id, outcome);
    }
}

/// What a client talks to, by the path that leads there.
fn shown_endpoint(peer: &Peer) -> String {
    match (&peer.profile, &peer.endpoint) {
        (Some(name), _) | (None, Endpoint::Profile(name)) => format!("/mcp/p/{name}"),
        (None, Endpoint::Server(name)) => format!("/mcp/{name}"),
        (None, Endpoint::All) => "/mcp".to_owned(),
    }
}

/// The client's pool, where it has to search for tools.
pub(super) fn pool_for(offer: ToolOffer) -> Option<ToolPool> {
    (offer == ToolOffer::Search).then(ToolPool::new)
}

/// The notification that a list changed.
fn changed_method(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => method::TOOLS_CHANGED,
        ListKind::Resources => method::RESOURCES_CHANGED,
        ListKind::Prompts => method::PROMPTS_CHANGED,
    }
}

/// Progress under the client's own token, otherwise as the server sent it.
pub(crate) fn progress_message(progress: &Progress, token: &RawJson) -> bytes::Bytes {
    let params = if let Some(raw) = &progress.raw {
        rewritten(raw, |name| match name {
            "progressToken" => Replacement::Json(Some(token.get())),
            _ => Replacement::Kept,
        })
    } else {
        let mut params = serde_json::json!({ "progress": progress.progress });
        if let Some(total) = progress.total {
            params["total"] = total.into();
        }
        if let Some(message) = &progress.message {
            params["message"] = message.as_received().into();
        }
        params["progressToken"] = serde_json::from_str(token.get()).unwrap_or_default();
        let params = serde_json::value::to_raw_value(&params);
        params.map(RawJson::from).unwrap_or_default()
    };
    envelope::notification(method::PROGRESS, Some(params.as_raw()))
}

/// Which list a method asks for.
fn listed(name: &str) -> Option<ServedList> {
    Some(match name {
        method::TOOLS_LIST => ServedList::Tools,
        method::RESOURCES_LIST => ServedList::Resources,
        method::RESOURCE_TEMPLATES_LIST => ServedList::Templates,
        method::PROMPTS_LIST => ServedList::Prompts,
        _ => return None,
    })
}

/// Which methods a server answers.
fn served_by_server(name: &str) -> Option<&'static str> {
    Some(match name {
        method::TOOLS_CALL => method::TOOLS_CALL,
        method::RESOURCES_READ => method::RESOURCES_READ,
        method::DIRECTORY_READ => method::DIRECTORY_READ,
        method::PROMPTS_GET => method::PROMPTS_GET,
        method::COMPLETION_COMPLETE => method::COMPLETION_COMPLETE,
        _ => return None,
    })
}

/// A method that the gateway does not know: one server may, several cannot be told apart.
async fn unknown(client: &HostedClient, request: &IncomingRequest) -> Answer {
    let EndpointScope::One(server) = &client.endpoint.scope else {
        return answers::no_method(&request.method);
    };
    let era = request.era;
    let from = era_of(&client.endpoint.view.snapshot(), server);
    let mut options = CallOptions::new(client.endpoint.consent());
    options.trace.clone_from(&request.trace);
    if era == Era::Modern {
        options.capabilities.clone_from(&request.head.capabilities);
    }
    let (name, params) = (request.method.as_str(), request.params.as_ref());
    let passed = client
        .attached
        .pass_on_other(server, name, params, &options);
    match passed.await {
        Ok(answer) => {
            let caching = match name {
                method::SKILLS_LIST | method::SKILLS_GET => Caching::Said,
                _ => Caching::Unsaid,
            };
            answers::complete(answer.raw, from, era, caching)
        }
        Err(CallError::Failed(_, CallFault::Invalid(_))) => answers::no_method(name),
        Err(error) => answers::failed(&error),
    }
}
