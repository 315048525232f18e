//! What came of one call of a batch.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
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
