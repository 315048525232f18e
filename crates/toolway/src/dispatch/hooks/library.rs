//! A hook that is a function of the embedding program.
//!
//! Owns the value an embedder makes, and running it. It takes the same path as a configured hook,
//! after those.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::timeout;
use toolway_config::HookEvent;
use toolway_config::permission::{BadMatcher, DEFAULT_HOOK_TIMEOUT, Matcher};

use super::{HookInput, HookReply, reply};

/// What a hook of the embedding program does. An error is a failure: where a hook can say no, it
/// is one.
pub type HookFunction =
    Arc<dyn Fn(HookInput) -> BoxFuture<'static, Result<HookReply, String>> + Send + Sync>;

/// A hook of the embedding program.
#[derive(Clone)]
pub struct LibraryHook {
    pub(super) name: String,
    pub(super) event: HookEvent,
    pub(super) matcher: Matcher,
    timeout: Duration,
    function: HookFunction,
}

impl LibraryHook {
    /// A hook by this name for an event. The matcher is as in a settings file: empty or `*` for
    /// all, a name, names joined by `|`, or a regular expression.
    ///
    /// ```
    /// use toolway::{HookReply, LibraryHook, config::HookEvent};
    ///
    /// let guard = LibraryHook::new("no drops", HookEvent::PreToolUse, "mcp__db__.*", |input| async move {
    ///     let sql = input.tool_input.as_ref().and_then(|input| input.get("sql")?.as_str());
    ///     Ok(match sql {
    ///         Some(sql) if sql.contains("DROP") => HookReply::deny("nothing is dropped here"),
    ///         _ => HookReply::default(),
    ///     })
    /// });
    /// assert!(guard.is_ok());
    /// ```
    pub fn new<F, R>(
        name: impl Into<String>,
        event: HookEvent,
        matcher: &str,
        function: F,
    ) -> Result<Self, BadMatcher>
    where
        F: Fn(HookInput) -> R + Send + Sync + 'static,
        R: Future<Output = Result<HookReply, String>> + Send + 'static,
    {
        Ok(Self {
            name: name.into(),
            event,
            matcher: Matcher::parse(matcher)?,
            timeout: DEFAULT_HOOK_TIMEOUT,
            function: Arc::new(move |input| Box::pin(function(input))),
        })
    }

    /// The longest it may take; ten seconds where nothing is said.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(super) async fn run(&self, input: HookInput) -> Result<HookReply, String> {
        let said = contained(self.timeout, async move { (self.function)(input).await });
        said.await.map_err(|error| reply::one_line(&error))
    }
}

/// Runs a function of the embedding program within its time; a panic is a failure. It is called
/// inside `work`, so that its own panic is caught too.
pub(super) async fn contained<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    match timeout(limit, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(said)) => said,
        Ok(Err(_)) => Err("it panicked".to_owned()),
        Err(_) => Err(late(limit)),
    }
}

pub(super) fn late(after: Duration) -> String {
    format!("it did not end within {after:?}")
}

impl fmt::Debug for LibraryHook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LibraryHook")
            .field("name", &self.name)
            .field("event", &self.event)
            .field("matcher", &self.matcher)
            .finish_non_exhaustive()
    }
}
