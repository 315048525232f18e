//! What a tool answers: content blocks, structured content, and whether it is an error.
//!
//! A block that cannot be read is [`ContentBlock::Unknown`] with its bytes kept: a gateway passes
//! on what it does not understand.

use serde_json::value::RawValue;

use super::{MAX_PARTS, ViewError, object, optional};
use crate::elements::each;
use crate::lenient;
use crate::members::RawMembers;

mod plain;
mod skim;

/// One block of content.
#[derive(Debug, Clone)]
pub enum ContentBlock {
    /// Plain text, as received.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Its bytes in base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// Its bytes in base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// A resource, embedded.
    Resource {
        /// Where it is.
        uri: String,
        /// Its media type.
        mime_type: Option<String>,
        /// Its text or bytes.
        body: ResourceBody,
    },
    /// A resource, by reference.
    ResourceLink {
        /// Where it is.
        uri: String,
        /// Its name; the URI where the server gave none.
        name: String,
        /// A name for people.
        title: Option<String>,
        /// What it is, as received.
        description: Option<String>,
        /// Its media type.
        mime_type: Option<String>,
    },
    /// Anything else, or a known kind that could not be read.
    Unknown {
        /// Its `type`, or an empty string.
        kind: String,
        /// The whole block, untouched.
        raw: Box<RawValue>,
    },
}

/// What a resource holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text, as received.
    Text(String),
    /// Bytes in base64.
    Blob(String),
}

/// What kind of result it is; absent means complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultType {
    /// The answer.
    Complete,
    /// The server needs something first (modern era).
    InputRequired,
    /// The server works on it (tasks extension).
    Task,
    /// A word we do not know: the result is invalid.
    Unknown(String),
}

impl ResultType {
    /// Reads `resultType` without looking at anything else.
    pub fn peek(result: &RawValue) -> Result<Self, ViewError> {
        object(result).map(|members| Self::of(&members))
    }

    pub(crate) fn of(members: &RawMembers<'_>) -> Self {
        match members.get("resultType").map(lenient::text).as_deref() {
            None | Some("complete") => Self::Complete,
            Some("input_required") => Self::InputRequired,
            Some("task") => Self::Task,
            Some(other) => Self::Unknown(other.to_owned()),
        }
    }
}

/// What a tool answered.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The blocks, in order.
    pub content: Vec<ContentBlock>,
    /// Structured content, untouched.
    pub structured: Option<Box<RawValue>>,
    /// Whether the tool says it failed.
    pub is_error: bool,
    /// `_meta`, untouched.
    pub meta: Option<Box<RawValue>>,
    /// What kind of result it is.
    pub result_type: ResultType,
}

/// Views a `tools/call` result. Missing `content` is an empty list: servers with structured
/// content alone leave it out.
pub fn tool_result(result: &RawValue) -> Result<ToolResult, ViewError> {
    match plain::read(result.get()) {
        Some(plain) => Ok(ToolResult {
            content: plain.content,
            structured: None,
            is_error: plain.is_error,
            meta: None,
            result_type: ResultType::Complete,
        }),
        None => in_full(result),
    }
}

/// Looks through the commonest of results, texts and nothing else, and tells whether it is an
/// error; nothing of any other one. What it tells of is complete and can be viewed.
pub fn skim_result(result: &RawValue) -> Option<bool> {
    skim::skim(result.get())
}

/// Views any result, whatever is in it.
fn in_full(result: &RawValue) -> Result<ToolResult, ViewError> {
    let members = object(result)?;
    let content = match members.value("content") {
        None => Vec::new(),
        // One block in place of a list is what hand-written servers send.
        Some(block) if block.get().starts_with('{') => vec![read(block)],
        Some(blocks) => all_blocks(blocks)?,
    };
    Ok(ToolResult {
        content,
        // A structured null is a value; only absence is absence.
        structured: members.get("structuredContent").map(ToOwned::to_owned),
        is_error: members
            .value("isError")
            .and_then(lenient::boolean)
            .unwrap_or(false),
        meta: members.owned("_meta"),
        result_type: ResultType::of(&members),
    })
}

fn all_blocks(blocks: &RawValue) -> Result<Vec<ContentBlock>, ViewError> {
    let mut content = Vec::new();
    let mut too_many = false;
    let seen = each(blocks, |block| {
        too_many = content.len() == MAX_PARTS;
        if !too_many {
            content.push(read(block));
        }
        !too_many
    });
    seen.ok_or(ViewError::Missing("content"))?;
    if too_many {
        return Err(ViewError::TooMany("content"));
    }
    Ok(content)
}

/// Reads one block; never fails.
pub(super) fn read(raw: &RawValue) -> ContentBlock {
    let unknown = |kind: String| ContentBlock::Unknown {
        kind,
        raw: raw.to_owned(),
    };
    let Ok(block) = RawMembers::read(raw.get()) else {
        return unknown(String::new());
    };
    let kind = optional(&block, "type").unwrap_or_default();
    known(&kind, &block).unwrap_or_else(|| unknown(kind))
}

fn known(kind: &str, block: &RawMembers<'_>) -> Option<ContentBlock> {
    let text = |name| optional(block, name);
    Some(match kind {
        "text" => ContentBlock::Text {
            text: text("text")?,
        },
        "image" => ContentBlock::Image {
            data: text("data")?,
            mime_type: text("mimeType")?,
        },
        "audio" => ContentBlock::Audio {
            data: text("data")?,
            mime_type: text("mimeType")?,
        },
        "resource" => {
            let inner = RawMembers::read(block.value("resource")?.get()).ok()?;
            ContentBlock::Resource {
                uri: optional(&inner, "uri")?,
                mime_type: optional(&inner, "mimeType"),
                body: resource_body(&inner)?,
            }
        }
        "resource_link" => {
            let uri = text("uri")?;
            ContentBlock::ResourceLink {
                name: text("name").unwrap_or_else(|| uri.clone()),
                uri,
                title: text("title"),
                description: text("description"),
                mime_type: text("mimeType"),
            }
        }
        _ => return None,
    })
}

pub(super) fn resource_body(item: &RawMembers<'_>) -> Option<ResourceBody> {
    optional(item, "text")
        .map(ResourceBody::Text)
        .or_else(|| optional(item, "blob").map(ResourceBody::Blob))
}
