//! A result that fits a context window: what the caller may ask for, and what it gets.
//!
//! Owns the values only. Which of them a result becomes is decided in `dispatch/result/bound.rs`.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};
use toolway_types::text::clean_line;

use super::SavedFile;
use crate::projection::Projection;

/// What the caller wants of a result.
///
/// ```no_run
/// use toolway::{CallOptions, Consent, Host, ModelBlock, ResultDelivery, ToolRequest};
///
/// # async fn example(host: &Host, request: ToolRequest) -> Result<(), toolway::CallError> {
/// let options = CallOptions {
///     delivery: ResultDelivery::Bounded,
///     ..CallOptions::new(Consent::Prompt)
/// };
/// let outcome = host.call(request, options).await?;
/// for block in outcome.bounded.iter().flat_map(|bounded| &bounded.blocks) {
///     match block {
///         ModelBlock::Image { data, mime_type, .. } => println!("{mime_type}: {} characters", data.len()),
///         other => println!("{}", other.text()),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ResultDelivery {
    /// All of it, as the server sent it. [`ToolOutcome::bounded`](super::ToolOutcome) stays empty.
    #[default]
    Whole,
    /// The same, for a caller that passes it on: it is not read, and nothing in it is decoded or
    /// saved. Whether it fits the schema that its tool promised is not looked at.
    Raw,
    /// Besides, what a model should get of it.
    Bounded,
    /// Besides, what a model should get of the parts that the filter gives.
    Selected(Projection),
}

/// What a model should get of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundedResult {
    /// The blocks, in order.
    pub blocks: Vec<ModelBlock>,
    /// What was done so that they fit.
    pub treatment: Treatment,
    /// About how many tokens they are.
    pub tokens: usize,
}

/// What was done with a result so that it fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Treatment {
    /// Nothing: it is within the limits, or there are none for its server.
    Passed,
    /// Its text is in files, and the blocks say where.
    Saved {
        /// The files, one or two: content and structured content.
        files: Vec<SavedFile>,
    },
    /// Its text ends early, and the blocks say so.
    Cut {
        /// How many characters are left.
        kept: usize,
        /// How many there were.
        of: usize,
        /// The whole text, unless it could not be saved.
        file: Option<SavedFile>,
    },
}

/// One block for a model. As JSON it is an MCP content block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelBlock {
    /// Text of the tool, as received but for hidden characters, unless those are kept.
    Text {
        /// The text.
        text: String,
    },
    /// A picture that was decoded without a fault, and that models take.
    Image {
        /// Its bytes in base64.
        data: String,
        /// PNG, JPEG, GIF or WebP, by its bytes and not as declared.
        mime_type: &'static str,
        /// Its width in pixels.
        width: u32,
        /// Its height in pixels.
        height: u32,
    },
    /// Text of an embedded resource.
    Resource {
        /// Where it is, cleaned to one line as all that follows but the text.
        uri: String,
        /// Its media type.
        mime_type: Option<String>,
        /// The text, as received but for hidden characters, unless those are kept.
        text: String,
    },
    /// A resource by reference.
    Link {
        /// Where it is, cleaned to one line as all that follows.
        uri: String,
        /// Its name.
        name: String,
        /// What it is.
        description: Option<String>,
        /// Its media type.
        mime_type: Option<String>,
    },
    /// Our own words: where something was saved, what was cut, why something is not shown.
    Notice {
        /// The words.
        text: String,
    },
}

impl ModelBlock {
    /// A notice, in the brackets by which it is told from a tool's own words.
    pub(crate) fn notice(text: impl AsRef<str>) -> Self {
        ModelBlock::Notice {
            text: format!("[{}]", text.as_ref()),
        }
    }

    /// The block as text; of a picture only what it is.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            ModelBlock::Text { text } | ModelBlock::Notice { text } => Cow::Borrowed(text),
            ModelBlock::Image {
                mime_type,
                width,
                height,
                ..
            } => Cow::Owned(format!("[{mime_type}, {width} × {height} pixels]")),
            ModelBlock::Resource { uri, text, .. } => Cow::Owned(resource_text(uri, text)),
            ModelBlock::Link {
                uri,
                name,
                description,
                mime_type,
            } => Cow::Owned(link_text(
                uri,
                name,
                description.as_deref(),
                mime_type.as_deref(),
            )),
        }
    }
}

/// The longest address in a block, in characters.
pub(crate) const MAX_URI: usize = 2_048;
/// The longest name or media type in a block.
pub(crate) const MAX_NAME: usize = 256;
/// The longest description in a block.
pub(crate) const MAX_DESCRIPTION: usize = 2_048;

/// A server's word in a place of one line: cleaned, and of at most so many characters.
pub(crate) fn line(text: &str, max_chars: usize) -> String {
    let line = clean_line(text);
    match line.char_indices().nth(max_chars.saturating_sub(1)) {
        // Not `cut`: its marker has brackets of its own.
        Some((end, last)) if end + last.len_utf8() < line.len() => format!("{}…", &line[..end]),
        _ => line.into_owned(),
    }
}

/// The same inside of our brackets, which it must not close or open.
pub(crate) fn framed(text: &str, max_chars: usize) -> String {
    line(text, max_chars).replace('[', "(").replace(']', ")")
}

/// As [`framed`], for an address: written so that it stays the same one.
fn framed_uri(uri: &str) -> String {
    line(uri, MAX_URI).replace('[', "%5B").replace(']', "%5D")
}

/// An embedded resource as text: where it is, then what it says.
pub(crate) fn resource_text(uri: &str, text: &str) -> String {
    format!("[resource {}]\n{text}", framed_uri(uri))
}

/// A link as one line.
pub(crate) fn link_text(
    uri: &str,
    name: &str,
    description: Option<&str>,
    mime_type: Option<&str>,
) -> String {
    let mut line = format!("[link {}]", framed_uri(uri));
    if name != uri {
        line.push(' ');
        line.push_str(&framed(name, MAX_NAME));
    }
    if let Some(mime_type) = mime_type {
        line.push_str(" (");
        line.push_str(&framed(mime_type, MAX_NAME));
        line.push(')');
    }
    if let Some(description) = description {
        line.push_str(": ");
        line.push_str(&framed(description, MAX_DESCRIPTION));
    }
    line
}

impl Serialize for ModelBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            ModelBlock::Text { text } | ModelBlock::Notice { text } => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            ModelBlock::Image {
                data, mime_type, ..
            } => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("data", data)?;
                map.serialize_entry("mimeType", mime_type)?;
            }
            ModelBlock::Resource {
                uri,
                mime_type,
                text,
            } => {
                let mut resource = serde_json::Map::new();
                resource.insert("uri".to_owned(), uri.as_str().into());
                if let Some(mime_type) = mime_type {
                    resource.insert("mimeType".to_owned(), mime_type.as_str().into());
                }
                resource.insert("text".to_owned(), text.as_str().into());
                map.serialize_entry("type", "resource")?;
                map.serialize_entry("resource", &resource)?;
            }
            ModelBlock::Link {
                uri,
                name,
                description,
                mime_type,
            } => {
                map.serialize_entry("type", "resource_link")?;
                map.serialize_entry("uri", uri)?;
                map.serialize_entry("name", name)?;
                if let Some(description) = description {
                    map.serialize_entry("description", description)?;
                }
                if let Some(mime_type) = mime_type {
                    map.serialize_entry("mimeType", mime_type)?;
                }
            }
        }
        map.end()
    }
}
