//! `ToolSearch`: finds tools that are not in the list, and loads them.
//!
//! Owns the tool. The ranking is `search.rs`, what is loaded the caller's pool. It runs nothing, so
//! no permission is needed; what it found is judged when it is called.

use serde_json::{Value, json};

use super::{Builtin, BuiltinAnswer, BuiltinCall};
use crate::catalog::{CatalogTool, ToolHints};
use crate::offering::{READS, TOOL_SEARCH};
use crate::search::{MAX_RESULTS, SearchResult, USUAL_RESULTS};

pub(super) fn tool() -> Builtin {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What the tool should do, in a few words; `+word` must occur. \
                                Or `select:name,other_name` for tools whose names are known.",
            },
            "max_results": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_RESULTS,
                "description": "The most tools to give; 5 when left out.",
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    Builtin::made(
        TOOL_SEARCH,
        "Finds tools that are available and not in the list yet, and loads them: afterwards they \
         are called like any other, by the names given in the answer. Search before you say that \
         something cannot be done.",
        schema,
        async |call| search(&call),
    )
    .hints(ToolHints {
        open_world: Some(false),
        ..READS
    })
    .without_asking()
}

fn search(call: &BuiltinCall) -> BuiltinAnswer {
    let query = call.text("query").unwrap_or_default();
    let max_results = call.arguments.get("max_results").and_then(Value::as_u64);
    let max_results = max_results
        .and_then(|number| usize::try_from(number).ok())
        .unwrap_or(USUAL_RESULTS);
    let snapshot = call.host.snapshot();
    let SearchResult { tools, missing } = snapshot.catalog.search(query, max_results);
    if let Some(pool) = &call.pool {
        let deferred = tools
            .iter()
            .filter(|tool| snapshot.catalog.is_deferred(tool));
        pool.load(deferred.map(|tool| tool.key.clone()));
    }
    let missing: Vec<Value> = missing
        .into_iter()
        .map(|missing| json!({ "name": missing.name, "didYouMean": missing.suggestion }))
        .collect();
    let mut answer = json!({ "tools": tools.iter().copied().map(definition).collect::<Vec<_>>() });
    if !missing.is_empty() {
        answer["missing"] = missing.into();
    } else if tools.is_empty() {
        answer["hint"] = json!("no tool fits: use other words, or fewer");
    }
    BuiltinAnswer::object(answer)
}

/// A tool as a model gets it in its list.
fn definition(tool: &CatalogTool) -> Value {
    // It was checked to be an object when it entered the catalogue.
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": schema,
    })
}
