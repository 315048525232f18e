//! What a query finds, in which order, and what it does not.

use std::sync::Arc;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use toolway_types::ServerName;
use toolway_wire::view;

use super::*;
use crate::catalog::ServerOffer;
use crate::catalog::index::words::{pieces, stem};

fn offer(server: &str, tools: &[Value]) -> ServerOffer {
    let list = to_raw_value(&json!({ "tools": tools })).unwrap();
    ServerOffer {
        tools: view::tools(&list).unwrap().items,
        ..ServerOffer::new(ServerName::new(server).unwrap())
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

fn catalog() -> Arc<Catalog> {
    let github = offer(
        "github",
        &[
            tool("createPullRequest", "Opens a pull request."),
            tool("create_issue", "Opens an issue in a repository."),
            tool("list_issues", "All issues of a repository."),
            json!({
                "name": "dispatch", "description": "Starts it.",
                "_meta": { "anthropic/searchHint": "workflow   CI pipeline" },
                "inputSchema": { "type": "object", "properties": {
                    "workflow_id": { "type": "string", "description": "the yaml" },
                    "options": { "type": "object", "properties": { "retries": {} } },
                } },
            }),
        ],
    );
    let slack = offer(
        "slack",
        &[
            tool(
                "post_message",
                "Sends a text to a channel. Not for pull requests.",
            ),
            tool("list_issues", "Known problems of the workspace."),
        ],
    );
    Catalog::build(1, [github, slack])
}

fn names(query: &str) -> Vec<String> {
    let catalog = catalog();
    let found = catalog.search(query, 5);
    assert_eq!(found.missing, []);
    found.tools.iter().map(|tool| tool.name.clone()).collect()
}

fn first(query: &str) -> String {
    names(query).into_iter().next().unwrap_or_default()
}

#[test]
fn names_count_more_than_descriptions_and_are_split_where_their_case_says() {
    assert_eq!(first("pull request"), "mcp__github__createPullRequest");
    assert_eq!(first("creating issues"), "mcp__github__create_issue");
    assert_eq!(first("post a message"), "mcp__slack__post_message");
}

#[test]
fn hints_and_arguments_are_searched_too() {
    assert_eq!(first("pipeline"), "mcp__github__dispatch");
    assert_eq!(first("workflow id"), "mcp__github__dispatch");
    assert_eq!(first("retries"), "mcp__github__dispatch");
    assert_eq!(first("yaml"), "mcp__github__dispatch");
}

#[test]
fn the_servers_name_decides_between_tools_of_one_name() {
    assert_eq!(first("slack list issues"), "mcp__slack__list_issues");
    assert_eq!(first("github list issues"), "mcp__github__list_issues");
    // A word with `+` leaves only the tools that have it.
    for name in names("+slack issues") {
        assert!(name.starts_with("mcp__slack__"), "{name}");
    }
    assert_eq!(names("+gitea issues"), Vec::<String>::new());
}

#[test]
fn slips_and_words_that_mean_the_same_are_understood() {
    assert_eq!(first("creat isue"), "mcp__github__create_issue");
    assert_eq!(first("pul reqest"), "mcp__github__createPullRequest");
    assert_eq!(first("send a message"), "mcp__slack__post_message");
    assert_eq!(first("add ticket"), "mcp__github__create_issue");
}

#[test]
fn nothing_is_found_by_nothing_and_by_nonsense() {
    for query in ["", "   ", "+", "zzzzqqqq", "\u{202e}", "🦀"] {
        assert_eq!(names(query), Vec::<String>::new(), "{query:?}");
    }
    // Words that say nothing are still words where there are no others.
    assert!(!names("for").is_empty());
    assert_eq!(names(&"issue ".repeat(100_000))[0], names("issue")[0]);
}

#[test]
fn select_takes_exposed_and_own_names_in_the_order_given() {
    let catalog = catalog();
    let found = catalog.search(
        "select: post_message,mcp__github__create_issue, post_message",
        1,
    );
    let names: Vec<&str> = found.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        ["mcp__slack__post_message", "mcp__github__create_issue"]
    );
    // An own name that two servers have means both.
    assert_eq!(catalog.search("select:LIST_ISSUES", 5).tools.len(), 2);
    // A name in full needs no `select:`.
    assert_eq!(catalog.search("mcp__slack__list_issues", 5).tools.len(), 1);
}

#[test]
fn what_select_does_not_find_is_named_with_what_was_probably_meant() {
    let catalog = catalog();
    let found = catalog.search("select:mcp__github__create_isue,zzz,create_issue", 5);
    assert_eq!(found.tools.len(), 1);
    assert_eq!(
        found.missing,
        [
            MissingTool {
                name: "mcp__github__create_isue".to_owned(),
                suggestion: Some("mcp__github__create_issue".to_owned()),
            },
            MissingTool {
                name: "zzz".to_owned(),
                suggestion: None,
            },
        ]
    );
}

#[test]
fn the_number_of_results_is_bounded() {
    let many: Vec<Value> = (0..200)
        .map(|number| tool(&format!("get_thing_{number}"), "Gets a thing."))
        .collect();
    let catalog = Catalog::build(1, [offer("many", &many)]);
    assert_eq!(catalog.search("thing", 0).tools.len(), 1);
    assert_eq!(catalog.search("thing", 7).tools.len(), 7);
    assert_eq!(catalog.search("thing", usize::MAX).tools.len(), MAX_RESULTS);
    assert_eq!(catalog.search("thing", 1).tools[0].shown, "get_thing_0");
}

#[test]
fn words_are_split_and_stemmed_alike_on_both_sides() {
    let split = |text: &str| {
        let mut found = Vec::new();
        pieces(text, |piece| found.push(piece.clone()));
        found.join(" ")
    };
    assert_eq!(split("createPullRequest"), "create pull request");
    assert_eq!(split("HTTPServer_v2-get.URL"), "http server v2 get url");
    assert_eq!(split("文件 read"), "文 件 read");
    for group in [
        &["create", "creates", "created", "creating", "creation"][..],
        &["query", "queries", "queried", "querying"],
        &["issue", "issues"],
        &["file", "files"],
        &["run", "runs", "running"],
        &["message", "messages"],
    ] {
        for word in group {
            let stemmed = stem((*word).to_owned());
            assert_eq!(stemmed, stem(group[0].to_owned()), "{word}");
        }
    }
    for (one, other) in [("status", "stat"), ("news", "new"), ("process", "proce")] {
        assert_ne!(stem(one.to_owned()), stem(other.to_owned()) + "s");
    }
}
