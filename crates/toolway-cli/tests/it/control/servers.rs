//! The beginning, and the servers that a program brings.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::TempHome;

use super::{Program, entry, home_of, names, resident};
use crate::support::toolway;

#[test]
fn a_program_begins_and_sees_its_servers_and_those_of_files() {
    let home = home_of(&["files"]);
    let mut program = Program::start(&home);
    program.answers(resident);
    let said = json!({ "client": { "name": "tests", "version": "1" },
        "servers": { "calc": { "type": "sdk" }, "mine": entry("mine"), "bad": { "command": 7 } } });
    let begun = program.ask("toolway/initialize", &said).unwrap();
    assert_eq!(begun["protocol"], 1);
    assert_eq!(begun["pid"], program.child.id());
    assert_eq!(begun["added"], json!(["calc", "mine"]));
    assert_snapshot!(begun["errors"], @r#"{"bad":"`command` must be a string, not a number"}"#);
    assert_eq!(names(&begun["servers"]), ["calc", "files", "mine"]);
    let tools = program.ask("toolway/tools", &json!({})).unwrap();
    let tools = names(&tools["tools"]);
    for tool in ["mcp__calc__add", "mcp__files__echo", "mcp__mine__echo"] {
        assert!(tools.contains(&tool), "{tools:?}");
    }
    let listed = program.ask(
        "toolway/servers",
        &json!({ "server": "calc", "tools": true }),
    );
    let row = &listed.unwrap()["servers"][0];
    assert_eq!(row["tools"][0]["name"], "mcp__calc__add");
    let told = [
        "status",
        "scope",
        "provenance",
        "transport",
        "era",
        "toolCount",
        "resting",
    ];
    let told: Vec<String> = told
        .iter()
        .map(|key| format!("{key}: {}", row[*key]))
        .collect();
    assert_snapshot!(told.join("\n"), @r#"
    status: "connected"
    scope: "dynamic"
    provenance: "sdk"
    transport: "sdk"
    era: "legacy"
    toolCount: 1
    resting: false
    "#);
    let all = program.ask("toolway/servers", &json!({})).unwrap();
    let provenances: Vec<_> = all["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["provenance"])
        .collect();
    assert_eq!(provenances, ["sdk", "user", "dynamic"]);
    assert!(program.hang_up().success());
}

#[test]
fn a_strict_program_has_its_own_servers_only() {
    let home = home_of(&["files"]);
    let said = json!({ "strict": true, "servers": { "mine": entry("mine") } });
    let mut program = Program::begun(&home, &said);
    let listed = program.ask("toolway/servers", &json!({})).unwrap();
    assert_eq!(names(&listed["servers"]), ["mine"]);
    let error = program.ask(
        "toolway/call",
        &json!({ "server": "files", "tool": "echo" }),
    );
    assert_eq!(error.unwrap_err()["data"]["reason"], "unknown-server");
}

#[test]
fn toolway_initialize_comes_first_and_once() {
    let home = TempHome::new();
    let mut program = Program::start(&home);
    let early = program.ask("toolway/servers", &json!({})).unwrap_err();
    assert_eq!(early["code"], -32600);
    assert_eq!(early["data"]["reason"], "not-initialized");
    program.ask("toolway/initialize", &json!({})).unwrap();
    let again = program.ask("toolway/initialize", &json!({})).unwrap_err();
    assert_eq!(again["data"]["reason"], "not-initialized");
    let unknown = program.ask("toolway/frobnicate", &json!({})).unwrap_err();
    assert_eq!(unknown["code"], -32601);
}

#[test]
fn mcp_needs_none_of_it_and_sees_what_the_program_brought_later() {
    let home = home_of(&["files"]);
    let mut program = Program::start(&home);
    program.answers(resident);
    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "tests", "version": "1" } });
    program.ask("initialize", &greeting).unwrap();
    program.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let call = json!({ "name": "mcp__files__echo", "arguments": { "text": "hello" } });
    let result = program.ask("tools/call", &call).unwrap();
    assert_eq!(super::text(&result), "hello");
    program.answers(|method, params| match method {
        "toolway/ask/permission" => Some(Ok(json!({ "behavior": "deny", "message": "not now" }))),
        _ => resident(method, params),
    });
    let said = json!({ "asks": { "permission": true }, "servers": { "calc": { "type": "sdk",
        "tools": [{ "name": "add", "permission_policy": "always_allow" }] } } });
    program.ask("toolway/initialize", &said).unwrap();
    program.until_told(|told| told["method"] == "notifications/tools/list_changed");
    let call = json!({ "name": "mcp__calc__add", "arguments": { "a": 2, "b": 3 } });
    let result = program.ask("tools/call", &call).unwrap();
    assert_eq!(super::text(&result), "5");
    // From its beginning on, what comes as MCP is judged like its other calls.
    let call = json!({ "name": "mcp__files__echo", "arguments": { "text": "hello" } });
    let refused = program.ask("tools/call", &call).unwrap();
    assert_eq!(refused["isError"], true);
    assert!(super::text(&refused).contains("not now"), "{refused}");
}

