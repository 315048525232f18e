//! Attacks on `toolway serve` as it runs: what its flags leave out, and what a revoked token still opens.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::support::{command, toolway};

/// A gateway that listens.
struct Gateway {
    child: Child,
    address: String,
}

impl Gateway {
    fn start(home: &TempHome, flags: &[&str]) -> Self {
        let words = [&["serve", "--http", "127.0.0.1:0"], flags].concat();
        let mut child = command(home, &words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        Self { child, address }
    }

    fn open(&self, path: &str, token: &str, more: &str, body: Option<&Value>) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(40)))
            .unwrap();
        let verb = if body.is_some() { "POST" } else { "GET" };
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n{more}\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        stream
    }

    /// The whole answer to a request, up to the end of its connection.
    fn ask(&self, path: &str, token: &str, body: &Value) -> String {
        let mut answer = String::new();
        let mut stream = self.open(path, token, "", Some(body));
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn home() -> TempHome {
    let home = TempHome::new();
    let entry = ScriptedServer::new(Script::default()).entry();
    let settings = json!({
        "mcpServers": { "a": entry, "b": entry },
        "profiles": { "all": {}, "only-a": { "servers": ["a"] } },
    });
    home.write_settings(settings.to_string());
    home
}

/// Makes a token, and gives it.
fn token(home: &TempHome, name: &str) -> String {
    let made = toolway(home, &["tokens", "add", name]).expect_code(0);
    made.stdout.trim_end().to_owned()
}

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })
}

#[test]
fn what_flags_leave_out_is_left_out_at_every_address() {
    let home = home();
    let token = token(&home, "client");
    for (flags, path, has_a, has_b) in [
        (vec![], "/mcp/p/all", true, true),
        (vec!["--servers", "a"], "/mcp", true, false),
        (vec!["--servers", "a"], "/mcp/p/all", true, false),
        (vec!["--servers", "b"], "/mcp/p/only-a", false, false),
        (vec!["--servers", "a"], "/mcp/b", false, false),
        // None of these tools says of itself that it only reads.
        (vec!["--read-only"], "/mcp/p/all", false, false),
        (vec!["--profile", "only-a"], "/mcp", true, false),
        (vec!["--profile", "only-a"], "/mcp/p/all", false, false),
        (vec!["--profile", "only-a"], "/mcp/p/only-a", true, false),
    ] {
        let gateway = Gateway::start(&home, &flags);
        // Its servers may still be on their way.
        let ready = |said: &str| {
            said.contains("404")
                || (said.contains("a__echo"), said.contains("b__echo")) == (has_a, has_b)
        };
        let mut said = gateway.ask(path, &token, &list());
        for _ in 0..200 {
            if ready(&said) {
                break;
            }
            said = gateway.ask(path, &token, &list());
        }
        assert_eq!(said.contains("a__echo"), has_a, "{flags:?} {path}: {said}");
        assert_eq!(said.contains("b__echo"), has_b, "{flags:?} {path}: {said}");
    }
}

#[test]
fn sec_27_a_token_that_is_revoked_ends_the_stream_that_it_opened() {
    let home = home();
    let token = token(&home, "client");
    let gateway = Gateway::start(&home, &[]);
    let greeting = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {} } });
    let greeted = gateway.ask("/mcp", &token, &greeting);
    let id = greeted
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = format!("mcp-session-id: {}\r\n", id.unwrap());
    let mut stream = gateway.open("/mcp", &token, &session, None);
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    toolway(&home, &["tokens", "revoke", "client"]).expect_code(0);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    let refused = gateway.ask("/mcp", &token, &list());
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
}
