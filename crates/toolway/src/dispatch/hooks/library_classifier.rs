//! A classifier that is a function of the embedding program.
//!
//! Owns the value an embedder makes, what every classifier is told, and what it says. Whose counts,
//! and when one is asked, is `classifier.rs`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};
use toolway_config::permission::DEFAULT_HOOK_TIMEOUT;

use super::HookDecision;
use super::library::contained;

/// What a classifier is told of a call. Title, description and annotations are the words of the
/// server about itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClassifierInput {
    /// The same for everything that one host does.
    pub session_id: String,
    /// The directory the host works in.
    pub cwd: String,
    /// The server's name, as configured.
    pub server: String,
    /// The tool's own name, as its server spells it.
    pub tool: String,
    /// The tool, by the name models see.
    pub tool_name: String,
    /// The arguments as they would be sent.
    pub tool_input: Map<String, Value>,
    /// The tool's title, cleaned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description, cleaned and cut.
    pub description: String,
    /// What its server claims about it: `readOnlyHint` and the like, where it says.
    pub annotations: Map<String, Value>,
    /// The rules that name the tool. None of them decides this call.
    pub rules: Vec<ClassifierRule>,
    /// Whether a repository brought the server.
    pub brought: bool,
}

/// A rule, as a classifier is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassifierRule {
    /// `deny`, `ask` or `allow`.
    pub list: &'static str,
    /// The rule as written.
    pub rule: String,
    /// Where it stands.
    pub origin: String,
}

/// What a classifier says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classification {
    /// Whether it may run, or a person is to be asked.
    pub decision: HookDecision,
    /// Why.
    pub reason: Option<String>,
}

/// A classifier that is a function of the embedding program.
pub type ClassifierFunction = Arc<
    dyn Fn(ClassifierInput) -> BoxFuture<'static, Result<Classification, String>> + Send + Sync,
>;

/// The classifier of the embedding program.
#[derive(Clone)]
pub struct LibraryClassifier {
    pub(in crate::dispatch) name: String,
    timeout: Duration,
    function: ClassifierFunction,
}

impl LibraryClassifier {
    /// One by this name.
    ///
    /// ```
    /// use toolway::{Classification, HookDecision, LibraryClassifier};
    ///
    /// let reading = LibraryClassifier::new("reading", |input| async move {
    ///     let reads = input.annotations.get("readOnlyHint") == Some(&true.into());
    ///     Ok(Classification {
    ///         decision: if reads { HookDecision::Allow } else { HookDecision::Ask },
    ///         reason: None,
    ///     })
    /// });
    /// # let _ = reading;
    /// ```
    pub fn new<F, R>(name: impl Into<String>, function: F) -> Self
    where
        F: Fn(ClassifierInput) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Classification, String>> + Send + 'static,
    {
        Self {
            name: name.into(),
            timeout: DEFAULT_HOOK_TIMEOUT,
            function: Arc::new(move |input| Box::pin(function(input))),
        }
    }

    /// The longest it may take; ten seconds where nothing is said.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(in crate::dispatch) async fn run(
        &self,
        input: ClassifierInput,
    ) -> Result<Classification, String> {
        contained(self.timeout, async move { (self.function)(input).await }).await
    }
}

impl fmt::Debug for LibraryClassifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LibraryClassifier")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
