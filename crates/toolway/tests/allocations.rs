//! What a call allocates does not depend on how many tools there are, nor does what a new catalogue
//! allocates when one server of many changes.
//!
//! A program of its own, because it counts what it allocates. The pool is the only difference
//! between the two runs; the call, the rules and the answer are the same.
#![expect(clippy::expect_used, reason = "the parts tests share fail like tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use toolway::catalog::{ServerCatalog, ServerOffer};
use toolway::config::{Environment, Flags, Plan, plan};
use toolway::dispatch::Dispatch;
use toolway::dispatch::answers::PersonAnswers;
use toolway::dispatch::hooks::HookRunner;
use toolway::error::RequestResult;
use toolway::route::{GeneralLimits, RequestOptions, Route, Routes};
use toolway::types::{ServerName, ToolKey};
use toolway::{CallError, CallOptions, Catalog, Consent, ToolRequest, ToolTarget, view};

struct Counting;

thread_local! {
    static USED: Cell<Usage> = const { Cell::new(Usage { times: 0, bytes: 0 }) };
}

/// What one thread has allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Usage {
    times: usize,
    bytes: usize,
}

fn count(bytes: usize) {
    // A thread that is ending counts no more.
    let _ = USED.try_with(|used| {
        let Usage { times, bytes: all } = used.get();
        used.set(Usage {
            times: times + 1,
            bytes: all + bytes,
        });
    });
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller's promises are the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Answers at once.
struct Answering;

impl Route for Answering {
    fn request<'a>(
        &'a self,
        _method: &'a str,
        _params: Box<RawValue>,
        _options: RequestOptions<'a>,
    ) -> BoxFuture<'a, RequestResult> {
        let result = json!({ "content": [{ "type": "text", "text": "done" }] });
        Box::pin(async move { Ok(to_raw_value(&result).expect("JSON").into()) })
    }
}

impl Routes for Answering {
    fn route(&self, _server: &ServerName) -> Result<Arc<dyn Route>, CallError> {
        Ok(Arc::new(Answering))
    }
}

/// A server with so many tools.
fn offer(server: &str, tools: usize) -> Arc<ServerCatalog> {
    let listed: Vec<Value> = (0..tools)
        .map(|number| {
            json!({ "name": format!("tool_{number}"), "description": "does it",
                "inputSchema": { "type": "object", "required": ["path"],
                    "properties": { "path": { "type": "string" } } } })
        })
        .collect();
    let page = to_raw_value(&json!({ "tools": listed })).expect("JSON");
    let mut offer = ServerOffer::new(name(server));
    offer.tools = view::tools(&page).expect("a list").items;
    offer.instructions = Some("Read before you write.".to_owned());
    offer.into()
}

/// Ten servers that share these tools.
fn servers(tools: usize) -> Vec<Arc<ServerCatalog>> {
    let servers = (0..10).map(|server| offer(&format!("server{server}"), tools / 10));
    servers.collect()
}

fn pool(tools: usize) -> Arc<Catalog> {
    let catalog = Catalog::build(1, servers(tools));
    assert_eq!(catalog.tools().count(), tools);
    catalog
}

fn name(text: &str) -> ServerName {
    ServerName::new(text).expect("a name")
}

fn rules(home: &std::path::Path) -> Plan {
    let settings = home.join(".config/toolway/settings.json");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
    let text = json!({ "permissions": {
        "deny": ["mcp__server3__*"], "ask": ["mcp__mail__*"], "allow": ["mcp__server7__*"],
    } });
    std::fs::write(settings, text.to_string()).expect("settings");
    let variables = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let environment =
        Environment::new(variables, home.to_owned()).with_system_dir(home.join("system"));
    plan(&environment, &Flags::default())
}

/// What the second call allocates: the first one compiles the schema.
async fn cost(catalog: &Arc<Catalog>, plan: &Plan, target: &ToolTarget) -> Usage {
    let output = std::env::temp_dir();
    let runner = HookRunner::default();
    let approvals = PersonAnswers::default();
    let dispatch = Dispatch {
        caller: &Arc::default(),
        catalog,
        permissions: &plan.permissions,
        hooks: &plan.hooks,
        runner: &runner,
        routes: &Answering,
        approvals: &approvals,
        prompter: None,
        newest: None,
        asks_owner: false,
        limits: GeneralLimits {
            timeout: Some(Duration::from_mins(1)),
            ..GeneralLimits::default()
        },
        output_dir: &output,
        picture_memory: &toolway_types::BytePool::new(0),
        audit: None,
        max_output_tokens: plan.limits.max_output_tokens,
        result_text: plan.limits.result_text,
    };
    let mut used = USED.get();
    for _ in 0..2 {
        let request = ToolRequest::new(
            target.clone(),
            Map::from_iter([("path".to_owned(), Value::from("x"))]),
        );
        let before = USED.get();
        let outcome = dispatch
            .call(request, CallOptions::new(Consent::Prompt))
            .await;
        outcome.expect("a rule allows it");
        let after = USED.get();
        used = Usage {
            times: after.times - before.times,
            bytes: after.bytes - before.bytes,
        };
    }
    used
}

#[tokio::test]
async fn a_call_allocates_the_same_among_ten_tools_and_two_thousand() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let plan = rules(home.path());
    let (small, large) = (pool(10), pool(2000));
    for target in [
        ToolTarget::Exposed("mcp__server7__tool_0".to_owned()),
        ToolTarget::Key(ToolKey::new(name("server7"), "tool_0")),
    ] {
        let few = cost(&small, &plan, &target).await;
        let many = cost(&large, &plan, &target).await;
        assert!(few.times > 0, "something is counted");
        assert_eq!(few, many, "{target}");
    }
}

/// What new catalogues allocate when a server goes and comes back.
fn flapping_cost(tools: usize) -> Usage {
    let all = servers(tools);
    let mut gone = all.clone();
    gone[3] = offer("server3", 0);
    let mut catalog = Catalog::build(1, all.clone());
    let before = USED.get();
    for servers in [gone, all] {
        catalog = Catalog::after(&catalog, servers);
    }
    let after = USED.get();
    assert_eq!(catalog.revision, 3);
    Usage {
        times: after.times - before.times,
        bytes: after.bytes - before.bytes,
    }
}

#[test]
fn a_server_that_comes_and_goes_allocates_the_same_among_ten_tools_and_two_thousand() {
    let (few, many) = (flapping_cost(10), flapping_cost(2000));
    assert!(few.times > 0, "something is counted");
    assert_eq!(few, many);
}

#[test]
fn a_call_of_another_server_after_that_compiles_nothing_anew() {
    let all = servers(100);
    let first = Catalog::build(1, all.clone());
    let mut gone = all;
    gone[3] = offer("server3", 0);
    let next = Catalog::after(&first, gone);
    for server in (0..10).filter(|server| *server != 3) {
        let server = name(&format!("server{server}"));
        let (before, after) = (first.tools_of(&server), next.tools_of(&server));
        assert_eq!(before.len(), 10);
        for (before, after) in before.iter().zip(after) {
            assert!(Arc::ptr_eq(before.tool(), after.tool()));
        }
    }
}
