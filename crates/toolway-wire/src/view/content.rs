//! What a tool answers: content blocks, structured content, and whether it is an error.
//!
//! A block that cannot be read is [`ContentBlock::Unknown`] with its bytes kept: a gateway passes
//! on what it does not understand.

use serde_json::value::RawValue;

use super::{MAX_PARTS, ViewError, object, optional};
use crate::elements::each;
use crate::lenient;
use crate::members::RawMembers;
use crate::raw_json::JsonText;
use crate::scan::{self, LoneMember, RareName};

mod skim;

/// The longest result that is read while it is skimmed: most of the time for longer ones goes to
/// their text.
const MAX_SKIMMED: usize = 4096;

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
    pub fn peek(result: &(impl JsonText + ?Sized)) -> Result<Self, ViewError> {
        static RESULT_TYPE: RareName = RareName::new("resultType");
        let json = result.json();
        if json.starts_with('{') && !RESULT_TYPE.may_stand_in(json) {
            return Ok(Self::Complete);
        }
        match scan::lone_member(json, "resultType") {
            LoneMember::Absent | LoneMember::Is(r#""complete""#) => Ok(Self::Complete),
            _ => object(result).map(|members| Self::of(&members)),
        }
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
pub fn tool_result(result: &(impl JsonText + ?Sized)) -> Result<ToolResult, ViewError> {
    texts(result.json()).map_or_else(|| in_full(result), Ok)
}

/// Reads a short result that consists of texts. What is read is what [`in_full`] would have read,
/// which looks through a result once for each level that it goes down.
fn texts(result: &str) -> Option<ToolResult> {
    let mut content = Vec::new();
    let mut is_readable = result.len() <= MAX_SKIMMED;
    let is_error = is_readable.then(|| {
        skim::skim(result, |text| {
            // Most results have one, and a vector begins with room for four.
            if content.is_empty() {
                content.reserve_exact(1);
            }
            match serde_json::from_str(text) {
                Ok(text) => content.push(ContentBlock::Text { text }),
                Err(_) => is_readable = false,
            }
        })
    });
    let is_error = is_error.flatten().filter(|_| is_readable)?;
    Some(ToolResult {
        content,
        structured: None,
        is_error,
        meta: None,
        result_type: ResultType::Complete,
    })
}

/// Looks through the commonest of results, texts and nothing else, and tells whether it is an
/// error; nothing of any other one. What it tells of is complete and can be viewed.
pub fn skim_result(result: &(impl JsonText + ?Sized)) -> Option<bool> {
    skim::skim(result.json(), |_| ())
}

/// Whether a result says that the tool failed; nothing else of it is looked at.
pub fn says_error(result: &(impl JsonText + ?Sized)) -> Result<bool, ViewError> {
    match scan::lone_member(result.json(), "isError") {
        LoneMember::Absent | LoneMember::Is("false" | "null") => return Ok(false),
        LoneMember::Is("true") => return Ok(true),
        _ => {}
    }
    let said = object(result)?.value("isError").and_then(lenient::boolean);
    Ok(said.unwrap_or(false))
}

/// Views any result, whatever is in it.
fn in_full(result: &(impl JsonText + ?Sized)) -> Result<ToolResult, ViewError> {
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
