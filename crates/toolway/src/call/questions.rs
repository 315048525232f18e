//! Open questions: what a person is to decide, as values.
//!
//! Owns what a question and an answer are, and which answers fit which question. Which questions are
//! open, and who may answer them, is `book.rs`; how a caller comes to be asked is `asker.rs`.
//!
//! A terminal, a web page and a command can show the same question: it has an id, says about which
//! server and which call it is, whose it is, and how long it stands.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolway_config::UnheededRule;
use toolway_types::{Origin, ServerName, ToolKey, Untrusted, text};
use url::Url;

use super::{Caller, Lasting, PermissionAnswer, PermissionQuestion};
use crate::client_handler::{Elicitation, ElicitationAnswer, MoreRights, fill_form, told};
use crate::pins::Difference;

mod asker;
mod book;

pub(crate) use self::asker::{AskedPrompter, AskedSide, CausingRequest, QuestionAsker};
pub(crate) use self::book::{PartyId, QuestionBook, QuestionNews};
pub use self::book::{QuestionCounts, QuestionEnd, QuestionWatch};

/// What one question is known by. Nobody can guess it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QuestionId(Arc<str>);

impl QuestionId {
    /// The id as it was displayed.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// One that nobody knows yet; none where the system has no random bytes.
    fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self(hex::encode(bytes).into()))
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A question that waits for an answer.
#[derive(Clone)]
pub struct OpenQuestion {
    /// What it is known by.
    pub id: QuestionId,
    /// What is asked.
    pub kind: QuestionKind,
    /// The server that it is about, or that asks.
    pub server: ServerName,
    /// The call that caused it, by its tool; none where that is unknown, or it was no call.
    pub tool: Option<ToolKey>,
    /// Whose it is.
    pub caller: Caller,
    /// Who is to answer it.
    pub put_to: Askee,
    /// Since when it stands.
    pub asked_at: SystemTime,
    /// Until when it stands at the longest; then it counts as not answered.
    pub expires_at: SystemTime,
}

/// Who is to answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Askee {
    /// The caller that caused it; the owner may, where the question is not a server's.
    Caller,
    /// The owner alone, because the caller cannot be asked: nobody says yes to their own wish.
    Owner,
}

impl Askee {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Owner => "owner",
        }
    }
}

/// What is asked may hold what only the asked should see.
impl fmt::Debug for OpenQuestion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenQuestion")
            .field("id", &self.id)
            .field("kind", &self.kind.as_str())
            .field("server", &self.server)
            .field("tool", &self.tool)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

/// What is asked.
#[derive(Clone)]
pub enum QuestionKind {
    /// Whether a call may run.
    Permission(Box<AskedPermission>),
    /// What a server wants to know.
    Form {
        /// What the server says it needs, and why.
        message: Untrusted,
        /// The fields, as a JSON Schema of an object.
        schema: Box<RawValue>,
    },
    /// Whether to visit a page that a server names. A yes is consent, not that it was dealt with.
    Page {
        /// What the server says it needs, and why.
        message: Untrusted,
        /// The page. Never open it without a person's yes; show the whole of it.
        url: Url,
    },
    /// Whether to widen the login of a server; the host asks.
    Login {
        /// What it is for, in the host's words.
        message: Untrusted,
        /// The page on which to log in.
        url: Url,
        /// What the login has, and what it would get.
        rights: Box<MoreRights>,
    },
}

