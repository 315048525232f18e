//! What servers ask of the user at the terminal, after hooks.
//!
//! Owns that a question names its server, and can always be declined or put away. Parts: `form.rs`
//! and `field.rs` (forms), `page.rs` (pages to visit), `secret.rs` (what no form may ask for).
//! Whether a question is put at all, and the last check of an answer, are the library's.

mod field;
mod form;
mod page;
mod secret;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use toolway::types::ServerName;
use toolway::{ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, RpcError};
use toolway_config::Environment;
use toolway_transport::browser::Browser;
use toolway_types::Untrusted;
use toolway_types::text::{TextKind, cut};
use toolway_wire::error::METHOD_NOT_FOUND;

use self::page::Pages;
use crate::context::Context;
use crate::output::Output;
use crate::screen::{Sheet, name};
use crate::terminal::TypedLine;
use crate::terminal_turns::{Asker, TerminalTurns};

/// The most characters of a server's message, and the most rows.
const MESSAGE: usize = 2048;
const MESSAGE_ROWS: usize = 40;

/// The user at the terminal.
pub(crate) struct TerminalUser {
    turns: Arc<TerminalTurns>,
    output: Output,
    pages: Pages,
    /// The servers whose pages the user agreed to visit, and is not known to be done with.
    visiting: Mutex<HashSet<ServerName>>,
}

/// What answers servers in this run; none where there is no terminal to ask on.
pub(crate) fn client_handler(context: &Context) -> Option<Arc<dyn ClientHandler>> {
    context.output.can_ask().then(|| {
        Arc::new(TerminalUser {
            turns: Arc::clone(&context.turns),
            output: context.output.clone(),
            pages: Pages::new(context.environment()),
            visiting: Mutex::default(),
        }) as Arc<dyn ClientHandler>
    })
}

/// What opens pages for the user.
pub(crate) fn browser(environment: &Environment) -> Browser {
    Pages::new(environment).browser
}

/// A line that is typed without being shown; none when there is no line.
pub(crate) async fn hidden_line(output: &Output, prompt: &str) -> Option<String> {
    match output.terminal().hidden_line(prompt).await {
        TypedLine::Typed(text) if !text.trim().is_empty() => Some(text),
        TypedLine::Typed(_) | TypedLine::End => None,
    }
}

impl TerminalUser {
    fn visiting(&self) -> MutexGuard<'_, HashSet<ServerName>> {
        self.visiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientHandler for TerminalUser {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            form: true,
            url: true,
            sampling: None,
            roots: false,
        }
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let open = self.turns.open(Asker::Server).await;
            let mut asked = Unanswered {
                output: self.output.clone(),
                farewell: GONE,
            };
            let mut talk = Talk {
                server,
                output: self.output.clone(),
                turns: &self.turns,
            };
            let answer = match &request {
                Elicitation::Form { message, schema } => {
                    form::ask(&mut talk, message, schema).await
                }
                Elicitation::Url {
                    url,
                    rights: Some(rights),
                    ..
                } => page::log_in(&talk, rights, url, &self.pages).await,
                Elicitation::Url { message, url, .. } => {
                    page::ask(&talk, message, url, &self.pages).await
                }
            };
            let answer = answer.unwrap_or_else(End::answer);
            asked.farewell = None;
            if let (Elicitation::Url { rights: None, .. }, ElicitationAnswer::Accept(_)) =
                (&request, &answer)
            {
                self.visiting().insert(server.clone());
            }
            talk.say(match &answer {
                ElicitationAnswer::Accept(_) => "answered",
                ElicitationAnswer::Decline => "declined",
                ElicitationAnswer::Cancel => "put away without an answer",
            });
            drop(open);
            answer
        })
    }

    fn visited<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // A hook may have agreed in the user's place.
            if !self.visiting().remove(server) {
                return std::future::pending().await;
            }
            let _open = self.turns.open(Asker::Program).await;
            // The server said it, or the minute is over: the next line is not the prompt's.
            let mut asked = Unanswered {
                output: self.output.clone(),
                farewell: Some(""),
            };
            let prompt = format!(
                "waiting for a minute until server `{}` goes on; press Enter when you are done \
                 there ",
                name(server.as_str())
            );
            let line = self.output.terminal().line(&prompt).await;
            asked.farewell = None;
            if line == TypedLine::End {
                self.output.say("");
                std::future::pending::<()>().await;
            }
        })
    }

    fn sample<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        // Never declared, so never asked.
        Box::pin(async { Err(RpcError::new(METHOD_NOT_FOUND, "method not found")) })
    }
}

