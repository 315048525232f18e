//! What a caller holds of a host: its own way in.
//!
//! Owns what belongs to one caller alone: who answers for it, what it was permitted for its session,
//! its roots, its calls in the background. Servers, rules and the audit are the host's, and shared.
//! Several calls at once are `batch.rs`, calls in the background `background.rs`, resources and
//! prompts `offers.rs` and `following.rs`, skills `skills.rs`.
//!
//! Invariant: nothing here is ever another caller's. Dropping it ends what it left in the background.

use std::sync::Arc;

use toolway_types::ServerName;

use super::Attached;
use crate::call::{
    CallError, CallOptions, Caller, CallerSide, LogLevel, LogStream, Prompter, ToolOutcome,
    ToolRequest, ToolTarget,
};
use crate::client_handler::{ClientHandler, Root};
use crate::dispatch::answers::PersonAnswers;
use crate::pool::ToolPool;
use crate::search::MissingTool;
use crate::snapshot::HostSnapshot;

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
}

/// What every call of one caller runs with.
pub(super) struct CallingParty {
    pub(super) side: Arc<CallerSide>,
    pub(super) prompter: Option<Arc<dyn Prompter>>,
    pub(super) answers: Arc<PersonAnswers>,
    pub(super) pool: Option<ToolPool>,
}

impl CallingParty {
    pub(super) fn new(
        side: Arc<CallerSide>,
        prompter: Option<Arc<dyn Prompter>>,
        answers: Arc<PersonAnswers>,
        pool: Option<ToolPool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            prompter: prompter.map(|prompter| side.attention.of_prompter(prompter)),
            side,
            answers,
            pool,
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
        self.core.snapshot()
    }

    /// Runs one call through all stages. A server that is connecting, also one that was
    /// lost and is being brought back, is waited for when the call names it, for as long as the
    /// call may take. A server that failed more than half a minute ago is tried once more first.
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
    pub fn logs(&self, server: &ServerName, level: LogLevel) -> LogStream {
        self.core.logs.listen(server, &self.party.side, level)
    }

    /// Waits for the server that a call names, if it is on its way.
    pub(crate) async fn await_server(
        &self,
        target: &ToolTarget,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        let waited = self.core.await_server(target, options, || ());
        waited.await.map(drop)
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
