//! What a caller holds of a host: its own way in.
//!
//! Owns what belongs to one caller alone: who answers for it, what it was permitted for its session,
//! its roots, its calls in the background. Servers, rules and the audit are the host's, and shared.
//! Several calls at once are `batch.rs`, calls in the background `background.rs`, resources and
//! prompts `offers.rs` and `following.rs`, skills `skills.rs`.
//!
//! Invariant: nothing here is ever another caller's. Dropping it ends what it left in the background.

use std::sync::Arc;

use tokio::sync::watch;
use toolway_types::{ConnectionState, ServerName, ToolKey};

use super::{Attached, View};
use crate::call::{
    CallError, CallOptions, Caller, CallerKind, CallerSide, Consent, LogLevel, LogStream,
    NoticeStream, Prompter, ToolOutcome, ToolRequest, ToolTarget,
};
use crate::client_handler::{ClientHandler, Root};
use crate::dispatch::answers::PersonAnswers;
use crate::pool::ToolPool;
use crate::search::MissingTool;
use crate::snapshot::{HostSnapshot, ServerSnapshot};

/// What one caller can be asked, and where it works.
#[derive(Default)]
pub struct AttachOptions {
    /// Who asks it whether a call may run; without one what has to be asked is refused.
    pub prompter: Option<Arc<dyn Prompter>>,
    /// Who answers what servers ask because of its requests; without one they hear that nobody does.
    pub client_handler: Option<Arc<dyn ClientHandler>>,
    /// The places that servers are told of because of its requests.
    pub roots: Vec<Root>,
    /// Which tools it has loaded, where it keeps track of that.
    pub pool: Option<ToolPool>,
    /// What it sees; as much as the owner when absent.
    pub view: Option<View>,
    /// Who answers for what it asks without saying under which conditions. When absent, a person
    /// typed it, and anybody else is asked.
    pub consent: Option<Consent>,
    /// Whether its yes can be kept as a rule of the owner's. A person's always can; that of others
    /// holds for their session at most, unless this says so: a model may have given it.
    pub keeps_rules: bool,
    /// Whether questions stand for a while although nobody above shows them, to be answered by
    /// [`Attached::answer`].
    pub open_questions: bool,
}

/// What every call of one caller runs with.
pub(super) struct CallingParty {
    pub(super) side: Arc<CallerSide>,
    pub(super) answers: Arc<PersonAnswers>,
    pub(super) pool: Option<ToolPool>,
    pub(super) view: View,
    /// Who answers for its requests that do not say so.
    pub(super) consent: Consent,
}

impl CallingParty {
    pub(super) fn new(
        side: Arc<CallerSide>,
        answers: Arc<PersonAnswers>,
        pool: Option<ToolPool>,
        view: View,
        consent: Option<Consent>,
    ) -> Arc<Self> {
        let consent = consent.unwrap_or(match side.caller.kind {
            CallerKind::Person => Consent::Typed,
            CallerKind::Agent | CallerKind::Client | CallerKind::Hook => Consent::Prompt,
        });
        Arc::new(Self {
            side,
            answers,
            pool,
            view,
            consent,
        })
    }

    /// The tool that is asked for, by server and own name where there is such a tool.
    pub(super) fn tool_of(&self, target: &ToolTarget) -> ToolTarget {
        match self.view.snapshot().catalog.find(target) {
            Ok(tool) => ToolTarget::Key(tool.key.clone()),
            Err(_) => target.clone(),
        }
    }

    /// Waits for the server that a call names, if it is on its way, having said so with `waits`;
    /// gives the snapshot then.
    pub(super) async fn await_server(
        &self,
        target: &ToolTarget,
        options: &CallOptions,
        waits: impl FnOnce(),
    ) -> Result<Arc<HostSnapshot>, CallError> {
        let snapshot = self.view.snapshot();
        let Some(server) = snapshot.absent(target) else {
            return Ok(snapshot);
        };
        waits();
        // Boxed: a call of a server that is there must not carry the room for waiting along.
        Box::pin(self.await_absent(&snapshot, server, target, options)).await?;
        Ok(self.view.snapshot())
    }

    async fn await_absent(
        &self,
        snapshot: &HostSnapshot,
        server: &ServerSnapshot,
        target: &ToolTarget,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        let name = &server.name;
        if matches!(server.state, ConnectionState::Failed(_)) {
            self.view.orders().revive(name.as_str()).await;
        }
        if server.is_resting() {
            self.view.wake(std::slice::from_ref(name)).await;
        }
        let general = || snapshot.general_limits().whole();
        let after = options.timeout.unwrap_or_else(general);
        let ready = tokio::time::timeout(after, self.view.ready(name.as_str())).await;
        ready.map_err(|_| {
            let (ToolTarget::Exposed(tool) | ToolTarget::Key(ToolKey { tool, .. })) = target;
            CallError::timed_out(&server.name, tool, after)
        })
    }
}

impl Attached {
    /// Who it is.
    pub fn caller(&self) -> &Caller {
        &self.party.side.caller
    }

    /// The snapshot of this moment.
    pub fn snapshot(&self) -> Arc<HostSnapshot> {
        let seen = self.core.questions.seen_by(self.party.side.asker.party());
        self.party.view.snapshot().with_questions(seen)
    }

