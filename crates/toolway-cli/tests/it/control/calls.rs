//! Calls: what they answer, how they are judged, and that each has one answer.

use serde_json::{Value, json};

use super::{Program, home_of, ruled, text};

fn echo(check: bool) -> Value {
    json!({ "server": "files", "tool": "echo", "arguments": { "text": "hello" }, "check": check })
}

#[test]
fn a_call_that_the_program_vouches_for_runs_and_one_that_nobody_answers_for_does_not() {
    let mut program = Program::begun(home_of(&["files"]), &json!({}));
    let result = program.ask("toolway/call", &echo(false)).unwrap();
    assert_eq!(text(&result), "hello");
    let by_name =
        json!({ "name": "mcp__files__echo", "arguments": { "text": "x" }, "check": false });
    assert_eq!(text(&program.ask("toolway/call", &by_name).unwrap()), "x");
}

#[test]
fn deny_rules_hold_for_what_a_program_vouches_for_and_allow_rules_spare_the_question() {
    let rules = json!({ "deny": ["mcp__files__slow"], "allow": ["mcp__files__echo"] });
    let home = ruled(&["files"], &rules);
    let mut program = Program::begun(&home, &json!({}));
    assert_eq!(
        text(&program.ask("toolway/call", &echo(true)).unwrap()),
        "hello"
    );
    let denied =
        json!({ "server": "files", "tool": "slow", "arguments": { "ms": 1 }, "check": false });
    let denied = program.ask("toolway/call", &denied).unwrap_err();
    assert_eq!(denied["code"], -32001);
    assert_eq!(denied["data"], json!({ "reason": "refused", "by": "rule" }));
}

#[test]
fn an_allow_rule_for_one_definition_of_a_name_permits_no_other() {
    let home = ruled(
        &["files"],
        &json!({ "allow": ["mcp__files__echo"], "deny": ["mcp__files__slow"] }),
    );
    let said = json!({ "servers": { "files": super::entry("other") } });
    let mut program = Program::begun(&home, &said);
    // Nobody is asked: the owner is, and does not answer within the time of the call.
    let id = program.send("toolway/call", &echo(true));
    let waiting = toolway_testkit::eventually_blocking(|| {
        let shown = crate::support::toolway(&home, &["approvals", "list", "--json"]);
        let shown: Value =
            serde_json::from_str(&shown.stdout).map_err(|error| error.to_string())?;
        let questions = shown["questions"].as_array().cloned().unwrap_or_default();
        questions.first().cloned().ok_or_else(|| shown.to_string())
    });
    assert_eq!(waiting["name"], "mcp__files__echo");
    let choices: Vec<_> = waiting["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["answer"])
        .collect();
    assert_eq!(
        choices,
        ["yes", "session", "no"],
        "no rule can be kept for it"
    );
    program.cancel(id);
    assert_eq!(
        program.answer_to(id).unwrap_err()["data"]["reason"],
        "cancelled"
    );
    let slow =
        json!({ "server": "files", "tool": "slow", "arguments": { "ms": 1 }, "check": false });
    assert_eq!(
        program.ask("toolway/call", &slow).unwrap_err()["data"]["by"],
        "rule"
    );
}

#[test]
fn each_kind_of_failure_has_its_word() {
    let mut program = Program::begun(
        home_of(&["files"]),
        &json!({ "servers": {
        "broken": { "command": "/no/such/program" } } }),
    );
    let mut reason = |params: Value| {
        let error = program.ask("toolway/call", &params).unwrap_err();
        let code = error["code"].as_i64().unwrap();
        (code, error["data"]["reason"].as_str().unwrap().to_owned())
    };
    let call = |server: &str, tool: &str, arguments: Value| json!({ "server": server, "tool": tool, "arguments": arguments, "check": false });
    let said = |code, word: &str| (code, word.to_owned());
    assert_eq!(
        reason(call("nobody", "x", json!({}))),
        said(-32602, "unknown-server")
    );
    assert_eq!(
        reason(call("files", "nothing", json!({}))),
        said(-32602, "unknown-tool")
    );
    assert_eq!(
        reason(call("files", "echo", json!({ "text": 7 }))),
        said(-32602, "invalid")
    );
    assert_eq!(
        reason(json!({ "server": "files" })),
        said(-32602, "invalid")
    );
    assert_eq!(
        reason(json!({ "server": "files", "tool": "echo", "arguments": 7 })),
        said(-32602, "invalid")
    );
    assert_eq!(
        reason(call("broken", "x", json!({}))),
        said(-32002, "unavailable")
    );
    let mut slow = call("files", "slow", json!({ "ms": 60_000 }));
    slow["timeout"] = json!(0.2);
    assert_eq!(reason(slow), said(-32004, "timed-out"));
}

#[test]
fn progress_of_a_call_comes_under_its_own_token() {
    let mut program = Program::begun(home_of(&["files"]), &json!({}));
    let call = json!({ "server": "files", "tool": "progress", "arguments": { "count": 3 }, "check": false,
        "_meta": { "progressToken": "mine" } });
    program.ask("toolway/call", &call).unwrap();
    let told = program.until_told(|told| told["method"] == "notifications/progress");
    assert_eq!(told["params"]["progressToken"], "mine");
}

#[test]
fn a_call_that_is_taken_back_is_answered_once_with_that() {
    let mut program = Program::begun(home_of(&["files"]), &json!({}));
    let slow =
        json!({ "server": "files", "tool": "slow", "arguments": { "ms": 60_000 }, "check": false });
    let id = program.send("toolway/call", &slow);
    program.cancel(id);
    program.cancel(id);
    let error = program.answer_to(id).unwrap_err();
    assert_eq!(
        (&error["code"], &error["data"]["reason"]),
        (&json!(-32005), &json!("cancelled"))
    );
    program.ask("toolway/servers", &json!({})).unwrap();
    assert!(program.answered.is_empty(), "{:?}", program.answered);
}

#[test]
fn results_come_as_the_bytes_that_the_server_sent() {
    let mut program = Program::begun(home_of(&["files"]), &json!({}));
    let sent =
        r#"{"content":[],"structuredContent":{"huge":1234567890123456789,"é":1.0},"own":null}"#;
    let call = json!({ "server": "files", "tool": "verbatim", "arguments": { "result": sent },
        "check": false });
    let result = program.ask("toolway/call", &call).unwrap();
    assert_eq!(result["structuredContent"]["é"].to_string(), "1.0");
    assert!(result.get("own").is_some(), "{result}");
}
