//! The scripted server as the process it is.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod authority;
mod listening;
mod peers;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolway_testkit::{
    Canary, GrandchildEscape, Script, ScriptedExit, ScriptedServer, eventually_blocking,
};

fn run(script: Script, input: &str) -> (Vec<String>, String, Option<i32>) {
    let server = ScriptedServer::new(script);
    let mut child = Command::new(ScriptedServer::program())
        .args(server.args())
        .env_clear()
        .env("SHOWN", "yes")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    (
        lines,
        String::from_utf8(output.stderr).unwrap(),
        output.status.code(),
    )
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    format!(
        "{}\n",
        json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":params})
    )
}

#[test]
fn it_answers_line_by_line_and_ends_with_its_input() {
    let input = call(1, "echo", &json!({"text": "hello"})) + &call(2, "count", &json!({}));
    let (lines, stderr, code) = run(Script::default(), &input);
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("hello"));
    assert!(lines[1].contains(r#""text":"2""#));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
}

#[test]
fn banner_noise_and_complaint_stand_beside_the_answers() {
    let script = Script {
        banner: Some("Welcome!".to_owned()),
        complaint: Some("deprecated".to_owned()),
        stderr_flood: 4096,
        noise: true,
        ..Script::default()
    };
    let (lines, stderr, _) = run(script, &call(1, "echo", &json!({"text": "x"})));
    assert_eq!(lines[0], "Welcome!");
    assert!(lines[1].starts_with("debug:"));
    assert!(serde_json::from_str::<Value>(&lines[2]).is_ok());
    assert!(stderr.starts_with("deprecated\n"));
    assert_eq!(stderr.len(), "deprecated\n".len() + 4096);
}

#[test]
fn it_ends_at_the_first_request_or_in_a_call() {
    let exit = Some(ScriptedExit { code: 7, after: 0 });
    let (lines, _, code) = run(
        Script {
            exit,
            ..Script::default()
        },
        &call(1, "count", &json!({})),
    );
    assert_eq!((lines.len(), code), (0, Some(7)));
    let (lines, _, code) = run(Script::default(), &call(1, "crash", &json!({})));
    assert_eq!((lines.len(), code), (0, Some(9)));
}

#[test]
fn inspect_shows_what_the_process_was_given() {
    let (lines, _, _) = run(Script::default(), &call(1, "inspect", &json!({})));
    let answer: Value = serde_json::from_str(&lines[0]).unwrap();
    let facts = &answer["result"]["structuredContent"];
    assert_eq!(facts["env"], json!({ "SHOWN": "yes" }));
    // The test's own runner may leave more open; a host must not (SEC-41).
    let descriptors = facts["fds"].as_array().unwrap();
    assert_eq!(descriptors[..3], [json!(0), json!(1), json!(2)]);
    assert_eq!(facts["argv"][1], "--script");
}

#[test]
fn a_grandchild_outlives_the_server_and_is_found_by_its_canary() {
    let canary = Canary::new();
    let server = ScriptedServer::new(Script {
        grandchild: true,
        ..Script::default()
    });
    let mut child = Command::new(ScriptedServer::program())
        .args(server.args())
        .env(canary.name(), canary.value())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(call(1, "count", &json!({})).as_bytes())
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    // A process has no environment to look at while it becomes another program.
    eventually_blocking(|| match canary.processes().len() {
        2 => Ok(()),
        count => Err(format!("{count} processes")),
    });
    drop(child.stdin.take());
    child.wait().unwrap();
    let left = canary.processes();
    assert_eq!(left.len(), 1);
    assert!(left[0].command.ends_with("--linger"));
    Command::new("kill")
        .args(["-9", &left[0].pid.to_string()])
        .status()
        .unwrap();
}

#[test]
fn it_speaks_http_with_the_statuses_of_the_modern_era() {
    let peer = ScriptedServer::default().serve_http();
    let address = peer
        .url()
        .trim_start_matches("http://")
        .trim_end_matches("/mcp");
    let post = |body: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = post(&call(1, "echo", &json!({ "text": "over http" })));
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("over http"),
        "{answer}"
    );
    let unknown = json!({"jsonrpc":"2.0","id":1,"method":"no/such","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28"}}});
    assert!(post(&unknown.to_string()).starts_with("HTTP/1.1 404 "));
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert!(post(notification).starts_with("HTTP/1.1 202 "));
}

#[test]
fn escaped_grandchildren_outlive_a_server_that_heeds_no_signal() {
    let canary = Canary::new();
    let server = ScriptedServer::new(Script {
        ignores_signals: true,
        escapes: vec![
            GrandchildEscape::None,
            GrandchildEscape::Session,
            GrandchildEscape::Orphan,
        ],
        ..Script::default()
    });
    let mut child = Command::new(ScriptedServer::program())
        .args(server.args())
        .env(canary.name(), canary.value())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |id| {
        stdin
            .write_all(call(id, "count", &json!({})).as_bytes())
            .unwrap();
        answers.next().unwrap().unwrap();
    };
    ask(1);
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        rustix::process::kill_process(pid, signal).unwrap();
    }
    // It answers, so it lives.
    ask(2);
    // A process that was started a moment ago may not have its environment yet.
    eventually_blocking(|| match canary.processes() {
        all if all.len() == 4 => Ok(()),
        some => Err(format!("{some:?}")),
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let left = canary.processes();
    assert_eq!(left.len(), 3, "{left:?}");
    for process in left {
        let pid = rustix::process::Pid::from_raw(process.pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

#[test]
fn it_crashes_at_its_start_with_its_last_words() {
    let script = Script {
        complaint: Some("no licence".to_owned()),
        exit_at_start: Some(4),
        ..Script::default()
    };
    let (lines, stderr, code) = run(script, "");
    assert_eq!((lines.len(), code), (0, Some(4)));
    assert_eq!(stderr, "no licence\n");
}

#[test]
fn it_writes_in_pieces_and_mangles_what_should_be_text() {
    let server = ScriptedServer::new(Script {
        slice: 1,
        ..Script::default()
    });
    let mut child = Command::new(ScriptedServer::program())
        .args(server.args())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = call(1, "mangled", &json!({}));
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8(output.stdout.clone()).is_err());
    assert!(output.stdout.ends_with(b"}\n"));
}
