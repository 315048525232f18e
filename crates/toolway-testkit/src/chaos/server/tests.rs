//! The scripted server must itself be right where it is not told to be wrong.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{ChaosServer, MessageFlow};
use crate::chaos::outlet::{ChaosClient, Outlet};
use crate::{Script, ScriptedExit, SpokenEras};

/// Keeps what it is told.
#[derive(Default)]
struct Ear(Mutex<Vec<Vec<u8>>>);

impl Outlet for Ear {
    fn send(&self, message: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().push(message.to_vec());
        Ok(())
    }
}

/// Everything the server says to one message, and what became of it.
fn say(server: &ChaosServer, message: &Value) -> (Vec<Value>, MessageFlow) {
    let ear = Arc::new(Ear::default());
    let client = ChaosClient {
        outlet: Arc::clone(&ear) as _,
        key: "test".to_owned(),
    };
    let flow = server.handle(&message.to_string(), &client);
    let said = ear.0.lock().unwrap();
    let said = said
        .iter()
        .map(|bytes| serde_json::from_slice(bytes).unwrap());
    (said.collect(), flow)
}

fn ask(server: &ChaosServer, method: &str, params: &Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let (mut said, flow) = say(server, &message);
    assert_eq!((said.len(), flow), (1, MessageFlow::Done), "{said:?}");
    assert_eq!(said[0]["id"], 1);
    said.remove(0)
}

fn call(server: &ChaosServer, tool: &str, arguments: &Value) -> Vec<Value> {
    let params = json!({ "name": tool, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    say(server, &message).0
}

fn modern() -> Value {
    json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} } })
}

#[test]
fn the_default_answers_both_eras() {
    let server = ChaosServer::new(Script::default());
    let greeting = ask(
        &server,
        "initialize",
        &json!({ "protocolVersion": "2025-06-18" }),
    );
    assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18");
    let discovery = ask(&server, "server/discover", &modern());
    assert_eq!(
        discovery["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    assert_eq!(discovery["result"]["resultType"], "complete");
}

#[test]
fn one_era_refuses_the_other() {
    let legacy = ChaosServer::new(Script {
        speaks: SpokenEras::Legacy,
        ..Script::default()
    });
    assert_eq!(
        ask(&legacy, "server/discover", &modern())["error"]["code"],
        -32601
    );
    let only_modern = ChaosServer::new(Script {
        speaks: SpokenEras::Modern,
        ..Script::default()
    });
    assert_eq!(
        ask(&only_modern, "initialize", &json!({}))["error"]["code"],
        -32022
    );
    assert_eq!(
        ask(&only_modern, "tools/list", &json!({}))["error"]["code"],
        -32602
    );
}

#[test]
fn pages_hold_every_tool_once() {
    let script = Script {
        fillers: 10,
        page_size: 4,
        ..Script::default()
    };
    let server = ChaosServer::new(script);
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let result = ask(&server, "tools/list", &params)["result"].take();
        let page = result["tools"].as_array().unwrap();
        assert!(page.len() <= 4);
        names.extend(
            page.iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = result["nextCursor"].as_str() else {
            break;
        };
        params = json!({ "cursor": cursor });
    }
    assert_eq!(names.len(), 18);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 18);
}

#[test]
fn it_ends_when_the_script_says() {
    let exit = Some(ScriptedExit { code: 3, after: 1 });
    let server = ChaosServer::new(Script {
        exit,
        ..Script::default()
    });
    assert!(ask(&server, "ping", &json!({}))["result"].is_object());
    let again = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    assert_eq!(say(&server, &again), (vec![], MessageFlow::Exit(3)));

    let shy = ChaosServer::new(Script {
        exit_on_probe: Some(4),
        ..Script::default()
    });
    assert_eq!(say(&shy, &again), (vec![], MessageFlow::Exit(4)));
}

#[test]
fn a_hung_call_and_a_silent_method_get_no_answer() {
    let silent = vec!["tools/list".to_owned()];
    let server = ChaosServer::new(Script {
        silent,
        ..Script::default()
    });
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "hang" })),
    ] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        assert_eq!(say(&server, &message), (vec![], MessageFlow::Open));
    }
}

#[test]
fn the_dramas_are_played_only_when_asked_for() {
    let names = |script| {
        let list = ask(&ChaosServer::new(script), "tools/list", &json!({}));
        let tools = list["result"]["tools"].as_array().unwrap().clone();
        tools.iter().any(|tool| tool["name"] == "twice")
    };
    assert!(!names(Script::default()));
    assert!(names(Script {
        drama: true,
        ..Script::default()
    }));
}

#[test]
fn doubled_and_mistyped_answers_are_what_they_say() {
    let server = ChaosServer::new(Script::default());
    let twice = call(&server, "twice", &json!({}));
    assert_eq!((twice.len(), &twice[1]["id"]), (2, &json!(7)));
    let ids = |kind: &str| -> Vec<Value> {
        let said = call(&server, "mistyped", &json!({ "as": kind }));
        said.iter().map(|message| message["id"].clone()).collect()
    };
    assert_eq!(ids("string"), [json!("7")]);
    assert_eq!(ids("float"), [json!(7.0)]);
    assert_eq!(ids("unknown"), [json!(4_000_000_000_u64), json!(7)]);
    assert_eq!(ids("null"), [Value::Null, json!(7)]);
    let both = call(&server, "mistyped", &json!({ "as": "both" }));
    assert!(both[0]["result"].is_object() && both[0]["error"].is_object());
}

