//! What every front-end shows, as plain values that one process writes and another reads.
//!
//! Owns the shapes, which are an interface: `--json` prints them, and clients in other languages
//! read them. Fields may be added; none changes its meaning or goes. How a host's values become
//! rows is `toolway::rows`.

mod answer;
mod call;
mod caller;
mod checkup;
mod client;
mod daemon;
mod event;
mod export;
mod finding;
mod gateway;
mod import;
mod log;
mod login;
mod permission;
mod prompt;
mod question;
mod resource;
mod running;
mod secret;
mod server;
mod skill;
mod token;
mod tool;

use std::borrow::Cow;

pub use answer::{AnswerRow, BlockRow, BoundedAnswer, EmbeddedText, SelectedValues, ServerAnswer};
pub use call::{
    ActingHook, AuditLine, CallEnd, CallRecord, DecidedBy, RecordedCaller, RecordedClassification,
    RecordedDecision,
};
pub use caller::{CallerListing, CallerRow};
pub use checkup::{CheckRow, Checkup, ShieldRow, ShieldedRow, VerdictCounts};
pub use client::{ClientListing, ClientRow};
pub use daemon::{DaemonStatus, KeptServerRow, RunRow};
pub use event::{EventRow, HostChange, StateRow};
pub use export::{ExportedServer, NameTable, PromptMeaning, StateExport, ToolMeaning};
pub use finding::{DiagnosisRow, ErrorRow, FindingPlace, HookRow, SourceRow};
pub use gateway::{GatewayListing, GatewayRow, GatewayStatus, ListeningRow, ServedClientRow};
pub use import::{ImportListing, ImportRow};
pub use log::LogRow;
pub use login::{AccountRow, ConnectorsRow, IdentityRow, LoginListing, LoginRow, ServedRow};
pub use permission::{
    ClassifierRow, JudgmentRow, PolicyListing, RuleListing, RuleRow, UnheededRow, VariableRow,
};
pub use prompt::{PromptArgumentRow, PromptListing, PromptRow};
pub use question::{ChangeRow, ChoiceRow, GivenAnswer, QuestionListing, QuestionRow};
pub use resource::{ResourceListing, ResourceRow, TemplateRow};
pub use running::{CallListing, CallRow, ProgressRow};
pub use secret::{
    ExportedSecrets, ImportedSecrets, RemovedSecrets, SavedSecret, SecretListing, SecretRow,
};
pub use server::{
    EntryRow, ExplainedEntry, Explanation, ServerListing, ServerPlace, ServerRow, ShadowRow,
};
pub use skill::{SkillListing, SkillRow, SkillTextRow};
pub use token::{TokenListing, TokenRow};
pub use tool::{
    AskedRow, InstructionsListing, InstructionsRow, LeftOutRow, ToolArgumentRow, ToolListing,
    ToolPage, ToolRow,
};

/// A word of ours, such as a state's: it costs nothing to write, and whoever reads it owns it.
/// More words may come.
pub type Word = Cow<'static, str>;

#[cfg(test)]
mod tests;
