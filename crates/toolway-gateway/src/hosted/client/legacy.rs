//! What a client of the legacy era asks: the handshake, and requests on streams.
//!
//! Owns `initialize`, `ping`, log levels and subscriptions, and that what servers ask because of a
//! request goes down its stream.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolway::types::Era;
use toolway::{LogLevel, RequestAsked};
use toolway_wire::era::{self, method};
use toolway_wire::{RawJson, request_head};

use super::super::answers;
use super::super::capabilities::ClientCapabilities;
use super::super::greeting;
use super::super::lists::ToldLists;
use super::super::parked::CurrentOutlet;
use super::super::questions;
use super::super::stream_asker::StreamAsker;
use super::super::work::ServerWork;
use super::{HostedClient, listed, served_by_server, unknown};
use crate::conversation::{Answer, AnswerFuture, IncomingRequest};
use crate::outlet::Outlet;

/// How long a client may take to say which roots it has.
const ROOTS_TIME: Duration = Duration::from_secs(30);

impl HostedClient {
    pub(super) fn legacy_request(
        self: Arc<Self>,
        request: IncomingRequest,
        outlet: Outlet,
    ) -> AnswerFuture {
        if let Some(method) = served_by_server(&request.method) {
            let unclear = match ServerWork::prepare(&self, &request, method) {
                Ok(work) => return self.ask_server(&request, work, outlet),
                Err(unclear) => unclear,
            };
            return Box::pin(async move {
                match unclear.awaited(&self, &request, method).await {
                    Ok(work) => self.ask_server(&request, work, outlet).await,
                    Err(answer) => *answer,
                }
            });
        }
        Box::pin(async move {
            if let Some(list) = listed(&request.method) {
                return self.list(list, &request).await;
            }
            match request.method.as_str() {
                method::INITIALIZE => self.greet(&request).await,
                method::PING => answers::own(&json!({}), Era::Legacy),
                method::LOGGING_SET_LEVEL => self.set_level(&request),
                method::RESOURCES_SUBSCRIBE => self.follow(&request).await,
                method::RESOURCES_UNSUBSCRIBE => self.unfollow(&request),
                method::SKILLS_LIST | method::SKILLS_GET if self.endpoint.scope.is_merged() => {
                    self.skills(&request).await
                }
                method::TASKS_GET | method::TASKS_RESULT | method::TASKS_CANCEL => {
                    self.task_step(&request).await
                }
                _ => unknown(&self, &request).await,
            }
        })
    }

    /// Has a server answer, and the client whatever the server asks meanwhile.
    fn ask_server(
        self: Arc<Self>,
        request: &IncomingRequest,
        mut work: ServerWork,
        outlet: Outlet,
    ) -> AnswerFuture {
        work.begin_anew();
        let stream = Arc::new(StreamAsker {
            questions: Arc::clone(&self.questions),
            capabilities: Arc::clone(&self.state().capabilities),
            outlet: outlet.clone(),
        });
        let can_be_asked = stream.capabilities.form;
        let of_program = self.core.asked_of_program();
        let asked = RequestAsked {
            prompter: (of_program.prompter)
                .or_else(|| can_be_asked.then(|| Arc::clone(&stream) as _)),
            client_handler: of_program.client_handler.or(Some(stream)),
        };
        let options = self.options(request, &work, &CurrentOutlet::new(outlet, request), asked);
        Box::pin(work.perform(Arc::clone(&self.party), options))
    }

    async fn greet(&self, request: &IncomingRequest) -> Answer {
        let params = request.params.as_ref();
        let member = |name| {
            let raw = request_head::raw_param(params?, name)?;
            Some(RawJson::from(raw))
        };
        {
            let mut state = self.state();
            let declared = member("capabilities");
            state.capabilities = Arc::new(ClientCapabilities::read(declared.as_ref()));
        }
        self.record
            .asked(Era::Legacy, member("clientInfo").as_ref());
        let asked = request_head::text_param(params, "protocolVersion");
        // The version asked for when we know it, else our newest: so says the handshake.
        let mut known = era::LEGACY_VERSIONS.iter().copied();
        let version = asked.and_then(|asked| known.find(|version| *version == asked));
        let version = version.unwrap_or(era::LATEST_LEGACY);
        self.state().version = Some(version);
        self.endpoint.greetable().await;
        self.state().known = Some(ToldLists::of(&self.endpoint.lists()));
        let mut result = greeting::of(&self.endpoint, Era::Legacy);
        result["protocolVersion"] = version.into();
        answers::own(&result, Era::Legacy)
    }

    fn set_level(self: &Arc<Self>, request: &IncomingRequest) -> Answer {
        let level = request_head::text_param(request.params.as_ref(), "level");
        let Some(level) = level.and_then(|level| level.parse::<LogLevel>().ok()) else {
            return answers::invalid("`level` is no log level");
        };
        self.state().level = Some(level);
        self.hear_logs(level);
        answers::own(&Value::Object(serde_json::Map::new()), Era::Legacy)
    }

    /// Asks for its roots: servers that want to know of them are told when they connect. It is asked one
    /// thing at a time, however often it says that they changed.
    pub(super) fn learn_roots(self: &Arc<Self>) {
        let Some(outlet) = self.unasked.clone() else {
            return;
        };
        {
            let mut state = self.state();
            if !state.capabilities.roots {
                return;
            }
            let before = std::mem::replace(&mut state.roots, RootsInquiry::Again);
            if before != RootsInquiry::None {
                return;
            }
        }
        let client = Arc::downgrade(self);
        let questions = Arc::clone(&self.questions);
        self.core.beside(Box::pin(async move {
            loop {
                let due = client.upgrade().is_some_and(|it| it.begin_inquiry());
                if !due {
                    return;
                }
                let none = RawValue::from_string("{}".to_owned()).unwrap_or_default();
                let asked = questions.ask(&outlet, method::ROOTS_LIST, &none);
                // Over HTTP a client need not listen to what it did not ask for.
                let answer = tokio::time::timeout(ROOTS_TIME, asked).await;
                if let (Ok(Ok(answer)), Some(client)) = (answer, client.upgrade()) {
                    client.attached.set_roots(questions::read_roots(&answer));
                }
            }
        }));
    }

    /// Whether it is to be asked for its roots now.
    fn begin_inquiry(&self) -> bool {
        let mut state = self.state();
        let is_due = state.roots == RootsInquiry::Again;
        state.roots = if is_due {
            RootsInquiry::Asked
        } else {
            RootsInquiry::None
        };
        is_due
    }
}

/// How far asking a client for its roots is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RootsInquiry {
    /// It is not being asked.
    #[default]
    None,
    /// It is.
    Asked,
    /// It is to be asked, once what it was asked before is answered.
    Again,
}
