//! Every cap on what others send, keep or make us wait for, in one place.
//!
//! Owns the numbers; the code that holds each one names it. `docs/limits.md` is this file as a page
//! (`cargo xtask docs`). What only concerns the look of a terminal is beside its drawing.

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// What one message may have
pub mod message {
    use super::{KIB, MIB};

    /// A line of a server over stdio
    pub const STDIO_LINE: usize = 16 * MIB;
    /// The answer to one HTTP request
    pub const HTTP_RESPONSE: usize = 64 * MIB;
    /// One event of an SSE stream
    pub const SSE_EVENT: usize = 16 * MIB;
    /// A WebSocket message
    pub const WEBSOCKET: usize = 4 * MIB;
    /// The body of an HTTP error
    pub const ERROR_BODY: usize = 64 * KIB;
    /// Header fields of an HTTP answer, together, in bytes
    pub const HEADERS: u32 = 65_536;
    /// Header fields of an HTTP answer, how many
    pub const HEADER_COUNT: usize = 100;
    /// Redirects that are followed, on the same origin only
    pub const REDIRECTS: usize = 3;
    /// Nesting of JSON
    pub const JSON_DEPTH: usize = 64;
    /// Messages in a JSON-RPC batch
    pub const BATCH: usize = 10_000;
    /// The answer to `initialize` or `server/discover`
    pub const GREETING: usize = MIB;
}

/// What a server may offer
pub mod offers {
    use super::{KIB, MIB};

    /// Tools of a server
    pub const TOOLS: usize = 512;
    /// Prompts of a server
    pub const PROMPTS: usize = 512;
    /// Arguments of a prompt
    pub const PROMPT_ARGUMENTS: usize = 64;
    /// Resources of a server
    pub const RESOURCES: usize = 10_000;
    /// Pages of a list
    pub const PAGES: usize = 100;
    /// Items of a list, over all pages
    pub const LIST_ITEMS: usize = 10_000;
    /// Bytes of a list, over all pages
    pub const LIST_BYTES: usize = 16 * MIB;
    /// One item of a list
    pub const ITEM: usize = 4 * MIB;
    /// The description of a tool, prompt or resource, in characters
    pub const DESCRIPTION: usize = 2_048;
    /// Its title, in characters
    pub const TITLE: usize = 256;
    /// Instructions of a server, in characters
    pub const INSTRUCTIONS: usize = 2_048;
    /// The JSON Schema of a tool
    pub const SCHEMA: usize = 64 * KIB;
    /// Nodes of a JSON Schema
    pub const SCHEMA_NODES: usize = 2_000;
    /// Memory for the patterns of a schema, together
    pub const SCHEMA_PATTERNS: usize = 32 * MIB;
    /// Files of a skill
    pub const SKILL_FILES: usize = 512;
    /// Bytes of a skill
    pub const SKILL_BYTES: usize = 16 * MIB;
    /// What is kept between runs of what one server offers
    pub const KEPT_CATALOG: usize = MIB;
}

/// What a call may take
pub mod call {
    use super::{Duration, MIB};

    /// The arguments
    pub const ARGUMENTS: usize = 4 * MIB;
    /// Nesting of the arguments
    pub const ARGUMENT_DEPTH: usize = 60;
    /// Rounds of questions that a server may put before it answers
    pub const ROUNDS: usize = 10;
    /// Questions of a server that wait for an answer at a time
    pub const QUESTIONS: usize = 16;
    /// Open questions of a caller
    pub const OPEN_QUESTIONS: usize = 64;
    /// Open questions of all callers of a host
    pub const ALL_OPEN_QUESTIONS: usize = 1024;
    /// How long a question stands that a prompter or client handler shows
    pub const QUESTION_SHOWN: Duration = Duration::from_hours(24);
    /// How long a question stands that nobody is shown
    pub const QUESTION_OPEN: Duration = Duration::from_mins(10);
    /// Calls of a batch at a time
    pub const PARALLEL: usize = 10;
    /// Background calls of a host
    pub const BACKGROUND: usize = 100;
    /// How long the outcome of a background call is kept
    pub const BACKGROUND_KEPT: Duration = Duration::from_mins(10);
    /// How long a tool call may take where nothing says otherwise
    pub const TIME: Duration = Duration::from_secs(100_000);
    /// How long a hook may take where nothing says otherwise
    pub const HOOK_TIME: Duration = Duration::from_secs(10);
    /// What a hook may print
    pub const HOOK_OUTPUT: usize = MIB;
}

