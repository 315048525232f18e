//! Typed views of results, made on demand and tolerant per item.
//!
//! Owns what every list has in common: a page, its faults, its cursor, and how much of it is taken.
//! One malformed item is an [`ItemFault`], never the loss of the list; only a result that is not a
//! list at all is an error.

pub mod completion;
pub mod content;
pub mod elicit;
pub mod prompt;
pub mod resource;
pub mod skill;
pub mod task;
pub mod tool;

use serde_json::value::RawValue;
use toolway_types::{Budget, BudgetExceeded, limits};

use crate::elements::each;
use crate::lenient;
use crate::members::RawMembers;
use crate::raw_json::JsonText;

pub use completion::{Completion, completion};
pub use content::{
    ContentBlock, ResourceBody, ResultType, ToolResult, says_error, skim_result, tool_result,
};
pub use prompt::{
    PROMPTS, Prompt, PromptArgument, PromptMessage, PromptResult, prompt_result, prompts,
};
pub use resource::{
    RESOURCE_TEMPLATES, RESOURCES, ReadResult, Resource, ResourceContents, ResourceTemplate,
    read_result, resource_templates, resources,
};
pub use skill::{SKILLS, Skill, SkillFile, SkillFiles, skill_result, skills};
pub use tool::{TOOLS, Tool, ToolAnnotations, tools};

/// What one list may hold, over all of its pages. No honest server comes near it: it is room for
/// five hundred tools with schemas of 32 KiB each.
pub const LIST: Budget = Budget::new(limits::offers::LIST_BYTES, limits::offers::LIST_ITEMS);

/// The largest single item of a list; a larger one costs only itself.
pub const MAX_ITEM: usize = limits::offers::ITEM;

/// The most parts of a result that is no list: blocks of content, messages of a prompt. What has
/// more is made to be large when it is read, not to be read.
pub const MAX_PARTS: usize = 10_000;

