//! What the embedding program decides about a host.
//!
//! Owns the options and their defaults. What configuration decides stands in the plan.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolway_auth::vault::Vault;
use toolway_transport::Shield;
use toolway_transport::client::HttpClientOptions;
use toolway_transport::stdio::launcher::Launcher;
use toolway_types::ServerName;

use super::view::ViewSpec;
use crate::account::ConnectorsOf;
use crate::audit::Audit;
use crate::auth::AuthOptions;
use crate::builtin::Builtin;
use crate::call::{Caller, Prompter};
use crate::client_handler::{ClientHandler, Root};
use crate::connection::clock::{Clock, SystemClock};
use crate::connection::{ConnectionPool, RetryFirst};
use crate::dispatch::answers::RuleKeeper;
use crate::dispatch::hooks::{LibraryClassifier, LibraryHook};
use crate::event::Replan;
use crate::journal::Journal;
use crate::recorder::Recorder;
use crate::server_source::InProcessServer;

/// What the embedding program decides.
pub struct HostOptions {
    /// Servers that live inside this program.
    pub in_process: Vec<(ServerName, InProcessServer)>,
    /// The connections that this host shares with others: servers that are equal in two hosts of
    /// one pool are one connection. By default it has its own.
    pub connections: ConnectionPool,
    /// Connect only these; all when absent.
    pub only: Option<Vec<ServerName>>,
    /// What the owner sees, and what is connected to for the owner's sake: everything, unless a host
    /// is there for callers with views of their own. Servers that are asked before calls belong in it.
    pub owner_sees: ViewSpec,
    /// Who owns the host: calls that no other caller makes are this one's.
    pub caller: Caller,
    /// Who asks a person, where someone can.
    pub prompter: Option<Arc<dyn Prompter>>,
    /// Who keeps the rules that answers make; answers hold for the session without one.
    pub rule_keeper: Option<Arc<dyn RuleKeeper>>,
    /// A file that remembers how tools were defined when they were first permitted; without one
    /// that is known only as long as the host runs.
    pub pins: Option<PathBuf>,
    /// A file, best kept apart from the pins, that remembers which tools were ever pinned: a
    /// person is asked again about one whose pin is gone. Without it such a tool is a new one.
    pub pinned: Option<PathBuf>,
    /// Hooks that are functions of this program. They run beside the configured ones, and where
    /// order counts, after them.
    pub hooks: Vec<LibraryHook>,
    /// Decides in mode `auto`, unless managed settings name another.
    pub classifier: Option<LibraryClassifier>,
    /// Tools that are functions of this program, beside the host's own.
    pub builtins: Vec<Builtin>,
    /// The name servers see.
    pub client_name: String,
    /// The version servers see.
    pub client_version: String,
    /// Answers what servers ask; without one nothing is offered to them.
    pub client_handler: Option<Arc<dyn ClientHandler>>,
    /// Whether questions to the owner stand for a while although neither the prompter nor the client
    /// handler shows them, to be answered by [`Attached::answer`](crate::Attached::answer).
    pub open_questions: bool,
    /// Whether the owner is asked for permission in the place of callers that cannot be asked. Such a
    /// question stands for a while; what servers ask is never asked of another.
    pub answers_for_callers: bool,
    /// The places servers are told of; without any, servers do not hear of roots at all.
    pub roots: Vec<Root>,
    /// The private directory for files of results.
    pub output_dir: PathBuf,
    /// Where secrets are looked up that entries name; entries that name some fail without it.
    pub secrets: Option<Vault>,
    /// Proxies and certificates.
    pub http: HttpClientOptions,
    /// What processes are kept from writing: nothing unless directories are named.
    pub shield: Shield,
    /// Starts processes, so that none outlives this program; none by default.
    pub launcher: Launcher,
    /// Whether a first connection that fails is tried again.
    pub retry_first: RetryFirst,
    /// Where a fresh plan comes from when the host is asked to reload.
    pub replan: Option<Replan>,
    /// A file that remembers which era each server speaks, so that the next start need not ask;
    /// nothing is remembered without one.
    pub era_memory: Option<PathBuf>,
    /// A folder that keeps what servers offered, so that the next run can show it before it asks
    /// them; nothing is kept without one.
    pub catalog_memory: Option<PathBuf>,
    /// Whether a server that is on its way for the first time offers meanwhile what is kept of it
    /// there. A call of that waits for the server, and goes by what it offers then.
    pub offers_remembered: bool,
    /// How long a server may go unused before it rests, where its entry does not say (`idle`); no
    /// server ever rests without it. One whose offers are kept (`catalog_memory`) rests from the start,
    /// and any other once it was connected and unused for this long: its connection ends, unless other
    /// views or hosts hold it too, it offers what it last listed, and whatever is asked of it connects
    /// it first. Servers on their way offer what is kept of them, as with `offers_remembered`.
    pub rest_after: Option<Duration>,
    /// What logins need.
    pub auth: AuthOptions,
    /// How to have the account whose connectors are servers too; they come with plans, and stay
    /// fresh where `replan` makes them.
    pub connectors: Option<ConnectorsOf>,
    /// Where it is written down what servers log and what is said to them; nowhere without one.
    pub journal: Option<Journal>,
    /// Records what is said to servers and by them, to be replayed.
    pub recorder: Option<Recorder>,
    /// Where every call is written down; nowhere without one.
    pub audit: Option<Audit>,
    /// The clocks that tell whether the machine slept.
    pub clock: Arc<dyn Clock>,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            in_process: Vec::new(),
            connections: ConnectionPool::default(),
            only: None,
            owner_sees: ViewSpec::default(),
            caller: Caller::default(),
            prompter: None,
            rule_keeper: None,
            pins: None,
            pinned: None,
            hooks: Vec::new(),
            classifier: None,
            builtins: Vec::new(),
            client_name: "toolway".to_owned(),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
            client_handler: None,
            open_questions: false,
            answers_for_callers: false,
            roots: Vec::new(),
            output_dir: std::env::temp_dir().join("toolway"),
            secrets: None,
            http: HttpClientOptions::default(),
            shield: Shield::default(),
            launcher: Launcher::none(),
            retry_first: RetryFirst::default(),
            replan: None,
            era_memory: None,
            catalog_memory: None,
            offers_remembered: false,
            rest_after: None,
            auth: AuthOptions::default(),
            connectors: None,
            journal: None,
            recorder: None,
            audit: None,
            clock: Arc::new(SystemClock),
        }
    }
}
