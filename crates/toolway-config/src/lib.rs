//! Toolway's configuration: files, environment and flags to a plan.
//!
//! Owns: every read of a configuration file and of the process environment, and every decision
//! that follows from them. Read top to bottom: [`load`] gives what was written, [`merge`] one
//! winner per name, [`admit`] who may connect; [`plan`] is all three.
//! Does not own: connecting. Nothing here starts a program or resolves a name, and nothing that a
//! project wrote is expanded before the user approved it.

pub mod account;
pub mod admission;
pub mod agent;
pub mod approval;
pub mod brought;
mod command_line;
pub mod connect;
pub mod curation;
pub mod decision;
pub mod edit;
pub mod entries;
pub mod environment;
pub mod error;
mod expansion;
mod file;
mod http_syntax;
mod ide;
pub mod identity;
mod idle;
pub mod import;
mod itself;
mod json;
mod keys;
pub mod load;
pub mod managed;
pub mod merge;
mod ownership;
pub mod permission;
mod pinning;
pub mod plan;
pub mod planner;
pub mod policy;
mod policy_rule;
pub mod profile;
mod raw;
mod redaction;
pub mod result_text;
mod rules;
pub mod schema;
mod settings_object;
mod source;
mod spec;
pub mod telemetry;
pub mod tool_search;

pub use account::{AccountProvider, Connector, ConnectorDirectory, DirectoryError};
pub use admission::admit;
pub use agent::{Agent, AgentPlace, FoundAgent, agent, agent_findings, agents, find_agent};
pub use approval::{
    RepositoryFiles, UnboundCode, allow_for_repository_server, local_settings_text, reset,
    trust_local,
};
pub use brought::{BroughtPlan, brought};
pub use command_line::split_command;
pub use curation::Curation;
pub use decision::{approve, reject, repository_files, repository_server};
pub use edit::{Document, EditError, Edited, edit};
pub use entries::{
    Existing, Switched, add_server, check_definition, propose_server, remove_server, switch_servers,
};
pub use environment::Environment;
pub use expansion::{is_harmless, references_of};
pub use identity::IdentitySettings;
pub use idle::ServerIdle;
pub use itself::starts_toolway;
pub use keys::entry_keys;
pub use load::{ConnectorEntry, Flags, Layers, load, with_managed_variables};
pub use managed::{ManagedState, ManagedVariable, confirm_managed_variables};
pub use merge::{Config, Switch, merge, signature};
pub use permission::{
    BadToolPattern, Boundaries, CallSubject, CitedRule, Confinement, Hook, HookAction, HookEvent,
    Hooks, PermissionDecision, PermissionList, PermissionMode, Permissions, PinPolicy,
    RepositoryServer, ToolHints, ToolPatterns, UnheededRule,
};
pub use pinning::unpinned;
pub use plan::{Plan, PlannedServer, RunLimits, ServerVerdict, ShadowedEntry};
pub use planner::{Planner, adhoc, plan, watched_paths};
pub use policy::cross_app::cross_app_enabled;
pub use profile::{NameForm, NoProfile, Profile, ProfileMode, ResultForm};
pub use raw::validate;
pub use redaction::{address_without_secrets, without_secrets, words_without_secrets};
pub use result_text::ResultText;
pub use rules::{remove_rule, write_rule};
pub use schema::schema;
pub use telemetry::{SampledShare, TraceSampling, TraceSettings, given_trace, trace_settings};
pub use tool_search::ToolSearch;