/// Why a result cannot be viewed at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// It is not an object, or holds a member twice.
    #[error("the result is not a usable object: {0}")]
    NotAnObject(String),
    /// A member the view stands on is missing or of another type.
    #[error("the result has no usable `{0}`")]
    Missing(&'static str),
    /// A member has more elements than are read.
    #[error("the result has more than {MAX_PARTS} elements in `{0}`")]
    TooMany(&'static str),
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
    /// Every client.
    Public,
    /// Only the same authorization context. Also what an unknown word means.
    Private,
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct ListPage<T> {
    /// The items that could be read, in order.
    pub items: Vec<T>,
    /// Those that could not.
    pub faults: Vec<ItemFault>,
    /// Where the next page starts. An empty string is a cursor like any other.
    pub next_cursor: Option<String>,
    /// For how long the page may be cached (modern era).
    pub ttl_ms: Option<u64>,
    /// Who may share the cached page (modern era).
    pub cache_scope: Option<CacheScope>,
    /// What the budget had no more of when items were left: they are not read.
    pub spent: Option<BudgetExceeded>,
}

/// Reads one item, or says what is wrong with it.
type ReadItem<T> = fn(&RawValue, &RawMembers<'_>) -> Result<T, String>;

/// How one kind of list is read: its items stand in `list` and are known by their member `label`.
pub struct ListView<T> {
    list: &'static str,
    label: &'static str,
    read: ReadItem<T>,
}

impl<T> ListView<T> {
    /// Reads a page as far as the budget goes, and takes from the budget what was read.
    pub fn page(
        &self,
        result: &(impl JsonText + ?Sized),
        budget: &mut Budget,
    ) -> Result<ListPage<T>, ViewError> {
        self.read_page(result, budget, MAX_ITEM)
    }

    /// Reads a list that has one page.
    fn whole(&self, result: &(impl JsonText + ?Sized)) -> Result<ListPage<T>, ViewError> {
        let mut budget = LIST;
        self.page(result, &mut budget)
    }

    fn read_page(
        &self,
        result: &(impl JsonText + ?Sized),
        budget: &mut Budget,
        largest: usize,
    ) -> Result<ListPage<T>, ViewError> {
        let members = object(result)?;
        let mut page = ListPage {
            items: Vec::new(),
            faults: Vec::new(),
            next_cursor: members.value("nextCursor").and_then(lenient::string),
            ttl_ms: members.value("ttlMs").and_then(lenient::unsigned),
            cache_scope: members.value("cacheScope").map(|scope| match scope.get() {
                "\"public\"" => CacheScope::Public,
                _ => CacheScope::Private,
            }),
            spent: None,
        };
        let mut index = 0;
        let items = members
            .value(self.list)
            .ok_or(ViewError::Missing(self.list))?;
        let read = each(items, |raw| {
            self.take(raw, index, largest, budget, &mut page);
            index += 1;
            page.spent.is_none()
        });
        read.ok_or(ViewError::Missing(self.list))?;
        Ok(page)
    }

    fn take(
        &self,
        raw: &RawValue,
        index: usize,
        largest: usize,
        budget: &mut Budget,
        page: &mut ListPage<T>,
    ) {
        // One that is not kept costs as an item, not as bytes.
        let is_large = raw.get().len() > largest;
        let cost = if is_large { 0 } else { raw.get().len() };
        if let Err(spent) = budget.take(cost) {
            page.spent = Some(spent);
            return;
        }
        if is_large {
            page.faults.push(ItemFault {
                index,
                name: None,
                reason: format!("it is larger than {largest} bytes"),
            });
            return;
        }
        let (name, item) = match RawMembers::read(raw.get()) {
            Ok(item) => (
                item.value(self.label).and_then(lenient::string),
                (self.read)(raw, &item),
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
}

/// Reads the parts of a result that is no list of offers.
fn parts<T>(
    result: &(impl JsonText + ?Sized),
    list: &'static str,
    label: &'static str,
    read: ReadItem<T>,
) -> Result<ListPage<T>, ViewError> {
    let view = ListView { list, label, read };
    let mut budget = Budget::new(usize::MAX, MAX_PARTS);
    let page = view.read_page(result, &mut budget, usize::MAX)?;
    match page.spent {
        Some(_) => Err(ViewError::TooMany(list)),
        None => Ok(page),
    }
}

fn object(result: &(impl JsonText + ?Sized)) -> Result<RawMembers<'_>, ViewError> {
    RawMembers::read(result.json()).map_err(|error| ViewError::NotAnObject(error.to_string()))
}

/// An object with more members, none of which it has; every other byte stays as it is.
fn with_members<'a>(
    object: &RawValue,
    added: impl IntoIterator<Item = (&'static str, &'a RawValue)>,
) -> Result<Box<RawValue>, ViewError> {
    let mut is_empty = self::object(object)?.is_empty();
    let text = object.get().trim_end();
    let mut text = text.strip_suffix('}').unwrap_or(text).to_owned();
    for (name, value) in added {
        let comma = if is_empty { "" } else { "," };
        text.extend([comma, "\"", name, "\":", value.get()]);
        is_empty = false;
    }
    text.push('}');
    RawValue::from_string(text).map_err(|error| ViewError::NotAnObject(error.to_string()))
}

/// A member that must be a string.
fn required(item: &RawMembers<'_>, name: &str) -> Result<String, String> {
    let value = item
        .value(name)
        .ok_or_else(|| format!("`{name}` is missing"))?;
    lenient::string(value).ok_or_else(|| format!("`{name}` is not a string"))
}

/// A member that may be a string; any other type is as if it were absent, because descriptions
/// and titles are for the eye only.
fn optional(item: &RawMembers<'_>, name: &str) -> Option<String> {
    item.value(name).and_then(lenient::string)
}

#[cfg(test)]
mod tests;
