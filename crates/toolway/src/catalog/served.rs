//! Definitions as the host's own clients are served them: as their server sent them, byte for byte,
//! but for the name and for what had to be cleaned.
//!
//! Owns writing one item of a list. Which items there are, and under which names, is up to whoever
//! serves them. What is shown elsewhere is the cleaned form alone; here unknown members, `_meta` and
//! icons travel along, because the client may know them.

use toolway_types::Era;
use toolway_wire::edit::{self, Replacement};

use super::{CatalogPrompt, CatalogResource, CatalogTemplate, CatalogTool};

/// The text that is served where it differs from what was received.
fn text<'a>(received: Option<&str>, shown: Option<&'a str>) -> Replacement<'a> {
    if received == shown {
        Replacement::Kept
    } else {
        Replacement::Text(shown)
    }
}

/// An empty text is none.
fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

impl CatalogTool {
    /// Appends it as a list of this era shows it, under this name.
    pub fn write_served(&self, name: &str, era: Era, out: &mut Vec<u8>) {
        let received = self.received();
        let json = |it: &Option<Box<serde_json::value::RawValue>>| {
            it.as_ref().map(|it| it.get().to_owned())
        };
        let output_schema = json(&self.output_schema);
        let annotations = json(&self.annotations);
        let description = some(&self.description);
        let mut has_description = false;
        edit::rewrite(received.raw.get(), out, |member| match member {
            "name" => Replacement::Text(Some(name)),
            "title" => match &received.title {
                Some(title) => text(Some(title), self.title.as_deref()),
                None => Replacement::Kept,
            },
            "description" => {
                has_description = true;
                text(received.description.as_deref(), description)
            }
            "inputSchema" => Replacement::Json(Some(self.input_schema.get())),
            "outputSchema" => Replacement::Json(output_schema.as_deref()),
            "annotations" => Replacement::Json(annotations.as_deref()),
            // Of no meaning to a modern client: the host itself waits for such a task.
            "execution" if era == Era::Modern => Replacement::Json(None),
            _ => Replacement::Kept,
        });
        if let Some(description) = description.filter(|_| !has_description) {
            edit::add_text(out, "description", description);
        }
    }
}

impl CatalogResource {
    /// Appends it as a list shows it, under this URI.
    pub fn write_served(&self, uri: &str, out: &mut Vec<u8>) {
        let received = &self.received;
        let mut has_name = false;
        edit::rewrite(received.raw.get(), out, |member| match member {
            "uri" => text(Some(&received.uri), Some(uri)),
            "name" => {
                has_name = true;
                text(Some(&received.name), Some(&self.name))
            }
            "title" => text(received.title.as_deref(), self.title.as_deref()),
            "description" => text(received.description.as_deref(), some(&self.description)),
            "mimeType" => text(received.mime_type.as_deref(), self.mime_type.as_deref()),
            _ => Replacement::Kept,
        });
        if !has_name {
            edit::add_text(out, "name", &self.name);
        }
    }
}

impl CatalogTemplate {
    /// Appends it as a list shows it, with this template.
    pub fn write_served(&self, uri_template: &str, out: &mut Vec<u8>) {
        let received = &self.received;
        let mut has_name = false;
        edit::rewrite(received.raw.get(), out, |member| match member {
            "uriTemplate" => text(Some(&received.uri_template), Some(uri_template)),
            "name" => {
                has_name = true;
                text(Some(&received.name), Some(&self.name))
            }
            "title" => text(received.title.as_deref(), self.title.as_deref()),
            "description" => text(received.description.as_deref(), some(&self.description)),
            "mimeType" => text(received.mime_type.as_deref(), self.mime_type.as_deref()),
            _ => Replacement::Kept,
        });
        if !has_name {
            edit::add_text(out, "name", &self.name);
        }
    }
}

impl CatalogPrompt {
    /// Appends it as a list shows it, under this name.
    pub fn write_served(&self, name: &str, out: &mut Vec<u8>) {
        let received = &self.received;
        let arguments = self.cleaned_arguments();
        edit::rewrite(received.raw.get(), out, |member| match member {
            "name" => Replacement::Text(Some(name)),
            "title" => text(received.title.as_deref(), self.title.as_deref()),
            "description" => text(received.description.as_deref(), some(&self.description)),
            "arguments" => match &arguments {
                Some(arguments) => Replacement::Json(Some(arguments)),
                None => Replacement::Kept,
            },
            _ => Replacement::Kept,
        });
    }

