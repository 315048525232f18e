//! What came of one call: an answer as it was received, what a model gets of it, a line of a batch.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// What came of one call: the exit code it would have had alone, and a result or an error. Absent
/// values are left out.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerRow<'a> {
    /// The server that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Cow<'a, str>>,
    /// The tool that was named.
    pub tool: Cow<'a, str>,
    /// The exit code.
    pub exit: u8,
    /// The server's result, as it was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Cow<'a, RawValue>>,
    /// What is shown in the place of the result, where a hook wants that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// That hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Cow<'a, str>>,
    /// What hooks want known.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    pub context: Cow<'a, [String]>,
    /// What is to be known about a result.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    pub warnings: Cow<'a, [String]>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Further lines below that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// What helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What a server answered, as it was received: the protocol says what its fields are.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerAnswer<'a>(pub Cow<'a, RawValue>);

impl<'a> From<&'a RawValue> for ServerAnswer<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(Cow::Borrowed(raw))
    }
}

/// What a filter gave of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SelectedValues(pub Vec<Value>);

/// What a model gets of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundedAnswer<'a> {
    /// The blocks, in order.
    pub content: Vec<BlockRow<'a>>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
}

/// One block for a model, as the protocol spells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum BlockRow<'a> {
    /// Text: the tool's, or our own words in brackets.
    Text {
        /// The text.
        text: Cow<'a, str>,
    },
    /// A picture.
    Image {
        /// Its bytes in base64.
        data: Cow<'a, str>,
        /// What it is.
        mime_type: Cow<'a, str>,
    },
    /// Text of an embedded resource.
    Resource {
        /// The resource.
        resource: EmbeddedText<'a>,
    },
    /// A resource by reference.
    ResourceLink {
        /// Where it is.
        uri: Cow<'a, str>,
        /// Its name.
        name: Cow<'a, str>,
        /// What it is; absent where the server does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Cow<'a, str>>,
        /// Its media type; likewise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<Cow<'a, str>>,
    },
}

/// Text of a resource, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddedText<'a> {
    /// Where it is.
    pub uri: Cow<'a, str>,
    /// Its media type; absent where the server does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<Cow<'a, str>>,
    /// The text.
    pub text: Cow<'a, str>,
}
