//! Tools that the host answers itself.
//!
//! Owns the type by which a tool of the host, or of the program that embeds it, enters the
//! catalogue and is called like any other: found, validated, seen by hooks, permitted, answered,
//! and its result processed.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolway_types::name::MAX_EXPOSED_LEN;

use crate::call::ProgressSink;
use crate::catalog::{AimedServer, Presence, ToolHints};
use crate::offering::Offering;
use crate::pool::ToolPool;

mod authenticate;
mod handle;
mod resources;
mod route;
mod tool_search;

#[cfg(test)]
mod tests;

pub(crate) use self::authenticate::address;
pub use self::handle::HostHandle;
pub(crate) use crate::builtin::route::BuiltinTools;
pub use crate::offering::{LIST_RESOURCES, READ_RESOURCE, RESERVED, TOOL_SEARCH};

/// The tool's own name, of a server that wants a login, by which one is begun.
pub const AUTHENTICATE: &str = "authenticate";
/// What answers a call.
pub type BuiltinHandler = dyn Fn(BuiltinCall) -> BoxFuture<'static, BuiltinAnswer> + Send + Sync;

/// A tool that the host answers itself.
#[derive(Clone)]
pub struct Builtin {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    pub(crate) hints: ToolHints,
    /// Whether it may run unless a rule or a hook has something against it.
    pub(crate) free: bool,
    /// What it asks of the server that its argument `server` names: then it is judged as that.
    pub(crate) aims: Option<Offering>,
    pub(crate) handler: Arc<BuiltinHandler>,
}

/// Why a tool cannot be one of the host's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuiltinError {
    /// Models could not call it.
    #[error(
        "`{0}` cannot name a built-in tool: use 1 to {MAX_EXPOSED_LEN} letters, digits, `_` or `-`"
    )]
    Name(String),
    /// It would be taken for a server's, or is the host's.
    #[error("`{0}` cannot name a built-in tool: the name is reserved")]
    Reserved(String),
    /// Arguments are an object.
    #[error("the schema of the built-in tool `{0}` is not an object")]
    Schema(String),
}

impl Builtin {
    /// A tool of this name that takes arguments of this JSON Schema. A person is asked before it
    /// runs, as before any tool, unless [`Builtin::without_asking`].
    pub fn new<F, R>(
        name: &str,
        description: &str,
        input_schema: Value,
        handler: F,
    ) -> Result<Self, BuiltinError>
    where
        F: Fn(BuiltinCall) -> R + Send + Sync + 'static,
        R: Future<Output = BuiltinAnswer> + Send + 'static,
    {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > MAX_EXPOSED_LEN || !name.chars().all(plain) {
            return Err(BuiltinError::Name(name.escape_debug().to_string()));
        }
        if name.starts_with("mcp__") || RESERVED.contains(&name) {
            return Err(BuiltinError::Reserved(name.to_owned()));
        }
        if !input_schema.is_object() {
            return Err(BuiltinError::Schema(name.to_owned()));
        }
        Ok(Self::made(name, description, input_schema, handler))
    }

    /// One whose name and schema are known to be good.
    fn made<F, R>(name: &str, description: &str, input_schema: Value, handler: F) -> Self
    where
        F: Fn(BuiltinCall) -> R + Send + Sync + 'static,
        R: Future<Output = BuiltinAnswer> + Send + 'static,
    {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema,
            hints: ToolHints::default(),
            free: false,
            aims: None,
            handler: Arc::new(move |call| Box::pin(handler(call))),
        }
    }

    /// Says what is to be known about it: rules can refer to it.
    #[must_use]
    pub fn hints(mut self, hints: ToolHints) -> Self {
        self.hints = hints;
        self
    }

    /// No user is asked before it runs. A rule or a hook that denies or asks still counts.
    #[must_use]
    pub fn without_asking(mut self) -> Self {
        self.free = true;
        self
    }

    /// It asks this of a server, and is judged so.
    fn aiming(mut self, offering: Offering) -> Self {
        self.aims = Some(offering);
        self
    }

    /// The name models call it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it takes.
    pub fn input_schema(&self) -> &Value {
        &self.input_schema
    }

    /// What is known about it.
    pub fn known(&self) -> ToolHints {
        self.hints
    }

    /// Whether it runs without a user being asked, unless a rule or a hook wants it.
    pub fn is_free(&self) -> bool {
        self.free
    }

    /// As a server would list it.
    fn listed(&self) -> Value {
        let mut annotations = Map::new();
        for (key, hint) in [
            ("readOnlyHint", self.hints.read_only),
            ("destructiveHint", self.hints.destructive),
            ("idempotentHint", self.hints.idempotent),
            ("openWorldHint", self.hints.open_world),
        ] {
            if let Some(hint) = hint {
                annotations.insert(key.to_owned(), hint.into());
            }
        }
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
            "annotations": annotations,
        })
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Builtin")
            .field("name", &self.name)
            .field("free", &self.free)
            .finish_non_exhaustive()
    }
}

/// The host's own tool of this name, one of [`RESERVED`], whether or not it is there now.
pub fn own(name: &str) -> Option<Builtin> {
    let mut tools = standard().into_iter().map(|(tool, _)| tool);
    tools.find(|tool| tool.name == name)
}

/// The host's own tools; those that tell of one server are made with its state.
pub(crate) fn standard() -> [(Builtin, Presence); 3] {
    [
        (resources::list(), Presence::WithResources),
        (resources::read(), Presence::WithResources),
        (tool_search::tool(), Presence::WithDeferred),
    ]
}

/// One call of a built-in tool, permitted, its arguments valid.
#[derive(Debug, Clone)]
pub struct BuiltinCall {
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The host.
    pub host: HostHandle,
    /// The session that calls, where the caller keeps one.
    pub pool: Option<ToolPool>,
    /// Where news of a long call goes.
    pub progress: Progressing,
    /// The server that it was judged for.
    pub(crate) aimed: Option<AimedServer>,
}

/// Where progress goes, if anywhere.
#[derive(Clone, Default)]
pub struct Progressing(pub Option<ProgressSink>);

impl fmt::Debug for Progressing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Progressing({})", self.0.is_some())
    }
}

impl BuiltinCall {
    /// A text among the arguments.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }
}

/// What a built-in tool answers: an MCP result, which is read like any server's.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltinAnswer {
    /// The blocks of `content`, as MCP has them.
    pub content: Vec<Value>,
    /// `structuredContent`
    pub structured: Option<Value>,
    /// Whether it failed.
    pub is_error: bool,
}

impl BuiltinAnswer {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![json!({ "type": "text", "text": text.into() })],
            structured: None,
            is_error: false,
        }
    }

    /// That it failed, and why.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// An object, and the same as text for clients that read only text.
    pub fn object(object: Value) -> Self {
        let text = object.to_string();
        Self {
            structured: Some(object),
            ..Self::text(text)
        }
    }

    fn into_result(self) -> Value {
        let mut result = json!({ "content": self.content, "isError": self.is_error });
        if let (Some(structured), Some(members)) = (self.structured, result.as_object_mut()) {
            members.insert("structuredContent".to_owned(), structured);
        }
        result
    }
}
