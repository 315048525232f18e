//! The scripted server must itself be right where it is not told to be wrong.

use serde_json::{Value, json};

use super::{Answer, Server};
use crate::{Exit, Script, Speaks};

fn ask(server: &mut Server, method: &str, params: &Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    match server.answer(&message.to_string()) {
        Answer::Message { id, body } => {
            assert_eq!(id, 1);
            body
        }
        other => panic!("no answer but {other:?}"),
    }
}

fn modern() -> Value {
    json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} } })
}

#[test]
fn the_default_answers_both_eras() {
    let mut server = Server::new(Script::default());
    let greeting = ask(
        &mut server,
        "initialize",
        &json!({ "protocolVersion": "2025-06-18" }),
    );
    assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18");
    let discovery = ask(&mut server, "server/discover", &modern());
    assert_eq!(
        discovery["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    assert_eq!(discovery["result"]["resultType"], "complete");
}

#[test]
fn one_era_refuses_the_other() {
    let mut legacy = Server::new(Script {
        speaks: Speaks::Legacy,
        ..Script::default()
    });
    assert_eq!(
        ask(&mut legacy, "server/discover", &modern())["error"]["code"],
        -32601
    );
    let mut only_modern = Server::new(Script {
        speaks: Speaks::Modern,
        ..Script::default()
    });
    assert_eq!(
        ask(&mut only_modern, "initialize", &json!({}))["error"]["code"],
        -32022
    );
    assert_eq!(
        ask(&mut only_modern, "tools/list", &json!({}))["error"]["code"],
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
    let mut server = Server::new(script);
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let result = ask(&mut server, "tools/list", &params)["result"].take();
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
    let exit = Some(Exit { code: 3, after: 1 });
    let mut server = Server::new(Script {
        exit,
        ..Script::default()
    });
    assert!(ask(&mut server, "ping", &json!({}))["result"].is_object());
    let again = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    assert_eq!(server.answer(again), Answer::Exit(3));

    let mut shy = Server::new(Script {
        exit_on_probe: Some(4),
        ..Script::default()
    });
    assert_eq!(shy.answer(again), Answer::Exit(4));
}

#[test]
fn a_hung_call_and_a_silent_method_get_no_answer() {
    let silent = vec!["tools/list".to_owned()];
    let mut server = Server::new(Script {
        silent,
        ..Script::default()
    });
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(server.answer(list), Answer::Nothing);
    let hang = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang"}}"#;
    assert_eq!(server.answer(hang), Answer::Nothing);
}
