//! Servers that ask, resources and prompts, and calls that nothing is heard of: from outside.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolway::types::ServerName;
use toolway::view::{ContentBlock, ResourceBody};
use toolway::{
    CallError, CallFault, CallOptions, ClientHandler, ClientOffers, Consent, Elicitation,
    ElicitationAnswer, Host, HostOptions, InProcessServer, Root, TimeLimit,
};
use toolway_wire::RpcError;

use crate::support::*;

/// A person who has one answer for every form, and a model that repeats what it hears.
pub(crate) struct Person {
    pub fields: Map<String, Value>,
    pub heard: Mutex<Vec<String>>,
}

impl Person {
    pub(crate) fn named(name: &str) -> Arc<Self> {
        Arc::new(Self {
            fields: Map::from_iter([("name".to_owned(), Value::from(name))]),
            heard: Mutex::default(),
        })
    }

    fn hear(&self, what: String) {
        self.heard.lock().expect("no panic").push(what);
    }
}

impl ClientHandler for Person {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            roots: false,
            form: true,
            url: true,
            sampling: RawValue::from_string("{}".to_owned()).ok(),
        }
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            match request {
                Elicitation::Form { message, .. } => {
                    self.hear(format!("{server}: {message}"));
                    ElicitationAnswer::Accept(Some(self.fields.clone()))
                }
                Elicitation::Url { url, .. } => {
                    self.hear(format!("{server}: {url}"));
                    ElicitationAnswer::Decline
                }
            }
        })
    }

    fn sample<'a>(
        &'a self,
        server: &'a ServerName,
        request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        Box::pin(async move {
            self.hear(format!("{server}: a model"));
            Ok(request)
        })
    }
}

