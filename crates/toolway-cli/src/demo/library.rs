//! What the demo library keeps: two resources and a prompt.

use serde_json::{Map, Value, json};
use toolway_types::Era;
use toolway_wire::{RpcError, error as code};

use super::tools::invalid;

struct Page {
    uri: &'static str,
    name: &'static str,
    title: &'static str,
    mime_type: &'static str,
    text: &'static str,
}

const PAGES: [Page; 2] = [
    Page {
        uri: "demo://library/guide",
        name: "guide",
        title: "A short guide",
        mime_type: "text/markdown",
        text: "# The demo library\n\nAsk `word_count` about any text, or `echo` to hear it again.\n",
    },
    Page {
        uri: "demo://library/planets",
        name: "planets",
        title: "The planets",
        mime_type: "application/json",
        text: r#"["Mercury","Venus","Earth","Mars","Jupiter","Saturn","Uranus","Neptune"]"#,
    },
];

pub(super) fn resources() -> Vec<Value> {
    PAGES
        .iter()
        .map(|page| {
            json!({
                "uri": page.uri,
                "name": page.name,
                "title": page.title,
                "mimeType": page.mime_type,
                "size": page.text.len(),
            })
        })
        .collect()
}

pub(super) fn read(params: &Map<String, Value>, era: Era) -> Result<Value, RpcError> {
    let uri = params
        .get("uri")
        .and_then(Value::as_str)
        .ok_or_else(|| invalid("`uri` is missing"))?;
    let Some(page) = PAGES.iter().find(|page| page.uri == uri) else {
        let code = match era {
            Era::Legacy => code::RESOURCE_NOT_FOUND,
            Era::Modern => code::INVALID_PARAMS,
        };
        return Err(RpcError::new(code, format!("no resource `{uri}`")));
    };
    Ok(json!({ "contents": [{ "uri": page.uri, "mimeType": page.mime_type, "text": page.text }] }))
}

pub(super) fn prompts() -> Vec<Value> {
    vec![json!({
        "name": "summarize",
        "title": "Summarize a text",
        "description": "Asks for a summary of a text in a few words.",
        "arguments": [
            { "name": "text", "description": "The text", "required": true },
            { "name": "style", "description": "For whom, e.g. `a child`", "required": false },
        ],
    })]
}

pub(super) fn prompt(params: &Map<String, Value>) -> Result<Value, RpcError> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if name != "summarize" {
        return Err(invalid(format!("unknown prompt `{name}`")));
    }
    let argument = |name: &str| {
        params
            .get("arguments")
            .and_then(|given| given.get(name)?.as_str())
    };
    let text = argument("text").ok_or_else(|| invalid("the argument `text` is missing"))?;
    let style = argument("style")
        .map(|style| format!(" for {style}"))
        .unwrap_or_default();
    Ok(json!({
        "description": "A summary of a text",
        "messages": [{
            "role": "user",
            "content": {
                "type": "text",
                "text": format!("Summarize this text in at most three sentences{style}:\n\n{text}"),
            },
        }],
    }))
}