/// What a model gets of a result
pub mod result {
    use super::{Duration, MIB};

    /// Tokens of a result, where nothing says otherwise
    pub const TOKENS: usize = 25_000;
    /// Characters of a result
    pub const CHARACTERS: usize = 100_000;
    /// Characters of a result, where its tool asks for more
    pub const RAISED_CHARACTERS: usize = 500_000;
    /// Pictures of a result
    pub const PICTURES: usize = 20;
    /// The longer edge of a picture, in pixels
    pub const PICTURE_EDGE: u32 = 1568;
    /// Memory for decoding pictures
    pub const PICTURE_MEMORY: usize = 256 * MIB;
    /// Saved files of results, together
    pub const SAVED_BYTES: u64 = 1024 * MIB as u64;
    /// Saved files of results, how many
    pub const SAVED_FILES: usize = 10_000;
    /// How long a saved file stays
    pub const SAVED_FOR: Duration = Duration::from_hours(7 * 24);
    /// The text of a `--select` filter, in bytes
    pub const FILTER: usize = 4096;
    /// Nesting of a `--select` filter
    pub const FILTER_DEPTH: usize = 32;
}

/// Connecting, waiting and trying again
pub mod connection {
    use super::Duration;

    /// Local servers that connect at a time
    pub const LOCAL_AT_ONCE: usize = 3;
    /// Remote servers that connect at a time
    pub const REMOTE_AT_ONCE: usize = 20;
    /// How long connecting may take, where nothing says otherwise
    pub const TIME: Duration = Duration::from_secs(30);
    /// Attempts in a row before a server counts as failed
    pub const ATTEMPTS: u32 = 5;
    /// The first pause between two attempts; it doubles
    pub const FIRST_PAUSE: Duration = Duration::from_secs(1);
    /// The longest pause between two attempts
    pub const LONGEST_PAUSE: Duration = Duration::from_secs(30);
    /// The longest pause that a server may ask for with `Retry-After`
    pub const LONGEST_ASKED_PAUSE: Duration = Duration::from_mins(5);
    /// How long the answer to an HTTP request may take to begin
    pub const FIRST_BYTE: Duration = Duration::from_mins(1);
    /// How long a stream may be silent
    pub const STREAM_IDLE: Duration = Duration::from_mins(5);
    /// How long a server may take nothing of what is written to it
    pub const WRITE_STALL: Duration = Duration::from_secs(30);
    /// How often a connection that carries a stream is tried
    pub const KEEPALIVE: Duration = Duration::from_secs(30);
    /// How often a WebSocket is pinged
    pub const PING: Duration = Duration::from_secs(30);
    /// How often an interrupted stream is taken up again without a sign of life
    pub const RESUMES: u32 = 5;
}

/// Processes of servers
pub mod process {
    use super::{Duration, KIB};

    /// What is kept of a server's stderr
    pub const STDERR: usize = 256 * KIB;
    /// A line of its stderr
    pub const STDERR_LINE: usize = 8 * KIB;
    /// How long after the end of stdin it gets SIGINT
    pub const BEFORE_INTERRUPT: Duration = Duration::from_millis(100);
    /// How long after that SIGTERM
    pub const BEFORE_TERMINATE: Duration = Duration::from_millis(100);
    /// How long after that SIGKILL, with everything below it
    pub const BEFORE_KILL: Duration = Duration::from_millis(400);
}

/// Logins
pub mod login {
    use super::{Duration, KIB, MIB};

    /// The answer of an authorization server
    pub const BODY: usize = MIB;
    /// How long one request to it may take
    pub const REQUEST_TIME: Duration = Duration::from_secs(10);
    /// Redirects of a request to it
    pub const REDIRECTS: usize = 3;
    /// The longest URL that is followed or opened
    pub const URL: usize = 8 * KIB;
    /// How long a login in the browser may take
    pub const TIME: Duration = Duration::from_mins(5);
    /// How long a login on another device may take
    pub const DEVICE_TIME: Duration = Duration::from_mins(30);
    /// A token
    pub const TOKEN: usize = 64 * KIB;
    /// How long it is remembered that a server wanted a login
    pub const NEEDS_LOGIN_KEPT: Duration = Duration::from_mins(15);
    /// How often in that time more rights are asked for
    pub const STEP_UPS: usize = 2;
    /// How long a headers helper may take
    pub const HELPER_TIME: Duration = Duration::from_secs(10);
    /// What a headers helper may print
    pub const HELPER_OUTPUT: usize = 64 * KIB;
    /// A secret in the vault
    pub const SECRET: usize = MIB;
}

