//! The talk with a program: its beginning, and which method is whose.
//!
//! Owns that `toolway/initialize` comes first and once, and that MCP needs none of it. Before it, the
//! pipe is a client's like any; after it, calls that come as MCP are judged as the program's are, and
//! asked of it.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use tokio::sync::OnceCell;
use toolway::config::{NameForm, ProfileMode};
use toolway::{Attached, View, ViewSpec};
use toolway_wire::{Id, RawJson, RpcError};

use super::asking::ProgramAsker;
use super::brought::{BroughtServers, ResidentLink};
use super::calls;
use super::error::ControlError;
use super::messages::{
    AgentParams, CallParams, Done, Initialize, Initialized, ListParams, MessageParams,
    MessageReply, PromptParams, ReadParams, ServerParams, ServersAnswered, ServersParams,
    SetServers, ToolsParams,
};
use super::methods;
use super::program::{NewProgram, Program, RunningAgent, base_view, roots};
use super::rows::{Provenances, server_rows};
use super::{ControlCore, PROTOCOL, events, hooks, looking, servers};
use crate::client_questions::ClientQuestions;
use crate::conversation::{
    Answer, AnswerFuture, Conversation, IncomingRequest, NoConversation, Peer, Service as _,
};
use crate::hosted::{
    EndpointOptions, HostService, HostServiceOptions, OwnerService, ProgramSide, is_owners,
};
use crate::outlet::Outlet;
use crate::seal::SealKeys;

/// The talk with a program.
pub(super) struct ControlConversation {
    core: Arc<ControlCore>,
    peer: Peer,
    outlet: Outlet,
    side: ProgramSide,
    begun: OnceCell<Begun>,
    /// Held while a program begins.
    turn: tokio::sync::Mutex<()>,
    program: OnceLock<Arc<Program>>,
}

/// What there is from the first message on.
struct Begun {
    view: View,
    service: Arc<HostService>,
    mcp: Arc<dyn Conversation>,
}

impl ControlConversation {
    pub(super) fn new(core: Arc<ControlCore>, peer: &Peer, outlet: Outlet) -> Self {
        Self {
            core,
            peer: peer.clone(),
            outlet,
            side: ProgramSide::default(),
            begun: OnceCell::new(),
            turn: tokio::sync::Mutex::default(),
            program: OnceLock::new(),
        }
    }

    fn questions(&self) -> &Arc<ClientQuestions> {
        &self.side.questions
    }

    /// What there is from the first message on, with this view where it is the first.
    async fn begun(&self, spec: ViewSpec) -> Result<&Begun, ControlError> {
        let begin = || async {
            let host = &self.core.host;
            let view = host.view(spec).await;
            let seal = SealKeys::random().map_err(|it| ControlError::internal(it.to_string()))?;
            let options = HostServiceOptions {
                view: Some(view.clone()),
                endpoint: EndpointOptions {
                    names: NameForm::Mcp,
                    ..EndpointOptions::default()
                },
                profiles: Vec::new(),
                seal,
                tracer: self.core.tracer.clone(),
            };
            let side = self.side.clone();
            let (service, driver) = HostService::for_program(Arc::clone(host), options, side);
            self.core.beside(driver);
            let mcp = service.open(&self.peer, self.outlet.clone());
            let mcp =
                mcp.map_err(|none: NoConversation| ControlError::internal(none.to_string()))?;
            let directory = self.core.setup.environment().cwd();
            let owner = OwnerService::new(Arc::clone(&service), &directory.display().to_string());
            owner.listens("control", None);
            self.core.owner.send_replace(Some(Arc::new(owner)));
            Ok(Begun { view, service, mcp })
        };
        self.begun.get_or_try_init(begin).await
    }

    fn program(&self) -> Result<&Arc<Program>, ControlError> {
        let program = self.program.get();
        program.ok_or_else(|| ControlError::not_initialized("`toolway/initialize` comes first"))
    }

