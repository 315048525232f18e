//! What a client of the modern era asks: single requests, and rounds of input.
//!
//! Owns `server/discover`, and that a call whose server or whose permission wants something of the
//! client is parked and answered with what is wanted. Nothing is kept between two requests but
//! parked calls: what a modern server wants to have kept travels sealed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolway::types::Era;
use toolway::{LogLevel, LogSink, LogStream, RequestAsked};
use toolway_wire::era::{self, method};
use toolway_wire::scan::RareName;
use toolway_wire::{RawJson, request_head};

use super::super::answers::{self, Caching};
use super::super::capabilities::ClientCapabilities;
use super::super::endpoint::facts;
use super::super::greeting;
use super::super::parked::{CallQuestions, CurrentOutlet, ParkedCall, ParkingAsker};
use super::super::sealing::{self, OpenedState};
use super::super::work::ServerWork;
use super::{HostedClient, listed, served_by_server, unknown};
use crate::conversation::{Answer, AnswerFuture, IncomingRequest};
use crate::outlet::Outlet;

/// How long further questions are waited for after the first.
const GATHERED: Duration = Duration::from_millis(25);

/// How long a server may take to heed the level that a request wants to hear.
const LEVEL_TIME: Duration = Duration::from_secs(5);

/// What a request has that continues an earlier one.
static REQUEST_STATE: RareName = RareName::new("requestState");

impl HostedClient {
    pub(super) fn modern_request(
        self: Arc<Self>,
        request: IncomingRequest,
        outlet: Outlet,
    ) -> AnswerFuture {
        if let Some(method) = served_by_server(&request.method) {
            return Box::pin(self.ask_or_park(request, method, outlet));
        }
        Box::pin(async move {
            if let Some(list) = listed(&request.method) {
                return self.list(list, &request).await;
            }
            match request.method.as_str() {
                method::DISCOVER => self.discover().await,
                method::SUBSCRIPTIONS_LISTEN => self.listen(request, outlet).await,
                method::SKILLS_LIST | method::SKILLS_GET if self.endpoint.scope.is_merged() => {
                    self.skills(&request).await
                }
                method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => {
                    self.task_step(&request).await
                }
                _ => unknown(&self, &request).await,
            }
        })
    }

    async fn discover(&self) -> Answer {
        self.endpoint.greetable().await;
        let mut result = greeting::of(&self.endpoint, Era::Modern);
        result["supportedVersions"] = json!(era::MODERN_VERSIONS);
        let result = serde_json::value::to_raw_value(&result)
            .map(RawJson::from)
            .unwrap_or_default();
        answers::complete(result, Era::Legacy, Era::Modern, Caching::Said)
    }

    /// Has a server answer; what is asked meanwhile is the answer until the client sends its request
    /// again.
    async fn ask_or_park(
        self: Arc<Self>,
        request: IncomingRequest,
        method: &'static str,
        outlet: Outlet,
    ) -> Answer {
        let mut work = match ServerWork::prepare(&self, &request, method) {
            Ok(work) => work,
            // Boxed: a request of a server that is there must not carry the room for it along.
            Err(unclear) => match Box::pin(unclear.awaited(&self, &request, method)).await {
                Ok(work) => work,
                Err(answer) => return *answer,
            },
        };
        let params = work.params.clone();
        if REQUEST_STATE.may_stand_in(params.get())
            && let Some(state) = request_head::raw_param(&params, "requestState")
        {
            let text = toolway_wire::scan::text(state.get()).unwrap_or_default();
            match sealing::open(&self, method, &params, &work.server, &text) {
                Ok(OpenedState::Server(state)) => work.set_state(state),
                Ok(OpenedState::Parked(number)) => {
                    let Some(parked) = self.parked.take(number) else {
                        return answers::invalid("the call that this continues has ended");
                    };
                    parked.outlet.set(outlet, &request);
                    if let Some(responses) = request_head::raw_param(&params, "inputResponses") {
                        parked
                            .questions
                            .answer(&RawJson::part_of(params.bytes(), responses));
                    }
                    return self.drive(parked, method, params).await;
                }
                Err(answer) => return answer,
            }
        }
        let capabilities = ClientCapabilities::read(request.head.capabilities.as_ref());
        let can_be_asked = capabilities.form;
        let questions = Arc::<CallQuestions>::default();
        let parking = Arc::new(ParkingAsker {
            questions: Arc::clone(&questions),
            capabilities,
        });
        let of_program = self.core.asked_of_program();
        let asked = RequestAsked {
            prompter: (of_program.prompter)
                .or_else(|| can_be_asked.then(|| Arc::clone(&parking) as _)),
            client_handler: of_program.client_handler.or(Some(parking)),
        };
        let outlet = CurrentOutlet::new(outlet, &request);
        let options = self.options(&request, &work, &outlet, asked);
        let heard = self.level_upstream(&work, options.logs.as_ref());
        let call = work.perform(Arc::clone(&self.party), options);
        let call: AnswerFuture = match heard {
            None => Box::pin(call),
            Some((stream, level)) => Box::pin(async move {
                let _ = tokio::time::timeout(LEVEL_TIME, stream.heeded(level)).await;
                // The level stays as long as the call.
                let answer = call.await;
                drop(stream);
                answer
            }),
        };
        let parked = ParkedCall {
            call,
            questions,
            outlet,
        };
        self.drive(parked, method, params).await
    }

    /// Has a legacy server told of the level that a request wants to hear: servers of that era do
    /// not learn it from requests.
    fn level_upstream(
        &self,
        work: &ServerWork,
        wanted: Option<&LogSink>,
    ) -> Option<(LogStream, LogLevel)> {
        let level = wanted?.level;
        let snapshot = self.endpoint.view.snapshot();
        let facts = facts(&snapshot, &work.server)?;
        let is_told = facts.era == Era::Legacy && facts.capabilities["logging"].is_object();
        let stream = is_told.then(|| self.attached.logs(&work.server, level).ok());
        Some((stream??, level))
    }

    /// Drives a call until it is answered or asks something.
    async fn drive(
        self: Arc<Self>,
        mut parked: ParkedCall,
        method: &'static str,
        params: RawJson,
    ) -> Answer {
        tokio::select! {
            biased;
            answer = &mut parked.call => return answer,
            () = parked.questions.asked() => {}
        }
        // A legacy server asks all that it wants to know at once, in several requests.
        tokio::select! {
            biased;
            answer = &mut parked.call => return answer,
            () = tokio::time::sleep(GATHERED) => {}
        }
        let number = self.core.next_number();
        let handle = match sealing::parked(&self, method, &params, number) {
            Ok(handle) => handle,
            Err(answer) => return answer,
        };
        let Some(result) = parked.questions.input_required(&handle) else {
            return answers::invalid("the question could not be written");
        };
        self.parked.park(number, parked);
        Answer::result(result)
    }
}
