//! What the program is asked: whether a call may run, and what servers want to know.

use serde_json::{Value, json};
use toolway_testkit::TempHome;

use super::{Home, Program, entry, home_of, ruled, text};

fn echo(said: &str) -> Value {
    json!({ "server": "files", "tool": "echo", "arguments": { "text": said } })
}

/// A program that answers whether calls may run.
fn asked(home: impl Home, servers: &Value) -> Program {
    Program::begun(
        home,
        &json!({ "asks": { "permission": true, "form": true, "url": true }, "servers": servers }),
    )
}

fn answer(program: &mut Program, reply: Value) {
    program.answers(move |_, _| Some(Ok(reply.clone())));
}

#[test]
fn a_program_is_asked_with_all_that_it_takes_to_decide() {
    let mut program = asked(home_of(&["files"]), &json!({}));
    answer(&mut program, json!({ "behavior": "allow" }));
    let result = program.ask("toolway/call", &echo("hello")).unwrap();
    assert_eq!(text(&result), "hello");
    let question = program.until_asked("toolway/ask/permission")["params"].take();
    assert_eq!(question["name"], "mcp__files__echo");
    assert_eq!(question["server"]["name"], "files");
    assert_eq!(question["server"]["provenance"], "user");
    let file = question["server"]["source"]["file"].as_str().unwrap();
    assert!(file.ends_with("settings.json"), "{file}");
    assert_eq!(question["arguments"], json!({ "text": "hello" }));
    assert_eq!(question["description"], "Says it again");
    let choices = json!(["yes", "session", "always-tool", "always-server", "no"]);
    assert_eq!(question["choices"], choices);
    assert_eq!(question["suggestions"][0]["rule"], "mcp__files__echo");
    assert_eq!(question["agent"], Value::Null);
}

#[test]
fn a_no_is_told_with_its_reason() {
    let mut program = asked(home_of(&["files"]), &json!({}));
    answer(
        &mut program,
        json!({ "behavior": "deny", "message": "not on Thursdays" }),
    );
    let refused = program.ask("toolway/call", &echo("hello")).unwrap_err();
    assert_eq!(
        refused["data"],
        json!({ "reason": "refused", "by": "person" })
    );
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("not on Thursdays"),
        "{refused}"
    );
}

#[test]
fn a_yes_is_remembered_as_it_was_offered() {
    let home = home_of(&["files"]);
    let mut program = asked(&home, &json!({}));
    answer(
        &mut program,
        json!({ "behavior": "allow", "remember": "session" }),
    );
    for _ in 0..2 {
        program.ask("toolway/call", &echo("hello")).unwrap();
    }
    assert_eq!(program.asked.len(), 1, "{:?}", program.asked);
    answer(
        &mut program,
        json!({ "behavior": "allow", "remember": "always-tool" }),
    );
    let slow = json!({ "server": "files", "tool": "slow", "arguments": { "ms": 1 } });
    program.ask("toolway/call", &slow).unwrap();
    let settings = home.read(home.config_home().join("settings.json"));
    assert!(settings.contains("mcp__files__slow"), "{settings}");
}

#[test]
fn no_rule_is_offered_and_none_is_kept_for_what_the_program_brought() {
    let home = TempHome::new();
    let mut program = asked(&home, &json!({ "files": entry("mine") }));
    answer(
        &mut program,
        json!({ "behavior": "allow", "remember": "always-server" }),
    );
    program.ask("toolway/call", &echo("hello")).unwrap();
    let question = program.until_asked("toolway/ask/permission")["params"].take();
    assert_eq!(question["server"]["provenance"], "dynamic");
    assert_eq!(question["choices"], json!(["yes", "session", "no"]));
    assert_eq!(question["suggestions"], json!([]));
    // What was not offered is not remembered either.
    program.ask("toolway/call", &echo("hello")).unwrap();
    program.until_asked("toolway/ask/permission");
    assert!(!home.config_home().join("settings.json").exists());
}

#[test]
fn changed_arguments_are_sent_once_they_fit_and_nothing_forbids_them() {
    let rules = json!({ "deny": ["mcp__files__echo(text:forbidden*)"] });
    let mut program = asked(ruled(&["files"], &rules), &json!({}));
    let allow = |arguments: Value| json!({ "behavior": "allow", "updatedArguments": arguments });
    answer(&mut program, allow(json!({ "text": "changed" })));
    assert_eq!(
        text(&program.ask("toolway/call", &echo("hello")).unwrap()),
        "changed"
    );
    answer(&mut program, allow(json!({ "text": 7 })));
    let unfit = program.ask("toolway/call", &echo("hello")).unwrap_err();
    assert_eq!(unfit["data"]["by"], "person");
    assert!(
        unfit["message"].as_str().unwrap().contains("do not fit"),
        "{unfit}"
    );
    answer(&mut program, allow(json!({ "text": "forbidden fruit" })));
    let denied = program.ask("toolway/call", &echo("hello")).unwrap_err();
    assert_eq!(denied["data"]["by"], "rule", "{denied}");
}

