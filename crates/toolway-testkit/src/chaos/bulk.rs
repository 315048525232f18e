//! The scripted server's endless lists: pages of any number, size and cursor.
//!
//! Owns the four lists where a script has a [`BulkLists`]. What it serves besides is elsewhere.

use serde_json::{Value, json};

use super::server::MethodFault;
use crate::BulkLists;

/// One page of a list; none where the request is for something else.
pub(super) fn page(
    bulk: BulkLists,
    method: &str,
    params: &Value,
) -> Option<Result<Value, MethodFault>> {
    let (list, item): (&str, fn(&str, &str) -> Value) = match method {
        "tools/list" => (
            "tools",
            |name, text| json!({ "name": name, "description": text, "inputSchema": { "type": "object" } }),
        ),
        "prompts/list" => (
            "prompts",
            |name, text| json!({ "name": name, "description": text }),
        ),
        "resources/list" => (
            "resources",
            |name, text| json!({ "uri": format!("bulk://{name}"), "name": name, "description": text }),
        ),
        "resources/templates/list" => (
            "resourceTemplates",
            |name, text| json!({ "uriTemplate": format!("bulk://{name}/{{x}}"), "name": name, "description": text }),
        ),
        _ => return None,
    };
    let number = match params["cursor"].as_str() {
        None => 0,
        Some(cursor) => match cursor.trim_start_matches('c').parse::<usize>() {
            Ok(number) => number,
            Err(_) => return Some(Err(MethodFault(-32602, "unknown cursor".to_owned()))),
        },
    };
    let text = "x".repeat(bulk.item_bytes);
    let first = number * bulk.items;
    let items: Vec<Value> = (first..first + bulk.items)
        .map(|place| item(&format!("bulk_{place}"), &text))
        .collect();
    let mut page = json!({ list: items });
    if number + 1 < bulk.pages {
        let padding = "c".repeat(bulk.cursor_bytes);
        page["nextCursor"] = json!(format!("{padding}{}", number + 1));
    }
    Some(Ok(page))
}
