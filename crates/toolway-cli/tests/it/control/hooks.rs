//! Hooks that live in the program.

use serde_json::{Value, json};

use super::{Program, home_of, text};

fn echo(said: &str) -> Value {
    json!({ "server": "files", "tool": "echo", "arguments": { "text": said }, "check": false })
}

fn hooked(hooks: &Value) -> Program {
    Program::begun(home_of(&["files"]), &json!({ "hooks": hooks }))
}

#[test]
fn a_hook_of_the_program_refuses_rewrites_and_looks_at_results() {
    let mut program = hooked(&json!([
        { "event": "PreToolUse", "matcher": "mcp__files__echo", "callback": "before" },
        { "event": "PostToolUse", "callback": "after" },
        { "event": "PostToolUseFailure", "callback": "failed" },
    ]));
    program.answers(|method, params| {
        assert_eq!(method, "toolway/hook");
        let input = &params["input"];
        assert_eq!(input["hook_event_name"], params["event"]);
        Some(Ok(match params["callback"].as_str().unwrap() {
            "before" if input["tool_input"]["text"] == "bad" => {
                json!({ "permissionDecision": "deny", "permissionDecisionReason": "bad words" })
            }
            "before" if input["tool_input"]["text"] == "odd" => {
                json!({ "updatedInput": { "text": "even" } })
            }
            "after" if input["tool_response"]["content"][0]["text"] == "even" => {
                json!({ "updatedToolOutput": "looked at" })
            }
            _ => json!({}),
        }))
    });
    assert_eq!(
        text(&program.ask("toolway/call", &echo("good")).unwrap()),
        "good"
    );
    let refused = program.ask("toolway/call", &echo("bad")).unwrap_err();
    assert_eq!(
        refused["data"],
        json!({ "reason": "refused", "by": "hook" })
    );
    assert!(
        refused["message"].as_str().unwrap().contains("bad words"),
        "{refused}"
    );
    assert_eq!(
        text(&program.ask("toolway/call", &echo("odd")).unwrap()),
        "looked at"
    );
    let slow =
        json!({ "server": "files", "tool": "slow", "arguments": { "ms": 1 }, "check": false });
    program.asked.clear();
    program.ask("toolway/call", &slow).unwrap();
    let callbacks: Vec<_> = program
        .asked
        .iter()
        .map(|it| &it["params"]["callback"])
        .collect();
    assert_eq!(callbacks, ["after"]);
}

#[test]
fn a_hook_that_fails_or_takes_too_long_refuses() {
    let mut program = hooked(&json!([
        { "event": "PreToolUse", "callback": "before", "timeout": 0.3 },
    ]));
    program.answers(|_, _| Some(Err(json!({ "code": -32000, "message": "it raised" }))));
    let refused = program.ask("toolway/call", &echo("x")).unwrap_err();
    assert_eq!(refused["data"]["by"], "hook");
    assert!(
        refused["message"].as_str().unwrap().contains("it raised"),
        "{refused}"
    );
    program.answers(|_, _| Some(Ok(json!({ "permissionDecison": "allow" }))));
    let misspelt = program.ask("toolway/call", &echo("x")).unwrap_err();
    assert_eq!(misspelt["data"]["by"], "hook");
    program.answers(|_, _| None);
    let late = program.ask("toolway/call", &echo("x")).unwrap_err();
    assert_eq!(late["data"]["by"], "hook");
    program.until_told(|told| told["method"] == "notifications/cancelled");
}

#[test]
fn hooks_that_cannot_be_are_refused_at_the_beginning() {
    let home = home_of(&[]);
    for wrong in [
        json!({ "event": "Sometimes", "callback": "x" }),
        json!({ "event": "PreToolUse" }),
        json!({ "event": "PreToolUse", "callback": "x", "matcher": "(" }),
        json!({ "event": "PreToolUse", "callback": "x", "timeout": -1 }),
    ] {
        let mut program = Program::start(&home);
        let error = program.ask("toolway/initialize", &json!({ "hooks": [wrong] }));
        assert_eq!(error.unwrap_err()["data"]["reason"], "invalid", "{wrong}");
        // It may try again.
        program.ask("toolway/initialize", &json!({})).unwrap();
    }
}
