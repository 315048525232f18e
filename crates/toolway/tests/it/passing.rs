//! Requests and results that are passed on as the bytes they came in, in both eras.
//!
//! The servers answer with text that no serialiser of ours would write.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolway::{
    CallError, CallFault, CallOptions, Consent, Continuations, HookInput, HookReply, Host,
    HostOptions, InProcessServer, LibraryHook, PassedMethod, PassedTask, RawJson, ResultDelivery,
    TaskStep, ToolRequest, ToolTarget,
};
use toolway_config::HookEvent;
use toolway_transport::in_process::ServerEnd;
use toolway_types::{Era, ToolKey};

use crate::support::{Home, name, shown, tool};

/// What a server heard, and how it is told to answer: by method, the text behind the id.
#[derive(Clone)]
struct Peer {
    era: Era,
    heard: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<Vec<(&'static str, String)>>>,
}

impl Peer {
    fn new(era: Era) -> Self {
        Self {
            era,
            heard: Arc::default(),
            answers: Arc::default(),
        }
    }

    /// The next request of this method is answered by this.
    fn answers(&self, method: &'static str, text: &str) {
        let mut answers = self.answers.lock().expect("no panic");
        answers.push((method, text.to_owned()));
    }

    /// The parameters of the last request of this method, as they came.
    fn params(&self, method: &str) -> String {
        let heard = self.heard.lock().expect("no panic");
        let marker = format!("\"method\":\"{method}\"");
        let message = heard.iter().rev().find(|message| message.contains(&marker));
        let message = message.expect("it was asked");
        let members: std::collections::BTreeMap<String, &RawValue> =
            serde_json::from_str(message).expect("an object");
        members["params"].get().to_owned()
    }

    fn answer(&self, message: &Value) -> Option<String> {
        let method = message["method"].as_str()?;
        let mut answers = self.answers.lock().expect("no panic");
        if let Some(place) = answers.iter().position(|(known, _)| *known == method) {
            return Some(answers.remove(place).1);
        }
        let capabilities = json!({
            "tools": {}, "resources": {}, "prompts": {}, "completions": {},
            "tasks": { "requests": { "tools": { "call": {} } }, "cancel": {} },
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        });
        let result = match (self.era, method) {
            (Era::Legacy, "initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "serverInfo": { "name": "peer", "version": "1" },
            }),
            (Era::Modern, "server/discover") => json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": capabilities,
            }),
            (_, "tools/list") => json!({ "tools": [tool("t")], "ttlMs": 0 }),
            (_, "prompts/list") => json!({ "prompts": [{ "name": "p" }], "ttlMs": 0 }),
            (_, "resources/list") => json!({ "resources": [], "ttlMs": 0 }),
            (_, "resources/templates/list") => json!({ "resourceTemplates": [], "ttlMs": 0 }),
            _ => return Some(r#""error":{"code":-32601,"message":"no"}"#.to_owned()),
        };
        Some(format!("\"result\":{result}"))
    }

    fn server(&self) -> InProcessServer {
        let peer = self.clone();
        Arc::new(move |end| {
            let peer = peer.clone();
            Box::pin(async move {
                let ServerEnd {
                    mut incoming,
                    outgoing,
                } = end;
                while let Some(bytes) = incoming.recv().await {
                    let text = String::from_utf8(bytes.to_vec()).expect("text");
                    peer.heard.lock().expect("no panic").push(text);
                    let message: Value = serde_json::from_slice(&bytes).expect("JSON");
                    if message.get("id").is_none() {
                        continue;
                    }
                    if let Some(answer) = peer.answer(&message) {
                        let id = &message["id"];
                        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{answer}}}");
                        outgoing.send(answer.into()).await.expect("the host reads");
                    }
                }
            })
        })
    }
}

struct Scene {
    peer: Peer,
    host: Host,
    _home: Home,
}

impl Scene {
    async fn new(era: Era) -> Self {
        Self::with_hooks(era, Vec::new()).await
    }

    async fn with_hooks(era: Era, hooks: Vec<LibraryHook>) -> Self {
        let (home, peer) = (Home::new(), Peer::new(era));
        let options = HostOptions {
            in_process: [(name("s"), peer.server())].into_iter().collect(),
            hooks,
            ..home.options()
        };
        let host = Host::start(home.plan(&json!({})), options);
        host.settled().await;
        Self {
            peer,
            host,
            _home: home,
        }
    }

    async fn call(&self, params: &str) -> Result<toolway::ToolOutcome, CallError> {
        let target = ToolTarget::Key(ToolKey::new(name("s"), "t"));
        let request = ToolRequest::of_params(target, &raw(params)).expect("parameters");
        self.host.call(request, passed_on()).await
    }
}

