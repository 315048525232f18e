//! Which tools are deferred, by which setting, and what a session sees of it.

use std::sync::{Arc, Weak};

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use toolway_config::{Boundaries, ToolSearch};
use toolway_types::ServerName;
use toolway_wire::view;

use crate::builtin::{BuiltinTools, HostHandle};
use crate::catalog::deferral::Deferral;
use crate::catalog::naming::tokens;
use crate::catalog::{Catalog, ServerOffer};
use crate::pool::*;
use crate::reconnect::ServerOrders;
use crate::snapshot::ServerWaker;

fn offer(server: &str, loading: Loading, tools: &[Value]) -> ServerOffer {
    let list = to_raw_value(&json!({ "tools": tools })).unwrap();
    ServerOffer {
        tools: view::tools(&list).unwrap().items,
        loading,
        ..ServerOffer::new(ServerName::new(server).unwrap())
    }
}

fn tool(name: &str, meta: &Value) -> Value {
    json!({
        "name": name, "description": "x".repeat(300), "_meta": meta,
        "inputSchema": { "type": "object" },
    })
}

fn offers() -> [ServerOffer; 3] {
    let three = [
        tool("plain", &json!({})),
        tool("always", &json!({ "anthropic/alwaysLoad": true })),
        tool("later", &json!({ "anthropic/deferLoading": true })),
    ];
    [
        offer("usual", Loading::Usual, &three),
        offer("kept", Loading::Always, &three),
        offer("late", Loading::Deferred, &three),
    ]
}

/// The catalogue of these offers with the host's part.
fn catalog(
    search: ToolSearch,
    context_tokens: usize,
    offers: impl IntoIterator<Item = ServerOffer>,
) -> Arc<Catalog> {
    let (orders, _) = ServerOrders::queue(1);
    let mut builtin_tools = BuiltinTools::new(HostHandle {
        servers: ServerWaker {
            snapshots: Weak::new(),
            orders: orders.downgrade(),
        },
        auth: None,
        connectors: None,
        runner: Arc::default(),
        caller: None,
    });
    let deferral = Deferral {
        search,
        context_tokens,
    };
    let own = builtin_tools.part(deferral, &Boundaries::default(), &std::iter::empty());
    let offers = offers.into_iter().map(Into::into);
    Catalog::of_host(&Catalog::default(), offers.collect(), own)
}

fn deferred(catalog: &Catalog) -> Vec<String> {
    catalog
        .tools()
        .filter(|tool| catalog.is_deferred(tool))
        .map(|tool| format!("{}.{}", tool.key.server, tool.key.tool))
        .collect()
}

fn auto(percent: u8) -> ToolSearch {
    ToolSearch::Auto { percent }
}

#[test]
fn a_person_decides_for_a_server_and_tools_for_themselves() {
    let catalog = catalog(auto(10), 200_000, offers());
    assert_eq!(
        deferred(&catalog),
        ["late.always", "late.later", "late.plain", "usual.later"]
    );
}

#[test]
fn everything_is_deferred_when_search_is_on_but_what_is_always_loaded() {
    let catalog = catalog(ToolSearch::On, 200_000, offers());
    assert_eq!(
        deferred(&catalog),
        [
            "late.always",
            "late.later",
            "late.plain",
            "usual.later",
            "usual.plain"
        ]
    );
}

#[test]
fn nothing_is_deferred_and_nothing_to_search_when_it_is_off() {
    let catalog = catalog(ToolSearch::Off, 200_000, offers());
    assert_eq!(deferred(&catalog), Vec::<String>::new());
    assert!(catalog.built_in().is_empty());
    assert_eq!(catalog.default_pool().count(), 9);
}

#[test]
fn a_list_that_takes_too_much_of_the_context_is_deferred() {
    let listed = catalog(auto(10), 200_000, offers());
    let size: usize = listed
        .tools()
        .filter(|tool| !listed.is_deferred(tool))
        .map(tokens)
        .sum();
    // Exactly the share still fits; a hundred tokens of context are ten of it.
    let fits = catalog(auto(10), size.next_multiple_of(10) * 10, offers());
    assert_eq!(deferred(&fits).len(), 4);
    let too_much = catalog(auto(10), (size - 10) * 10, offers());
    assert_eq!(deferred(&too_much).len(), 5);
    assert_eq!(deferred(&catalog(auto(0), 200_000, offers())).len(), 5);
}

#[test]
fn a_session_sees_what_is_listed_and_what_it_loaded_and_no_other_does() {
    let catalog = catalog(auto(10), 200_000, offers());
    let (one, other) = (ToolPool::new(), ToolPool::new());
    let seen = |pool: &ToolPool| catalog.pool(pool).len();
    // Five tools of servers, and `ToolSearch`.
    assert_eq!((seen(&one), seen(&other)), (6, 6));
    let late = catalog.search("select:mcp__late__plain", 1).tools[0]
        .key
        .clone();
    let fresh = one.clone().load([late.clone(), late.clone()]);
    assert_eq!(fresh.len(), 1);
    assert_eq!((seen(&one), seen(&other)), (7, 6));
    assert!(one.has(&late) && !other.has(&late));
    one.unload(&[late]);
    assert_eq!(one.loaded(), []);
}

#[test]
fn the_search_tool_is_there_with_deferred_tools_and_names_their_servers() {
    let [usual, kept, late] = offers();
    let with = catalog(auto(10), 200_000, [usual, kept, late]);
    let [search] = with.built_in() else {
        panic!("{:?}", with.built_in())
    };
    assert_eq!(search.name, "ToolSearch");
    assert!(
        search.description.ends_with("found: late (3), usual (1)."),
        "{}",
        search.description
    );
    let without = catalog(auto(10), 200_000, [offers()[1].clone()]);
    assert!(without.built_in().is_empty());
}

#[test]
fn no_server_takes_a_name_of_the_host() {
    // Under its own name it could; the full name is another.
    let catalog = catalog(
        ToolSearch::On,
        200_000,
        [offer(
            "s",
            Loading::Usual,
            &[tool("ToolSearch", &json!({}))],
        )],
    );
    let names: Vec<&str> = catalog.tools().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["mcp__s__ToolSearch"]);
    let found = catalog
        .find(&crate::call::ToolTarget::Exposed("ToolSearch".to_owned()))
        .unwrap();
    assert!(found.is_built_in());
    assert!(ServerName::new(ServerName::built_in().as_str()).is_err());
}

#[test]
fn an_entry_that_says_both_loads() {
    let entry = |text: &str| {
        Loading::of(
            serde_json::from_str::<Value>(text)
                .unwrap()
                .as_object()
                .unwrap(),
        )
    };
    assert_eq!(entry("{}"), Loading::Usual);
    assert_eq!(
        entry(r#"{"alwaysLoad": true, "deferTools": true}"#),
        Loading::Always
    );
    assert_eq!(entry(r#"{"deferTools": true}"#), Loading::Deferred);
    assert_eq!(entry(r#"{"deferTools": "yes"}"#), Loading::Usual);
}
