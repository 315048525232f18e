//! What a scripted server is told to do wrong.
//!
//! Owns the script as data: it travels as JSON in an argument of `toolway-chaos`. Acting on it is
//! `chaos.rs`; starting the program is `scripted.rs`.

use serde::{Deserialize, Serialize};

/// The eras a scripted server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speaks {
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
pub struct Exit {
    /// With which code.
    pub code: i32,
    /// After how many requests were answered; 0 ends it at the first one, unanswered.
    pub after: u32,
}

/// A server's whole behaviour. The default is a well-behaved server of both eras.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Script {
    /// Its `serverInfo.name`; `chaos` when empty.
    pub name: String,
    /// The eras it answers.
    pub speaks: Speaks,
    /// Printed to stdout as a line of its own before anything else: not JSON-RPC.
    pub banner: Option<String>,
    /// Printed to stderr, as lines, before anything else.
    pub complaint: Option<String>,
    /// How many bytes of lines it writes to stderr before it reads.
    pub stderr_flood: usize,
    /// How long it waits before it reads, in milliseconds.
    pub start_delay_ms: u64,
    /// When it ends by itself.
    pub exit: Option<Exit>,
    /// It ends, without an answer, at a request before `initialize`, as some old servers do.
    pub exit_on_probe: Option<i32>,
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
    /// Prints a line that is not JSON before every answer.
    pub noise: bool,
    /// Stays when stdin ends, until it is killed.
    pub ignores_end_of_input: bool,
    /// Starts a grandchild in a process group of its own that lives until it is killed.
    pub grandchild: bool,
    /// Over HTTP, the status of every answer to a POST (with no MCP in it), e.g. 401 or 503.
    pub http_status: Option<u16>,
    /// Over HTTP, answers as an event stream instead of JSON.
    pub event_stream: bool,
}
