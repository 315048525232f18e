//! Prompts as a server lists them, and what rendering one gives.

use serde_json::value::RawValue;

use super::content::{self, ContentBlock};
use super::{
    ItemFault, ListPage, ListView, ResultType, ViewError, object, optional, parts, required,
};
use crate::lenient;
use crate::members::RawMembers;
use crate::raw_json::JsonText;

/// One prompt.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The name the server knows it by.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for, as received.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
    /// The whole item, untouched.
    pub raw: Box<RawValue>,
}

/// One argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for, as received.
    pub description: Option<String>,
    /// Whether the prompt needs it.
    pub required: bool,
}

/// The list of prompts.
pub const PROMPTS: ListView<Prompt> = ListView {
    list: "prompts",
    label: "name",
    read: |raw, item| {
        Ok(Prompt {
            name: required(item, "name")?,
            title: optional(item, "title"),
            description: optional(item, "description"),
            arguments: arguments(item)?,
            raw: raw.to_owned(),
        })
    },
};

/// Views a `prompts/list` result that is all of the list.
pub fn prompts(result: &(impl JsonText + ?Sized)) -> Result<ListPage<Prompt>, ViewError> {
    PROMPTS.whole(result)
}

fn arguments(item: &RawMembers<'_>) -> Result<Vec<PromptArgument>, String> {
    let Some(list) = item.value("arguments") else {
        return Ok(Vec::new());
    };
    let list: Vec<RawMembers<'_>> = serde_json::from_str(list.get())
        .map_err(|error| format!("`arguments` is not a list of objects: {error}"))?;
    list.iter()
        .map(|argument| {
            Ok(PromptArgument {
                name: required(argument, "name")?,
                title: optional(argument, "title"),
                description: optional(argument, "description"),
                required: argument
                    .value("required")
                    .and_then(lenient::boolean)
                    .unwrap_or(false),
            })
        })
        .collect()
}

/// One message of a rendered prompt.
#[derive(Debug, Clone)]
pub struct PromptMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// What it says.
    pub content: ContentBlock,
}

/// What `prompts/get` gives.
#[derive(Debug, Clone)]
pub struct PromptResult {
    /// What it is for, as received.
    pub description: Option<String>,
    /// The messages.
    pub messages: Vec<PromptMessage>,
    /// The messages that could not be read.
    pub faults: Vec<ItemFault>,
    /// What kind of result it is.
    pub result_type: ResultType,
}

/// Views a `prompts/get` result.
pub fn prompt_result(result: &(impl JsonText + ?Sized)) -> Result<PromptResult, ViewError> {
    let members = object(result)?;
    let result_type = ResultType::of(&members);
    let description = optional(&members, "description");
    if result_type != ResultType::Complete {
        let (messages, faults) = (Vec::new(), Vec::new());
        return Ok(PromptResult {
            description,
            messages,
            faults,
            result_type,
        });
    }
    let page = parts(result, "messages", "role", |_, item| {
        Ok(PromptMessage {
            role: required(item, "role")?,
            content: content::read(item.value("content").ok_or("`content` is missing")?),
        })
    })?;
    Ok(PromptResult {
        description,
        messages: page.items,
        faults: page.faults,
        result_type,
    })
}
