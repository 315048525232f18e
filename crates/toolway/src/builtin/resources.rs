//! `ListMcpResources` and `ReadMcpResource`: resources for models, which call tools only.
//!
//! Owns the two tools. A call that names a server is judged as one of that server (`offering.rs`):
//! lists and listed resources need no permission of a user, while any other address needs one, as a
//! tool does. What is read comes back as an embedded resource, so binary content is saved to a file
//! like that of any result.

use serde_json::{Map, Value, json};
use toolway_types::{ServerName, Untrusted};
use toolway_wire::view::{self, ResourceBody};

use super::{Builtin, BuiltinAnswer, BuiltinCall};
use crate::call::brief;
use crate::catalog::AimedServer;
use crate::offering::{LIST_RESOURCES, Offering, READ_RESOURCE, READS};
use crate::snapshot::HostSnapshot;

pub(super) fn list() -> Builtin {
    let schema = json!({
        "type": "object",
        "properties": {
            "server": {
                "type": "string",
                "description": "Only the resources of this server; those of all when left out.",
            },
        },
        "additionalProperties": false,
    });
    Builtin::made(
        LIST_RESOURCES,
        "Lists the resources that connected servers offer, with the server each belongs to. \
         Read one with ReadMcpResource. Templates stand for many resources: put values in the \
         place of their variables to get a URI.",
        schema,
        async |call| listing(&call),
    )
    .hints(READS)
    .without_asking()
    .aiming(Offering::ListResources)
}

pub(super) fn read() -> Builtin {
    let schema = json!({
        "type": "object",
        "properties": {
            "server": { "type": "string", "description": "The server that has the resource." },
            "uri": { "type": "string", "description": "The URI, as ListMcpResources gives it." },
        },
        "required": ["server", "uri"],
        "additionalProperties": false,
    });
    Builtin::made(
        READ_RESOURCE,
        "Reads one resource of a server. Binary content is saved to a file, whose path is given.",
        schema,
        async |call| contents(&call).await,
    )
    .hints(READS)
    .without_asking()
    .aiming(Offering::ReadResource)
}

/// What to say when no server is meant.
fn nobody(snapshot: &HostSnapshot, wanted: &str) -> BuiltinAnswer {
    let mut having: Vec<&ServerName> = snapshot
        .catalog
        .resources()
        .map(|resource| &resource.server)
        .chain(snapshot.catalog.templates().map(|it| &it.server))
        .collect();
    having.dedup();
    having.sort();
    having.dedup();
    let having: Vec<String> = having.iter().map(|name| format!("`{name}`")).collect();
    BuiltinAnswer::error(format!(
        "there is no server `{}`; servers with resources: {}",
        brief(&Untrusted::new(wanted)),
        if having.is_empty() {
            "none".to_owned()
        } else {
            having.join(", ")
        },
    ))
}

fn listing(call: &BuiltinCall) -> BuiltinAnswer {
    let snapshot = call.host.snapshot();
    // Only the server it was judged for counts, even if another has its name by now.
    let only = match (call.text("server"), &call.aimed) {
        (Some(wanted), None) => return nobody(&snapshot, wanted),
        (_, aimed) => aimed.as_ref().map(|aimed| &aimed.server),
    };
    let wanted = |server: &ServerName| only.is_none_or(|only| only == server);
    let catalog = &snapshot.catalog;
    let resources: Vec<Value> = catalog
        .resources()
        .filter(|it| wanted(&it.server))
        .map(|it| {
            let mut shown = described(&it.server, ("uri", &it.uri), &it.name, &it.description);
            put(&mut shown, "title", it.title.clone());
            put(&mut shown, "mimeType", it.mime_type.clone());
            put(&mut shown, "size", it.size);
            shown.into()
        })
        .collect();
    let templates: Vec<Value> = catalog
        .templates()
        .filter(|it| wanted(&it.server))
        .map(|it| {
            let place = ("uriTemplate", it.uri_template.as_str());
            let mut shown = described(&it.server, place, &it.name, &it.description);
            put(&mut shown, "title", it.title.clone());
            put(&mut shown, "mimeType", it.mime_type.clone());
            shown.into()
        })
        .collect();
    BuiltinAnswer::object(json!({ "resources": resources, "resourceTemplates": templates }))
}

fn described(
    server: &ServerName,
    (place, uri): (&str, &str),
    name: &str,
    description: &str,
) -> Map<String, Value> {
    let mut shown = Map::new();
    shown.insert("server".to_owned(), server.as_str().into());
    shown.insert(place.to_owned(), uri.into());
    shown.insert("name".to_owned(), name.into());
    let description = Some(description).filter(|text| !text.is_empty());
    put(&mut shown, "description", description);
    shown
}

fn put(shown: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        shown.insert(key.to_owned(), value.into());
    }
}

async fn contents(call: &BuiltinCall) -> BuiltinAnswer {
    let uri = call.text("uri").unwrap_or_default();
    let Some(AimedServer {
        server,
        route: Some(route),
    }) = &call.aimed
    else {
        let wanted = call.text("server").unwrap_or_default();
        return nobody(&call.host.snapshot(), wanted);
    };
    let raw = match call.host.read_by(&**route, server, uri).await {
        Ok(raw) => raw,
        Err(error) => return BuiltinAnswer::error(error.to_string()),
    };
    let read = match view::read_result(&raw) {
        Ok(read) => read,
        Err(error) => {
            let error = Untrusted::new(error.to_string());
            return BuiltinAnswer::error(format!(
                "server `{server}` sent something that is no resource: {}",
                error.line()
            ));
        }
    };
    if read.contents.is_empty() {
        return BuiltinAnswer::text("the resource is empty");
    }
    let content = read.contents.iter().map(|part| {
        let mut resource = Map::new();
        resource.insert("uri".to_owned(), part.uri.as_str().into());
        put(&mut resource, "mimeType", part.mime_type.as_deref());
        match &part.body {
            ResourceBody::Text(text) => put(&mut resource, "text", Some(text.as_str())),
            ResourceBody::Blob(blob) => put(&mut resource, "blob", Some(blob.as_str())),
        }
        json!({ "type": "resource", "resource": resource })
    });
    BuiltinAnswer {
        content: content.collect(),
        structured: None,
        is_error: false,
    }
}