    /// Every snapshot from now on; a slow reader sees the newest only. Open questions are none of
    /// them: they are followed by [`Attached::watch_questions`].
    pub fn watch(&self) -> watch::Receiver<Arc<HostSnapshot>> {
        self.party.view.watch()
    }

    /// What it sees of the host.
    pub fn view(&self) -> &View {
        &self.party.view
    }

    /// Waits until no server is still connecting for the first time. Those that rest are not.
    pub async fn settled(&self) {
        self.party.view.settled().await;
    }

    /// Wakes these servers, all of them when none is named, as far as they rest; others are left as
    /// they are. Returns when that was begun: [`Attached::ready`] and [`Attached::settled`] wait for
    /// them then. Whatever is asked of a server that rests wakes it without this.
    pub async fn wake(&self, servers: &[ServerName]) {
        self.party.view.wake(servers).await;
    }

    /// Waits until this server is not connecting any more. An unknown server is not, nor is one that
    /// rests.
    pub async fn ready(&self, server: &str) {
        self.party.view.ready(server).await;
    }

    /// Runs one call through all stages. A server that is connecting, also one that was
    /// lost and is being brought back, is waited for when the call names it, for as long as the
    /// call may take; one that rests is woken. A server that failed more than half a minute ago is tried once more first.
    /// Dropping the future cancels the call and tells the server.
    pub fn call(
        &self,
        request: ToolRequest,
        options: CallOptions,
    ) -> impl Future<Output = Result<ToolOutcome, CallError>> + Send {
        self.core.call(&self.party, request, options)
    }

    /// Listens to a server's log from this level on: to what is said while requests of this caller
    /// are worked on, and to what belongs to no request. What is said because of another caller's
    /// is not heard, and where nothing says whose it is, nobody hears it.
    ///
    /// It ends with the server's definition; a server that it does not see, or that a rule denies,
    /// is not heard.
    pub fn logs(&self, server: &ServerName, level: LogLevel) -> Result<LogStream, CallError> {
        let snapshot = self.party.view.snapshot();
        Ok(snapshot.logs(server)?.listen(&self.party.side, level))
    }

    /// Whether a stream is still the one to hear this server's log by: the server is as it was
    /// defined, is seen, and no rule denies it by now.
    pub fn hears_log(&self, server: &ServerName, stream: &LogStream) -> bool {
        let snapshot = self.party.view.snapshot();
        snapshot.logs(server).is_ok_and(|logs| stream.is_of(logs))
    }

    /// The same of its notices.
    pub fn hears_notices(&self, server: &ServerName, stream: &NoticeStream) -> bool {
        let snapshot = self.party.view.snapshot();
        let logs = snapshot.logs(server);
        logs.is_ok_and(|logs| stream.is_of(&logs.notices))
    }

    /// Listens to what a server says that the protocol does not have: because of requests of this
    /// caller, or of nobody's. Who may hear it, and for how long, is as with [`Attached::logs`].
    pub fn notices(&self, server: &ServerName) -> Result<NoticeStream, CallError> {
        let snapshot = self.party.view.snapshot();
        Ok(snapshot.logs(server)?.notices.listen(&self.party.side))
    }

    /// The conditions of a request without any.
    pub(crate) fn usual_options(&self) -> CallOptions {
        CallOptions::new(self.party.consent)
    }

    /// Waits for the server that a call names, if it is on its way.
    pub(crate) async fn await_server(
        &self,
        target: &ToolTarget,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        let waited = self.party.await_server(target, options, || ());
        waited.await.map(drop)
    }

    /// The snapshot of this moment, which has a way to this server, or why there is none. It was there
    /// a moment ago, and may have gone to rest while a person was asked: then it is woken.
    pub(crate) async fn snapshot_with(
        &self,
        server: &ServerName,
        options: &CallOptions,
    ) -> Result<Arc<HostSnapshot>, CallError> {
        let mut snapshot = self.party.view.snapshot();
        if snapshot.connected(server).is_none() {
            let target = ToolTarget::Key(ToolKey::new(server.clone(), ""));
            Box::pin(self.await_server(&target, options)).await?;
            snapshot = self.party.view.snapshot();
        }
        snapshot.route(server)?;
        Ok(snapshot)
    }

    /// Waits for the server that a name begins with (`mcp__<server>__…`), if it is on its way, as a
    /// call of that name does. Gives that server, which may not have come.
    pub async fn await_named(
        &self,
        name: &str,
        options: &CallOptions,
    ) -> Result<Option<ServerName>, CallError> {
        let target = ToolTarget::Exposed(name.to_owned());
        let snapshot = self.party.view.snapshot();
        let Some(server) = snapshot.absent(&target) else {
            return Ok(None);
        };
        self.await_server(&target, options).await?;
        Ok(Some(server.name.clone()))
    }

    /// Loads tools into a session's pool, by exposed or own name; gives what is not there. What
    /// `ToolSearch` finds is loaded by itself.
    pub fn load_tools(&self, pool: &ToolPool, names: &[&str]) -> Vec<MissingTool> {
        let snapshot = self.snapshot();
        let found = snapshot.catalog.select(names.iter().copied());
        pool.load(found.tools.iter().map(|tool| tool.key.clone()));
        found.missing
    }

    /// Replaces its roots. Servers of the legacy era that were told of the host's own when they
    /// connected hear that they changed; modern ones are told with the next request that asks.
    pub fn set_roots(&self, roots: Vec<Root>) {
        self.party.side.roots.send_replace(Arc::from(roots));
    }
}
