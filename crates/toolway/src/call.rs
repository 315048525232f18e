//! The words of one call: what is asked for, under which conditions, and what comes back.
//!
//! Owns the values that front-ends hand in and get out. Does not own the way between them: that
//! is `dispatch.rs`; nor why there is no answer: that is `call/error.rs`.

use std::fmt;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toolway_config::{ProfileMode, UnheededRule};
use toolway_types::{Era, Origin, ServerName, ToolKey, Untrusted};
use toolway_wire::{RawJson, view};

use crate::client_handler::ClientHandler;
use crate::pins::Difference;
use crate::pool::ToolPool;
use crate::spans::CallTrace;

mod attention;
mod bounded;
mod brief;
mod caller;
mod caller_side;
mod error;
mod log_message;
mod logs;
mod notices;
mod permitted;
pub mod questions;
mod refused;
mod remarks;
mod request;
mod server_notice;

pub(crate) use self::attention::Attention;
pub use self::caller::{Caller, CallerKind};
pub use self::caller_side::CallerSide;
pub(crate) use self::caller_side::{HeldInstances, RequestOrigin};
pub(crate) use self::remarks::Remarks;
pub use crate::call::permitted::{PermittedBy, PermittingClassifier, PermittingHook};
pub use crate::json_schema::Problem;
pub use bounded::{BoundedResult, ModelBlock, ResultDelivery, Treatment};
pub(crate) use bounded::{
    MAX_DESCRIPTION, MAX_NAME, MAX_URI, framed, line, link_text, resource_text,
};
pub(crate) use brief::brief;
pub use error::{CallError, CallFault, KeptOutBy, NotWidened, Oversize, TimeLimit};
pub use log_message::{LogLevel, LogMessage, LogSink, UnknownLogLevel};
pub(crate) use logs::ServerLogs;
pub use logs::{LogNews, LogStream};
pub use notices::NoticeStream;
pub use refused::RefusedBy;
pub use request::{ToolArguments, ToolRequest};
pub use server_notice::{NoticeSink, ServerNotice};

/// The ways to say which tool is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolTarget {
    /// The name models see; the plain `mcp__server__tool` spelling is taken too where only one
    /// tool answers to it.
    Exposed(String),
    /// Server and tool, each as the server and its entry spell it, or normalised.
    Key(ToolKey),
}

impl ToolTarget {
    /// The plain `mcp__server__tool` spelling of what was asked for.
    pub fn spelled(&self) -> String {
        match self {
            ToolTarget::Exposed(name) => name.clone(),
            ToolTarget::Key(key) => key.spelled(),
        }
    }
}

impl fmt::Display for ToolTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolTarget::Exposed(name) => formatter.write_str(&brief(&Untrusted::new(name))),
            ToolTarget::Key(key) => write!(
                formatter,
                "{}.{}",
                key.server,
                brief(&Untrusted::new(&key.tool))
            ),
        }
    }
}

/// The conditions of one call.
#[derive(Clone)]
pub struct CallOptions {
    /// Who says yes when a rule or the mode wants a person asked.
    pub consent: Consent,
    /// The longest it may take; the server's entry and then the general limit decide otherwise.
    pub timeout: Option<Duration>,
    /// The longest it may go without a sign of life, which progress is; zero is for ever. Where
    /// it is absent the general limit decides, but never less than the limit on the whole call
    /// that was given here or by the server's entry.
    pub idle_timeout: Option<Duration>,
    /// Where news of a long call goes.
    pub progress: Option<ProgressSink>,
    /// Where goes what the server logs meanwhile; otherwise to the caller's [`LogStream`], where
    /// it has one. Modern servers are told the level.
    pub logs: Option<LogSink>,
    /// Where goes what the server says meanwhile that the protocol does not have; otherwise to the
    /// caller's [`NoticeStream`], where it has one.
    pub notices: Option<NoticeSink>,
    /// Who is asked because of this request, where that is not whom the caller was attached with.
    pub asked: RequestAsked,
    /// What the caller can be asked because of this request, as a modern client declares it
    /// (`clientCapabilities`): no more than this is declared to the server and asked. Where answers
    /// are passed on, it is declared to a modern server as it is.
    pub capabilities: Option<RawJson>,
    /// What servers are told of the trace that this call is part of, in the place of whatever
    /// `_meta` of its request says; without it, that is passed on as it is.
    pub trace: Option<Arc<CallTrace>>,
    /// What is wanted of the result.
    pub delivery: ResultDelivery,
    /// What becomes of an answer that is not the last word.
    pub continuations: Continuations,
    /// The model session that asks: what it finds by `ToolSearch` is loaded there.
    pub pool: Option<ToolPool>,
    /// How long [`Host::call_or_background`](crate::Host::call_or_background) waits before it
    /// leaves the call to itself; for ever when absent. The time in which a person is being asked
    /// something does not count. No other call looks at it.
    pub background_after: Option<Duration>,
    /// What runs beside what among several calls ([`Host::call_all`](crate::Host::call_all)). No
    /// other call looks at it.
    pub order: BatchOrder,
}

