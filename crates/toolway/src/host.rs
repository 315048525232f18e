//! The host: the only type front-ends use.
//!
//! Owns the way in: start, look, wait, call, stop. The work is elsewhere: servers in
//! `supervisor.rs`, calls in `dispatch.rs`.
//!
//! Invariant: the host owns its tasks as a tree. `shutdown` ends them in an orderly way and
//! returns when every process is gone; dropping a host aborts them, and their processes with
//! them.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use toolway_config::{Hooks, Limits, Permissions, Plan};
use toolway_transport::client::{Client, ClientOptions};
use toolway_transport::{OpenOptions, Shield};
use toolway_types::ServerName;

use crate::call::{CallError, CallOptions, Prompter, ToolOutcome, ToolRequest, ToolTarget};
use crate::connection::{Context, EraMemory, InProcessServer};
use crate::dispatch::Dispatch;
use crate::dispatch::send::GeneralLimits;
use crate::respondent::{Respondent, Root};
use crate::session::ClientIdentity;
use crate::snapshot::{HostSnapshot, ServerSnapshot};
use crate::supervisor::{self, Supervisor};
use crate::tasks::{self, Task};

mod offers;

pub use self::offers::{PromptOutcome, ResourceOutcome};

/// A running host.
pub struct Host {
    pictures: watch::Receiver<Arc<HostSnapshot>>,
    permissions: Permissions,
    hooks: Hooks,
    limits: Limits,
    prompter: Option<Arc<dyn Prompter>>,
    output_dir: PathBuf,
    roots: watch::Sender<Arc<[Root]>>,
    stop: CancellationToken,
    supervisor: Task<()>,
}

/// What the embedding program decides.
pub struct HostOptions {
    /// Servers that live inside this program.
    pub in_process: Vec<(ServerName, InProcessServer)>,
    /// Connect only these; all when absent.
    pub only: Option<Vec<ServerName>>,
    /// Who asks a person, where someone can.
    pub prompter: Option<Arc<dyn Prompter>>,
    /// The name servers see.
    pub client_name: String,
    /// The version servers see.
    pub client_version: String,
    /// Who answers what servers ask; without one they are told that nobody does.
    pub respondent: Option<Arc<dyn Respondent>>,
    /// The places servers are told of; without any, servers do not hear of roots at all.
    pub roots: Vec<Root>,
    /// The private directory for files of results.
    pub output_dir: PathBuf,
    /// The file that remembers which era each server spoke, so that the next start need not ask;
    /// nothing is remembered without one.
    pub era_memory: Option<PathBuf>,
    /// Proxies and certificates.
    pub http: ClientOptions,
    /// What processes are kept from writing: nothing unless directories are named.
    pub shield: Shield,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            in_process: Vec::new(),
            only: None,
            prompter: None,
            client_name: "toolway".to_owned(),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
            respondent: None,
            roots: Vec::new(),
            output_dir: std::env::temp_dir().join("toolway"),
            era_memory: None,
            http: ClientOptions::default(),
            shield: Shield::default(),
        }
    }
}

impl Host {
    /// Starts connecting to every admitted server of the plan. Must run inside a tokio runtime.
    pub fn start(plan: Plan, options: HostOptions) -> Host {
        let members = supervisor::roster(&plan, &options.in_process, options.only.as_deref());
        let (roots, current_roots) = watch::channel(Arc::from(options.roots));
        let context = Arc::new(Context {
            client: Arc::new(ClientIdentity::new(
                &options.client_name,
                &options.client_version,
            )),
            respondent: options.respondent,
            roots: current_roots,
            open: OpenOptions {
                client: Client::new(options.http),
                shield: options.shield,
                ..OpenOptions::default()
            },
            eras: options
                .era_memory
                .map_or_else(EraMemory::none, EraMemory::at),
            connect_timeout: plan.limits.connect_timeout,
            local: Semaphore::new(slots(plan.limits.local_batch)),
            remote: Semaphore::new(slots(plan.limits.remote_batch)),
        });
        let stop = CancellationToken::new();
        let (supervisor, pictures) = Supervisor::start(members, &context, stop.clone());
        Host {
            pictures,
            permissions: plan.permissions,
            hooks: plan.hooks,
            limits: plan.limits,
            prompter: options.prompter,
            output_dir: options.output_dir,
            roots,
            stop,
            supervisor: tasks::spawn("supervisor", supervisor.run()),
        }
    }

    /// The picture of this moment.
    pub fn snapshot(&self) -> Arc<HostSnapshot> {
        Arc::clone(&self.pictures.borrow())
    }

    /// Every picture from now on; a slow reader sees the newest only.
    pub fn watch(&self) -> watch::Receiver<Arc<HostSnapshot>> {
        self.pictures.clone()
    }

    /// Waits until no server is still connecting.
    pub async fn settled(&self) {
        // An error means that the supervisor is gone, and then nothing connects any more.
        let _ = self.watch().wait_for(|picture| picture.is_settled()).await;
    }

    /// Waits until this server is not connecting any more. A server nobody knows is not.
    pub async fn ready(&self, server: &str) {
        let pending = |picture: &Arc<HostSnapshot>| {
            picture
                .server(server)
                .is_some_and(ServerSnapshot::is_pending)
        };
        let _ = self.watch().wait_for(|picture| !pending(picture)).await;
    }

    /// Carries one call through the whole line. A server that is still connecting is waited for
    /// when the call names it. Dropping the future cancels the call and tells the server.
    pub async fn call(
        &self,
        request: ToolRequest,
        options: CallOptions,
    ) -> Result<ToolOutcome, CallError> {
        if let ToolTarget::Key(key) = &request.target {
            self.ready(key.server.as_str()).await;
        }
        let picture = self.snapshot();
        let dispatch = Dispatch {
            catalog: Arc::clone(&picture.catalog),
            permissions: &self.permissions,
            hooks: &self.hooks,
            lines: &*picture,
            prompter: self.prompter.as_deref(),
            limits: self.general_limits(),
            output_dir: &self.output_dir,
        };
        dispatch.call(request, options).await
    }

    /// The limits where neither a call nor a server's entry says.
    fn general_limits(&self) -> GeneralLimits {
        GeneralLimits {
            timeout: self.limits.tool_timeout,
            idle: self.limits.tool_idle_timeout,
        }
    }

    /// Replaces the roots. Servers of the legacy era that were told of roots when they connected
    /// hear that they changed; modern ones are told with the next request that asks.
    pub fn set_roots(&self, roots: Vec<Root>) {
        self.roots.send_replace(Arc::from(roots));
    }

    /// Ends every connection. Every process is gone when this returns; calls in flight fail.
    pub async fn shutdown(self) {
        self.stop.cancel();
        if let Err(failure) = self.supervisor.join().await {
            tracing::warn!(%failure, "the supervisor did not end by itself");
        }
    }
}

/// As many slots as a semaphore can have: nought would connect nobody, ever, and there is a most.
fn slots(wanted: usize) -> usize {
    wanted.clamp(1, Semaphore::MAX_PERMITS)
}