/// Said below a question that is dropped without an answer.
const GONE: Option<&str> =
    Some("\nthe question is gone: the server took it back, or the call is over");

/// A question on the terminal, which must not look open once it is dropped.
struct Unanswered {
    output: Output,
    /// What is said then; nothing where it was answered.
    farewell: Option<&'static str>,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(farewell) = self.farewell {
            self.output.say(farewell);
        }
    }
}

/// One question and its answers.
struct Talk<'a> {
    server: &'a ServerName,
    output: Output,
    turns: &'a TerminalTurns,
}

/// Why a question ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Declined,
    PutAway,
}

impl End {
    fn answer(self) -> ElicitationAnswer {
        match self {
            Self::Declined => ElicitationAnswer::Decline,
            Self::PutAway => ElicitationAnswer::Cancel,
        }
    }
}

/// What was typed, where it was an answer.
type Typed = Result<String, End>;

impl Talk<'_> {
    fn say(&self, text: &str) {
        self.output.say(text);
    }

    /// Rows for the terminal as it is now.
    fn sheet(&self) -> Sheet {
        self.output.screen().sheet()
    }

    /// Says one row of ours with foreign parts that are legible.
    fn say_row(&self, text: &str) {
        let mut sheet = self.sheet();
        sheet.row(text);
        self.say(&sheet.finish());
    }

    /// The server, as it is called in questions.
    fn server(&self) -> String {
        format!("server `{}`", name(self.server.as_str()))
    }

    /// Shows who asks, and a server's words so that they cannot pass for ours (SEC-52).
    fn introduce(&self, wants: &str, message: &Untrusted) {
        let mut sheet = self.sheet();
        sheet.row(&format!("{} {wants}", self.server()));
        let message = cut(message.as_received(), MESSAGE);
        sheet.quote(&message, TextKind::Prose, MESSAGE_ROWS);
        self.say(&sheet.finish());
    }

    /// Puts a prompt and waits for a line.
    async fn ask(&self, prompt: &str) -> Typed {
        self.typed(self.output.terminal().line(prompt)).await
    }

    /// The same without showing what is typed.
    async fn ask_hidden(&self, prompt: &str) -> Typed {
        self.typed(self.output.terminal().hidden_line(prompt)).await
    }

    async fn typed(&self, line: impl Future<Output = TypedLine>) -> Typed {
        let line = tokio::select! {
            line = line => line,
            () = self.turns.put_away() => {
                self.say("");
                TypedLine::End
            }
        };
        match line {
            TypedLine::End => Err(End::PutAway),
            TypedLine::Typed(text) => match text.trim() {
                "/decline" => Err(End::Declined),
                "/cancel" => Err(End::PutAway),
                // Who really means the word doubles its slash.
                "//decline" | "//cancel" => Ok(text.trim()[1..].to_owned()),
                _ => Ok(text),
            },
        }
    }

    /// A question whose answer is no unless it is a yes.
    async fn confirm(&self, question: &str) -> Result<bool, End> {
        let typed = self.ask(&format!("{question} [y/N] ")).await?;
        Ok(matches!(
            typed.trim().to_ascii_lowercase().as_str(),
            "y" | "yes"
        ))
    }
}