/// Who is asked because of one request, in the place of whom its caller was attached with: of a
/// client with several streams, each request has its own.
#[derive(Clone, Default)]
pub struct RequestAsked {
    /// Who asks whether the call may run.
    pub prompter: Option<Arc<dyn Prompter>>,
    /// Who answers what servers ask.
    pub client_handler: Option<Arc<dyn ClientHandler>>,
}

/// What runs beside what among several calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BatchOrder {
    /// What may write waits for all before it and holds up all behind it; what only reads, by its
    /// server's word, runs beside the like.
    #[default]
    InOrder,
    /// Everything beside everything.
    Parallel,
}

/// What becomes of an answer that is not the last word: a wish for input, a task, a page that has
/// to be visited first (error −32042).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Continuations {
    /// It is seen to here: questions are put to the caller, tasks followed, and the call gives what
    /// comes of it. What continues an earlier request is not sent.
    #[default]
    Drive,
    /// It is the call's answer, for the caller to go on from: with the same call again, which then
    /// carries `inputResponses` and `requestState` and is judged anew, or with a
    /// [`PassedTask`](crate::PassedTask).
    ///
    /// Of a tool whose results a hook looks at, no task is passed on: the hook would not see what
    /// comes of it. Such a task is followed here.
    PassOn,
    /// The same if the server speaks this era; else it is seen to here.
    PassOnWithin(Era),
}

impl CallOptions {
    /// The server's own time limit, no progress, and the whole result.
    pub fn new(consent: Consent) -> Self {
        Self {
            consent,
            timeout: None,
            idle_timeout: None,
            progress: None,
            logs: None,
            notices: None,
            asked: RequestAsked::default(),
            capabilities: None,
            trace: None,
            delivery: ResultDelivery::Whole,
            continuations: Continuations::Drive,
            pool: None,
            background_after: None,
            order: BatchOrder::InOrder,
        }
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CallOptions")
            .field("consent", &self.consent)
            .field("timeout", &self.timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("progress", &self.progress.is_some())
            .field("logs", &self.logs.as_ref().map(|sink| sink.level))
            .field("notices", &self.notices.is_some())
            .field("prompter", &self.asked.prompter.is_some())
            .field("client_handler", &self.asked.client_handler.is_some())
            .field("capabilities", &self.capabilities)
            .field("trace", &self.trace)
            .field("delivery", &self.delivery)
            .field("continuations", &self.continuations)
            .field("pool", &self.pool)
            .field("background_after", &self.background_after)
            .field("order", &self.order)
            .finish()
    }
}

/// Who answers for a call that has to be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// A user typed this very call, which permits it. A deny rule still refuses; a hook that wants
    /// a user asked, and a tool whose definition changed, still ask: the user could not know.
    Typed,
    /// As typed, by a person who has seen how the tool's definition changed.
    Reviewed,
    /// The [`Prompter`] is asked; without one the answer is no.
    Prompt,
    /// The caller is a host itself and asks its own person: what only the mode would have asked
    /// about runs. A rule, a hook or a changed tool that wants a person asked still does, and so
    /// does an organisation's classifier in mode `auto`.
    Delegated,
    /// The owner lets run what only the mode would have asked about, as in mode `bypass`. Where that
    /// is forbidden, as [`Consent::Prompt`]; what else asks does so as for [`Consent::Delegated`].
    Bypass,
}

