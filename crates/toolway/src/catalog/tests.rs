//! What enters the catalogue, under which name, and how it is found again.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolway_config::{Environment, Flags};
use toolway_wire::view;

use super::*;
use crate::call::{CallError, CallFault, ToolTarget};

mod cleaning;
mod curation;
mod finding;
mod instructions;
mod layers;
mod poison;
mod schemas;

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

/// The tools of a `tools/list` result, through the real view.
fn tools(items: &[Value]) -> Vec<view::Tool> {
    let page = view::tools(&raw(&json!({ "tools": items }))).unwrap();
    assert_eq!(page.faults, []);
    page.items
}

fn named(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

fn offer(name: &str, items: &[Value]) -> ServerOffer {
    ServerOffer {
        tools: tools(items),
        ..ServerOffer::new(server(name))
    }
}

/// An offer under an entry that changes it, read the way every entry is.
fn curated(entry: &str, offer: ServerOffer) -> ServerOffer {
    let home = tempfile::tempdir().unwrap();
    let vars = [("HOME".to_owned(), home.path().display().to_string())];
    let environment = Environment::new(BTreeMap::from(vars), home.path().to_owned())
        .with_system_dir(home.path().join("system"));
    let flags = Flags {
        mcp_config: vec![format!(
            "{{\"mcpServers\": {{\"{}\":\n{entry}}}}}",
            offer.server
        )],
        strict: true,
        ..Flags::default()
    };
    let plan = toolway_config::plan(&environment, &flags);
    let planned = plan.winner(offer.server.as_str()).unwrap();
    assert_eq!(planned.diagnoses, []);
    ServerOffer {
        curation: Arc::clone(&planned.curation),
        ..offer
    }
}

fn catalog(offers: impl IntoIterator<Item = ServerOffer>) -> Arc<Catalog> {
    Catalog::build(7, offers)
}

fn warnings(catalog: &Catalog) -> Vec<CatalogWarning> {
    catalog.warnings().cloned().collect()
}

fn keys(catalog: &Catalog) -> Vec<(String, String)> {
    let parts = |tool: &CatalogTool| (tool.key.server.to_string(), tool.key.tool.clone());
    catalog.tools().map(parts).collect()
}

#[test]
fn the_order_is_by_server_and_tool_however_the_offers_come() {
    let a = || offer("alpha", &[named("two"), named("one")]);
    let b = || offer("beta", &[named("three")]);
    let one = catalog([a(), b()]);
    let other = catalog([b(), a()]);
    assert_eq!(keys(&one), keys(&other));
    let tools: Vec<&str> = one.tools().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        tools,
        ["mcp__alpha__one", "mcp__alpha__two", "mcp__beta__three"]
    );
    assert_eq!(one.revision, 7);
    assert_eq!(one.tools_of(&server("alpha")).len(), 2);
    assert_eq!(one.tools_of(&server("beta")).len(), 1);
    assert_eq!(one.tools_of(&server("gamma")).len(), 0);
}

#[test]
fn a_tool_listed_twice_is_there_once_and_told() {
    let catalog = catalog([offer("s", &[named("same"), named("same")])]);
    assert_eq!(catalog.tools().count(), 1);
    assert_eq!(
        warnings(&catalog),
        [CatalogWarning::new(
            &server("s"),
            "tool `same` is listed twice; the first one is used".into()
        )]
    );
}

#[test]
fn hints_of_meta_and_annotations_are_read() {
    let with = |meta: Value| json!({"name": "t", "inputSchema": {}, "_meta": meta});
    let read = |meta: Value| {
        let catalog = catalog([offer("s", &[with(meta)])]);
        let tool = catalog.tools().next().unwrap();
        (
            tool.defer_loading,
            tool.always_load,
            tool.search_hint.clone(),
        )
    };
    assert_eq!(read(json!({})), (false, false, None));
    assert_eq!(
        read(json!({"anthropic/deferLoading": true})),
        (true, false, None)
    );
    assert_eq!(
        read(json!({"anthropic/deferLoading": true, "anthropic/alwaysLoad": true})),
        (false, true, None)
    );
    assert_eq!(
        read(json!({"anthropic/searchHint": "  find\n\n the \u{200b}thing "})),
        (false, false, Some("find the thing".into()))
    );
    assert_eq!(
        read(json!({"anthropic/searchHint": 3, "anthropic/deferLoading": "true"})),
        (false, false, None)
    );

    let annotated = json!({"name": "t", "inputSchema": {}, "annotations":
        {"title": "Shown", "readOnlyHint": true, "destructiveHint": false, "vendor": 1}});
    let catalog = catalog([offer("s", &[annotated])]);
    let tool = catalog.tools().next().unwrap();
    assert_eq!(tool.title.as_deref(), Some("Shown"));
    let expected = ToolHints {
        read_only: Some(true),
        destructive: Some(false),
        ..ToolHints::default()
    };
    assert_eq!(tool.hints, expected);
    assert!(tool.annotations.as_ref().unwrap().get().contains("vendor"));
}

#[test]
fn prompts_are_commands_and_resources_keep_their_address() {
    let lists = json!({
        "prompts": [{"name": "greet me", "arguments": [{"name": "who", "required": true}]}],
        "resources": [{"uri": "file:///b", "name": "B"}, {"uri": "file:///a"}],
        "resourceTemplates": [{"uriTemplate": "file:///{path}"}],
    });
    let lists = raw(&lists);
    let catalog = catalog([ServerOffer {
        prompts: view::prompts(&lists).unwrap().items,
        resources: view::resources(&lists).unwrap().items,
        resource_templates: view::resource_templates(&lists).unwrap().items,
        ..ServerOffer::new(server("s"))
    }]);
    let prompt = catalog.prompts().next().unwrap();
    assert_eq!(prompt.name, "mcp__s__greet_me");
    assert_eq!(
        (
            prompt.arguments[0].name.as_str(),
            prompt.arguments[0].required
        ),
        ("who", true)
    );
    let uris: Vec<&str> = catalog.resources().map(|one| one.uri.as_str()).collect();
    assert_eq!(uris, ["file:///a", "file:///b"]);
    assert_eq!(catalog.resources().next().unwrap().name, "file:///a");
    assert_eq!(
        catalog.templates().next().unwrap().uri_template,
        "file:///{path}"
    );
    assert_eq!(warnings(&catalog), []);
}

#[test]
fn sec_28_a_tool_with_an_impossible_header_wish_is_left_out_and_told() {
    let asking = |name: &str, kind: &str| {
        json!({"name": name, "inputSchema":
            {"properties": {"region": {"type": kind, "x-mcp-header": "Region"}}}})
    };
    let catalog = catalog([offer(
        "s",
        &[asking("good", "string"), asking("bad", "object")],
    )]);
    assert_eq!(keys(&catalog), [("s".to_owned(), "good".to_owned())]);
    assert_eq!(
        catalog.warnings().next().unwrap().message,
        "tool `bad` is skipped: property `region`: only string, integer and boolean properties \
         can be mirrored"
    );
}