#[test]
fn what_is_no_answer_is_a_no() {
    let mut program = asked(home_of(&["files"]), &json!({}));
    for garbage in [
        json!({}),
        json!("yes"),
        json!({ "behavior": "maybe" }),
        json!(null),
    ] {
        answer(&mut program, garbage);
        let refused = program.ask("toolway/call", &echo("hello")).unwrap_err();
        assert_eq!(
            refused["data"],
            json!({ "reason": "refused", "by": "nobody" })
        );
    }
    program.answers(|_, _| Some(Err(json!({ "code": -1, "message": "broken" }))));
    let refused = program.ask("toolway/call", &echo("hello")).unwrap_err();
    assert_eq!(refused["data"]["by"], "nobody");
}

#[test]
fn a_question_that_is_not_wanted_any_more_is_taken_back() {
    let mut program = asked(home_of(&["files"]), &json!({}));
    let call = program.send("toolway/call", &echo("hello"));
    let question = program.until_asked("toolway/ask/permission");
    program.cancel(call);
    assert_eq!(
        program.answer_to(call).unwrap_err()["data"]["reason"],
        "cancelled"
    );
    let taken_back = program.until_told(|told| told["method"] == "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    // An answer that comes all the same is nobody's.
    let late = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "behavior": "allow" } });
    program.say(&late);
    program.say(&late);
    let listed = program.ask("toolway/questions", &json!({})).unwrap();
    assert_eq!(listed["questions"], json!([]));
}

#[test]
fn a_question_can_be_answered_by_its_id_as_well_and_is_answered_once() {
    let mut program = asked(home_of(&["files"]), &json!({}));
    let call = program.send("toolway/call", &echo("hello"));
    let question = program.until_asked("toolway/ask/permission");
    let listed = program.ask("toolway/questions", &json!({})).unwrap();
    let id = listed["questions"][0]["id"].clone();
    let given = json!({ "id": id, "answer": "yes" });
    program.ask("toolway/answer", &given).unwrap();
    assert_eq!(text(&program.answer_to(call).unwrap()), "hello");
    let taken_back = program.until_told(|told| told["method"] == "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    let again = program.ask("toolway/answer", &given).unwrap_err();
    assert_eq!(again["data"]["reason"], "answered");
    let unknown = json!({ "id": "nothing", "answer": "yes" });
    let unknown = program.ask("toolway/answer", &unknown).unwrap_err();
    assert_eq!(unknown["data"]["reason"], "unknown-question");
}

#[test]
fn what_a_server_wants_to_know_is_asked_of_the_program() {
    let mut program = asked(home_of(&["files"]), &json!({}));
    program.answers(|method, params| {
        Some(Ok(match method {
            "toolway/ask/elicitation" if params["mode"] == "form" => {
                json!({ "action": "accept", "content": { "word": "sesame" } })
            }
            "toolway/ask/elicitation" => json!({ "action": "decline" }),
            _ => json!({ "behavior": "allow" }),
        }))
    });
    let call = json!({ "server": "files", "tool": "elicit", "arguments": {} });
    let result = program.ask("toolway/call", &call).unwrap();
    assert!(result.to_string().contains("sesame"), "{result}");
    let question = program.until_asked("toolway/ask/elicitation")["params"].take();
    assert_eq!(question["mode"], "form");
    assert_eq!(question["server"]["name"], "files");
    assert!(question["schema"]["properties"].is_object(), "{question}");
}

#[test]
fn what_a_program_does_not_answer_is_not_asked_of_it() {
    let said = json!({ "asks": { "permission": true } });
    let mut program = Program::begun(home_of(&["files"]), &said);
    answer(&mut program, json!({ "behavior": "allow" }));
    let call = json!({ "server": "files", "tool": "elicit", "arguments": {} });
    let _ = program.ask("toolway/call", &call);
    let elicited = program
        .asked
        .iter()
        .any(|it| it["method"] == "toolway/ask/elicitation");
    assert!(!elicited, "{:?}", program.asked);
}
