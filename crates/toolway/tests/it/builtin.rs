//! The host's own tools, called through the whole pipeline like any server's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};
use toolway::catalog::ToolHints;
use toolway::{
    Builtin, BuiltinAnswer, CallError, CallFault, CallOptions, Consent, Host, HostOptions,
    InProcessServer, RefusedBy, ToolOutcome, ToolPool, ToolRequest, ToolTarget,
};
use toolway_config::Flags;
use toolway_testkit::marked::MARK;

use crate::http::Server;
use crate::support::*;

/// A server with a text, a snapshot and a template.
fn library() -> InProcessServer {
    scripted(|message, _| match message["method"].as_str() {
        Some("initialize") => Reply::Result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "resources": {} },
            "serverInfo": { "name": "library", "version": "1" },
        })),
        Some("resources/list") => Reply::Result(json!({ "resources": [
            { "uri": "file:///a.txt", "name": "a\u{200b}", "description": "the first" },
            { "uri": "file:///b.png", "name": "b", "mimeType": "image/png", "size": 3 },
        ] })),
        Some("resources/templates/list") => Reply::Result(json!({ "resourceTemplates": [
            { "uriTemplate": "file:///{name}", "name": "any" },
        ] })),
        Some("resources/read") => match message["params"]["uri"].as_str() {
            Some("file:///a.txt") => Reply::Result(json!({ "contents": [
                { "uri": "file:///a.txt", "text": "hello" },
            ] })),
            Some("file:///b.png") => Reply::Result(json!({ "contents": [
                { "uri": "file:///b.png", "mimeType": "image/png", "blob": "aGV5" },
            ] })),
            _ => Reply::Error(-32002),
        },
        Some(method) if method.starts_with("notifications/") => Reply::Silence,
        _ => Reply::Error(-32601),
    })
}

fn call<'a>(
    host: &'a Host,
    name: &str,
    arguments: Value,
    pool: Option<&ToolPool>,
) -> impl Future<Output = Result<ToolOutcome, CallError>> + 'a {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    let request = ToolRequest::new(ToolTarget::Exposed(name.to_owned()), arguments);
    let options = CallOptions {
        pool: pool.cloned(),
        // Nobody is there to be asked.
        ..CallOptions::new(Consent::Prompt)
    };
    host.call(request, options)
}

fn own(host: &Host) -> Vec<String> {
    let snapshot = host.snapshot();
    let tools = snapshot.catalog.built_in().iter();
    tools.map(|tool| tool.name.clone()).collect()
}

fn structured(outcome: &ToolOutcome) -> Value {
    let raw: Value = serde_json::from_str(outcome.raw.get()).expect("JSON");
    raw["structuredContent"].clone()
}

#[tokio::test]
async fn resources_are_listed_and_read_by_tools_that_are_there_once_any_server_has_some() {
    let home = Home::new();
    let bare = home.host([("plain", legacy_server())]);
    bare.settled().await;
    assert_eq!(own(&bare), Vec::<String>::new());
    let host = home.host([
        ("lib rary", library()),
        ("other", library()),
        ("plain", legacy_server()),
    ]);
    host.settled().await;
    assert_eq!(own(&host), ["ListMcpResources", "ReadMcpResource"]);

    let all = call(&host, "ListMcpResources", json!({}), None)
        .await
        .expect("a list");
    assert_eq!(
        structured(&all)["resources"].as_array().map(Vec::len),
        Some(4)
    );
    let one = call(
        &host,
        "ListMcpResources",
        json!({ "server": "lib_rary" }),
        None,
    );
    let one = structured(&one.await.expect("a list"));
    assert_eq!(
        one,
        json!({
            "resources": [
                { "server": "lib rary", "uri": "file:///a.txt", "name": "a", "description": "the first" },
                { "server": "lib rary", "uri": "file:///b.png", "name": "b", "mimeType": "image/png", "size": 3 },
            ],
            "resourceTemplates": [
                { "server": "lib rary", "uriTemplate": "file:///{name}", "name": "any" },
            ],
        })
    );

    let read = |uri: &str| json!({ "server": "other", "uri": uri });
    let text = call(&host, "ReadMcpResource", read("file:///a.txt"), None)
        .await
        .expect("a text");
    let raw: Value = serde_json::from_str(text.raw.get()).expect("JSON");
    assert_eq!(raw["content"][0]["resource"]["text"], "hello");
    assert!(!text.is_error);
    // Binary content is saved like any other media.
    let snapshot = call(&host, "ReadMcpResource", read("file:///b.png"), None)
        .await
        .expect("bytes");
    let [saved] = &snapshot.saved[..] else {
        panic!("{:?}", snapshot.saved)
    };
    assert_eq!(saved.mime_type, "image/png");
    assert_eq!(std::fs::read(&saved.path).expect("the file"), b"hey");
}