fn asking_host(home: &Home, server: InProcessServer, options: HostOptions) -> Host {
    let in_process = vec![(name("asks"), server)];
    Host::start(
        home.plan(&json!({})),
        HostOptions {
            in_process,
            ..options
        },
    )
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_asks_in_the_middle_of_a_call() {
    let call: Arc<Mutex<Value>> = Arc::default();
    let server = scripted(move |message, speaker| {
        if message["method"] == "tools/call" {
            *call.lock().expect("no panic") = message["id"].clone();
            let schema =
                json!({ "type": "object", "properties": { "name": { "type": "string" } } });
            speaker.say(&json!({
                "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                "params": { "message": "who are you?", "requestedSchema": schema },
            }));
            return Reply::Silence;
        }
        if message["id"] == "q" {
            let text = message["result"]["content"]["name"].clone();
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            let id = call.lock().expect("no panic").clone();
            speaker.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            return Reply::Silence;
        }
        legacy(message)
    });
    let home = Home::new();
    let person = Person::named("octocat");
    let options = HostOptions {
        client_handler: Some(Arc::clone(&person) as Arc<dyn ClientHandler>),
        ..home.options()
    };
    let host = asking_host(&home, server, options);
    let outcome = echo(&host, "asks", "x").await.expect("an answer");
    assert_eq!(text_of(&outcome), "octocat");
    assert_eq!(
        *person.heard.lock().expect("no panic"),
        ["asks: who are you?"]
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_input_nobody_gives_is_an_error_that_says_what_is_missing() {
    let server = scripted(|message, _| {
        if message["method"] == "tools/call" {
            return Reply::Result(json!({
                "resultType": "input_required",
                "inputRequests": { "k": {
                    "method": "elicitation/create",
                    "params": { "message": "?", "requestedSchema": { "type": "object" } },
                }},
            }));
        }
        modern(message)
    });
    let home = Home::new();
    let host = asking_host(&home, server, home.options());
    let error = echo(&host, "asks", "x").await.expect_err("nobody answers");
    assert!(matches!(
        error,
        CallError::Failed(_, CallFault::InputRefused(_))
    ));
    assert_eq!(
        error.to_string(),
        "server `asks` needs input for `echo` that nobody here can give: elicitation/create (form)"
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_the_person_declined_is_named_with_the_servers_error() {
    let server = scripted(|message, speaker| {
        if message["method"] != "tools/call" {
            return legacy(message);
        }
        let page = json!({ "mode": "url", "message": "pay", "url": "https://example.com/pay",
            "elicitationId": "e" });
        speaker.say(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": {
            "code": -32042, "message": "need", "data": { "elicitations": [page] } } }));
        Reply::Silence
    });
    let home = Home::new();
    let person = Person::named("octocat");
    let options = HostOptions {
        client_handler: Some(Arc::clone(&person) as Arc<dyn ClientHandler>),
        ..home.options()
    };
    let host = asking_host(&home, server, options);
    host.settled().await;
    let error = host
        .call(
            request("asks", "echo", ""),
            CallOptions::new(Consent::Typed),
        )
        .await
        .expect_err("it wants a page visited");
    assert_eq!(
        error.to_string(),
        "server `asks` answered `echo` with error -32042: need; `tools/call` was not sent again, \
         because nobody agreed to visit the page that the server wants visited first"
    );
    assert_eq!(person.heard.lock().expect("no panic").len(), 1);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn new_roots_reach_a_connected_server() {
    let (told, mut heard) = mpsc::unbounded_channel::<Value>();
    let server = scripted(move |message, speaker| {
        if message["method"] == "notifications/roots/list_changed" {
            speaker.say(&json!({ "jsonrpc": "2.0", "id": "r", "method": "roots/list" }));
        }
        if message["id"] == "r" || message["method"] == "initialize" {
            told.send(message.clone()).expect("the test listens");
        }
        if message["id"] == "r" {
            return Reply::Silence;
        }
        legacy(message)
    });
    let root = |path: &str| Root::directory(std::path::Path::new(path)).expect("absolute");
    let home = Home::new();
    let options = HostOptions {
        roots: vec![root("/work/one")],
        ..home.options()
    };
    let host = asking_host(&home, server, options);
    host.settled().await;
    let handshake = heard.recv().await.expect("a handshake");
    assert_eq!(
        handshake["params"]["capabilities"]["roots"],
        json!({ "listChanged": true })
    );
    host.set_roots(vec![root("/work/two")]);
    let answer = heard.recv().await.expect("an answer");
    assert_eq!(
        answer["result"]["roots"],
        json!([{ "uri": "file:///work/two", "name": "two" }])
    );
    host.shutdown().await;
}

fn library(message: &Value) -> Reply {
    match message["method"].as_str() {
        Some("initialize") => Reply::Result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "resources": {}, "prompts": {} },
        })),
        Some("resources/list") => Reply::Result(json!({ "resources": [] })),
        Some("prompts/list") => Reply::Result(json!({ "prompts": [] })),
        Some("resources/read") if message["params"]["uri"] == "note://1" => Reply::Result(json!({
            "contents": [{ "uri": "note://1", "text": "hello", "odd": 1 }, { "uri": "note://2" }],
        })),
        Some("prompts/get") => {
            let text = message["params"]["arguments"]["topic"].clone();
            Reply::Result(json!({
                "messages": [{ "role": "user", "content": { "type": "text", "text": text } }],
            }))
        }
        Some("resources/read") => Reply::Error(-32602),
        _ => legacy(message),
    }
}

