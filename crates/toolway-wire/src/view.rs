//! Typed views of results, made on demand and tolerant per item.
//!
//! Owns what every list has in common: a page, its faults, its cursor. One malformed item is an
//! [`ItemFault`], never the loss of the list; only a result that is not a list at all is an error.

pub mod completion;
pub mod content;
pub mod elicit;
pub(crate) mod lenient;
pub mod prompt;
pub mod resource;
pub mod skill;
pub mod task;
pub mod tool;

use serde_json::value::RawValue;

use crate::members::Members;

pub use completion::{Completion, completion};
pub use content::{Content, ResourceBody, ResultType, ToolResult, skim_result, tool_result};
pub use prompt::{Prompt, PromptArgument, PromptMessage, PromptResult, prompt_result, prompts};
pub use resource::{
    ReadResult, Resource, ResourceContents, ResourceTemplate, read_result, resource_templates,
    resources,
};
pub use skill::{Skill, SkillFile, SkillFiles, skill_result, skills};
pub use tool::{Annotations, Tool, tools};

/// Why a result cannot be viewed at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// It is not an object, or holds a member twice.
    #[error("the result is not a usable object: {0}")]
    NotAnObject(String),
    /// A member the view stands on is missing or of another type.
    #[error("the result has no usable `{0}`")]
    Missing(&'static str),
}

/// One item that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemFault {
    /// Its place in the list, from 0.
    pub index: usize,
    /// Its name, where it could be read; as received.
    pub name: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

/// Who may share a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheScope {
    /// Anyone.
    Public,
    /// Only the same authorization context. Also what an unknown word means.
    Private,
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The items that could be read, in order.
    pub items: Vec<T>,
    /// Those that could not.
    pub faults: Vec<ItemFault>,
    /// Where the next page starts. An empty string is a cursor like any other.
    pub next_cursor: Option<String>,
    /// For how long the page may be cached (modern era).
    pub ttl_ms: Option<u64>,
    /// For whom the page may be cached (modern era).
    pub cache_scope: Option<CacheScope>,
}

/// Reads one item, or says what is wrong with it.
type ReadItem<T> = fn(&RawValue, &Members<'_>) -> Result<T, String>;

/// Reads a page whose items stand in `list` and are known by their member `label`.
fn page<T>(
    result: &RawValue,
    list: &'static str,
    label: &str,
    read: ReadItem<T>,
) -> Result<Page<T>, ViewError> {
    let members = object(result)?;
    let raw_items: Vec<&RawValue> = members
        .value(list)
        .and_then(|items| serde_json::from_str(items.get()).ok())
        .ok_or(ViewError::Missing(list))?;
    let mut page = Page {
        items: Vec::with_capacity(raw_items.len()),
        faults: Vec::new(),
        next_cursor: members.value("nextCursor").and_then(lenient::string),
        ttl_ms: members.value("ttlMs").and_then(lenient::unsigned),
        cache_scope: members.value("cacheScope").map(|scope| match scope.get() {
            "\"public\"" => CacheScope::Public,
            _ => CacheScope::Private,
        }),
    };
    for (index, raw) in raw_items.into_iter().enumerate() {
        let (name, item) = match Members::read(raw.get()) {
            Ok(item) => (
                item.value(label).and_then(lenient::string),
                read(raw, &item),
            ),
            Err(error) => (None, Err(format!("not a usable object: {error}"))),
        };
        match item {
            Ok(item) => page.items.push(item),
            Err(reason) => page.faults.push(ItemFault {
                index,
                name,
                reason,
            }),
        }
    }
    Ok(page)
}

fn object(result: &RawValue) -> Result<Members<'_>, ViewError> {
    Members::read(result.get()).map_err(|error| ViewError::NotAnObject(error.to_string()))
}

/// A member that must be a string.
fn required(item: &Members<'_>, name: &str) -> Result<String, String> {
    let value = item
        .value(name)
        .ok_or_else(|| format!("`{name}` is missing"))?;
    lenient::string(value).ok_or_else(|| format!("`{name}` is not a string"))
}

/// A member that may be a string; any other type is as if it were absent, because descriptions
/// and titles are for the eye only.
fn optional(item: &Members<'_>, name: &str) -> Option<String> {
    item.value(name).and_then(lenient::string)
}

#[cfg(test)]
mod tests;