    async fn initialize(&self, said: Initialize) -> Result<Initialized, ControlError> {
        let _turn = self.turn.lock().await;
        if self.program.get().is_some() {
            return Err(ControlError::not_initialized(
                "`toolway/initialize` comes once",
            ));
        }
        let link = ResidentLink {
            questions: Arc::clone(self.questions()),
            outlet: self.outlet.clone(),
        };
        let roots = roots(&said.roots)?;
        let hooks = hooks::hooks(&said.hooks, &link)?;
        let nothing = BroughtServers::default();
        let replaced = nothing.replaced_by(said.servers.clone(), &self.core.setup, &link);
        let (brought, set) = replaced.await;
        let spec = brought.in_view(base_view(said.strict));
        let begun = self.begun(spec.clone()).await?;
        // MCP may have begun before.
        self.core.host.change_view(&begun.view, spec).await;
        if !hooks.is_empty() {
            self.core.host.add_hooks(hooks);
        }
        let asker = Arc::new(ProgramAsker {
            link: link.clone(),
            asks: said.asks,
            view: begun.view.clone(),
            provenances: Provenances::default(),
            agent: None,
        });
        // Set once, with the program.
        let _ = self.side.asked.set(asker.asked());
        begun.service.set_mode(ProfileMode::Ask);
        let program = Arc::new(Program::new(NewProgram {
            core: &self.core,
            said: &said,
            link: &link,
            view: begun.view.clone(),
            brought,
            roots,
        }));
        let servers = server_rows(&program.view.snapshot(), &Provenances::default(), false);
        self.core
            .beside(Box::pin(events::follow(Arc::downgrade(&program))));
        if said.events {
            self.core
                .beside(Box::pin(events::tell(Arc::downgrade(&program))));
        }
        let _ = self.program.set(program);
        Ok(Initialized {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            added: set.added,
            errors: set.errors,
            servers,
        })
    }

    /// One of the methods below `toolway/`.
    async fn answer(
        &self,
        request: &IncomingRequest,
        outlet: &Outlet,
    ) -> Result<Answer, ControlError> {
        if request.method == methods::INITIALIZE {
            return written(&self.initialize(read(request)?).await?);
        }
        let program = self.program()?;
        match request.method.as_str() {
            methods::SERVERS => {
                let params: ServersParams = read(request)?;
                written(&listed(program, &params)?)
            }
            methods::SET => {
                let params: SetServers = read(request)?;
                written(&program.set(params.servers).await)
            }
            methods::MESSAGE => self.hear(program, request).await,
            methods::TOOLS => {
                let params: ToolsParams = read(request)?;
                let agent = agent(program, params.agent.as_deref())?;
                let agent = agent.as_deref();
                let none = Provenances::default();
                let provenances = agent.map_or(&none, |agent| &agent.provenances);
                written(&calls::tools(attached(program, agent), provenances, &params).await?)
            }
            methods::CALL => {
                let params: CallParams<'_> = read(request)?;
                let agent = agent(program, params.agent.as_deref())?;
                let attached = attached(program, agent.as_deref());
                calls::call(attached, params, request, outlet).await
            }
            methods::RECONNECT => {
                let params: ServerParams = read(request)?;
                written(&servers::reconnect(program, &params.server).await?)
            }
            switch @ (methods::ENABLE | methods::DISABLE) => {
                let params: ServerParams = read(request)?;
                program
                    .switch(&params.server, switch == methods::ENABLE)
                    .await?;
                written(&program.row(&params.server)?)
            }
            methods::LOGIN => written(&servers::login(program, read(request)?).await?),
            methods::LOGOUT => written(&servers::logout(program, &read(request)?).await?),
            decision @ (methods::APPROVE | methods::REJECT) => {
                let is_yes = decision == methods::APPROVE;
                written(&servers::decide(program, read(request)?, is_yes).await?)
            }
            methods::START_AGENT => written(&program.agents.start(program, read(request)?).await?),
            methods::END_AGENT => {
                let params: AgentParams = read(request)?;
                program.agents.end(&params.agent).await?;
                written(&Done {})
            }
            methods::STATUS | methods::QUESTIONS | methods::ANSWER => {
                Ok(self.as_owner(request.clone(), outlet).await)
            }
            _ => self.look(program, request).await,
        }
    }

    /// What is only looked at.
    async fn look(
        &self,
        program: &Arc<Program>,
        request: &IncomingRequest,
    ) -> Result<Answer, ControlError> {
        match request.method.as_str() {
            methods::READ => {
                let params: ReadParams = read(request)?;
                let agent = agent(program, params.agent.as_deref())?;
                looking::read(attached(program, agent.as_deref()), &params).await
            }
            methods::PROMPT => {
                let params: PromptParams = read(request)?;
                let agent = agent(program, params.agent.as_deref())?;
                looking::prompt(attached(program, agent.as_deref()), &params).await
            }
            methods::RESOURCES => {
                let params: ListParams = read(request)?;
                let agent = agent(program, params.agent.as_deref())?;
                let attached = attached(program, agent.as_deref());
                written(&looking::resources(attached, params.server.as_deref()).await?)
            }
            methods::PROMPTS => {
                let params: ListParams = read(request)?;
                let agent = agent(program, params.agent.as_deref())?;
                let attached = attached(program, agent.as_deref());
                written(&looking::prompts(attached, params.server.as_deref()).await?)
            }
            methods::EXPLAIN => written(&looking::explain(program, &read(request)?).await?),
            methods::LOGS => written(&looking::logs(program, &read(request)?).await?),
            methods::AUDIT => written(&looking::calls(program, read(request)?).await?),
            methods::PERMISSIONS => written(&looking::permissions(program).await?),
            methods::HOOKS => written(&looking::hooks(program).await?),
            methods::CONTEXT => written(&looking::context(program)),
            unknown => Err(ControlError::no_method(unknown)),
        }
    }

