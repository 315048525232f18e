//! Tools as a server lists them.

use serde_json::value::RawValue;

use super::{ListPage, ListView, ViewError, optional, required};
use crate::lenient;
use crate::members::RawMembers;
use crate::raw_json::JsonText;

/// One tool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The name the server knows it by.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, as received.
    pub description: Option<String>,
    /// The schema of its arguments, untouched.
    pub input_schema: Box<RawValue>,
    /// The schema of its structured result, untouched.
    pub output_schema: Option<Box<RawValue>>,
    /// What the server claims about it. Untrusted.
    pub annotations: ToolAnnotations,
    /// Whether it can only be called as a task (legacy era).
    pub requires_task: bool,
    /// `_meta`, untouched.
    pub meta: Option<Box<RawValue>>,
    /// The whole item, untouched.
    pub raw: Box<RawValue>,
}

/// Hints about a tool. A hint of the wrong type is as if it were absent.
#[derive(Debug, Clone, Default)]
pub struct ToolAnnotations {
    /// `readOnlyHint`
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
    /// `idempotentHint`
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    pub open_world: Option<bool>,
    /// `title`
    pub title: Option<String>,
    /// The whole object, untouched.
    pub raw: Option<Box<RawValue>>,
}

/// The list of tools.
pub const TOOLS: ListView<Tool> = ListView {
    list: "tools",
    label: "name",
    read,
};

/// Views a `tools/list` result that is all of the list.
pub fn tools(result: &(impl JsonText + ?Sized)) -> Result<ListPage<Tool>, ViewError> {
    TOOLS.whole(result)
}

fn read(raw: &RawValue, item: &RawMembers<'_>) -> Result<Tool, String> {
    let name = required(item, "name")?;
    if name.is_empty() {
        return Err("`name` is empty".to_owned());
    }
    let schema = item
        .value("inputSchema")
        .ok_or("`inputSchema` is missing")?;
    // `true` and `false` are schemas too, but arguments are always an object.
    if !schema.get().starts_with('{') {
        return Err("`inputSchema` is not an object".to_owned());
    }
    Ok(Tool {
        name,
        title: optional(item, "title"),
        description: optional(item, "description"),
        input_schema: schema.to_owned(),
        output_schema: item.owned("outputSchema"),
        annotations: item
            .value("annotations")
            .map(annotations)
            .unwrap_or_default(),
        requires_task: item.value("execution").is_some_and(requires_task),
        meta: item.owned("_meta"),
        raw: raw.to_owned(),
    })
}

fn requires_task(execution: &RawValue) -> bool {
    let Ok(execution) = RawMembers::read(execution.get()) else {
        return false;
    };
    let support = execution.value("taskSupport").and_then(lenient::string);
    support.as_deref() == Some("required")
}

fn annotations(raw: &RawValue) -> ToolAnnotations {
    let Ok(hints) = RawMembers::read(raw.get()) else {
        return ToolAnnotations::default();
    };
    // Strictly typed: `"true"` is not a promise that a tool only reads.
    let hint = |name| match hints.value(name).map(RawValue::get) {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    ToolAnnotations {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
        title: hints.value("title").and_then(lenient::string),
        raw: Some(raw.to_owned()),
    }
}
