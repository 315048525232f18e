//! Names out and back.

use proptest::prelude::*;
use serde_json::json;
use serde_json::value::to_raw_value;
use std::collections::BTreeSet;
use std::sync::Arc;
use toolway::catalog::ServerOffer;

use super::*;

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn catalog(servers: &[(&str, &[&str])]) -> Arc<Catalog> {
    let offers = servers.iter().map(|(name, tools)| {
        let list: Vec<_> = tools
            .iter()
            .map(|tool| json!({ "name": tool, "inputSchema": { "type": "object" } }))
            .collect();
        let list = to_raw_value(&json!({ "tools": list })).unwrap();
        let mut offer = ServerOffer::new(server(name));
        offer.tools = toolway::view::tools(&list).unwrap().items;
        offer
    });
    Catalog::build(1, offers)
}

fn all_names(catalog: &Catalog, names: NameForm) -> Vec<String> {
    let table = CutNames::of(catalog, names);
    let tools = catalog.tools();
    tools
        .map(|tool| table.of_tool(tool, names).into_owned())
        .collect()
}

fn found<'a>(catalog: &'a Catalog, names: NameForm, name: &str) -> Option<&'a ToolKey> {
    let table = CutNames::of(catalog, names);
    tool_named(catalog, names, name, || table.tool(name).cloned()).map(|tool| &tool.key)
}

#[test]
fn names_have_a_short_and_an_exposed_form_and_own_ones_where_nothing_collides() {
    let catalog = catalog(&[("files", &["read", "stat"]), ("git", &["log", "read"])]);
    assert_eq!(
        all_names(&catalog, NameForm::Short),
        ["files__read", "files__stat", "git__log", "git__read"]
    );
    assert_eq!(all_names(&catalog, NameForm::Mcp)[0], "mcp__files__read");
    assert_eq!(
        all_names(&catalog, NameForm::Own),
        ["files__read", "stat", "log", "git__read"]
    );
    assert_eq!(found(&catalog, NameForm::Own, "read"), None);
    assert_eq!(found(&catalog, NameForm::Own, "log").unwrap().tool, "log");
    assert_eq!(found(&catalog, NameForm::Short, "log"), None);
}

proptest! {
    #[test]
    fn sec_31_every_name_leads_back_to_its_tool_and_no_two_are_the_same(
        tools in prop::collection::btree_set("[a-z_.]{1,70}", 1..8),
        others in prop::collection::btree_set("[a-z_.]{1,70}", 1..8),
    ) {
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let catalog = catalog(&[("a-server-with-quite-a-long-name", &tools), ("b", &others)]);
        for names in [NameForm::Short, NameForm::Mcp, NameForm::Own] {
            let table = CutNames::of(&catalog, names);
            let mut seen = BTreeSet::new();
            for tool in catalog.tools() {
                let name = table.of_tool(tool, names);
                prop_assert!(names == NameForm::Mcp || name.len() <= MAX_NAME);
                prop_assert!(seen.insert(name.to_string()), "{name} twice");
                prop_assert_eq!(found(&catalog, names, &name), Some(&tool.key), "{}", name);
            }
        }
    }
}

#[test]
fn addresses_that_two_servers_share_are_told_apart_and_others_stay() {
    let offer = |name: &str, uris: &[&str], templates: &[&str]| {
        let resources: Vec<_> = uris
            .iter()
            .map(|uri| json!({ "uri": uri, "name": uri }))
            .collect();
        let templates: Vec<_> = templates
            .iter()
            .map(|uri| json!({ "uriTemplate": uri, "name": uri }))
            .collect();
        let list = json!({ "resources": resources, "resourceTemplates": templates });
        let list = to_raw_value(&list).unwrap();
        let mut offer = ServerOffer::new(server(name));
        offer.resources = toolway::view::resources(&list).unwrap().items;
        offer.resource_templates = toolway::view::resource_templates(&list).unwrap().items;
        offer
    };
    let catalog = Catalog::build(
        1,
        [
            offer("a", &["x:1", "x:2", "toolway:b:x"], &["t://{id}"]),
            offer("a:b", &["x:2"], &["u://{id}"]),
        ],
    );
    let addresses = SharedAddresses::of(&catalog);
    let (a, ab) = (server("a"), server("a:b"));
    assert_eq!(addresses.shown(&a, "x:1"), "x:1");
    assert_eq!(addresses.shown(&a, "x:2"), "toolway:a:x:2");
    assert_eq!(addresses.shown(&ab, "x:2"), "toolway:a:b:x:2");
    assert_eq!(addresses.shown(&a, "toolway:b:x"), "toolway:a:toolway:b:x");
    let servers = [a.clone(), ab.clone()];
    let at = |uri| resource_at(&catalog, &addresses, &servers, uri);
    assert_eq!(at("x:1"), Some((a.clone(), "x:1")));
    assert_eq!(at("x:2"), None);
    assert_eq!(at("toolway:a:x:2"), Some((a.clone(), "x:2")));
    assert_eq!(at("toolway:a:b:x:2"), Some((ab.clone(), "x:2")));
    assert_eq!(at("t://7"), Some((a.clone(), "t://7")));
    assert_eq!(at("u://7"), Some((ab, "u://7")));
    assert_eq!(at("x:unlisted"), None);
    assert_eq!(at("nobody:knows"), None);
    assert_eq!(
        resource_at(&catalog, &addresses, &servers[..1], "nobody:knows"),
        Some((a, "nobody:knows"))
    );
}
