//! What servers log, and who hears it: the callers of one host, and never one another's.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolway::{
    AttachOptions, Attached, CallOptions, Caller, CallerKind, Consent, Host, InProcessServer,
    LogLevel, LogMessage, LogNews, LogSink, LogStream, ToolRequest, ToolTarget,
};
use toolway_types::ToolKey;

use crate::support::{Home, Reply, legacy, modern, name, scripted};

type Heard = Arc<Mutex<Vec<Value>>>;

/// A server that logs what it is told to by `echo`, before it answers; `mute` never answers.
fn talkative(base: fn(&Value) -> Reply, heard: &Heard) -> InProcessServer {
    let heard = Arc::clone(heard);
    scripted(move |message, speaker| {
        heard.lock().expect("no panic").push(message.clone());
        let params = &message["params"];
        match message["method"].as_str() {
            Some("initialize") => {
                let Reply::Result(mut result) = base(message) else {
                    return base(message);
                };
                result["capabilities"]["logging"] = json!({});
                return Reply::Result(result);
            }
            Some("logging/setLevel") => return Reply::Result(json!({})),
            Some("tools/call") if params["name"] == "echo" => speaker.say(&json!({
                "jsonrpc": "2.0", "method": "notifications/message",
                "params": {
                    "level": "warning", "logger": "l", "data": params["arguments"]["text"], "x": 1.5,
                },
            })),
            _ => {}
        }
        base(message)
    })
}

fn attach(host: &Host, id: &str) -> Attached {
    let caller = Caller::new(CallerKind::Client, id);
    host.attach(caller, AttachOptions::default())
}

fn request(tool: &str, text: &str) -> ToolRequest {
    let arguments = Map::from_iter([("text".to_owned(), Value::from(text))]);
    ToolRequest::new(ToolTarget::Key(ToolKey::new(name("s"), tool)), arguments)
}

async fn echo(caller: &Attached, text: &str) {
    let options = CallOptions::new(Consent::Typed);
    let outcome = caller.call(request("echo", text), options).await;
    outcome.expect("an answer");
}

fn data(message: &LogMessage) -> String {
    let params: Value = serde_json::from_str(message.raw.get()).expect("JSON");
    assert_eq!(params["x"], 1.5);
    params["data"].as_str().expect("a text").to_owned()
}

/// All that a stream has heard by now: every message comes before the answer to its call.
async fn heard(stream: &mut LogStream) -> Vec<String> {
    let mut heard = Vec::new();
    while let Ok(news) = tokio::time::timeout(Duration::ZERO, stream.next()).await {
        match news {
            LogNews::Message(message) => heard.push(data(&message)),
            LogNews::Lost(lost) => panic!("{lost} lost"),
        }
    }
    heard
}

#[tokio::test]
async fn the_logs_of_two_callers_never_cross() {
    for base in [legacy, modern] {
        let home = Home::new();
        let host = home.host([("s", talkative(base, &Heard::default()))]);
        host.settled().await;
        let (ada, bob) = (attach(&host, "ada"), attach(&host, "bob"));
        let server = name("s");
        let mut of_ada = ada.logs(&server, LogLevel::Debug).expect("a server");
        let mut of_bob = bob.logs(&server, LogLevel::Debug).expect("a server");
        let mut of_owner = host.logs(&server, LogLevel::Debug).expect("a server");
        let mut quiet = ada.logs(&server, LogLevel::Error).expect("a server");
        echo(&ada, "for ada").await;
        echo(&bob, "for bob").await;
        assert_eq!(heard(&mut of_ada).await, ["for ada"]);
        assert_eq!(heard(&mut of_bob).await, ["for bob"]);
        assert_eq!(heard(&mut of_owner).await, [""; 0]);
        assert_eq!(heard(&mut quiet).await, [""; 0]);
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_message_that_may_be_of_two_callers_is_heard_by_neither() {
    let home = Home::new();
    let host = home.host([("s", talkative(legacy, &Heard::default()))]);
    host.settled().await;
    let (ada, bob) = (attach(&host, "ada"), attach(&host, "bob"));
    let server = name("s");
    let mut of_ada = ada.logs(&server, LogLevel::Debug).expect("a server");
    let mut of_bob = bob.logs(&server, LogLevel::Debug).expect("a server");
    let options = CallOptions::new(Consent::Typed);
    let muted = ada.start_call(request("mute", ""), options);
    let muted = muted.expect("room for a call");
    echo(&ada, "sent").await;
    assert_eq!(heard(&mut of_ada).await, ["sent"]);
    echo(&bob, "whose?").await;
    assert_eq!(heard(&mut of_ada).await, [""; 0]);
    assert_eq!(heard(&mut of_bob).await, [""; 0]);
    // What was given up may still speak.
    assert!(ada.cancel(muted.id));
    echo(&bob, "whose still?").await;
    assert_eq!(heard(&mut of_bob).await, [""; 0]);
    host.shutdown().await;
}

#[tokio::test]
async fn the_most_talkative_level_that_anybody_wants_is_set_at_a_legacy_server() {
    let home = Home::new();
    let messages = Heard::default();
    let host = home.host([("s", talkative(legacy, &messages))]);
    host.settled().await;
    let levels = || {
        let messages = messages.lock().expect("no panic");
        let set = messages
            .iter()
            .filter(|message| message["method"] == "logging/setLevel");
        let set = set.map(|message| message["params"]["level"].to_string());
        set.collect::<Vec<_>>().join(" ")
    };
    let settled = async |wanted: &str| {
        while levels() != wanted {
            tokio::task::yield_now().await;
        }
    };
    let (ada, bob) = (attach(&host, "ada"), attach(&host, "bob"));
    let of_ada = ada.logs(&name("s"), LogLevel::Error).expect("a server");
    settled(r#""error""#).await;
    let of_bob = bob.logs(&name("s"), LogLevel::Debug).expect("a server");
    settled(r#""error" "debug""#).await;
    of_ada.set_level(LogLevel::Warning);
    drop(of_bob);
    settled(r#""error" "debug" "warning""#).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_request_can_have_its_log_for_itself() {
    let home = Home::new();
    let messages = Heard::default();
    let host = home.host([("s", talkative(modern, &messages))]);
    host.settled().await;
    let mut of_caller = host.logs(&name("s"), LogLevel::Debug).expect("a server");
    let taken = Arc::<Mutex<Vec<String>>>::default();
    let sink = Arc::clone(&taken);
    let options = CallOptions {
        logs: Some(LogSink {
            level: LogLevel::Warning,
            sink: Arc::new(move |message| sink.lock().expect("no panic").push(data(&message))),
        }),
        ..CallOptions::new(Consent::Typed)
    };
    let outcome = host.call(request("echo", "its own"), options).await;
    outcome.expect("an answer");
    assert_eq!(*taken.lock().expect("no panic"), ["its own"]);
    assert_eq!(heard(&mut of_caller).await, [""; 0]);
    host.shutdown().await;
}
