//! Resources and resource templates as a server lists them, and what reading one gives.

use serde_json::value::RawValue;

use super::content::{ResourceBody, resource_body};
use super::{
    ItemFault, ListPage, ListView, ResultType, ViewError, object, optional, parts, required,
};
use crate::lenient;
use crate::members::RawMembers;
use crate::raw_json::JsonText;

/// One resource.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// Its name; the URI where the server gave none.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is, as received.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The whole item, untouched.
    pub raw: Box<RawValue>,
}

/// A family of resources.
#[derive(Debug, Clone)]
pub struct ResourceTemplate {
    /// The URI with variables.
    pub uri_template: String,
    /// Its name; the template where the server gave none.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is, as received.
    pub description: Option<String>,
    /// The media type of its resources.
    pub mime_type: Option<String>,
    /// The whole item, untouched.
    pub raw: Box<RawValue>,
}

/// The list of resources.
pub const RESOURCES: ListView<Resource> = ListView {
    list: "resources",
    label: "uri",
    read: |raw, item| {
        let uri = required(item, "uri")?;
        Ok(Resource {
            name: optional(item, "name").unwrap_or_else(|| uri.clone()),
            uri,
            title: optional(item, "title"),
            description: optional(item, "description"),
            mime_type: optional(item, "mimeType"),
            size: item.value("size").and_then(lenient::unsigned),
            raw: raw.to_owned(),
        })
    },
};

/// The list of resource templates.
pub const RESOURCE_TEMPLATES: ListView<ResourceTemplate> = ListView {
    list: "resourceTemplates",
    label: "uriTemplate",
    read: |raw, item| {
        let uri_template = required(item, "uriTemplate")?;
        Ok(ResourceTemplate {
            name: optional(item, "name").unwrap_or_else(|| uri_template.clone()),
            uri_template,
            title: optional(item, "title"),
            description: optional(item, "description"),
            mime_type: optional(item, "mimeType"),
            raw: raw.to_owned(),
        })
    },
};

/// Views a `resources/list` result that is all of the list.
pub fn resources(result: &(impl JsonText + ?Sized)) -> Result<ListPage<Resource>, ViewError> {
    RESOURCES.whole(result)
}

/// Views a `resources/templates/list` result that is all of the list.
pub fn resource_templates(
    result: &(impl JsonText + ?Sized),
) -> Result<ListPage<ResourceTemplate>, ViewError> {
    RESOURCE_TEMPLATES.whole(result)
}

/// One part of what a resource holds.
#[derive(Debug, Clone)]
pub struct ResourceContents {
    /// Where it is.
    pub uri: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its text or bytes.
    pub body: ResourceBody,
    /// The whole part, untouched.
    pub raw: Box<RawValue>,
}

/// What `resources/read` gives.
#[derive(Debug, Clone)]
pub struct ReadResult {
    /// The parts.
    pub contents: Vec<ResourceContents>,
    /// The parts that could not be read.
    pub faults: Vec<ItemFault>,
    /// What kind of result it is.
    pub result_type: ResultType,
}

/// Views a `resources/read` result.
pub fn read_result(result: &(impl JsonText + ?Sized)) -> Result<ReadResult, ViewError> {
    let result_type = ResultType::of(&object(result)?);
    if result_type != ResultType::Complete {
        return Ok(ReadResult {
            contents: Vec::new(),
            faults: Vec::new(),
            result_type,
        });
    }
    let page = parts(result, "contents", "uri", contents)?;
    Ok(ReadResult {
        contents: page.items,
        faults: page.faults,
        result_type,
    })
}

fn contents(raw: &RawValue, item: &RawMembers<'_>) -> Result<ResourceContents, String> {
    Ok(ResourceContents {
        uri: required(item, "uri")?,
        mime_type: optional(item, "mimeType"),
        body: resource_body(item).ok_or("neither `text` nor `blob` is a string")?,
        raw: raw.to_owned(),
    })
}
