//! Programs that misbehave, and what becomes of them.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};
use toolway_testkit::eventually_blocking;

use super::{Program, entry, home_of, resident, text};

fn echo() -> Value {
    json!({ "server": "files", "tool": "echo", "arguments": { "text": "hello" }, "check": false })
}

fn alive(process: u64) -> bool {
    std::path::Path::new(&format!("/proc/{process}/stat")).exists()
}

#[test]
fn garbage_is_answered_and_harms_nothing() {
    let mut program = Program::begun(home_of(&["files"]), &json!({}));
    let lines = [
        "not json",
        "[]",
        "7",
        "{}",
        r#"{"jsonrpc":"2.0","id":{},"method":"toolway/servers"}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":"toolway/servers","method":"toolway/call"}"#,
        r#"{"jsonrpc":"2.0","id":901,"method":"toolway/servers","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":902,"method":"toolway/servers/set","params":{"servers":7}}"#,
        r#"{"jsonrpc":"2.0","id":903,"method":"toolway/call","params":{"server":"files","tool":"echo","tool":"slow"}}"#,
    ];
    for line in lines {
        program.write(line);
    }
    // Answers to what was never asked.
    for id in [json!(0), json!(77), json!("x"), Value::Null] {
        program.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "behavior": "allow" } }));
    }
    assert_eq!(
        text(&program.ask("toolway/call", &echo()).unwrap()),
        "hello"
    );
    let errors = program
        .answered
        .iter()
        .filter(|it| it.get("error").is_some())
        .count();
    assert_eq!(errors, lines.len(), "{:?}", program.answered);
}

#[test]
fn a_line_that_is_too_long_is_refused_by_its_id_and_skipped() {
    let mut program = Program::begun(home_of(&["files"]), &json!({}));
    let long = "x".repeat(17 * 1024 * 1024);
    let id = program.send("toolway/call", &json!({ "server": long }));
    assert!(program.answer_to(id).is_err());
    assert_eq!(
        text(&program.ask("toolway/call", &echo()).unwrap()),
        "hello"
    );
}

#[test]
fn an_id_that_is_in_flight_is_not_taken_twice() {
    let mut program = Program::begun(home_of(&["files"]), &json!({}));
    let slow =
        json!({ "server": "files", "tool": "slow", "arguments": { "ms": 300 }, "check": false });
    let id = program.send("toolway/call", &slow);
    program.last -= 1;
    assert_eq!(program.send("toolway/call", &echo()), id);
    let first = program.answer_to(id);
    let other = program.answer_to(id);
    assert!(
        first.is_err() && other.is_ok(),
        "one is refused at once: {first:?} {other:?}"
    );
}

#[test]
fn a_program_that_is_killed_leaves_nothing() {
    let home = home_of(&["files"]);
    let mut program = Program::start(&home);
    program.answers(
        |method, params| match params["message"]["method"].as_str() {
            Some("tools/call") => None,
            _ => resident(method, params),
        },
    );
    let said = json!({ "asks": { "permission": true }, "servers": { "calc": { "type": "sdk" }, "mine": entry("mine") } });
    program.ask("toolway/initialize", &said).unwrap();
    let report = |server: &str| json!({ "server": server, "tool": "report", "check": false });
    let mut processes = Vec::new();
    for server in ["files", "mine"] {
        let report = program.ask("toolway/call", &report(server)).unwrap();
        processes.push(report["structuredContent"]["process"].as_u64().unwrap());
    }
    let agent = json!({ "name": "a", "servers": [{ "own": entry("own") }], "required": ["own"] });
    let agent = program.ask("toolway/agents/start", &agent).unwrap()["agent"].clone();
    let mut own = report("own");
    own["agent"] = agent;
    let own = program.ask("toolway/call", &own).unwrap();
    processes.push(own["structuredContent"]["process"].as_u64().unwrap());
    // A question, a call of its own function, and a long call are under way.
    program.send(
        "toolway/call",
        &json!({ "server": "files", "tool": "echo", "arguments": { "text": "x" } }),
    );
    program.send("toolway/call", &json!({ "server": "calc", "tool": "add", "arguments": { "a": 1, "b": 2 }, "check": false }));
    program.until_asked("toolway/ask/permission");
    loop {
        let asked = program.until_asked("toolway/servers/message");
        if asked["params"]["message"]["method"] == "tools/call" {
            break;
        }
    }
    // As the system does it: both of its ends are gone.
    drop(program.stdin.take());
    let status = program.child.wait().unwrap();
    assert!(status.success(), "{status}");
    for process in processes {
        eventually_blocking(|| {
            if alive(process) {
                Err(format!("{process} lives"))
            } else {
                Ok(())
            }
        });
    }
}

