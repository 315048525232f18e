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

/// Has a server connected anew.
pub(super) const RECONNECT: &str = "toolway/servers/reconnect";
/// Switches a server on for the program.
pub(super) const ENABLE: &str = "toolway/servers/enable";
/// Switches a server off for the program.
pub(super) const DISABLE: &str = "toolway/servers/disable";
/// Logs in to a server.
pub(super) const LOGIN: &str = "toolway/servers/login";
/// Gives up a login.
pub(super) const LOGOUT: &str = "toolway/servers/logout";
/// Says yes to what a repository brought.
pub(super) const APPROVE: &str = "toolway/servers/approve";
/// Says no to it.
pub(super) const REJECT: &str = "toolway/servers/reject";
/// Reads a resource.
pub(super) const READ: &str = "toolway/read";
/// What can be read.
pub(super) const RESOURCES: &str = "toolway/resources";
/// Which prompts there are.
pub(super) const PROMPTS: &str = "toolway/prompts";
/// One of them, filled in.
pub(super) const PROMPT: &str = "toolway/prompt";
/// What became of a server's entries.
pub(super) const EXPLAIN: &str = "toolway/explain";
/// What a server logged.
pub(super) const LOGS: &str = "toolway/logs";
/// What was called.
pub(super) const AUDIT: &str = "toolway/audit";
/// The rules that hold.
pub(super) const PERMISSIONS: &str = "toolway/permissions";
/// The hooks that run.
pub(super) const HOOKS: &str = "toolway/hooks";
/// What servers cost a model's context.
pub(super) const CONTEXT: &str = "toolway/context";
/// Starts an agent.
pub(super) const START_AGENT: &str = "toolway/agents/start";
/// Ends one.
pub(super) const END_AGENT: &str = "toolway/agents/end";
/// What this process is doing.
pub(super) const STATUS: &str = "toolway/status";
/// The questions that wait for the owner.
pub(super) const QUESTIONS: &str = "toolway/questions";
/// An answer to one of them.
pub(super) const ANSWER: &str = "toolway/answer";

/// May this call run?
pub(super) const ASK_PERMISSION: &str = "toolway/ask/permission";
/// A server's question.
pub(super) const ASK_ELICITATION: &str = "toolway/ask/elicitation";
/// A hook of the program.
pub(super) const HOOK: &str = "toolway/hook";

/// Something happened.
pub(super) const EVENT: &str = "toolway/event";
/// A connection to a server that lives in the program is over.
pub(super) const CLOSED: &str = "toolway/servers/closed";

/// What a program may ask.
pub const METHODS: [&str; 28] = [
    INITIALIZE,
    SERVERS,
    SET,
    MESSAGE,
    RECONNECT,
    ENABLE,
    DISABLE,
    LOGIN,
    LOGOUT,
    APPROVE,
    REJECT,
    TOOLS,
    CALL,
    READ,
    RESOURCES,
    PROMPTS,
    PROMPT,
    QUESTIONS,
    ANSWER,
    START_AGENT,
    END_AGENT,
    EXPLAIN,
    LOGS,
    AUDIT,
    PERMISSIONS,
    HOOKS,
    CONTEXT,
    STATUS,
];

/// What a program is asked.
pub const ASKED_OF_PROGRAM: [&str; 4] = [MESSAGE, ASK_PERMISSION, ASK_ELICITATION, HOOK];

/// What a program is told.
pub const TOLD: [&str; 2] = [EVENT, CLOSED];