/// Configuration files
pub mod configuration {
    use super::MIB;

    /// A configuration file
    pub const FILE: u64 = 16 * MIB as u64;
    /// What is read of the files that an approval is bound to
    pub const APPROVED_FILES: u64 = 32 * MIB as u64;
}

/// What the daemon keeps and runs
pub mod daemon {
    use super::Duration;

    /// Commands that it runs at a time
    pub const RUNS: usize = 256;
    /// How long a connection stays that nobody uses
    pub const KEPT: Duration = Duration::from_mins(15);
    /// How long it stays itself when nobody comes and no connection is left
    pub const IDLE: Duration = Duration::from_mins(30);
}

/// Clients of the gateway
pub mod gateway {
    use super::{Duration, KIB, MIB};

    /// The body of a request
    pub const BODY: usize = 4 * MIB;
    /// Bodies that are being read, together
    pub const BODIES: usize = 64 * MIB;
    /// The head of a request
    pub const HEAD: usize = 16 * KIB;
    /// How long the head may take
    pub const HEAD_TIME: Duration = Duration::from_secs(10);
    /// How long the body may take
    pub const BODY_TIME: Duration = Duration::from_secs(30);
    /// Connections
    pub const CONNECTIONS: usize = 1024;
    /// Requests that are being answered at a time, over a pipe or in one session
    pub const IN_FLIGHT: usize = 256;
    /// Requests over HTTP that are being answered at a time, of one principal
    pub const CALLS: usize = 1024;
    /// Event streams over HTTP, of one principal
    pub const STREAMS: usize = 100;
    /// Sessions over HTTP, of one principal
    pub const SESSIONS: usize = 10_000;
    /// Sessions over HTTP, of all
    pub const ALL_SESSIONS: usize = 20_000;
    /// How long a session over HTTP may be idle
    pub const SESSION_IDLE: Duration = Duration::from_mins(30);
    /// Events of one session that are kept for a client that comes back
    pub const KEPT_EVENTS: usize = 16 * MIB;
    /// Events of all sessions that are kept for clients that come back
    pub const ALL_KEPT_EVENTS: usize = 128 * MIB;
    /// A line over stdio
    pub const STDIO_LINE: usize = 16 * MIB;
    /// Connections to the owner's socket
    pub const OWNER_CONNECTIONS: usize = 64;
    /// Connections to the endpoint of one agent
    pub const AGENT_CONNECTIONS: usize = 64;
    /// How long the first message over the owner's socket may take
    pub const OWNER_FIRST: Duration = Duration::from_secs(10);
    /// How long a connection to the owner's socket may be idle
    pub const OWNER_IDLE: Duration = Duration::from_mins(10);
    /// What is sealed in a value that a client brings back
    pub const SEALED: usize = 256 * KIB;
    /// Calls of one client that wait for its answer
    pub const PARKED: usize = 64;
    /// How long such a call waits
    pub const PARKED_TIME: Duration = Duration::from_mins(10);
    /// How long a client may take to come back with what a server asked
    pub const STATE_TIME: Duration = Duration::from_hours(1);
    /// How long the id of a task is good for
    pub const TASK_TIME: Duration = Duration::from_hours(24);
    /// Resources that one client follows
    pub const FOLLOWED: usize = 256;
    /// Clients without a session that are known at a time
    pub const VISITORS: usize = 4_096;
    /// What all servers say to models together, in characters
    pub const INSTRUCTIONS: usize = 16_384;
}

/// What is sent to a collector of spans
pub mod spans {
    use super::{Duration, KIB};

    /// Spans that wait to be sent; more are dropped and counted
    pub const WAITING: usize = 2_048;
    /// Spans in one batch
    pub const BATCH: usize = 512;
    /// A name in a span, in characters
    pub const NAME: usize = 256;
    /// What is read of the collector's answer
    pub const ANSWER: usize = 4 * KIB;
    /// How often a batch is sent before it is given up
    pub const ATTEMPTS: u32 = 5;
    /// How long the collector may have us wait before the next attempt
    pub const PAUSE: Duration = Duration::from_secs(30);
    /// How long the last spans may take when the program ends
    pub const FLUSH: Duration = Duration::from_secs(3);
}