/// Under which conditions a client calls whose profile says this.
impl From<ProfileMode> for Consent {
    fn from(mode: ProfileMode) -> Self {
        match mode {
            ProfileMode::Client => Consent::Delegated,
            ProfileMode::Ask => Consent::Prompt,
            ProfileMode::Bypass => Consent::Bypass,
        }
    }
}

/// Takes the progress of one call, in the order the server sent it. It must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// How far a long call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// A number that grows.
    pub progress: f64,
    /// What it grows towards, where the server knows.
    pub total: Option<f64>,
    /// What the server says it is doing.
    pub message: Option<Untrusted>,
    /// The parameters of the notification, byte for byte as the server sent them, its token
    /// included; nothing where we say it, or where they are large.
    pub raw: Option<RawJson>,
}

/// Asks a person whether a call may run. The front-end supplies it. The question stands among the
/// open ones meanwhile ([`Attached::questions`](crate::Attached::questions)); when it is answered
/// elsewhere, or its call ends, the future is dropped.
pub trait Prompter: Send + Sync {
    /// Puts one question and waits for the answer.
    fn ask<'a>(&'a self, question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer>;

    /// Whether it may be asked while it asks: a front-end that shows a list of questions. By default
    /// one question is put at a time.
    fn takes_several(&self) -> bool {
        false
    }

    /// Whether calls that ask the same while it asks share its answer. Not where each call has an asker
    /// of its own: the first of them may have been given up by a client that is never heard of again.
    fn shares_answers(&self) -> bool {
        true
    }
}

/// What a person must see to decide: the real server and the arguments as they will be sent,
/// because a title or a hint is only the server's word about itself (SEC-34).
#[derive(Debug, Clone)]
pub struct PermissionQuestion<'a> {
    /// The server and the tool's own name.
    pub key: &'a ToolKey,
    /// The name models see.
    pub name: &'a str,
    /// The server's title for the tool, cleaned.
    pub title: Option<&'a str>,
    /// The arguments as they will be sent.
    pub arguments: &'a Map<String, Value>,
    /// Whether the server itself calls the tool destructive.
    pub destructive: Option<bool>,
    /// The rule that wants a person asked, and where it stands; none when the mode does.
    pub rule: Option<(&'a str, &'a Origin)>,
    /// A rule that allows this of another server of that name, where a repository brought this one.
    pub unheeded: Option<&'a UnheededRule>,
    /// The hook that wants a person asked, and why; clean, on one line.
    pub hook: Option<&'a str>,
    /// That the classifier wants a person asked, or how it failed; clean, on one line.
    pub classifier: Option<&'a str>,
    /// How the tool's definition differs from the one that was permitted before, where it does.
    pub change: Option<&'a Difference>,
    /// How long a yes can hold. One that asks for more holds for as long as it can.
    pub lasting: Lasting,
}

/// How long a yes can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lasting {
    /// For this call.
    Once,
    /// As long as the host runs.
    Session,
    /// For good, as a rule.
    Always {
        /// The rule for this tool; none where its name cannot be written as one.
        tool: Option<String>,
        /// The rule for every tool of its server.
        server: Option<String>,
    },
    /// For good, as a rule that counts for this server as it is defined now, and nowhere else: a
    /// repository brought it.
    AlwaysHere {
        /// The rule for this tool; none where its name cannot be written as one.
        tool: Option<String>,
        /// The rule for every tool of its server.
        server: Option<String>,
    },
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum PermissionAnswer {
    /// Run it, this once.
    Yes,
    /// What this says, which is a yes, and with these arguments in the place of the call's own. They
    /// are validated, and hooks and rules judge them, like any others.
    YesWith(Map<String, Value>, Box<PermissionAnswer>),
    /// Run it, and do not ask about this tool again as long as the host runs.
    Session,
    /// Run it, and keep a rule that allows it.
    Always {
        /// What the rule names.
        reach: RuleReach,
        /// Where it is kept; of no matter for [`Lasting::AlwaysHere`].
        keep_in: KeepIn,
    },
    /// Do not.
    No,
    /// Do not, and tell the caller why.
    NoBecause(String),
    /// Nobody answered, which is a no.
    Unanswered,
}

