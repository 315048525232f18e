//! The names of all messages.

/// Who the program is, and what it brings.
pub(super) const INITIALIZE: &str = "toolway/initialize";
/// Servers, as they stand.
pub(super) const SERVERS: &str = "toolway/servers";
/// The servers that the program brings.
pub(super) const SET: &str = "toolway/servers/set";
/// A message of a server that lives in the program; asked in both directions.
pub(super) const MESSAGE: &str = "toolway/servers/message";
/// What may be called.
pub(super) const TOOLS: &str = "toolway/tools";
/// A call.
pub(super) const CALL: &str = "toolway/call";

/// May this call run?
pub(super) const ASK_PERMISSION: &str = "toolway/ask/permission";
/// A server's question.
pub(super) const ASK_ELICITATION: &str = "toolway/ask/elicitation";
/// A hook of the program.
pub(super) const HOOK: &str = "toolway/hook";

/// What a program may ask.
pub const METHODS: [&str; 6] = [INITIALIZE, SERVERS, SET, MESSAGE, TOOLS, CALL];

/// What a program is asked.
pub const ASKED_OF_PROGRAM: [&str; 4] = [MESSAGE, ASK_PERMISSION, ASK_ELICITATION, HOOK];

/// What a program is told.
pub const TOLD: [&str; 0] = [];
