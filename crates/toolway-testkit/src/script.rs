//! What a scripted server is told to do wrong.
//!
//! Owns the script as data: it travels as JSON in an argument of `toolway-chaos`, and a listening
//! server can be given another one while it runs. Acting on it is `chaos.rs`; starting the program
//! is `scripted.rs`.

use serde::{Deserialize, Serialize};

/// The eras a scripted server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpokenEras {
    /// `initialize` and `server/discover`.
    #[default]
    Both,
    /// Only `initialize`; anything modern is an unknown method.
    Legacy,
    /// Only `server/discover`; `initialize` is refused.
    Modern,
}

/// When the program ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ScriptedExit {
    /// With which code.
    pub code: i32,
    /// After how many requests were answered; 0 ends it at the first one, unanswered.
    pub after: u32,
}

/// How a grandchild escapes when its parent is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrandchildEscape {
    /// It stays in the server's process group.
    None,
    /// A process group of its own.
    Group,
    /// A session of its own (`setsid`).
    Session,
    /// A session of its own, and its parent is gone already (a double fork).
    Orphan,
}

/// Skills that a server offers, as the extension `io.modelcontextprotocol/skills` has them.
/// Each has a main file and a second one, `notes.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ScriptedSkills {
    /// How many it lists: `skill-0`, `skill-1`… One more, `hidden`, is served and not listed.
    pub count: usize,
    /// How many stand on a page; 0 for one page.
    pub page_size: usize,
    /// What is wrong with all of them.
    pub flaw: Option<SkillFlaw>,
}

/// What can be wrong with skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkillFlaw {
    /// The main file has another letter than the one that was digested.
    Digest,
    /// The main file is longer than listed.
    Size,
    /// The main file describes itself in other words than the list; digest and size fit.
    Frontmatter,
    /// The second file is not the one that was digested.
    Notes,
    /// More bytes are listed than a host has to take.
    Heavy,
    /// More files are listed than a host has to take.
    Crowded,
    /// The main file is 20 MiB of text that was never listed.
    Flood,
    /// Nothing is listed about the files.
    Dynamic,
    /// Every second entry cannot be used.
    Malformed,
    /// Every skill is served twice, under another folder.
    Twins,
    /// There is always one more page.
    Endless,
    /// `skills/get` is not known.
    NoGet,
}

/// Lists without an end in sight: tools, resources, templates and prompts alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct BulkLists {
    /// How many pages each list has.
    pub pages: usize,
    /// How many items stand on a page.
    pub items: usize,
    /// How many bytes the description of an item has.
    pub item_bytes: usize,
    /// How many bytes each cursor has on top of its number.
    pub cursor_bytes: usize,
}

/// A server's whole behaviour. The default is a well-behaved server of both eras.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Script {
    /// Its `serverInfo.name`; `chaos` when empty.
    pub name: String,
    /// The eras it answers.
    pub speaks: SpokenEras,
    /// Printed to stdout as a line of its own before anything else: not JSON-RPC.
    pub banner: Option<String>,
    /// Printed to stderr, as lines, before anything else.
    pub complaint: Option<String>,
    /// How many bytes of lines it writes to stderr before it reads.
    pub stderr_flood: usize,
    /// How long it waits before it reads, in milliseconds.
    pub start_delay_ms: u64,
    /// It ends with this code before it reads anything; the complaint is said first.
    pub exit_at_start: Option<i32>,
    /// When it ends by itself.
    pub exit: Option<ScriptedExit>,
    /// It ends, without an answer, at a request before `initialize`, as some old servers do.
    pub exit_on_probe: Option<i32>,
    /// It never reads its stdin.
    pub never_reads: bool,
    /// Requests of these methods get no answer, ever.
    pub silent: Vec<String>,
    /// Requests of these methods get the code -32603.
    pub failing: Vec<String>,
    /// How many well-formed tools `filler_0`, `filler_1`… it offers on top of its own.
    pub fillers: usize,
    /// Tools per page of `tools/list`; 0 for one page.
    pub page_size: usize,
    /// Offers malformed tools among the good ones: no name, no schema, wrong types.
    pub bad_tools: bool,
    /// Offers a tool, and an answer of `serverInfo`, full of terminal and direction steering.
    pub hostile_text: bool,
    /// Offers tools that write files and run programs with the server's rights.
    pub tampers: bool,
    /// Offers tools that break the protocol or use all of it: `late`, `progress`, `twice`,
    /// `mistyped`, `mangled`, `storm`, `offer`, `elicit`, `sample`, `roots`, `task`, `picture`; and
    /// `answer`, which answers what it is told to.
    pub drama: bool,
    /// Offers all that a server can have: resources and templates that can be followed, prompts,
    /// completion, a log, legacy tasks, and the tools `report`, `verbatim`, `mirror`, `log`,
    /// `touch`, `grow`, `login` and `visited`.
    pub offers: bool,
    /// Offers `place`, one of whose arguments stands in a header too.
    pub places: bool,
    /// Prints a line that is not JSON before every answer.
    pub noise: bool,
    /// Says that its tools changed after every `tools/list`, forever.
    pub restless: bool,
    /// Stays when stdin ends, until it is killed.
    pub ignores_end_of_input: bool,
    /// Takes no notice of SIGINT and SIGTERM.
    pub ignores_signals: bool,
    /// Starts a grandchild in a process group of its own that lives until it is killed.
    pub grandchild: bool,
    /// Starts one more grandchild for each, which lives until it is killed.
    pub escapes: Vec<GrandchildEscape>,
    /// Writes everything in pieces of this many bytes; 0 for whole messages.
    pub slice: usize,
    /// How long it waits between two pieces, in milliseconds.
    pub slice_delay_ms: u64,
    /// Over HTTP, the status of every answer to a POST (with no MCP in it), e.g. 401 or 503.
    pub http_status: Option<u16>,
    /// That status only for messages of these methods; for all when empty.
    pub http_status_for: Vec<String>,
    /// That status only so many times; always when 0.
    pub http_status_times: u32,
    /// The `Retry-After` of such an answer.
    pub retry_after: Option<String>,
    /// Over HTTP, answers every POST with a page of HTML and 200, as a captive portal does.
    pub html: bool,
    /// Over HTTP, answers as an event stream instead of JSON.
    pub event_stream: bool,
    /// Over HTTP, legacy: gives out sessions, and wants them back.
    pub sessions: bool,
    /// A session is forgotten after this many requests; never when 0.
    pub session_requests: u32,
    /// Over HTTP, legacy: a GET opens a stream for what the server says unasked.
    pub get_stream: bool,
    /// Events carry ids, and a GET with `Last-Event-ID` gets what followed that event.
    pub resumable: bool,
    /// Over HTTP, the connection ends after so many bytes of the body that answers a call.
    pub cut_call_at: Option<usize>,
    /// The same for the answers to these methods instead; for calls when empty.
    pub cut_for: Vec<String>,
    /// How often such an answer is cut; always when 0.
    pub cut_times: u32,
    /// The skills it offers, with a tool `asked` that says which requests they led to.
    pub skills: Option<ScriptedSkills>,
    /// Lists of this size in place of its own; its tools can be called all the same.
    pub bulk: Option<BulkLists>,
}
