//! What a program may look at, and what it is told.

use serde_json::{Value, json};

use super::{Program, entry, home_of, names, ruled};

#[test]
fn a_program_looks_at_rules_hooks_entries_logs_and_calls() {
    let home = ruled(&["files"], &json!({ "ask": ["mcp__files__slow"] }));
    let said = json!({ "servers": { "mine": entry("mine") },
        "hooks": [{ "event": "PostToolUse", "callback": "h1" }] });
    let mut program = Program::begun(&home, &said);
    program.answers(|_, _| Some(Ok(json!({}))));
    let call =
        json!({ "server": "files", "tool": "echo", "arguments": { "text": "x" }, "check": false });
    program.ask("toolway/call", &call).unwrap();
    let rules = program.ask("toolway/permissions", &json!({})).unwrap();
    assert_eq!(rules["rules"][0]["rule"], "mcp__files__slow");
    assert_eq!(rules["rules"][0]["behavior"], "ask");
    let hooks = program.ask("toolway/hooks", &json!({})).unwrap();
    assert_eq!(hooks["hooks"][0]["runs"], "h1");
    let explained = program
        .ask("toolway/explain", &json!({ "server": "mine" }))
        .unwrap();
    assert_eq!(explained["entries"][0]["verdict"], "admitted");
    let logs = program
        .ask("toolway/logs", &json!({ "server": "files", "lines": 5 }))
        .unwrap();
    assert!(logs["lines"].is_array());
    let calls = toolway_testkit::eventually_blocking(|| {
        let calls = program
            .ask("toolway/audit", &json!({ "server": "files" }))
            .unwrap();
        match calls["calls"].as_array() {
            Some(lines) if !lines.is_empty() => Ok(calls),
            _ => Err(calls.to_string()),
        }
    });
    assert_eq!(calls["calls"][0]["tool"], "echo");
    let context = program.ask("toolway/context", &json!({})).unwrap();
    let total = context["servers"].as_array().unwrap().iter();
    let total: u64 = total
        .map(|it| it["toolTokens"].as_u64().unwrap() + it["instructionTokens"].as_u64().unwrap())
        .sum();
    assert!(total > 0);
    assert_eq!(context["total"], total);
    let status = program.ask("toolway/status", &json!({})).unwrap();
    assert_eq!(status["pid"], program.child.id());
    let unknown = program
        .ask("toolway/explain", &json!({ "server": "nobody" }))
        .unwrap_err();
    assert_eq!(unknown["data"]["reason"], "unknown-server");
}

#[test]
fn resources_and_prompts_are_listed_and_read() {
    let mut program = Program::begun(home_of(&["files"]), &json!({}));
    let listed = program
        .ask("toolway/resources", &json!({ "server": "files" }))
        .unwrap();
    assert!(!listed["resources"].as_array().unwrap().is_empty());
    let read = json!({ "server": "files", "uri": "shared:one" });
    let contents = program.ask("toolway/read", &read).unwrap();
    assert!(contents["contents"].is_array(), "{contents}");
    let prompts = program.ask("toolway/prompts", &json!({})).unwrap();
    assert!(
        names(&prompts["prompts"])
            .iter()
            .any(|name| name.contains("greet")),
        "{prompts}"
    );
    let greet = json!({ "server": "files", "prompt": "greet", "arguments": { "who": "you" } });
    let greeting = program.ask("toolway/prompt", &greet).unwrap();
    assert!(greeting["messages"].is_array(), "{greeting}");
}

#[test]
fn a_program_hears_where_servers_stand_and_that_tools_changed() {
    let mut program = Program::begun(home_of(&["files"]), &json!({ "events": true }));
    let is = |event: &'static str, server: &'static str| {
        move |told: &Value| {
            let line = &told["params"];
            told["method"] == "toolway/event" && line["event"] == event && line["server"] == server
        }
    };
    program.until_told(is("tools-changed", "files"));
    let set = json!({ "servers": { "late": entry("late") } });
    program.ask("toolway/servers/set", &set).unwrap();
    let state = program
        .until_told(|told| is("state", "late")(told) && told["params"]["state"] == "connected");
    assert!(state["params"]["time"].is_string());
}

#[test]
fn a_server_is_connected_anew_and_switched_off_and_on_for_this_program_alone() {
    let home = home_of(&["files"]);
    let mut program = Program::begun(&home, &json!({}));
    let mut other = Program::begun(&home, &json!({}));
    let process = |program: &mut Program| {
        let call = json!({ "server": "files", "tool": "report", "check": false });
        let report = program.ask("toolway/call", &call);
        report.map(|report| report["structuredContent"]["process"].clone())
    };
    let files = json!({ "server": "files" });
    let before = process(&mut program).unwrap();
    let row = program.ask("toolway/servers/reconnect", &files).unwrap();
    assert_eq!(row["server"]["status"], "connected");
    assert_ne!(process(&mut program).unwrap(), before);
    let row = program.ask("toolway/servers/disable", &files).unwrap();
    assert_eq!(row["server"]["status"], "disabled");
    let off = process(&mut program).unwrap_err();
    assert_eq!(
        (&off["data"]["reason"], &off["data"]["state"]),
        (&json!("unavailable"), &json!("disabled"))
    );
    assert!(process(&mut other).is_ok());
    program.ask("toolway/servers/enable", &files).unwrap();
    assert!(process(&mut program).is_ok());
    let unknown = program.ask("toolway/servers/reconnect", &json!({ "server": "nobody" }));
    assert_eq!(unknown.unwrap_err()["data"]["reason"], "unknown-server");
}

#[test]
fn what_a_repository_brought_is_approved_by_the_digest_of_what_was_looked_at() {
    let home = home_of(&[]);
    home.write(
        ".mcp.json",
        crate::support::servers(&[("theirs", entry("theirs"))]),
    );
    let mut program = Program::begun(&home, &json!({}));
    let theirs = json!({ "server": "theirs" });
    let look = program.ask("toolway/servers/approve", &theirs).unwrap();
    assert!(look["definition"]["command"].is_string(), "{look}");
    let wrong = json!({ "server": "theirs", "digest": "0123" });
    let wrong = program.ask("toolway/servers/approve", &wrong).unwrap_err();
    assert_eq!(wrong["data"]["reason"], "invalid");
    let yes = json!({ "server": "theirs", "digest": look["digest"] });
    let row = program.ask("toolway/servers/approve", &yes).unwrap();
    assert_eq!(row["server"]["status"], "connected", "{row}");
    let no = program.ask("toolway/servers/reject", &theirs).unwrap();
    let no = json!({ "server": "theirs", "digest": no["digest"] });
    let row = program.ask("toolway/servers/reject", &no).unwrap();
    assert_eq!(row["server"]["status"], "disabled", "{row}");
    let login = program.ask("toolway/servers/login", &theirs).unwrap_err();
    assert!(login["data"]["reason"].is_string(), "{login}");
}
