//! What differs between the two eras, as data.
//!
//! Owns version strings, method names and which methods belong to which era. Finding out which
//! era a server speaks is the session's probe.

use toolway_types::Era;

/// Every legacy revision we speak, newest first.
pub const LEGACY_VERSIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// What `initialize` offers.
pub const LATEST_LEGACY: &str = "2025-11-25";
/// The modern revision.
pub const MODERN: &str = "2026-07-28";
/// Every modern revision we speak, newest first.
pub const MODERN_VERSIONS: &[&str] = &[MODERN];

/// Which era a revision belongs to, when we speak it.
pub fn of_version(version: &str) -> Option<Era> {
    if MODERN_VERSIONS.contains(&version) {
        Some(Era::Modern)
    } else if LEGACY_VERSIONS.contains(&version) {
        Some(Era::Legacy)
    } else {
        None
    }
}

/// The newest modern revision that both sides speak.
pub fn mutual_modern<S: AsRef<str>>(supported: &[S]) -> Option<&'static str> {
    MODERN_VERSIONS
        .iter()
        .copied()
        .find(|ours| supported.iter().any(|theirs| theirs.as_ref() == *ours))
}

/// Whether a result of this method may be `input_required` in the modern era.
pub fn may_require_input(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// Method names, so that a typing error is a compile error.
pub mod method {
    /// Legacy handshake.
    pub const INITIALIZE: &str = "initialize";
    /// Legacy: the handshake is done.
    pub const INITIALIZED: &str = "notifications/initialized";
    /// Modern: what the server offers.
    pub const DISCOVER: &str = "server/discover";
    /// Legacy: are you there?
    pub const PING: &str = "ping";
    /// The tools.
    pub const TOOLS_LIST: &str = "tools/list";
    /// Run a tool.
    pub const TOOLS_CALL: &str = "tools/call";
    /// The resources.
    pub const RESOURCES_LIST: &str = "resources/list";
    /// The resource templates.
    pub const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
    /// Read a resource.
    pub const RESOURCES_READ: &str = "resources/read";
    /// Skills extension: what a directory among the resources holds.
    pub const DIRECTORY_READ: &str = "resources/directory/read";
    /// Asks to hear when a resource changes (legacy era).
    pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
    /// Ends that (legacy era).
    pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
    /// Asks for values of an argument.
    pub const COMPLETION_COMPLETE: &str = "completion/complete";
    /// The prompts.
    pub const PROMPTS_LIST: &str = "prompts/list";
    /// Render a prompt.
    pub const PROMPTS_GET: &str = "prompts/get";
    /// Skills extension: the skills.
    pub const SKILLS_LIST: &str = "skills/list";
    /// Skills extension: one skill, listed or not.
    pub const SKILLS_GET: &str = "skills/get";
    /// Modern: one long request that carries notifications.
    pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
    /// Legacy: the server asks which roots there are; modern: it asks in a round of input.
    pub const ROOTS_LIST: &str = "roots/list";
    /// The server asks a user something.
    pub const ELICITATION_CREATE: &str = "elicitation/create";
    /// The server asks a model something.
    pub const SAMPLING_CREATE: &str = "sampling/createMessage";
    /// How far a task is.
    pub const TASKS_GET: &str = "tasks/get";
    /// Tasks extension: input for a task.
    pub const TASKS_UPDATE: &str = "tasks/update";
    /// A task is cancelled.
    pub const TASKS_CANCEL: &str = "tasks/cancel";
    /// Legacy: what a task has come to.
    pub const TASKS_RESULT: &str = "tasks/result";
    /// Tasks extension: a task is further than before.
    pub const TASK_CHANGED: &str = "notifications/tasks";
    /// The same in the legacy era.
    pub const TASK_STATUS: &str = "notifications/tasks/status";
    /// A page that a user was sent to is dealt with (legacy).
    pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
    /// Legacy: the client's roots changed.
    pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
    /// Modern: the first message of a subscription.
    pub const SUBSCRIPTION_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    /// A request is cancelled.
    pub const CANCELLED: &str = "notifications/cancelled";
    /// How far a request has come.
    pub const PROGRESS: &str = "notifications/progress";
    /// Legacy: from which level on the server may log.
    pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
    /// The server logs.
    pub const MESSAGE: &str = "notifications/message";
    /// The tools changed.
    pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
    /// The resources changed.
    pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
    /// One resource changed.
    pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
    /// The prompts changed.
    pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
}

/// Keys of `_meta`.
pub mod meta_key {
    /// The revision the request is written in.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who asks.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the client can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Who answers.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// From which level on the server may log.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Which `subscriptions/listen` a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Legacy: which task a message belongs to.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// The token by which progress is told apart.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The W3C trace context that a request is part of.
    pub const TRACEPARENT: &str = "traceparent";
    /// What those before noted of that trace.
    pub const TRACESTATE: &str = "tracestate";
    /// What travels with a request through all who work on it.
    pub const BAGGAGE: &str = "baggage";
}
