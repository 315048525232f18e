//! Servers that live in the program.

use serde_json::{Value, json};
use toolway_testkit::TempHome;

use super::{Program, add, calculator, resident, text};

fn sum(a: i64, b: i64) -> Value {
    json!({ "server": "calc", "tool": "add", "arguments": { "a": a, "b": b }, "check": false })
}

fn with_calc(
    answers: impl FnMut(&str, &Value) -> Option<Result<Value, Value>> + 'static,
) -> Program {
    let mut program = Program::start(TempHome::new());
    program.answers(answers);
    let said = json!({ "servers": { "calc": { "type": "sdk" } } });
    program.ask("toolway/initialize", &said).unwrap();
    program
}

#[test]
fn a_function_of_the_program_is_a_tool_of_the_host() {
    let mut program = with_calc(resident);
    assert_eq!(
        text(&program.ask("toolway/call", &sum(20, 22)).unwrap()),
        "42"
    );
    let first = program.until_asked("toolway/servers/message");
    assert_eq!(first["params"]["server"], "calc");
    assert_eq!(first["params"]["connection"], 1);
}

#[test]
fn with_a_manifest_nothing_is_asked_at_the_start() {
    let mut program = Program::start(TempHome::new());
    program.answers(resident);
    let initialize = calculator(&json!({ "id": 1, "method": "initialize" }))["result"].take();
    let manifest = json!({ "initialize": initialize, "tools": [add()] });
    let said = json!({ "servers": { "calc": { "type": "sdk", "manifest": manifest } } });
    program.ask("toolway/initialize", &said).unwrap();
    let tools = program.ask("toolway/tools", &json!({})).unwrap();
    assert_eq!(super::names(&tools["tools"]), ["mcp__calc__add"]);
    assert_eq!(text(&program.ask("toolway/call", &sum(1, 1)).unwrap()), "2");
    let methods: Vec<_> = program
        .asked
        .iter()
        .map(|it| it["params"]["message"]["method"].clone())
        .collect();
    assert_eq!(methods, ["notifications/initialized", "tools/call"]);
}

#[test]
fn a_resident_says_that_its_tools_changed_and_reports_progress() {
    let mut program = with_calc(resident);
    program.ask("toolway/tools", &json!({})).unwrap();
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let told = json!({ "server": "calc", "connection": 1, "message": changed });
    program.asked.clear();
    assert_eq!(
        program.ask("toolway/servers/message", &told).unwrap(),
        json!({})
    );
    loop {
        let asked = program.until_asked("toolway/servers/message");
        if asked["params"]["message"]["method"] == "tools/list" {
            break;
        }
    }
    // A request of the server is answered by its client.
    let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
    let ping = json!({ "server": "calc", "connection": 1, "message": ping });
    let answer = program.ask("toolway/servers/message", &ping).unwrap();
    assert_eq!(
        answer["message"],
        json!({ "jsonrpc": "2.0", "id": "p", "result": {} })
    );
}

#[test]
fn an_answer_to_something_else_is_an_error_of_that_call_alone() {
    let mut calls = 0;
    let mut program = with_calc(move |method, params| {
        let message = &params["message"];
        if message["method"] != "tools/call" {
            return resident(method, params);
        }
        calls += 1;
        Some(match calls {
            1 => Ok(json!({ "message": { "jsonrpc": "2.0", "id": 987, "result": {} } })),
            2 => Ok(json!({})),
            3 => Ok(json!({ "message": "garbage" })),
            4 => Err(json!({ "code": -32000, "message": "the function raised" })),
            _ => return resident(method, params),
        })
    });
    for _ in 0..4 {
        let error = program.ask("toolway/call", &sum(1, 2)).unwrap_err();
        assert_eq!(error["data"]["reason"], "server", "{error}");
    }
    assert_eq!(text(&program.ask("toolway/call", &sum(1, 2)).unwrap()), "3");
}

#[test]
fn a_call_that_is_taken_back_is_taken_back_from_the_program_and_its_late_answer_is_nobodys() {
    let mut program = with_calc(|method, params| {
        if params["message"]["method"] == "tools/call"
            && params["message"]["params"]["arguments"]["a"] == 0
        {
            return None;
        }
        resident(method, params)
    });
    program.ask("toolway/tools", &json!({})).unwrap();
    program.asked.clear();
    let id = program.send("toolway/call", &sum(0, 1));
    let asked = loop {
        let asked = program.until_asked("toolway/servers/message");
        if asked["params"]["message"]["method"] == "tools/call" {
            break asked;
        }
    };
    program.cancel(id);
    assert_eq!(
        program.answer_to(id).unwrap_err()["data"]["reason"],
        "cancelled"
    );
    let taken_back = program.until_told(|told| told["method"] == "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    let inner = &asked["params"]["message"]["id"];
    let late = json!({ "message": { "jsonrpc": "2.0", "id": inner, "result": { "content": [] } } });
    program.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": late }));
    program.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": late }));
    assert_eq!(text(&program.ask("toolway/call", &sum(2, 2)).unwrap()), "4");
}

#[test]
fn a_resident_that_never_answers_costs_its_own_calls_their_time_and_nothing_else() {
    let mut program = with_calc(|method, params| {
        if params["message"]["method"] == "tools/call"
            && params["message"]["params"]["arguments"]["a"] == 0
        {
            return None;
        }
        resident(method, params)
    });
    let mut stuck = sum(0, 1);
    stuck["timeout"] = json!(0.3);
    let stuck = program.send("toolway/call", &stuck);
    assert_eq!(text(&program.ask("toolway/call", &sum(2, 2)).unwrap()), "4");
    assert_eq!(
        program.answer_to(stuck).unwrap_err()["data"]["reason"],
        "timed-out"
    );
}

#[test]
fn messages_for_what_is_not_there_are_refused() {
    let mut program = with_calc(resident);
    program.ask("toolway/tools", &json!({})).unwrap();
    let mut reason = |server: &str, connection: u64, message: Value| {
        let params = json!({ "server": server, "connection": connection, "message": message });
        let error = program.ask("toolway/servers/message", &params).unwrap_err();
        error["data"]["reason"].as_str().unwrap().to_owned()
    };
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    assert_eq!(reason("nobody", 1, note.clone()), "unknown-server");
    assert_eq!(reason("calc", 7, note), "unavailable");
    assert_eq!(reason("calc", 1, json!("text")), "invalid");
    assert_eq!(
        reason(
            "calc",
            1,
            json!({ "jsonrpc": "2.0", "id": 1, "result": {} })
        ),
        "invalid"
    );
}
