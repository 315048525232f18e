//! Rounds of input and tasks over real sockets.

use std::sync::atomic::{AtomicUsize, Ordering};

use toolway::{ClientHandler, HostOptions};

use super::*;
use crate::asking::Person;

impl Server {
    async fn host_asking(&self, home: &Home, person: &Arc<Person>) -> Host {
        let plan = home.plan(&json!({ "web": { "type": "http", "url": self.url } }));
        let options = HostOptions {
            client_handler: Some(Arc::clone(person) as Arc<dyn ClientHandler>),
            ..home.options()
        };
        let host = Host::start(plan, options);
        host.settled().await;
        host
    }

    fn headers(&self, method: &str, name: &str) -> Vec<String> {
        let log = self.log.lock().expect("no panic");
        log.iter()
            .filter(|(seen, _)| seen == method)
            .filter_map(|(_, headers)| headers.get(name)?.to_str().ok().map(ToOwned::to_owned))
            .collect()
    }
}

fn form(message: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({
        "method": "elicitation/create",
        "params": { "mode": "form", "message": message, "requestedSchema": schema },
    })
}

#[tokio::test]
async fn a_server_without_a_memory_gets_its_state_back_with_the_answers() {
    let server = Server::start(|message, _| {
        if message["method"] != "tools/call" {
            return reply(message, modern(message));
        }
        let params = &message["params"];
        let result = match params["requestState"].as_str() {
            None => json!({
                "resultType": "input_required", "requestState": "one/\u{e9}",
                "inputRequests": { "who": form("who?") },
            }),
            Some("one/\u{e9}") => {
                assert_eq!(
                    params["inputResponses"]["who"]["content"]["name"],
                    "octocat"
                );
                json!({
                    "resultType": "input_required", "requestState": "two",
                    "inputRequests": { "why": form("why?") },
                })
            }
            Some(_) => {
                let answers = params["inputResponses"].as_object().expect("answers");
                let keys: Vec<_> = answers.keys().cloned().collect();
                json!({
                    "resultType": "complete",
                    "content": [{ "type": "text", "text": keys.join(",") }],
                })
            }
        };
        reply(message, Reply::Result(result))
    })
    .await;
    let home = Home::new();
    let person = Person::named("octocat");
    let host = server.host_asking(&home, &person).await;
    let outcome = echo(&host, "web", "x").await.expect("an answer");
    assert_eq!(text_of(&outcome), "why");
    assert_eq!(
        *person.heard.lock().expect("no panic"),
        ["web: who?", "web: why?"]
    );
    assert_eq!(
        server.headers("tools/call", "mcp-name"),
        ["echo", "echo", "echo"]
    );
    host.shutdown().await;
}

/// A server that makes a task of every call. It is done after so many looks.
fn task_server(message: &Value, looks: &AtomicUsize, done_after: usize) -> Response {
    let state = |kind: &str, status: &str| {
        json!({
            "resultType": kind, "taskId": "t/1", "status": status, "pollIntervalMs": 100,
            "createdAt": "2026-08-01T00:00:00Z", "lastUpdatedAt": "2026-08-01T00:00:00Z",
            "ttlMs": null,
        })
    };
    let result = match message["method"].as_str() {
        Some("server/discover") => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {
                "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} },
            },
        }),
        Some("tools/call") => state("task", "working"),
        Some("tasks/get") => match looks.fetch_add(1, Ordering::SeqCst) {
            0 => {
                let mut task = state("complete", "input_required");
                task["inputRequests"] = json!({ "who": form("who?") });
                task
            }
            look if look < done_after => state("complete", "working"),
            _ => {
                let mut task = state("complete", "completed");
                task["result"] = json!({ "content": [{ "type": "text", "text": "done" }] });
                task
            }
        },
        Some("tasks/update" | "tasks/cancel") => json!({ "resultType": "complete" }),
        _ => return reply(message, modern(message)),
    };
    reply(message, Reply::Result(result))
}

#[tokio::test]
async fn a_call_that_becomes_a_task_is_followed_to_its_result() {
    let looks = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |message, _| task_server(message, &looks, 3)).await;
    let home = Home::new();
    let person = Person::named("octocat");
    let host = server.host_asking(&home, &person).await;
    let outcome = echo(&host, "web", "x").await.expect("an answer");
    assert_eq!(text_of(&outcome), "done");
    assert_eq!(*person.heard.lock().expect("no panic"), ["web: who?"]);
    assert_eq!(server.headers("tasks/get", "mcp-name"), ["t/1"; 4]);
    assert_eq!(server.headers("tasks/update", "mcp-name"), ["t/1"]);
    assert!(!server.methods().contains(&"tasks/cancel".to_owned()));
    host.shutdown().await;
}

#[tokio::test]
async fn a_task_that_nobody_waits_for_is_cancelled_at_the_server() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let looks = Arc::new(AtomicUsize::new(1));
    let server = Server::start(move |message, _| {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        told.send(method).expect("the test listens");
        task_server(message, &looks, usize::MAX)
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    let call = host.call(
        request("web", "echo", "x"),
        CallOptions::new(Consent::Typed),
    );
    let followed = async { while heard.recv().await.as_deref() != Some("tasks/get") {} };
    tokio::select! {
        outcome = call => panic!("{outcome:?}"),
        () = followed => {}
    }
    while heard.recv().await.expect("the server lives") != "tasks/cancel" {}
    assert_eq!(server.headers("tasks/cancel", "mcp-name"), ["t/1"]);
    host.shutdown().await;
}

#[tokio::test]
async fn headers_that_the_server_refuses_are_made_anew() {
    let lists = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |message, headers| {
        let tool = |header: &str| {
            json!({
                "name": "echo",
                "inputSchema": { "type": "object", "properties": {
                    "text": { "type": "string", "x-mcp-header": header },
                }},
            })
        };
        match message["method"].as_str() {
            Some("tools/list") => {
                let header = match lists.fetch_add(1, Ordering::SeqCst) {
                    0 => "Old",
                    _ => "New",
                };
                let result = json!({ "resultType": "complete", "tools": [tool(header)] });
                reply(message, Reply::Result(result))
            }
            Some("tools/call") if !headers.contains_key("mcp-param-new") => {
                reply(message, Reply::Error(-32020))
            }
            _ => reply(message, modern(message)),
        }
    })
    .await;
    let home = Home::new();
    let host = server.host(&home).await;
    let outcome = echo(&host, "web", "x").await.expect("an answer");
    assert_eq!(text_of(&outcome), "x");
    let calls = server
        .methods()
        .into_iter()
        .filter(|method| method == "tools/call");
    assert_eq!(calls.count(), 2);
    // The catalogue catches up, so that the next call is right at once.
    let mut snapshots = host.watch();
    let caught_up = snapshots.wait_for(|snapshot| {
        let mut tools = snapshot.catalog.tools();
        tools.any(|tool| tool.input_schema.get().contains("New"))
    });
    assert!(caught_up.await.is_ok());
    host.shutdown().await;
}