#[test]
fn the_end_of_input_does_not_wait_for_what_only_the_program_could_answer() {
    let mut program = Program::begun(
        home_of(&["files"]),
        &json!({ "asks": { "permission": true } }),
    );
    let call = json!({ "server": "files", "tool": "echo", "arguments": { "text": "x" } });
    let id = program.send("toolway/call", &call);
    program.until_asked("toolway/ask/permission");
    drop(program.stdin.take());
    let refused = program.answer_to(id).unwrap_err();
    assert_eq!(
        refused["data"],
        json!({ "reason": "refused", "by": "nobody" })
    );
    assert!(program.child.wait().unwrap().success());
}

#[test]
fn a_program_that_never_reads_is_taken_no_more_from_and_ends_all_the_same() {
    let home = home_of(&["files"]);
    let mut child = crate::support::command(&home, &["control", "--no-daemon"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (sender, wrote) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        let first =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "toolway/initialize", "params": {} });
        let mut written = writeln!(stdin, "{first}").is_ok();
        let mut id = 0;
        while written && id < 200_000 {
            id += 1;
            let request =
                json!({ "jsonrpc": "2.0", "id": id, "method": "toolway/tools", "params": {} });
            written = writeln!(stdin, "{request}").is_ok();
            let _ = sender.send(id);
        }
        id
    });
    // It stops taking requests long before all are written.
    let mut last = 0;
    while let Ok(id) = wrote.recv_timeout(std::time::Duration::from_secs(2)) {
        last = id;
    }
    assert!(last < 100_000, "{last} requests were taken");
    let memory = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let resident = memory
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kilobytes: u64 = resident.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 400_000, "{resident}");
    drop(child.stdout.take());
    let mut said = String::new();
    let _ = child.stderr.take().unwrap().read_to_string(&mut said);
    child.wait().unwrap();
    writer.join().unwrap();
}

#[test]
fn a_program_reaches_no_other_programs_servers_or_questions() {
    let home = home_of(&["files"]);
    let mut one = Program::start(&home);
    one.answers(resident);
    let said = json!({ "asks": { "permission": true }, "servers": { "calc": { "type": "sdk" } } });
    one.ask("toolway/initialize", &said).unwrap();
    one.ask("toolway/tools", &json!({})).unwrap();
    let asks = one.send(
        "toolway/call",
        &json!({ "server": "files", "tool": "echo", "arguments": { "text": "x" } }),
    );
    let question = one.until_asked("toolway/ask/permission");
    let mut other = Program::begun(&home, &json!({}));
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let message = json!({ "server": "calc", "connection": 1, "message": note });
    let refused = other.ask("toolway/servers/message", &message).unwrap_err();
    assert_eq!(refused["data"]["reason"], "unknown-server");
    assert_eq!(
        other.ask("toolway/questions", &json!({})).unwrap()["questions"],
        json!([])
    );
    other
        .say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "behavior": "allow" } }));
    let listed = one.ask("toolway/questions", &json!({})).unwrap();
    assert_eq!(listed["questions"].as_array().unwrap().len(), 1);
    one.cancel(asks);
    let _ = one.answer_to(asks);
}