impl QuestionKind {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Permission(_) => "permission",
            Self::Form { .. } => "form",
            Self::Page { .. } => "page",
            Self::Login { .. } => "login",
        }
    }

    /// Whether a server asks it. What servers ask is for the caller that caused it alone.
    pub fn is_of_server(&self) -> bool {
        matches!(self, Self::Form { .. } | Self::Page { .. })
    }

    fn of_elicitation(request: &Elicitation) -> Self {
        match request {
            Elicitation::Form { message, schema } => Self::Form {
                message: message.clone(),
                schema: schema.clone(),
            },
            Elicitation::Url {
                message,
                url,
                rights,
                ..
            } => {
                let (message, url) = (message.clone(), url.clone());
                match rights {
                    Some(rights) => Self::Login {
                        message,
                        url,
                        rights: rights.clone(),
                    },
                    None => Self::Page { message, url },
                }
            }
        }
    }

    /// What is wrong with an answer to this.
    fn objection(&self, answer: &QuestionAnswer) -> Option<String> {
        match (self, answer) {
            (Self::Permission(_), QuestionAnswer::Permission(_)) => None,
            (Self::Permission(_), QuestionAnswer::Elicitation(_)) => {
                Some("it is asked whether a call may run".to_owned())
            }
            (_, QuestionAnswer::Permission(_)) => {
                Some(format!("a {} is asked for, no permission", self.as_str()))
            }
            (
                Self::Form { schema, .. },
                QuestionAnswer::Elicitation(ElicitationAnswer::Accept(fields)),
            ) => {
                let filled = fill_form(fields.clone().unwrap_or_default(), schema);
                filled
                    .err()
                    .map(|problems| text::clean_line(&told(&problems)).into_owned())
            }
            (_, QuestionAnswer::Elicitation(ElicitationAnswer::Accept(Some(_)))) => {
                Some("a page has no fields".to_owned())
            }
            (_, QuestionAnswer::Elicitation(_)) => None,
        }
    }
}

/// A [`PermissionQuestion`] that can be kept: all that a person must see to decide.
#[derive(Debug, Clone)]
pub struct AskedPermission {
    /// The server and the tool's own name.
    pub key: ToolKey,
    /// The name models see.
    pub name: String,
    /// The server's title for the tool, cleaned.
    pub title: Option<String>,
    /// The arguments as they will be sent.
    pub arguments: Map<String, Value>,
    /// Whether the server itself calls the tool destructive.
    pub destructive: Option<bool>,
    /// The rule that wants a person asked, and where it stands; none when the mode does.
    pub rule: Option<(String, Origin)>,
    /// A rule that allows this of another server of that name, where a repository brought this one.
    pub unheeded: Option<UnheededRule>,
    /// The hook that wants a person asked, and why; clean, on one line.
    pub hook: Option<String>,
    /// That the classifier wants a person asked, or how it failed; clean, on one line.
    pub classifier: Option<String>,
    /// How the tool's definition differs from the one that was permitted before, where it does.
    pub change: Option<Difference>,
    /// How long a yes can hold. One that asks for more holds for as long as it can.
    pub lasting: Lasting,
}

impl AskedPermission {
    fn of(question: &PermissionQuestion<'_>) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self {
            key: question.key.clone(),
            name: question.name.to_owned(),
            title: owned(question.title),
            arguments: question.arguments.clone(),
            destructive: question.destructive,
            rule: question
                .rule
                .map(|(rule, origin)| (rule.to_owned(), origin.clone())),
            unheeded: question.unheeded.cloned(),
            hook: owned(question.hook),
            classifier: owned(question.classifier),
            change: question.change.cloned(),
            lasting: question.lasting.clone(),
        }
    }

    /// The same as a prompter is asked it.
    pub fn as_question(&self) -> PermissionQuestion<'_> {
        PermissionQuestion {
            key: &self.key,
            name: &self.name,
            title: self.title.as_deref(),
            arguments: &self.arguments,
            destructive: self.destructive,
            rule: self
                .rule
                .as_ref()
                .map(|(rule, origin)| (rule.as_str(), origin)),
            unheeded: self.unheeded.as_ref(),
            hook: self.hook.as_deref(),
            classifier: self.classifier.as_deref(),
            change: self.change.as_ref(),
            lasting: self.lasting.clone(),
        }
    }
}

/// An answer to an open question.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionAnswer {
    /// To whether a call may run.
    Permission(PermissionAnswer),
    /// To a form, a page or a login.
    Elicitation(ElicitationAnswer),
}

/// Why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There is no such question, or it was closed too long ago.
    #[error("no question `{0}` is known")]
    Unknown(QuestionId),
    /// Somebody answered before.
    #[error("the question `{0}` was answered already")]
    AlreadyAnswered(QuestionId),
    /// It ended without an answer: its time was over, or what asked it has ended.
    #[error("the question `{0}` does not stand any more")]
    Ended(QuestionId),
    /// It is another caller's.
    #[error("the question `{0}` is put to somebody else")]
    NotYours(QuestionId),
    /// The answer does not fit. The question still stands.
    #[error("this is no answer to the question `{id}`: {why}")]
    Unfit {
        /// The question.
        id: QuestionId,
        /// Why, clean, on one line.
        why: String,
    },
}

#[cfg(test)]
mod tests;