fn raw(text: &str) -> RawJson {
    RawJson::read(&Bytes::copy_from_slice(text.as_bytes())).expect("JSON")
}

fn passed_on() -> CallOptions {
    CallOptions {
        delivery: ResultDelivery::Raw,
        continuations: Continuations::PassOn,
        ..CallOptions::new(Consent::Typed)
    }
}

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A number of thirty digits, members that nobody knows, spaces, escapes, a repeated zero.
const ODD: &str =
    r#"{ "n": 123456789012345678901234567890, "x-unknown" :[1.50, -0.0,{"é":"\u00e9"}]}"#;

#[tokio::test]
async fn arguments_and_results_travel_byte_for_byte() {
    for era in ERAS {
        let scene = Scene::new(era).await;
        let result = format!(
            r#"{{"content" :[{{"type":"image","data":"!!","mimeType":"image/png"}}],"structuredContent":{ODD},"_meta":{{"a/b":{ODD}}},"resultType":"complete"}}"#
        );
        scene
            .peer
            .answers("tools/call", &format!("\"result\": {result}"));
        let outcome = scene
            .call(&format!(r#"{{"name":"shown","arguments":{ODD}}}"#))
            .await
            .expect("an answer");
        assert_eq!(outcome.raw.get(), result, "{era:?}");
        assert_eq!(outcome.passed_on().get(), result);
        assert!(outcome.saved.is_empty() && outcome.warnings.is_empty());
        let params = scene.peer.params("tools/call");
        assert!(params.contains(&format!("\"arguments\":{ODD}")), "{params}");
        assert!(params.contains(r#""name":"t""#), "{params}");
        scene.host.shutdown().await;
    }
}

#[tokio::test]
async fn meta_travels_along_but_for_what_each_hop_says_for_itself() {
    for era in ERAS {
        let scene = Scene::new(era).await;
        scene
            .peer
            .answers("tools/call", r#""result":{"content":[]}"#);
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let meta = json!({
            "traceparent": trace,
            "vendor/x": { "deep": [1] },
            "progressToken": "the-clients-own",
            "io.modelcontextprotocol/protocolVersion": "1999-01-01",
            "io.modelcontextprotocol/clientInfo": { "name": "the-client", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": { "sampling": {} },
            "io.modelcontextprotocol/logLevel": "debug",
        });
        let params = json!({ "name": "t", "arguments": {}, "_meta": meta }).to_string();
        scene.call(&params).await.expect("an answer");
        let sent: Value = serde_json::from_str(&scene.peer.params("tools/call")).expect("JSON");
        let sent = &sent["_meta"];
        assert_eq!(sent["traceparent"], trace);
        assert_eq!(sent["vendor/x"], json!({ "deep": [1] }));
        assert_ne!(sent["progressToken"], "the-clients-own");
        assert_eq!(sent["io.modelcontextprotocol/logLevel"], Value::Null);
        let version = &sent["io.modelcontextprotocol/protocolVersion"];
        let info = &sent["io.modelcontextprotocol/clientInfo"]["name"];
        let capabilities = &sent["io.modelcontextprotocol/clientCapabilities"]["sampling"];
        match era {
            Era::Legacy => assert_eq!([version, info], [&Value::Null, &Value::Null]),
            Era::Modern => {
                assert_eq!(version, "2026-07-28");
                assert_ne!(info, "the-client");
            }
        }
        assert_eq!(capabilities, &Value::Null);
        scene.host.shutdown().await;
    }
}

fn rewriting() -> LibraryHook {
    let rewrite = |_: HookInput| async {
        Ok(HookReply {
            updated_input: Some(Map::from_iter([("text".to_owned(), "new".into())])),
            ..HookReply::default()
        })
    };
    LibraryHook::new("rewriter", HookEvent::PreToolUse, "", rewrite).expect("a matcher")
}

#[tokio::test]
async fn what_a_hook_writes_is_sent_in_the_place_of_the_bytes() {
    for era in ERAS {
        let scene = Scene::with_hooks(era, vec![rewriting()]).await;
        scene
            .peer
            .answers("tools/call", r#""result":{"content":[]}"#);
        let params = format!(r#"{{"arguments":{ODD},"_meta":{{"traceparent":"00"}}}}"#);
        scene.call(&params).await.expect("an answer");
        let sent = scene.peer.params("tools/call");
        assert!(sent.contains(r#""arguments":{"text":"new"}"#), "{sent}");
        assert!(sent.contains(r#""traceparent":"00""#), "{sent}");
        scene.host.shutdown().await;
    }
}

#[tokio::test]
async fn sec_22_arguments_that_two_readers_could_read_differently_are_refused() {
    let scene = Scene::new(Era::Legacy).await;
    for arguments in [r#"{"text":"a","text":"b"}"#, r#"{"n":1e999}"#, "[]"] {
        let target = ToolTarget::Key(ToolKey::new(name("s"), "t"));
        let request = ToolRequest::new(target, raw(arguments));
        let refused = scene.host.call(request, passed_on()).await;
        let refused = refused.expect_err("it is not sent");
        let invalid = matches!(&refused, CallError::Failed(_, CallFault::Invalid(_)));
        assert!(invalid, "{arguments}: {refused}");
    }
    assert!(
        !scene
            .peer
            .heard
            .lock()
            .expect("no panic")
            .iter()
            .any(|it| it.contains("tools/call"))
    );
    scene.host.shutdown().await;
}

#[tokio::test]
async fn a_wish_for_input_is_passed_on_and_so_is_the_answer_to_it() {
    let scene = Scene::new(Era::Modern).await;
    let wish = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","x":1.0}}},"requestState":"s\u0041"}"#;
    scene
        .peer
        .answers("tools/call", &format!("\"result\":{wish}"));
    let outcome = scene.call(r#"{"arguments":{}}"#).await.expect("an answer");
    assert_eq!(outcome.raw.get(), wish);
    scene.peer.answers(
        "tools/call",
        r#""result":{"content":[],"resultType":"complete"}"#,
    );
    let responses = r#"{"k": {"action":"accept","content":{"n":1.0}}}"#;
    let params =
        format!(r#"{{"arguments":{{}},"inputResponses":{responses},"requestState":"s\u0041"}}"#);
    scene.call(&params).await.expect("an answer");
    let sent = scene.peer.params("tools/call");
    assert!(
        sent.contains(&format!("\"inputResponses\":{responses}")),
        "{sent}"
    );
    assert!(sent.contains(r#""requestState":"s\u0041""#), "{sent}");
    scene.host.shutdown().await;
}

#[tokio::test]
async fn where_answers_are_seen_to_here_nothing_of_an_earlier_request_is_sent() {
    for era in ERAS {
        let scene = Scene::new(era).await;
        scene
            .peer
            .answers("tools/call", r#""result":{"content":[]}"#);
        let target = ToolTarget::Key(ToolKey::new(name("s"), "t"));
        let params = raw(r#"{"requestState":"s","inputResponses":{},"task":{},"other":1}"#);
        let request = ToolRequest::of_params(target, &params).expect("parameters");
        let options = CallOptions {
            continuations: Continuations::Drive,
            ..passed_on()
        };
        scene.host.call(request, options).await.expect("an answer");
        let sent: Value = serde_json::from_str(&scene.peer.params("tools/call")).expect("JSON");
        for member in ["requestState", "inputResponses", "task"] {
            assert_eq!(sent[member], Value::Null, "{sent}");
        }
        assert_eq!(sent["other"], 1);
        scene.host.shutdown().await;
    }
}

#[tokio::test]
async fn a_task_is_passed_on_and_its_caller_goes_on_with_it() {
    for (era, made, ending) in [
        (
            Era::Legacy,
            r#"{"task":{"taskId":"t-1","status":"working","x":1.0}}"#,
            (TaskStep::Result, "tasks/result"),
        ),
        (
            Era::Modern,
            r#"{"resultType":"task","taskId":"t-1","status":"working","x":1.0}"#,
            (TaskStep::Update, "tasks/update"),
        ),
    ] {
        let scene = Scene::new(era).await;
        scene
            .peer
            .answers("tools/call", &format!("\"result\":{made}"));
        let outcome = scene.call(r#"{"task":{"ttl":60000}}"#).await;
        let outcome = outcome.expect("an answer");
        assert_eq!(outcome.raw.get(), made, "{era:?}");
        let task = outcome.task().expect("a task");
        assert_eq!(task, PassedTask::vouched(name("s"), "t-1".to_owned()));
        let (step, method) = ending;
        for (step, method) in [
            (TaskStep::Get, "tasks/get"),
            (step, method),
            (TaskStep::Cancel, "tasks/cancel"),
        ] {
            let answer = r#"{"taskId":"t-1","resultType":"task","n":1e2}"#;
            scene.peer.answers(method, &format!("\"result\":{answer}"));
            let params = raw(
                r#"{"taskId":"another","inputResponses":{"k": 1.0},"_meta":{"traceparent":"00"}}"#,
            );
            let told = scene
                .host
                .pass_on_task(&task, step, &params, &passed_on())
                .await;
            assert_eq!(told.expect("an answer").raw.get(), answer);
            let sent = scene.peer.params(method);
            assert!(
                sent.starts_with(r#"{"taskId":"t-1","inputResponses":{"k": 1.0},"#),
                "{sent}"
            );
            assert!(sent.contains(r#""traceparent":"00""#), "{sent}");
        }
        scene.host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_its_caller_follows_keeps_the_server_awake() {
    let (home, peer) = (Home::new(), Peer::new(Era::Modern));
    let options = HostOptions {
        in_process: vec![(name("s"), peer.server())],
        rest_after: Some(Duration::from_mins(1)),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    let scene = Scene {
        peer,
        host,
        _home: home,
    };
    scene.host.settled().await;
    let made = r#"{"resultType":"task","taskId":"t-1","status":"working"}"#;
    scene
        .peer
        .answers("tools/call", &format!("\"result\":{made}"));
    let outcome = scene.call("{}").await.expect("an answer");
    let task = outcome.task().expect("a task");
    let long = Duration::from_mins(20);
    tokio::time::sleep(long).await;
    assert!(!shown(&scene.host, "s").is_resting());
    let done = r#"{"taskId":"t-1","status":"completed","result":{"content":[]}}"#;
    scene
        .peer
        .answers("tasks/get", &format!("\"result\":{done}"));
    let (params, options) = (raw("{}"), passed_on());
    let step = scene
        .host
        .pass_on_task(&task, TaskStep::Get, &params, &options);
    step.await.expect("an answer");
    tokio::time::sleep(long).await;
    assert!(shown(&scene.host, "s").is_resting());
    scene.host.shutdown().await;
}

fn looking() -> LibraryHook {
    let look = |_: HookInput| async {
        Ok(HookReply {
            updated_tool_output: Some("hidden".into()),
            ..HookReply::default()
        })
    };
    LibraryHook::new("looker", HookEvent::PostToolUse, "", look).expect("a matcher")
}

#[tokio::test]
async fn of_a_tool_whose_results_a_hook_looks_at_no_task_is_passed_on() {
    let scene = Scene::with_hooks(Era::Modern, vec![looking()]).await;
    let made = r#"{"resultType":"task","taskId":"t-1","status":"working","pollIntervalMs":1}"#;
    scene
        .peer
        .answers("tools/call", &format!("\"result\":{made}"));
    let done = r#"{"taskId":"t-1","status":"completed","result":{"content":[{"type":"text","text":"secret"}]}}"#;
    scene
        .peer
        .answers("tasks/get", &format!("\"result\":{done}"));
    let outcome = scene.call("{}").await.expect("an answer");
    assert_eq!(outcome.task(), None);
    assert!(outcome.passed_on().get().contains("hidden"));
    scene.host.shutdown().await;
}

#[tokio::test]
async fn an_error_of_the_server_keeps_code_and_data() {
    let scene = Scene::new(Era::Legacy).await;
    let data = r#"{"elicitations":[{"mode":"url","url":"https://example.com","elicitationId":"e","message":"m","x":1.0}]}"#;
    scene.peer.answers(
        "tools/call",
        &format!(r#""error":{{"code":-32042,"message":"first a page","data":{data}}}"#),
    );
    let refused = scene.call("{}").await.expect_err("an error");
    let CallError::Failed(
        _,
        CallFault::Protocol {
            code, data: said, ..
        },
    ) = refused
    else {
        panic!("{refused}")
    };
    assert_eq!(code, -32042);
    assert_eq!(said.expect("data").get(), data);
    scene.host.shutdown().await;
}

#[tokio::test]
async fn resources_prompts_and_completion_are_passed_on_as_bytes() {
    for era in ERAS {
        let scene = Scene::new(era).await;
        for (passed, method, params) in [
            (
                PassedMethod::ReadResource,
                "resources/read",
                r#""uri":"note:\/\/1""#,
            ),
            (
                PassedMethod::GetPrompt,
                "prompts/get",
                r#""name":"p","arguments":{"n": "1.0"}"#,
            ),
            (
                PassedMethod::Complete,
                "completion/complete",
                r#""ref":{"type":"ref/prompt","name":"p", "x":1.0},"argument":{"name":"n","value":""}"#,
            ),
        ] {
            let result = format!(r#"{{"x": {ODD}}}"#);
            scene.peer.answers(method, &format!("\"result\":{result}"));
            let whole = raw(&format!(
                r#"{{"_meta":{{"traceparent":"00"}},{params},"more": 1.0}}"#
            ));
            let answer = scene
                .host
                .pass_on(&name("s"), passed, &whole, &passed_on())
                .await;
            assert_eq!(answer.expect("an answer").raw.get(), result, "{method}");
            let sent = scene.peer.params(method);
            assert!(
                sent.starts_with(&format!("{{{params},\"_meta\":")),
                "{sent}"
            );
            assert!(sent.contains(r#""traceparent":"00""#), "{sent}");
            assert!(sent.contains(r#""more":1.0"#), "{sent}");
        }
        scene.host.shutdown().await;
    }
}
