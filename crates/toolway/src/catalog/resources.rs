//! Resources and resource templates in the catalogue.
//!
//! Owns their cleaned shape. A URI is an address and is sent back as it came, so one that hides
//! characters is left out instead of changed.

use std::sync::Arc;

use toolway_types::text::is_hidden;
use toolway_types::{ServerName, limits};
use toolway_wire::view;

use super::{CatalogWarning, sanitize};

/// The most resources, and the most templates, of one server.
pub const MAX_RESOURCES: usize = limits::offers::RESOURCES;

/// A resource as people and models see it.
#[derive(Debug, Clone)]
pub struct CatalogResource {
    /// The server that has it.
    pub server: ServerName,
    /// Its address, as the server wrote it.
    pub uri: String,
    /// Its name, cleaned.
    pub name: String,
    /// Its title, cleaned.
    pub title: Option<String>,
    /// Its description, cleaned and cut; empty when there is none.
    pub description: String,
    /// Its media type, cleaned.
    pub mime_type: Option<String>,
    /// Its size in bytes, where the server says.
    pub size: Option<u64>,
    /// As the server sent it.
    pub(crate) received: Arc<view::Resource>,
}

/// A family of resources as people and models see it.
#[derive(Debug, Clone)]
pub struct CatalogTemplate {
    /// The server that has it.
    pub server: ServerName,
    /// The URI with variables, as the server wrote it.
    pub uri_template: String,
    /// Its name, cleaned.
    pub name: String,
    /// Its title, cleaned.
    pub title: Option<String>,
    /// Its description, cleaned and cut; empty when there is none.
    pub description: String,
    /// The media type of its resources, cleaned.
    pub mime_type: Option<String>,
    /// As the server sent it: what cleaning takes away can be the very change.
    pub(crate) received: Arc<view::ResourceTemplate>,
}

/// Takes in one server's resources, ordered by URI.
pub(super) fn admit(
    server: &ServerName,
    resources: Vec<view::Resource>,
    warnings: &mut Vec<CatalogWarning>,
) -> Vec<CatalogResource> {
    let cleaned = |resource: view::Resource, uri| CatalogResource {
        server: server.clone(),
        uri,
        name: sanitize::line(&resource.name),
        title: resource.title.as_deref().map(sanitize::line),
        description: sanitize::description(resource.description.as_deref().unwrap_or("")),
        mime_type: resource.mime_type.as_deref().map(sanitize::line),
        size: resource.size,
        received: Arc::new(resource),
    };
    let uri = |resource: &view::Resource| resource.uri.clone();
    let mut admitted = admit_each(server, "resource", resources, warnings, uri, cleaned);
    admitted.sort_by(|one, other| one.uri.cmp(&other.uri));
    admitted
}

/// Takes in one server's templates, ordered by template.
pub(super) fn admit_templates(
    server: &ServerName,
    templates: Vec<view::ResourceTemplate>,
    warnings: &mut Vec<CatalogWarning>,
) -> Vec<CatalogTemplate> {
    let cleaned = |template: view::ResourceTemplate, uri_template| CatalogTemplate {
        server: server.clone(),
        uri_template,
        name: sanitize::line(&template.name),
        title: template.title.as_deref().map(sanitize::line),
        description: sanitize::description(template.description.as_deref().unwrap_or("")),
        mime_type: template.mime_type.as_deref().map(sanitize::line),
        received: Arc::new(template),
    };
    let (what, uri) = ("resource template", |it: &view::ResourceTemplate| {
        it.uri_template.clone()
    });
    let mut admitted = admit_each(server, what, templates, warnings, uri, cleaned);
    admitted.sort_by(|one, other| one.uri_template.cmp(&other.uri_template));
    admitted
}

fn admit_each<T, C>(
    server: &ServerName,
    what: &str,
    items: Vec<T>,
    warnings: &mut Vec<CatalogWarning>,
    uri: impl Fn(&T) -> String,
    cleaned: impl Fn(T, String) -> C,
) -> Vec<C> {
    if items.len() > MAX_RESOURCES {
        let message = format!(
            "the server offers {} {what}s; only the first {MAX_RESOURCES} it lists are used",
            items.len()
        );
        warnings.push(CatalogWarning::new(server, message));
    }
    let admitted = items.into_iter().take(MAX_RESOURCES).filter_map(|item| {
        let uri = usable(server, what, uri(&item), warnings)?;
        Some(cleaned(item, uri))
    });
    admitted.collect()
}

fn usable(
    server: &ServerName,
    what: &str,
    uri: String,
    warnings: &mut Vec<CatalogWarning>,
) -> Option<String> {
    let reason = if uri.len() > sanitize::MAX_NAME {
        format!(
            "its URI has {} bytes, over the limit of {}",
            uri.len(),
            sanitize::MAX_NAME
        )
    } else if let Some(hidden) = uri.chars().find(|c| is_hidden(*c)) {
        format!(
            "its URI has an invisible character (U+{:04X})",
            hidden as u32
        )
    } else {
        return Some(uri);
    };
    let message = format!("{what} `{}` is skipped: {reason}", sanitize::line(&uri));
    warnings.push(CatalogWarning::new(server, message));
    None
}
