//! How well tools are found: the labelled queries put to a catalogue of real servers' tools.
//!
//! Owns reading `bench/data` and the figures. Shared as source by the test that guards the
//! ranking and by the program that measures it.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use toolway::Catalog;
use toolway::catalog::ServerOffer;
use toolway::types::ServerName;
use toolway::view;

/// How many of the first results count.
const FIRST: usize = 5;

/// What the queries gave.
pub(crate) struct Figures {
    pub(crate) queries: usize,
    /// Of the right tools, the share among the first five; the mean over the queries.
    pub(crate) recall: f64,
    /// The share of queries with a right tool among the first five.
    pub(crate) hits: f64,
    /// The mean of one divided by the place of the first right tool.
    pub(crate) reciprocal_rank: f64,
    /// The queries without a right tool among the first five.
    pub(crate) missed: Vec<String>,
}

fn data(file: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../bench/data")
        .join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn members<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Each server's name and its list of tools, as the server would send it.
pub(crate) fn lists() -> Vec<(String, Value)> {
    members(&data("tools.json"), "servers")
        .iter()
        .map(|server| {
            let tools: Vec<Value> = members(server, "tools").iter().map(listed).collect();
            let name = server["server"].as_str().unwrap_or_default();
            (name.to_owned(), json!({ "tools": tools }))
        })
        .collect()
}

fn listed(tool: &Value) -> Value {
    let arguments: Map<String, Value> = members(tool, "arguments")
        .iter()
        .filter_map(|name| Some((name.as_str()?.to_owned(), json!({}))))
        .collect();
    json!({
        "name": tool["name"],
        "title": tool["title"],
        "description": tool["description"],
        "inputSchema": { "type": "object", "properties": arguments },
    })
}

/// What a server with this list offers.
pub(crate) fn offer(name: &str, list: &Value) -> Option<ServerOffer> {
    let page = view::tools(&to_raw_value(list).ok()?).ok()?;
    let mut offer = ServerOffer::new(ServerName::new(name).ok()?);
    offer.tools = page.items;
    Some(offer)
}

/// The catalogue of all of them.
pub(crate) fn catalog() -> Arc<Catalog> {
    let lists = lists();
    Catalog::build(1, lists.iter().filter_map(|(name, list)| offer(name, list)))
}

/// Puts every query that `counts` to the catalogue; it is told the query's number.
pub(crate) fn judge(catalog: &Catalog, counts: impl Fn(usize) -> bool) -> Figures {
    let file = data("queries.json");
    let mut figures = Figures {
        queries: 0,
        recall: 0.0,
        hits: 0.0,
        reciprocal_rank: 0.0,
        missed: Vec::new(),
    };
    for (number, item) in members(&file, "queries").iter().enumerate() {
        if !counts(number) {
            continue;
        }
        let query = item["query"].as_str().unwrap_or_default();
        let right: Vec<&str> = members(item, "right")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let found: Vec<String> = catalog
            .search(query, 50)
            .tools
            .iter()
            .map(|tool| format!("{}.{}", tool.key.server, tool.key.tool))
            .collect();
        let first = &found[..found.len().min(FIRST)];
        let is_right = |name: &&String| right.contains(&name.as_str());
        let among_first = first.iter().filter(is_right).count();
        figures.queries += 1;
        figures.recall += share(among_first, right.len());
        if among_first > 0 {
            figures.hits += 1.0;
        } else {
            let shown = first.join(", ");
            figures.missed.push(format!("{query}: {shown}"));
        }
        if let Some(place) = found.iter().position(|name| is_right(&name)) {
            figures.reciprocal_rank += share(1, place + 1);
        }
    }
    let all = share(figures.queries.max(1), 1);
    figures.recall /= all;
    figures.hits /= all;
    figures.reciprocal_rank /= all;
    figures
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of tools and queries are small"
)]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
