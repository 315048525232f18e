//! What servers may ask of this program: a person's input, a model's words, its roots.
//!
//! Owns the interface between the host and the embedding program. When a server may ask, and what
//! it gets without an answer, is the session's (`session/inbound.rs`, `session/input.rs`).
//!
//! Nothing is offered unless the embedding program says so: without a [`ClientHandler`] no server
//! hears of sampling, or of elicitation unless hooks are there to answer it, and without roots
//! none hears of roots.

use std::path::Path;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolway_types::{Secret, ServerName, Untrusted, text};
use toolway_wire::RpcError;
use tracing::debug;
use url::Url;

use crate::json_schema::{Problem, SchemaChecker, SchemaVerdict, ValueSize};

/// The most of what is wrong with an answer, in characters.
const MAX_TOLD: usize = 500;

/// Answers what servers ask. The embedding program supplies it.
///
/// A question may wait for a person for a day: nothing else waits with it, and it stands among the
/// open ones meanwhile ([`Attached::questions`](crate::Attached::questions)). When it is answered
/// elsewhere, the server takes it back, or the call or the connection ends, the future is dropped.
pub trait ClientHandler: Send + Sync + 'static {
    /// Which of the methods below servers may use. Asked once for each connection, and declared
    /// to the server.
    fn offers(&self) -> ClientOffers;

    /// Puts a server's question to a person. Show them which server asks.
    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer>;

    /// Resolves when the user says that they are done with the page that they last agreed to visit
    /// for this server. Dropped when the server says so first. The default never resolves.
    fn visited<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, ()> {
        let _ = server;
        Box::pin(std::future::pending())
    }

    /// Asks which roots there are, where that has to be asked for: each time a server wants to know.
    /// By default those count that the caller was attached with.
    fn roots<'a>(&'a self, server: &'a ServerName) -> Option<BoxFuture<'a, Vec<Root>>> {
        let _ = server;
        None
    }

    /// Has a model write something for a server: the parameters of `sampling/createMessage` in,
    /// its result out, both as raw JSON.
    fn sample<'a>(
        &'a self,
        server: &'a ServerName,
        request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>>;
}

/// What servers may ask for.
#[derive(Debug, Clone, Default)]
pub struct ClientOffers {
    /// A person can fill in a form.
    pub form: bool,
    /// A person can be sent to a URL.
    pub url: bool,
    /// A model can be asked; the value is the capability object to declare, such as `{}` or
    /// `{"tools": {}}`.
    pub sampling: Option<Box<RawValue>>,
    /// There may be roots, although there are none now: those of callers to come.
    pub roots: bool,
}

/// A server's question to a person.
#[derive(Debug, Clone)]
pub enum Elicitation {
    /// To be answered by filling in a form.
    Form {
        /// What the server says it needs, and why.
        message: Untrusted,
        /// The fields, as a JSON Schema of an object.
        schema: Box<RawValue>,
    },
    /// To be answered by visiting a page. Only `https` URLs, and `http` ones of this machine, get
    /// this far. Never open it without the person's yes; show the whole of it.
    Url {
        /// What the server says it needs, and why.
        message: Untrusted,
        /// The page.
        url: Url,
        /// The server's name for this question, in the legacy era.
        id: Option<String>,
        /// What it is about when it is the host that asks, and not the server: the page is a login
        /// that reaches further. The words of the message are the host's then too.
        rights: Option<Box<MoreRights>>,
    },
}

/// What a login has, and what it would have to get for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoreRights {
    /// The scopes it has, as far as is known.
    pub has: Vec<String>,
    /// The scopes it lacks, in the server's words.
    pub wants: Vec<String>,
    /// The code to type on the page, where the login is made on another device. It stands in the
    /// message too.
    pub code: Option<Secret>,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Yes: the fields of a form, or nothing for a URL, where it means consent and not that the
    /// page was dealt with.
    Accept(Option<Map<String, Value>>),
    /// No.
    Decline,
    /// The question was put away without an answer.
    Cancel,
}

/// Checks one field of a form before it is sent, so that a person can be asked again: the words
/// of each problem, none when it fits. A schema that cannot be used is left to the server.
pub fn problems_of_field(schema: &Value, value: &Value) -> Vec<String> {
    let Ok(schema) = serde_json::value::to_raw_value(schema) else {
        return Vec::new();
    };
    // The size is that of an object which holds nothing else.
    let alone = Map::from_iter([(String::new(), value.clone())]);
    match SchemaChecker::compile(&schema).check(value, ValueSize::of(&alone)) {
        SchemaVerdict::Fits | SchemaVerdict::Unchecked(_) => Vec::new(),
        SchemaVerdict::Violates(problems) => problems.into_iter().map(|it| it.message).collect(),
    }
}

/// Problems in one line.
pub(crate) fn told(problems: &[Problem]) -> String {
    let told = problems.iter().map(|problem| match problem.path.as_str() {
        "" => problem.message.clone(),
        path => format!("`{path}`: {}", problem.message),
    });
    let told = told.collect::<Vec<_>>().join("; ");
    text::cut(&told, MAX_TOLD).into_owned()
}

/// The fields with the form's defaults where they are absent, or how they do not fit it. A form
/// that cannot be checked is left to the server that made it.
pub(crate) fn fill_form(
    mut content: Map<String, Value>,
    schema: &RawValue,
) -> Result<Map<String, Value>, Vec<Problem>> {
    let form: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    for (name, property) in toolway_schema::properties(&form) {
        if let Some(default) = property.get("default")
            && !content.contains_key(name)
        {
            content.insert(name.clone(), default.clone());
        }
    }
    let size = ValueSize::of(&content);
    let content = Value::Object(content);
    match SchemaChecker::compile(schema).check(&content, size) {
        SchemaVerdict::Fits => {}
        SchemaVerdict::Unchecked(why) => debug!(why, "an answer was not checked: its form"),
        SchemaVerdict::Violates(problems) => return Err(problems),
    }
    match content {
        Value::Object(content) => Ok(content),
        _ => Err(Vec::new()),
    }
}

/// A place the embedding program works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Where; a `file:` URL.
    pub uri: Url,
    /// A name for people.
    pub name: Option<String>,
}

impl Root {
    /// A directory, named after its last part; `None` when the path is not absolute.
    pub fn directory(path: &Path) -> Option<Self> {
        Some(Self {
            uri: Url::from_file_path(path).ok()?,
            name: path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned()),
        })
    }
}

/// An answer, and whose it is.
pub(crate) struct GivenAnswer {
    pub(crate) answer: ElicitationAnswer,
    /// The hook whose words these are, where they are a hook's.
    pub(crate) by: Option<String>,
}

impl GivenAnswer {
    /// Of no hook.
    pub(crate) fn by_nobody(answer: ElicitationAnswer) -> Self {
        Self { answer, by: None }
    }
}