#[tokio::test(start_paused = true)]
async fn reading_has_a_failed_server_tried_once_more() {
    let up = Arc::new(AtomicBool::new(false));
    let (is_up, inner) = (Arc::clone(&up), library());
    let moody: InProcessServer = Arc::new(move |end| {
        if is_up.load(Ordering::SeqCst) {
            inner(end)
        } else {
            Box::pin(async {})
        }
    });
    let home = Home::new();
    let host = home.host([("moody", moody), ("lib", library())]);
    host.settled().await;
    let read = || {
        let arguments = json!({ "server": "moody", "uri": "file:///a.txt" });
        call(&host, "ReadMcpResource", arguments, None)
    };
    let failed = read().await;
    assert!(
        matches!(failed, Err(CallError::Unavailable { .. })),
        "{failed:?}"
    );
    up.store(true, Ordering::SeqCst);
    // A failure of this moment is believed, as for a call.
    tokio::time::sleep(Duration::from_secs(31)).await;
    let outcome = read().await.expect("a text");
    assert!(!outcome.is_error, "{}", text_of(&outcome));
    host.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_of_the_tool_that_says_why() {
    let home = Home::new();
    let flags = Flags::default();
    let settings = home.path().join("home/.config/toolway/settings.json");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
    // What is not listed takes somebody's yes.
    let rules = json!({ "permissions": { "allow": ["mcp__lib__ReadMcpResource"] } });
    std::fs::write(&settings, rules.to_string()).expect("settings");
    let host = Host::start(
        home.plan_of(&flags, &[]),
        HostOptions {
            in_process: vec![(name("lib"), library()), (name("plain"), legacy_server())],
            ..home.options()
        },
    );
    host.settled().await;
    let said = async |arguments: Value| {
        let outcome = call(&host, "ReadMcpResource", arguments, None)
            .await
            .expect("an answer");
        assert!(outcome.is_error);
        text_of(&outcome)
    };
    let gone = said(json!({ "server": "lib", "uri": "file:///gone" })).await;
    assert!(gone.contains("`lib`") && gone.contains("-32002"), "{gone}");
    let nobody = said(json!({ "server": "li\u{202e}b", "uri": "x" })).await;
    assert_eq!(
        nobody,
        "there is no server `lib`; servers with resources: `lib`"
    );
    // Arguments are checked before anything is asked.
    let missing = call(&host, "ReadMcpResource", json!({ "uri": "x" }), None).await;
    assert!(
        matches!(missing, Err(CallError::Failed(_, CallFault::Invalid(_)))),
        "{missing:?}"
    );
    let extra = call(&host, "ListMcpResources", json!({ "serve": "lib" }), None).await;
    assert!(
        matches!(extra, Err(CallError::Failed(_, CallFault::Invalid(_)))),
        "{extra:?}"
    );
}

/// A server whose tools wait to be found.
fn shy() -> InProcessServer {
    scripted(|message, _| match message["method"].as_str() {
        Some("tools/list") => {
            let mut echo = tool("echo");
            echo["_meta"] = json!({ "anthropic/deferLoading": true });
            Reply::Result(json!({ "tools": [echo, tool("mute")] }))
        }
        _ => legacy(message),
    })
}

#[tokio::test]
async fn a_search_loads_what_it_finds_for_the_session_that_asked() {
    let home = Home::new();
    let host = home.host([("shy", shy())]);
    host.settled().await;
    let names = |pool: &ToolPool| -> Vec<String> {
        let snapshot = host.snapshot();
        let tools = snapshot.catalog.pool(pool);
        tools.iter().map(|tool| tool.name.clone()).collect()
    };
    let (mine, another) = (ToolPool::new(), ToolPool::new());
    assert_eq!(names(&mine), ["ToolSearch", "mcp__shy__mute"]);
    let arguments = json!({ "query": "echo a text", "max_results": 1 });
    let found = call(&host, "ToolSearch", arguments.clone(), Some(&mine))
        .await
        .expect("tools");
    assert_eq!(
        structured(&found),
        json!({ "tools": [{
            "name": "mcp__shy__echo",
            "description": "the tool echo",
            "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
        }] })
    );
    assert_eq!(text_of(&found), structured(&found).to_string());
    assert_eq!(
        names(&mine),
        ["ToolSearch", "mcp__shy__echo", "mcp__shy__mute"]
    );
    assert_eq!(names(&another), ["ToolSearch", "mcp__shy__mute"]);
    // Without a session it is found and nothing is loaded.
    call(&host, "ToolSearch", arguments, None)
        .await
        .expect("tools");
    let missing = host.load_tools(&another, &["echo", "ekho"]);
    assert_eq!(
        names(&another),
        ["ToolSearch", "mcp__shy__echo", "mcp__shy__mute"]
    );
    assert_eq!(missing[0].suggestion.as_deref(), Some("mcp__shy__echo"));
    // Finding is free; running what was found is not.
    let refused = call(&host, "mcp__shy__echo", json!({}), Some(&mine)).await;
    assert!(
        matches!(
            &refused,
            Err(CallError::Failed(
                _,
                CallFault::Refused(RefusedBy::NobodyToAsk { .. })
            ))
        ),
        "{refused:?}"
    );
    let wrong = call(
        &host,
        "ToolSearch",
        json!({ "query": "x", "max_results": 0 }),
        None,
    )
    .await;
    assert!(
        matches!(wrong, Err(CallError::Failed(_, CallFault::Invalid(_)))),
        "{wrong:?}"
    );
    let none = call(&host, "ToolSearch", json!({ "query": "qqqq" }), None)
        .await
        .expect("none");
    assert_eq!(
        structured(&none)["hint"],
        "no tool fits: use other words, or fewer"
    );
}

#[tokio::test]
async fn entries_and_the_environment_decide_what_is_deferred_and_a_reload_changes_it() {
    let home = Home::new();
    let options = || HostOptions {
        in_process: vec![(name("s"), legacy_server())],
        ..home.options()
    };
    let deferred = |host: &Host| {
        let snapshot = host.snapshot();
        let catalog = &snapshot.catalog;
        let tools = catalog.tools();
        tools.filter(|tool| catalog.is_deferred(tool)).count()
    };
    let entry = |extra: &str| json!({ "s": { "type": "sdk", extra: true } });
    let host = Host::start(home.plan(&entry("deferTools")), options());
    host.settled().await;
    assert_eq!(deferred(&host), 2);
    host.apply(home.plan(&json!({ "s": { "type": "sdk" } })))
        .await;
    assert_eq!(deferred(&host), 0);
    host.apply(home.plan_with(
        &json!({ "s": { "type": "sdk" } }),
        &[("TOOLWAY_TOOL_SEARCH", "true")],
    ))
    .await;
    assert_eq!(deferred(&host), 2);
    host.apply(home.plan_with(&entry("alwaysLoad"), &[("ENABLE_TOOL_SEARCH", "true")]))
        .await;
    assert_eq!(deferred(&host), 0);
    let small = [
        ("TOOLWAY_CONTEXT_TOKENS", "100"),
        ("TOOLWAY_TOOL_SEARCH", "auto:5"),
    ];
    host.apply(home.plan_with(&json!({ "s": { "type": "sdk" } }), &small))
        .await;
    assert_eq!(deferred(&host), 2);
}

#[tokio::test]
async fn a_server_that_wants_a_login_has_a_tool_that_says_what_it_wants() {
    let home = Home::new();
    let server = Server::start(|_, _| {
        let challenge = r#"Bearer realm="acme", resource_metadata="https://x.example/meta""#;
        (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, challenge)],
        )
            .into_response()
    })
    .await;
    let url = format!("{}?key={MARK}", server.url);
    let plan = home.plan(&json!({ "locked": { "type": "http", "url": url } }));
    let host = Host::start(plan, home.options());
    host.settled().await;
    assert_eq!(own(&host), ["mcp__locked__authenticate"]);
    let outcome = call(&host, "mcp__locked__authenticate", json!({}), None)
        .await
        .expect("an answer");
    assert!(outcome.is_error);
    assert_eq!(outcome.server, name("locked"));
    let said = text_of(&outcome);
    for part in [
        "server `locked` at http://127.0.0.1:",
        r#"Bearer realm="acme""#,
        "toolway add locked <url> --force -H 'Authorization: Bearer ${TOKEN}'",
        "toolway reconnect locked",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!said.contains(MARK), "{said}");
}

