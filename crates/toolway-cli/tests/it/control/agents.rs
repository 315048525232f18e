//! Agents of a program.

use serde_json::{Value, json};

use super::{Program, entry, home_of, names, resident, text};

fn call(server: &str, tool: &str, agent: &Value) -> Value {
    json!({ "server": server, "tool": tool, "arguments": { "text": "x" }, "agent": agent, "check": false })
}

fn alive(process: u64) -> bool {
    std::path::Path::new(&format!("/proc/{process}/stat")).exists()
}

#[test]
fn an_agent_has_what_it_names_and_servers_of_its_own_which_end_with_it() {
    let mut program = Program::begun(home_of(&["files", "other"]), &json!({}));
    let wanted = json!({ "name": "helper", "servers": ["files", "absent", { "own": entry("own") }],
        "required": ["own", "files"] });
    let started = program.ask("toolway/agents/start", &wanted).unwrap();
    assert_eq!(names(&started["servers"]), ["files", "own"]);
    assert_eq!(started["missing"], json!(["absent"]));
    let provenances: Vec<_> = started["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["provenance"])
        .collect();
    assert_eq!(provenances, ["user", "agent"]);
    let agent = started["agent"].clone();
    let report = program
        .ask("toolway/call", &call("own", "report", &agent))
        .unwrap();
    let process = report["structuredContent"]["process"].as_u64().unwrap();
    let elsewhere = program
        .ask("toolway/call", &call("other", "echo", &agent))
        .unwrap_err();
    assert_eq!(elsewhere["data"]["reason"], "unknown-server");
    let not_mine = program
        .ask("toolway/call", &call("own", "echo", &Value::Null))
        .unwrap_err();
    assert_eq!(not_mine["data"]["reason"], "unknown-server");
    assert!(alive(process));
    program
        .ask("toolway/agents/end", &json!({ "agent": agent }))
        .unwrap();
    toolway_testkit::eventually_blocking(|| {
        if alive(process) {
            Err("it lives")
        } else {
            Ok(())
        }
        .map_err(str::to_owned)
    });
    let over = program
        .ask("toolway/call", &call("files", "echo", &agent))
        .unwrap_err();
    assert_eq!(over["data"]["reason"], "unknown-agent");
}

#[test]
fn an_agent_without_what_it_requires_does_not_start_and_says_why() {
    let mut program = Program::begun(home_of(&["files"]), &json!({}));
    let wanted = json!({ "name": "needy", "servers": ["files", { "own": { "command": "/no/such" } }],
        "required": ["own", "absent"] });
    let error = program.ask("toolway/agents/start", &wanted).unwrap_err();
    let named: Vec<_> = error["data"]["obstacles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["server"])
        .collect();
    assert_eq!(named, ["own", "absent"]);
    assert_eq!(
        program
            .ask("toolway/agents/end", &json!({ "agent": "a1" }))
            .unwrap_err()["data"]["reason"],
        "unknown-agent"
    );
}

#[test]
fn an_agents_rules_only_narrow_and_its_questions_name_it() {
    let said = json!({ "asks": { "permission": true } });
    let mut program = Program::begun(home_of(&["files"]), &said);
    program.answers(|_, _| Some(Ok(json!({ "behavior": "allow", "remember": "session" }))));
    let wanted = json!({ "name": "narrow", "tools": ["mcp__files__echo", "mcp__files__slow"],
        "disallowedTools": ["mcp__files__slow"] });
    let agent = program.ask("toolway/agents/start", &wanted).unwrap()["agent"].clone();
    let tools = program
        .ask("toolway/tools", &json!({ "agent": agent }))
        .unwrap();
    let tools = names(&tools["tools"]);
    assert!(
        tools.contains(&"mcp__files__echo") && !tools.contains(&"mcp__files__report"),
        "{tools:?}"
    );
    let denied = program
        .ask("toolway/call", &call("files", "slow", &agent))
        .unwrap_err();
    assert_eq!(
        denied["data"]["reason"], "invalid",
        "its arguments are looked at first: {denied}"
    );
    let mut slow = call("files", "slow", &agent);
    slow["arguments"] = json!({ "ms": 1 });
    let denied = program.ask("toolway/call", &slow).unwrap_err();
    assert_eq!(denied["data"]["by"], "rule", "{denied}");
    let mut asks = call("files", "echo", &agent);
    asks["check"] = json!(true);
    assert_eq!(text(&program.ask("toolway/call", &asks).unwrap()), "x");
    let question = program.until_asked("toolway/ask/permission");
    assert_eq!(question["params"]["agent"], agent);
    // What one was permitted is not permitted to the program.
    asks["agent"] = Value::Null;
    program.ask("toolway/call", &asks).unwrap();
    let question = program.until_asked("toolway/ask/permission");
    assert_eq!(question["params"]["agent"], Value::Null);
}

#[test]
fn an_agent_calls_a_function_of_the_program_over_a_connection_of_its_own() {
    let mut program = Program::start(home_of(&[]));
    program.answers(resident);
    let said = json!({ "servers": { "calc": { "type": "sdk" } } });
    program.ask("toolway/initialize", &said).unwrap();
    let agent = program
        .ask("toolway/agents/start", &json!({ "name": "a" }))
        .unwrap()["agent"]
        .clone();
    for agent in [&agent, &Value::Null] {
        let mut sum = call("calc", "add", agent);
        sum["arguments"] = json!({ "a": 1, "b": 2 });
        assert_eq!(text(&program.ask("toolway/call", &sum).unwrap()), "3");
    }
    program
        .ask("toolway/servers/set", &json!({ "servers": {} }))
        .unwrap();
    program.until_told(|told| told["method"] == "toolway/servers/closed");
    let gone = program
        .ask("toolway/call", &call("calc", "add", &agent))
        .unwrap_err();
    assert_eq!(gone["data"]["reason"], "unknown-server");
}
