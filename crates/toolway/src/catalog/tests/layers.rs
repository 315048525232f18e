//! What a change of one server costs the others: nothing of theirs is made anew, and their names
//! are those that they would have if all servers were named together.

use std::collections::HashSet;

use super::*;
use crate::catalog::naming::{Nameable, NamedServer, name_together};

fn shared(name: &str, items: &[Value]) -> Arc<ServerCatalog> {
    offer(name, items).into()
}

fn bare(name: &str, items: &[Value]) -> ServerOffer {
    ServerOffer {
        bare_names: true,
        ..offer(name, items)
    }
}

/// The tool that a catalogue has of a server, as it is shared.
fn tool<'a>(catalog: &'a Catalog, name: &str) -> &'a Arc<ServerTool> {
    catalog.tools_of(&server(name))[0].tool()
}

#[test]
fn a_server_that_comes_and_goes_leaves_the_others_what_was_made_of_them() {
    let (calm, nothing) = (shared("calm", &[named("t")]), shared("wild", &[]));
    let first = Catalog::build(1, [Arc::clone(&calm), shared("wild", &[named("x")])]);
    let compiled = std::ptr::from_ref(tool(&first, "calm").checker());
    let gone = Catalog::after(&first, [Arc::clone(&calm), nothing]);
    let back = Catalog::after(&gone, [calm, shared("wild", &[named("x")])]);
    for after in [&gone, &back] {
        assert!(Arc::ptr_eq(tool(&first, "calm"), tool(after, "calm")));
        assert!(std::ptr::eq(compiled, tool(after, "calm").checker()));
        assert!(Arc::ptr_eq(&first.neighbours, &after.neighbours));
    }
    assert_eq!(gone.tools().count(), 1);
    assert_eq!(back.tools().count(), 2);
    assert_eq!((gone.revision, back.revision), (2, 3));
    assert!(!Arc::ptr_eq(&first.on_demand, &gone.on_demand));
}

#[test]
fn a_revision_in_which_nothing_is_offered_otherwise_takes_everything_over() {
    let servers = ["a", "b"].map(|name| shared(name, &[named("t")]));
    let first = Catalog::build(1, servers.clone());
    assert_eq!(first.search("t", 5).tools.len(), 2);
    let next = Catalog::after(&first, servers);
    assert!(Arc::ptr_eq(&first.on_demand, &next.on_demand));
    assert!(
        first
            .servers
            .iter()
            .zip(&next.servers)
            .all(|(one, other)| one.is(other))
    );
}

#[test]
fn a_name_comes_back_when_the_server_that_was_in_its_way_goes() {
    let kept = shared("x y", &[named("t"), named("u")]);
    let alone = Catalog::build(1, [Arc::clone(&kept), shared("x.y", &[])]);
    let met = Catalog::after(&alone, [Arc::clone(&kept), shared("x.y", &[named("t")])]);
    let again = Catalog::after(&met, [Arc::clone(&kept), shared("x.y", &[])]);
    let names = |catalog: &Catalog| -> Vec<String> {
        let tools = catalog.tools_of(&server("x y")).iter();
        tools.map(|tool| tool.name.clone()).collect()
    };
    let apart = ToolKey::new(server("x y"), "t").exposed_apart();
    assert_eq!(names(&alone), ["mcp__x_y__t", "mcp__x_y__u"]);
    assert_eq!(names(&met), [apart.as_str(), "mcp__x_y__u"]);
    assert_eq!(names(&again), names(&alone));
    // The tool is the same throughout.
    assert!(Arc::ptr_eq(tool(&alone, "x y"), tool(&met, "x y")));
    assert!(!met.tools_of(&server("x y"))[0].is_spelled_alone());
    assert!(again.tools_of(&server("x y"))[0].is_spelled_alone());
}

/// Everything that names decide about a server.
fn decided(named: &NamedServer) -> Vec<String> {
    let tools = named.tools.iter();
    let tools = tools.map(|tool| format!("{} {} {}", tool.key.tool, tool.name, tool.spelled_alone));
    let left_out = named.left_out.iter().map(|tool| tool.reason.clone());
    let warnings = named.warnings.iter().map(|warning| warning.message.clone());
    tools.chain(left_out).chain(warnings).collect()
}

proptest! {
    /// Servers are named in small groups, and groups are taken over from the catalogue before. What
    /// comes out is what naming all of them at once would give.
    #[test]
    fn names_are_those_of_all_servers_named_together(
        history in proptest::collection::vec(
            proptest::collection::btree_map(
                "[ab_. ]{1,5}|[ab]{44,47}__?[ab]{1,4}",
                (proptest::collection::hash_set("[ab_. ]{1,4}|[ab_]{50,56}", 0..4), any::<bool>()),
                1..7
            ),
            1..4
        ),
    ) {
        let mut catalog = Catalog::build(0, Vec::<ServerOffer>::new());
        let mut known: BTreeMap<String, Arc<ServerCatalog>> = BTreeMap::new();
        for servers in history {
            for (name, (items, is_bare)) in servers {
                if ServerName::new(name.as_str()).is_ok() {
                    let items: Vec<Value> = items.iter().map(|item| named(item)).collect();
                    let make = if is_bare { bare } else { offer };
                    known.insert(name.clone(), make(&name, &items).into());
                }
            }
            catalog = Catalog::after(&catalog, known.values().cloned());
            let all: Vec<(&ServerName, &Nameable)> =
                catalog.servers.iter().map(|it| (&it.catalog.server, &it.catalog.nameable)).collect();
            let together = name_together(&all, &HashSet::new());
            for (view, expected) in catalog.servers.iter().zip(&together) {
                prop_assert_eq!(decided(view.names()), decided(expected));
            }
            for tool in catalog.tools() {
                let by_name = ToolTarget::Exposed(tool.name.clone());
                prop_assert_eq!(&catalog.find(&by_name).unwrap().key, &tool.key);
                let by_key = ToolTarget::Key(tool.key.clone());
                prop_assert_eq!(&catalog.find(&by_key).unwrap().key, &tool.key);
            }
        }
    }
}