#[tokio::test(start_paused = true)]
async fn resources_are_read_and_prompts_rendered() {
    let home = Home::new();
    let host = home.host([("library", scripted(|message, _| library(message)))]);
    let library = name("library");
    // The server is still connecting, and waited for.
    let read = host
        .read_resource(&library, "note://1")
        .await
        .expect("contents");
    assert!(read.raw.get().contains(r#""odd":1"#), "nothing is lost");
    assert_eq!(
        read.result.contents[0].body,
        ResourceBody::Text("hello".to_owned())
    );
    assert_eq!(
        read.result.faults.len(),
        1,
        "one bad part costs only itself"
    );

    let arguments = Map::from_iter([("topic".to_owned(), Value::from("tea"))]);
    let prompt = host
        .get_prompt(&library, "about", arguments)
        .await
        .expect("messages");
    let ContentBlock::Text { text, .. } = &prompt.result.messages[0].content else {
        panic!("it is text")
    };
    assert_eq!(text, "tea");

    let error = host
        .read_resource(&library, "note://9")
        .await
        .expect_err("no such note");
    assert!(matches!(
        error,
        CallError::Failed(_, CallFault::Protocol { code: -32602, .. })
    ));
    let error = host.read_resource(&name("nobody"), "note://1").await;
    assert!(matches!(error, Err(CallError::Unavailable { .. })));
    host.shutdown().await;
}

/// What a call of `mute` ends with, and after how long.
async fn ends(host: &Host, options: CallOptions) -> (CallError, Duration) {
    host.settled().await;
    let started = Instant::now();
    let outcome = host.call(request("quiet", "mute", "x"), options).await;
    (outcome.expect_err("it never answers"), started.elapsed())
}

fn quiet_host(home: &Home, entry: &Value, vars: &[(&str, &str)]) -> Host {
    Host::start(
        home.plan_with(&json!({ "quiet": entry }), vars),
        HostOptions {
            in_process: vec![(name("quiet"), legacy_server())],
            ..home.options()
        },
    )
}

#[tokio::test(start_paused = true)]
async fn rel_09_silence_has_a_limit_that_the_entry_the_environment_and_the_call_decide() {
    let typed = || CallOptions::new(Consent::Typed);
    let minutes = Duration::from_mins;
    let plain = json!({ "type": "sdk" });
    let patient = json!({ "type": "sdk", "timeout": 7_200_000 });
    let own = CallOptions {
        idle_timeout: Some(minutes(1)),
        ..typed()
    };
    let endless = CallOptions {
        idle_timeout: Some(Duration::ZERO),
        ..typed()
    };
    let whole = Duration::from_secs(100_000);
    for (entry, vars, options, limit, after) in [
        (&plain, None, typed(), TimeLimit::Idle, minutes(30)),
        (&plain, Some("120000"), typed(), TimeLimit::Idle, minutes(2)),
        (&plain, Some("0"), typed(), TimeLimit::Whole, whole),
        // The entry gives two hours for a whole call, so silence may last as long.
        (&patient, None, typed(), TimeLimit::Whole, minutes(120)),
        (&patient, None, own, TimeLimit::Idle, minutes(1)),
        (&plain, Some("120000"), endless, TimeLimit::Whole, whole),
    ] {
        let home = Home::new();
        let vars: Vec<_> = vars
            .map(|value| ("MCP_TOOL_IDLE_TIMEOUT", value))
            .into_iter()
            .collect();
        let host = quiet_host(&home, entry, &vars);
        let (error, waited) = ends(&host, options).await;
        let CallError::Failed(
            _,
            CallFault::TimedOut {
                limit: reached,
                after: told,
                ..
            },
        ) = &error
        else {
            panic!("{error}")
        };
        assert_eq!((*reached, *told, waited), (limit, after, after));
        let words = match limit {
            TimeLimit::Idle => "gave no sign of life for",
            TimeLimit::Whole | TimeLimit::Beginning => "did not answer within",
        };
        assert!(error.to_string().contains(words), "{error}");
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn rel_22_content_nobody_knows_does_not_cost_the_call() {
    let server = scripted(|message, _| {
        if message["method"] == "tools/call" {
            return Reply::Result(json!({
                "content": [{ "type": "hologram", "depth": 3 }, { "type": "text", "text": "hi" }, 7],
            }));
        }
        legacy(message)
    });
    let home = Home::new();
    let host = home.host([("odd", server)]);
    let outcome = echo(&host, "odd", "x").await.expect("an answer");
    assert_eq!(outcome.result().content.len(), 3);
    assert!(
        matches!(&outcome.result().content[0], ContentBlock::Unknown { kind, .. } if kind == "hologram")
    );
    assert!(outcome.raw.get().contains("hologram"));
    host.shutdown().await;
}