#[test]
fn input_is_asked_for_so_many_times_and_the_state_must_come_back() {
    let server = ChaosServer::new(Script::default());
    let mut params = modern();
    params["name"] = json!("elicit");
    params["arguments"] = json!({ "rounds": 2 });
    for _ in 0..2 {
        let asked = ask(&server, "tools/call", &params)["result"].take();
        assert_eq!(asked["resultType"], "input_required");
        params["requestState"] = asked["requestState"].clone();
        params["inputResponses"] = json!({ "q": { "action": "accept", "content": {} } });
    }
    let done = ask(&server, "tools/call", &params)["result"].take();
    assert_eq!(done["resultType"], "complete");
    assert_eq!(done.get("isError"), None);
    params["requestState"] = json!("another");
    let refused = ask(&server, "tools/call", &params)["result"].take();
    assert_eq!(refused["isError"], true);
}

#[test]
fn a_task_is_done_after_so_many_polls() {
    let server = ChaosServer::new(Script::default());
    let mut params = modern();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    params["name"] = json!("task");
    params["arguments"] = json!({ "polls": 1 });
    let task = ask(&server, "tools/call", &params)["result"].take();
    assert_eq!(task["resultType"], "task");
    let mut params = modern();
    params["taskId"] = task["taskId"].clone();
    let status = |params: &Value| ask(&server, "tasks/get", params)["result"]["status"].take();
    assert_eq!(status(&params), "working");
    assert_eq!(status(&params), "completed");
}

#[test]
fn changes_reach_modern_subscribers_with_their_id() {
    let server = ChaosServer::new(Script {
        restless: true,
        ..Script::default()
    });
    let ear = Arc::new(Ear::default());
    let client = ChaosClient {
        outlet: Arc::clone(&ear) as _,
        key: "subscriber".to_owned(),
    };
    let mut params = modern();
    params["notifications"] = json!({ "toolsListChanged": true });
    let listen = json!({ "jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen",
        "params": params });
    let listen = listen.to_string();
    assert_eq!(server.handle(&listen, &client), MessageFlow::Open);
    ask(&server, "tools/list", &modern());
    let heard = ear.0.lock().unwrap();
    let heard: Vec<Value> = heard
        .iter()
        .map(|bytes| serde_json::from_slice(bytes).unwrap())
        .collect();
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert_eq!(heard[1]["method"], "notifications/tools/list_changed");
    assert_eq!(
        heard[1]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "sub"
    );
}

fn offering() -> ChaosServer {
    ChaosServer::new(Script {
        drama: true,
        offers: true,
        ..Script::default()
    })
}

#[test]
fn what_is_verbatim_and_mirrored_is_not_written_anew() {
    let server = offering();
    let ear = Arc::new(Ear::default());
    let client = ChaosClient {
        outlet: Arc::clone(&ear) as _,
        key: "test".to_owned(),
    };
    let odd = r#"{ "n": 1.0e400 , "n":2}"#;
    for text in [
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"verbatim","arguments":{{"result":{}}}}}}}"#,
            json!(odd)
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"chaos:verbatim/{}"}}}}"#,
            odd.bytes()
                .fold(String::new(), |all, byte| all + &format!("{byte:02x}"))
        ),
    ] {
        assert_eq!(server.handle(&text, &client), MessageFlow::Done);
        let said = ear.0.lock().unwrap().pop().unwrap();
        let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{odd}}}"#);
        assert_eq!(String::from_utf8(said).unwrap(), expected);
    }
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mirror","arguments":{ "x":1.0 }}}"#;
    server.handle(text, &client);
    let said: Value = serde_json::from_slice(&ear.0.lock().unwrap()[0]).unwrap();
    assert_eq!(said["result"]["content"][0]["text"], r#"{ "x":1.0 }"#);
}

#[test]
fn a_legacy_task_is_made_where_it_is_asked_for() {
    let server = offering();
    let at_once = ask(&server, "tools/call", &json!({ "name": "task" }));
    assert_eq!(at_once["result"]["content"][0]["text"], "done at once");
    let made = ask(
        &server,
        "tools/call",
        &json!({ "name": "task", "task": { "ttl": 1000 } }),
    );
    let task = &made["result"]["task"];
    assert_eq!(task["status"], "working");
    let id = json!({ "taskId": task["taskId"] });
    assert_eq!(
        ask(&server, "tasks/get", &id)["result"]["status"],
        "working"
    );
    assert_eq!(
        ask(&server, "tasks/get", &id)["result"]["status"],
        "completed"
    );
    let result = ask(&server, "tasks/result", &id);
    assert_eq!(result["result"]["content"][0]["text"], "the task is done");
}

#[test]
fn a_page_is_wanted_until_it_was_visited() {
    let server = offering();
    let wanted = ask(&server, "tools/call", &json!({ "name": "login" }));
    assert_eq!(wanted["error"]["code"], -32042);
    let page = &wanted["error"]["data"]["elicitations"][0]["elicitationId"];
    call(&server, "visited", &json!({ "id": page }));
    let done = ask(&server, "tools/call", &json!({ "name": "login" }));
    assert_eq!(done["result"]["content"][0]["text"], "logged in");
}