#[test]
fn a_set_is_whole_and_what_is_equal_stays_connected() {
    let home = TempHome::new();
    let said =
        json!({ "servers": { "one": entry("one"), "two": entry("two"), "three": entry("three") } });
    let mut program = Program::begun(&home, &said);
    let process = |program: &mut Program, server: &str| -> Value {
        let call = json!({ "server": server, "tool": "report", "check": false });
        let report = program.ask("toolway/call", &call).unwrap();
        report["structuredContent"]["process"].clone()
    };
    let before = process(&mut program, "one");
    let changed = process(&mut program, "two");
    let mut two = entry("two");
    two["env"] = json!({ "OTHER": "1" });
    let set = json!({ "servers": { "one": entry("one"), "two": two, "four": entry("four"),
        "": entry("none"), "odd": { "type": "carrier-pigeon" } } });
    let set = program.ask("toolway/servers/set", &set).unwrap();
    assert_eq!(set["added"], json!(["four", "two"]));
    assert_eq!(set["removed"], json!(["three", "two"]));
    let errors: Vec<_> = set["errors"].as_object().unwrap().keys().collect();
    assert_eq!(errors, ["", "odd"]);
    assert_eq!(process(&mut program, "one"), before);
    assert_ne!(process(&mut program, "two"), changed);
    let gone = program.ask(
        "toolway/call",
        &json!({ "server": "three", "tool": "report", "check": false }),
    );
    assert_eq!(gone.unwrap_err()["data"]["reason"], "unknown-server");
    let none = program
        .ask("toolway/servers/set", &json!({ "servers": {} }))
        .unwrap();
    assert_eq!(none["removed"], json!(["four", "one", "two"]));
}

#[test]
fn managed_policy_is_asked_about_each_server_that_a_program_brings() {
    let home = TempHome::new();
    let policy = json!({ "deniedMcpServers": [{ "serverName": "forbidden" }] });
    std::fs::write(
        home.system().join("managed-settings.json"),
        policy.to_string(),
    )
    .unwrap();
    let said = json!({ "servers": { "forbidden": entry("x"), "fine": entry("fine") } });
    let mut program = Program::start(&home);
    let begun = program.ask("toolway/initialize", &said).unwrap();
    assert_eq!(begun["added"], json!(["fine"]));
    let why = begun["errors"]["forbidden"].as_str().unwrap();
    assert!(why.contains("deniedMcpServers"), "{why}");
    let resident = json!({ "servers": { "forbidden": { "type": "sdk" } } });
    let set = program.ask("toolway/servers/set", &resident).unwrap();
    assert_eq!(set["added"], json!([]));
    assert!(set["errors"]["forbidden"].is_string(), "{set}");
}

#[test]
fn what_policy_forbids_while_a_program_runs_is_gone() {
    let home = TempHome::new();
    let said = json!({ "servers": { "mine": entry("mine") } });
    let mut program = Program::begun(&home, &said);
    let call =
        json!({ "server": "mine", "tool": "echo", "arguments": { "text": "x" }, "check": false });
    program.ask("toolway/call", &call).unwrap();
    let policy = json!({ "deniedMcpServers": [{ "serverName": "mine" }] });
    std::fs::write(
        home.system().join("managed-settings.json"),
        policy.to_string(),
    )
    .unwrap();
    let refused =
        toolway_testkit::eventually_blocking(|| match program.ask("toolway/call", &call) {
            Err(error) => Ok(error),
            Ok(_) => Err("it still answers".to_owned()),
        });
    assert!(
        ["unknown-server", "unavailable", "in-doubt"]
            .contains(&refused["data"]["reason"].as_str().unwrap()),
        "{refused}"
    );
}

#[test]
fn the_command_says_what_it_is() {
    let home = TempHome::new();
    let help = toolway(&home, &["control", "--help"]);
    help.expect_code(0);
}
