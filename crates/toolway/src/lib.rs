//! An MCP host as a library: connections, one catalogue, one pipeline for every call.
//!
//! Start with [`Host`]. A call is carried by `dispatch`, a server by `connection`, the protocol
//! by `session`; what is on offer is the [`Catalog`], and what is going on is the
//! [`HostSnapshot`].
//!
//! ```no_run
//! use serde_json::json;
//! use toolway::config::{Environment, Flags, plan};
//! use toolway::{CallOptions, Consent, Host, HostOptions, ToolRequest, ToolTarget};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // What this person, project and organisation have configured…
//! let plan = plan(&Environment::capture(), &Flags::default());
//! // …connected, each server on its own.
//! let host = Host::start(plan, HostOptions::default());
//! host.settled().await;
//! for tool in host.snapshot().catalog.tools() {
//!     println!("{}: {}", tool.name, tool.description);
//! }
//! let request = ToolRequest::new(
//!     ToolTarget::Exposed("mcp__time__get_current_time".to_owned()),
//!     json!({ "timezone": "UTC" }).as_object().cloned().unwrap_or_default(),
//! );
//! let outcome = host.call(request, CallOptions::new(Consent::Typed)).await?;
//! println!("{}", outcome.raw);
//! host.shutdown().await;
//! # Ok(())
//! # }
//! ```

pub mod account;
pub mod audit;
pub mod auth;
pub mod builtin;
pub mod call;
pub mod catalog;
mod catalog_memory;
pub mod client_handler;
mod connection;
pub mod dispatch;
pub mod error;
pub mod event;
pub mod export;
pub mod host;
pub mod journal;
mod json_schema;
mod listing;
mod lock;
pub mod offering;
mod pins;
pub mod pool;
pub mod projection;
mod reconnect;
pub mod recorder;
mod resource_interest;
pub mod route;
pub mod rows;
pub mod search;
mod server_source;
mod server_use;
mod session;
pub mod setup;
pub mod skills;
pub mod snapshot;
pub mod spans;
mod supervisor;
mod tasks;
pub mod template;
pub mod tokens;
pub mod watch;

pub use account::{Connectors, DirectoryState};
pub use audit::Audit;
pub use builtin::{Builtin, BuiltinAnswer, BuiltinCall, BuiltinError, HostHandle};
pub use call::questions::{
    AnswerError, AskedPermission, Askee, OpenQuestion, QuestionAnswer, QuestionCounts, QuestionEnd,
    QuestionId, QuestionKind, QuestionWatch,
};
pub use call::{
    BatchOrder, BoundedResult, CallError, CallFault, CallOptions, CallResult, Caller, CallerKind,
    Consent, Continuations, KeepIn, Lasting, LogLevel, LogMessage, LogNews, LogSink, LogStream,
    ModelBlock, NoticeSink, NoticeStream, Oversize, PermissionAnswer, PermissionQuestion, Progress,
    ProgressSink, Prompter, RefusedBy, RequestAsked, ResultDelivery, RuleReach, SavedFile,
    ServerNotice, TimeLimit, ToolArguments, ToolOutcome, ToolRequest, ToolTarget, Treatment,
    UnknownLogLevel,
};
pub use catalog::{Catalog, CatalogTool, CatalogWarning};
pub use catalog_memory::{KnownLists, forget_catalog, refresh_turn};
pub use client_handler::{
    ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, MoreRights, Root,
};
pub use connection::clock::{Clock, ClockReading, SystemClock};
pub use connection::{ConnectionPool, InProcessServer, PoolEntry, RetryFirst, forget_era};
pub use dispatch::answers::{RuleKeeper, SettingsRules};
pub use dispatch::hooks::{
    Classification, ClassifierFunction, ClassifierInput, ClassifierRule, HookCaller, HookDecision,
    HookFunction, HookInput, HookReply, LibraryClassifier, LibraryHook,
};
pub use dispatch::result::SelectError;
pub use error::{ConnectError, RequestError};
pub use event::{Changes, HostEvent, LoginChange, NoPlanSource, Replan, UnknownServer};
pub use host::{
    AgentError, AgentSpec, AttachOptions, Attached, BackgroundCall, CallHandle, CallId, CallStage,
    Called, CollectError, CompletionReference, Host, HostOptions, PassedAnswer, PassedMethod,
    PassedTask, PromptOutcome, ResourceOutcome, ResourceSubscription, ServerObstacle,
    SubscribeError, Suggestions, TaskStep, TooManyCalls, View, ViewSpec,
};
pub use journal::{Journal, JournalWriter};
pub use json_schema::Problem;
pub use listing::ListKind;
pub use offering::Offering;
pub use pins::{Against, Difference};
pub use pool::{Loading, ToolPool};
pub use recorder::{RecordedConnection, Recorder};
pub use server_source::patience::installs_first;
pub use setup::{PlainTextRefused, StateFiles, UserSetup, rule_remarks};
pub use skills::{FailedCheck, ListedSkill, LoadedSkill, SkillContents, SkillError, SkillList};
pub use snapshot::{Counts, HostSnapshot, ListFreshness, ServerRest, ServerSnapshot};
pub use spans::{CallTrace, RequestSpan, SpanCounts, SpanExport, SpanSide, SpanValue, Tracer};
pub use supervisor::recall::{Recalled, RecalledServer, recall_catalog};
pub use template::{TemplateError, UriTemplate};
/// Logins: what an account is asked with, and where it is kept.
pub use toolway_auth;
/// Where plans come from: files, environment and flags.
pub use toolway_config as config;
/// The file that a [`Recorder`] writes, and what replays it.
pub use toolway_recording;
/// What front-ends show of all this.
pub use toolway_rows;
/// How remote servers are reached: proxies and certificates.
pub use toolway_transport::client::HttpClientOptions;
/// The server's side of an [`InProcessServer`]'s connection.
pub use toolway_transport::in_process::ServerEnd;
/// What a program that runs for long gives back to the system.
pub use toolway_transport::memory;
/// Who starts servers that are processes, so that none outlives the program.
pub use toolway_transport::stdio::launcher;
/// Futures of one task that are polled only when they were woken.
pub use toolway_transport::woken;
/// Closes the program to other processes of the same user, where it wants that.
pub use toolway_transport::{
    ProtectedPath, Protection, Shield, ShieldError, ShieldState, forbid_inspection,
};
/// What servers that are processes are kept from writing.
/// The words both sides speak: names, scopes, states, diagnoses.
pub use toolway_types as types;
/// What a [`ClientHandler`] says when it cannot answer, and what is passed on as bytes.
pub use toolway_wire::{CarriedParams, ParamsError, RawJson, RpcError, TraceContext, view};
/// What results, tools, resources and prompts look like, read.
pub use watch::{ConfigWatch, Watched};