/// What a rule made of an answer names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleReach {
    /// This tool.
    Tool,
    /// Every tool of its server.
    Server,
}

/// What a call came to.
pub type CallResult = Result<ToolOutcome, CallError>;

/// What a tool answered. An error that the tool itself reports is an answer like any other.
#[derive(Debug)]
pub struct ToolOutcome {
    /// The whole MCP result, byte for byte as the server sent it, whatever a hook made of it.
    pub raw: RawJson,
    /// The same, parsed on first use; what a hook put in its place, where one did.
    pub(crate) read: OnceLock<Box<view::ToolResult>>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// The server that answered.
    pub server: ServerName,
    /// The tool's own name.
    pub tool: Arc<str>,
    /// Media of the result and other binary data in it, saved as files.
    pub saved: Vec<SavedFile>,
    /// The parts in which there was binary data, without it.
    pub(crate) plain: Vec<PlainBlock>,
    /// What a model should get of it, where the caller wanted that.
    pub bounded: Option<Box<BoundedResult>>,
    /// What a person should know about this call and cannot see in the result.
    pub warnings: Vec<String>,
    /// What hooks say to the reader of the result, clean, in the order of the hooks.
    pub context: Vec<String>,
    /// The hook that put other output in the place of the server's, where one did. Then
    /// [`ToolOutcome::result`] and all that is made of it are the hook's, and only `raw` is the
    /// server's.
    pub replaced_by: Option<String>,
    /// What that hook put there, as JSON.
    pub(crate) replacement: Option<RawJson>,
}

/// A part of a result that was saved to a private file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedFile {
    /// The file, in the private directory and under a name of our own making.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What it holds: one of the types we know, or `application/octet-stream`.
    pub mime_type: &'static str,
    /// Which block of the result's `content` it was, counted from 0: the first one of several,
    /// and one past the last for structured content.
    pub block: usize,
}

/// A part of a result that had binary data, with words in the place of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlainBlock {
    /// Which block it is, as in [`SavedFile`].
    pub(crate) block: usize,
    /// The part as JSON, or as text where it is text.
    pub(crate) text: String,
}

impl ToolOutcome {
    /// The result, read: what a hook put in its place, where one did.
    pub fn result(&self) -> &view::ToolResult {
        self.read.get_or_init(|| {
            // Nothing becomes an outcome that cannot be read.
            Box::new(
                view::tool_result(&self.raw).unwrap_or_else(|_| view::ToolResult {
                    content: Vec::new(),
                    structured: None,
                    is_error: self.is_error,
                    meta: None,
                    result_type: view::ResultType::Complete,
                }),
            )
        })
    }

    /// What is passed on in its place: the server's bytes, or those of the hook that put others
    /// there.
    pub fn passed_on(&self) -> &RawJson {
        self.replacement.as_ref().unwrap_or(&self.raw)
    }

    /// Puts the server's own result beside the one that a hook put in its place.
    pub(crate) fn replaced(&mut self, raw: RawJson, by: String) {
        // Read before the bytes that it is read from are gone.
        self.result();
        self.replacement = Some(mem::replace(&mut self.raw, raw));
        self.replaced_by = Some(by);
    }

    /// A block in which there was binary data, with words in the place of it; nothing for one in
    /// which there was none.
    pub fn plain(&self, block: usize) -> Option<&str> {
        let plain = self.plain.iter().find(|plain| plain.block == block)?;
        Some(&plain.text)
    }
}

/// Where a rule is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepIn {
    /// The person's own settings: it counts everywhere.
    User,
    /// The project's local settings: it counts in this project, for this person.
    Local,
}