    /// Its arguments written anew, where any of them had to be cleaned.
    fn cleaned_arguments(&self) -> Option<String> {
        let pairs = || self.arguments.iter().zip(&self.received.arguments);
        let is_clean = pairs().all(|(shown, received)| {
            shown.title == received.title
                && some(&shown.description) == received.description.as_deref()
        });
        if is_clean {
            return None;
        }
        let arguments = self.arguments.iter().map(|argument| {
            let mut written = serde_json::json!({
                "name": argument.name,
                "required": argument.required,
            });
            if let Some(title) = &argument.title {
                written["title"] = title.as_str().into();
            }
            if let Some(description) = some(&argument.description) {
                written["description"] = description.into();
            }
            written
        });
        Some(arguments.collect::<serde_json::Value>().to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolway_types::ServerName;
    use toolway_wire::view;

    use crate::catalog::{Catalog, ServerOffer};

    use super::*;

    fn catalog(lists: &Value) -> std::sync::Arc<Catalog> {
        let server = ServerName::new("files").expect("a name");
        let mut offer = ServerOffer::new(server);
        offer.tools = view::tools(&raw(lists)).expect("tools").items;
        offer.resources = view::resources(&raw(lists)).expect("resources").items;
        offer.prompts = view::prompts(&raw(lists)).expect("prompts").items;
        Catalog::build(1, [offer])
    }

    fn raw(value: &Value) -> Box<serde_json::value::RawValue> {
        serde_json::value::to_raw_value(value).expect("JSON")
    }

    fn read(out: &[u8]) -> Value {
        serde_json::from_slice(out).expect("JSON")
    }

    #[test]
    fn a_clean_definition_is_served_as_it_came_under_its_new_name() {
        let tool = json!({
            "name": "read", "title": "Read", "description": "Reads.", "x": 1e2,
            "inputSchema": { "type": "object", "$defs": { "a": {} } },
            "annotations": { "readOnlyHint": true, "y": [null] }, "_meta": { "z": 1 },
            "icons": [{ "src": "https://a/b" }], "execution": { "taskSupport": "optional" },
        });
        let resource = json!({ "uri": "file:///a", "name": "a", "annotations": { "p": 1 } });
        let prompt = json!({ "name": "ask", "arguments": [{ "name": "q", "w": 1 }], "v": true });
        let catalog = catalog(&json!({
            "tools": [tool], "resources": [resource], "prompts": [prompt],
        }));
        let mut out = Vec::new();
        let served = catalog.tools().next().expect("a tool");
        served.write_served("files__read", Era::Legacy, &mut out);
        let mut expected = tool.clone();
        expected["name"] = json!("files__read");
        assert_eq!(read(&out), expected);
        out.clear();
        served.write_served("read", Era::Modern, &mut out);
        assert_eq!(read(&out).get("execution"), None);
        out.clear();
        let served = catalog.resources().next().expect("a resource");
        served.write_served("file:///a", &mut out);
        assert_eq!(read(&out), resource);
        out.clear();
        let served = catalog.prompts().next().expect("a prompt");
        served.write_served("files__ask", &mut out);
        assert_eq!(read(&out)["arguments"], prompt["arguments"]);
        assert_eq!(read(&out)["v"], true);
    }

    #[test]
    fn sec_35_what_hides_is_not_served() {
        let catalog = catalog(&json!({
            "tools": [{ "name": "t", "description": "a\u{202e}b", "title": "c\u{200b}d",
                        "inputSchema": { "type": "object", "description": "e\u{1b}[31mf" } }],
            "resources": [{ "uri": "x:y", "description": "g\u{2066}h" }],
            "prompts": [{ "name": "p", "arguments": [{ "name": "q", "description": "i\u{7}j" }] }],
        }));
        let mut out = Vec::new();
        let tool = catalog.tools().next().expect("a tool");
        tool.write_served("t", Era::Modern, &mut out);
        out.push(b'\n');
        let resource = catalog.resources().next().expect("one");
        resource.write_served("x:y", &mut out);
        out.push(b'\n');
        catalog
            .prompts()
            .next()
            .expect("one")
            .write_served("p", &mut out);
        let text = String::from_utf8(out).expect("text");
        let mut shown = text.chars().filter(|it| *it != '\n');
        assert!(!shown.any(toolway_types::text::is_hidden), "{text}");
        assert!(
            !text.contains("\\u001b") && !text.contains("\\u0007"),
            "{text}"
        );
        assert_eq!(
            read(text.lines().nth(1).expect("one").as_bytes())["name"],
            "x:y"
        );
    }
}