#[tokio::test]
async fn a_program_adds_tools_of_its_own_that_go_through_the_same_pipeline() {
    let home = Home::new();
    let seen: Arc<Mutex<Vec<Map<String, Value>>>> = Arc::default();
    let log = Arc::clone(&seen);
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let double = Builtin::new("double", "Doubles a number.", schema, move |call| {
        log.lock().expect("no panic").push(call.arguments.clone());
        let servers = call.host.snapshot().servers.len();
        let twice = call.arguments["n"].as_i64().unwrap_or_default() * 2;
        async move { BuiltinAnswer::text(format!("{twice} beside {servers} servers")) }
    })
    .expect("a good name")
    .hints(ToolHints {
        read_only: Some(true),
        ..ToolHints::default()
    });
    let empty = || json!({ "type": "object" });
    let broken = Builtin::new("broken", "Panics.", empty(), async |_| panic!("a bug"));
    let slow = Builtin::new("slow", "Hangs.", empty(), async |_| {
        std::future::pending().await
    });
    let free = |tool: Result<Builtin, _>| tool.expect("a good name").without_asking();
    let host = Host::start(
        home.plan_with(&json!({}), &[]),
        HostOptions {
            builtins: vec![double.clone(), double, free(broken), free(slow)],
            in_process: vec![(name("s"), legacy_server())],
            ..home.options()
        },
    );
    host.settled().await;
    assert_eq!(own(&host), ["broken", "double", "slow"]);

    // A person has to say yes, as to any tool, unless the program says otherwise.
    let refused = call(&host, "double", json!({ "n": 2 }), None).await;
    assert!(
        matches!(refused, Err(CallError::Failed(_, CallFault::Refused(_)))),
        "{refused:?}"
    );
    let typed = |arguments: Value, timeout| {
        let request = ToolRequest::new(
            ToolTarget::Exposed("double".to_owned()),
            arguments.as_object().cloned().unwrap_or_default(),
        );
        let options = CallOptions {
            timeout,
            ..CallOptions::new(Consent::Typed)
        };
        host.call(request, options)
    };
    let invalid = typed(json!({ "n": "two" }), None).await;
    assert!(
        matches!(invalid, Err(CallError::Failed(_, CallFault::Invalid(_)))),
        "{invalid:?}"
    );
    assert!(seen.lock().expect("no panic").is_empty());
    let outcome = typed(json!({ "n": 21 }), None).await.expect("an answer");
    assert_eq!(text_of(&outcome), "42 beside 1 servers");

    // A bug ends the call and nothing else; a tool that hangs is given up.
    let bug = call(&host, "broken", json!({}), None).await;
    assert!(
        matches!(bug, Err(CallError::Failed(_, CallFault::Malformed(_)))),
        "{bug:?}"
    );
    let request = ToolRequest::new(ToolTarget::Exposed("slow".to_owned()), Map::new());
    let options = CallOptions {
        timeout: Some(Duration::from_millis(20)),
        ..CallOptions::new(Consent::Prompt)
    };
    let late = host.call(request, options).await;
    assert!(
        matches!(late, Err(CallError::Failed(_, CallFault::TimedOut { .. }))),
        "{late:?}"
    );
    echo(&host, "s", "still here").await.expect("an answer");
}
