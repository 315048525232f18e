//! Questions that wait for a person.
//!
//! Owns what is shown of them and which answers there are. How an answer comes back to the host is
//! the front-end's.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolway_types::ServerName;

use crate::{CallerRow, SourceRow, UnheededRow, Word};

/// All questions that wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionListing {
    /// The oldest first.
    pub questions: Vec<QuestionRow>,
}

/// One question. Absent values are null; those after `expiresAt` are left out where the kind of
/// question has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionRow {
    /// By which it is answered.
    pub id: String,
    /// `permission`, `form`, `page` or `login`.
    pub kind: Word,
    /// The server that it is about, or that asks.
    pub server: ServerName,
    /// The own name of the tool whose call waits.
    pub tool: Option<String>,
    /// The number of that call, where it has one.
    pub call: Option<String>,
    /// The caller whose request caused the question.
    pub caller: CallerRow,
    /// `caller` where that one is to answer, `owner` where it cannot be asked and the owner of the
    /// host is.
    pub put_to: Word,
    /// What is asked; of a form or a page in the server's words, cleaned.
    pub message: String,
    /// The answers that there are.
    pub choices: Vec<ChoiceRow>,
    /// Since when, in UTC.
    pub asked_at: String,
    /// When it is answered with no, in UTC.
    pub expires_at: Option<String>,

    /// What the caller calls itself, where it is a client that says so; cleaned, and its own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The name of the tool as models see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The server's title for the tool, cleaned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The arguments as they will be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// Whether the server itself calls the tool destructive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// The rule that wants a person asked; absent when the mode does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Where that stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRow>,
    /// A rule that allows this of another server of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheeded: Option<UnheededRow>,
    /// The hook that wants a person asked, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// That the classifier wants a person asked, or how it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classifier: Option<String>,
    /// How the tool's definition differs from the one that was permitted before, in short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The same in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeRow>,

    /// The fields of a form, as a JSON Schema of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The page to visit, also of a login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The code to type on that page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The scopes that a login has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub has: Vec<String>,
    /// The scopes that it lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wants: Vec<String>,
}

/// How a tool's definition differs from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRow {
    /// What it is held against: `permitted`, the one that was permitted; `nothing`, because that is
    /// unknown; `namesake`, another tool that was permitted under its name.
    pub against: Word,
    /// Every line of the difference, legible.
    pub lines: Vec<String>,
}

/// An answer to a question, as it is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenAnswer {
    /// The id of the question, or as much of its beginning as no other has.
    pub id: String,
    /// One of its choices.
    pub answer: Word,
    /// Why, where it is a no to a call; whoever called is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An answer that can be given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChoiceRow {
    /// The word for it. To a question for permission `yes`, `session`, `always-tool`,
    /// `always-server` or `no`; to others `accept`, `decline` or `cancel`.
    pub answer: Word,
    /// The rule that it keeps; absent where it keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}