    /// What the owner of the host may ask: the program is who started it.
    async fn as_owner(&self, request: IncomingRequest, outlet: &Outlet) -> Answer {
        let owner = self.core.owner.borrow().clone();
        let visit = owner.and_then(|owner| owner.visit(&self.peer).ok());
        match visit {
            Some(owner) => {
                let answer = owner.request(request, outlet.clone()).await;
                match answer {
                    Answer::Error(error) => ControlError::of_owner(error).into(),
                    result @ Answer::Result(_) => result,
                }
            }
            None => ControlError::internal("there is nothing to see yet").into(),
        }
    }

    /// A message of a server that lives in the program.
    async fn hear(
        &self,
        program: &Program,
        request: &IncomingRequest,
    ) -> Result<Answer, ControlError> {
        let params: MessageParams<'_> = read(request)?;
        let resident = program.resident(&params.server)?;
        let whole = request.params.clone().unwrap_or_default();
        let message = RawJson::part_of(whole.bytes(), params.message);
        let reply = resident.hear(params.connection, message).await?;
        let message = reply.as_ref().map(RawJson::as_raw);
        written(&MessageReply { message })
    }
}

/// The agent that a request names, if it names one.
fn agent(program: &Program, id: Option<&str>) -> Result<Option<Arc<RunningAgent>>, ControlError> {
    id.map(|id| program.agents.get(id)).transpose()
}

/// Whose way into the host a request takes.
fn attached<'a>(program: &'a Program, agent: Option<&'a RunningAgent>) -> &'a Attached {
    agent.map_or(&program.attached, |agent| &agent.attached)
}

fn listed(program: &Program, params: &ServersParams) -> Result<ServersAnswered, ControlError> {
    let agent = agent(program, params.agent.as_deref())?;
    let none = Provenances::default();
    let provenances = agent.as_ref().map_or(&none, |agent| &agent.provenances);
    let snapshot = attached(program, agent.as_deref()).view().snapshot();
    let mut servers = server_rows(&snapshot, provenances, params.tools);
    if let Some(only) = &params.server {
        servers.retain(|server| server.name == *only);
        if servers.is_empty() {
            return Err(ControlError::unknown_server(only));
        }
    }
    Ok(ServersAnswered { servers })
}

/// The parameters of a request.
fn read<'r, T: Deserialize<'r>>(request: &'r IncomingRequest) -> Result<T, ControlError> {
    let params = request.params.as_ref().map_or("{}", RawJson::get);
    serde_json::from_str(params).map_err(|error| ControlError::invalid(error.to_string()))
}

fn written(answer: &impl Serialize) -> Result<Answer, ControlError> {
    let answer = to_raw_value(answer).map_err(|it| ControlError::internal(it.to_string()))?;
    Ok(Answer::result(answer))
}

impl Conversation for ControlConversation {
    fn request(self: Arc<Self>, request: IncomingRequest, outlet: Outlet) -> AnswerFuture {
        if is_owners(&request.method) {
            return Box::pin(async move {
                match self.answer(&request, &outlet).await {
                    Ok(answer) => answer,
                    Err(error) => error.into(),
                }
            });
        }
        // Boxed once it has begun: what follows is a client's request like any.
        if let Some(begun) = self.begun.get() {
            return Arc::clone(&begun.mcp).request(request, outlet);
        }
        Box::pin(async move {
            match self.begun(ViewSpec::default()).await {
                Ok(begun) => Arc::clone(&begun.mcp).request(request, outlet).await,
                Err(error) => error.into(),
            }
        })
    }

    fn notified(self: Arc<Self>, method: &str, params: Option<RawJson>) {
        if let Some(begun) = self.begun.get().filter(|_| !is_owners(method)) {
            Arc::clone(&begun.mcp).notified(method, params);
        }
    }

    fn answered(&self, id: Id, outcome: Result<RawJson, RpcError>) {
        self.questions().answered(&id, outcome);
    }

    fn taken_back(&self, method: &str) -> Option<RpcError> {
        is_owners(method).then(|| ControlError::cancelled().into_rpc())
    }

    fn ended(&self) {
        self.questions().end();
    }
}
