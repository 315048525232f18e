//! Old HTTP+SSE servers behind addresses and entries that do not say so.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolway_testkit::{ListeningServer, Script, ScriptedServer, TempHome};

use crate::support::{servers, toolway};

fn old_server() -> (ListeningServer, String) {
    let server = ScriptedServer::new(Script::default()).serve_sse();
    // An address that does not tell.
    let url = server.url().replace("/sse", "/old");
    (server, url)
}

fn strays(server: &ListeningServer) -> u64 {
    server.stats()["strays"].as_u64().unwrap()
}

#[test]
fn a_server_that_does_not_know_streamable_http_is_reached_by_the_transport_before_it() {
    let (server, url) = old_server();
    let home = TempHome::new();
    home.write_settings(servers(&[("old", json!({ "type": "http", "url": url }))]));
    let listed = toolway(&home, &["tools", "old"]).expect_code(0);
    assert!(listed.stdout.contains("mcp__old__echo"), "{listed}");
    assert!(strays(&server) > 0, "it was asked in the present way first");

    // Found out once: from then on nothing is asked in vain.
    let before = strays(&server);
    let called = toolway(&home, &["call", "old", "echo", "text=hi"]).expect_code(0);
    assert!(called.stdout.contains("hi"), "{called}");
    assert_eq!(strays(&server), before);

    // Asked anew when the person says so.
    toolway(&home, &["reconnect", "old"]).expect_code(0);
    toolway(&home, &["tools", "old"]).expect_code(0);
    assert!(strays(&server) > before);
}

#[test]
fn an_address_that_is_typed_or_added_reaches_an_old_server_too() {
    let (server, url) = old_server();
    let home = TempHome::new();
    for address in [url.as_str(), server.url()] {
        let listed = toolway(&home, &["tools", address]).expect_code(0);
        assert!(listed.stdout.contains("echo"), "{listed}");
    }
    toolway(&home, &["add", "one", &url]).expect_code(0);
    toolway(&home, &["add", "two", server.url()]).expect_code(0);
    let listed = toolway(&home, &["list", "--json"]).json();
    let states: Vec<&Value> = listed["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| &server["state"])
        .collect();
    assert_eq!(states, ["connected", "connected"]);
}

#[test]
fn a_server_that_was_old_and_is_not_any_more_is_found_out() {
    let (mut old, url) = old_server();
    let home = TempHome::new();
    home.write_settings(servers(&[("it", json!({ "type": "http", "url": url }))]));
    toolway(&home, &["tools", "it"]).expect_code(0);
    let address = old.address().to_owned();
    old.stop();
    let present = Answers::at(&address, |method, _| match method {
        "GET" => "405 Method Not Allowed".to_owned(),
        _ => "404 Not Found".to_owned(),
    });
    let output = toolway(&home, &["tools", "it"]).expect_code(4);
    assert!(
        output.stderr.contains("HTTP 404 to `initialize`"),
        "{output}"
    );
    let asked = present.asked();
    assert_eq!(asked[0], "GET /old");
    assert_eq!(
        asked.iter().filter(|line| line.starts_with("GET")).count(),
        1,
        "the old way is not tried twice: {asked:?}"
    );
}

/// A server that answers each request with a status, and writes down what it was asked.
struct Answers {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Answers {
    fn new(answer: impl Fn(&str, &str) -> String + Send + 'static) -> Self {
        Self::at("127.0.0.1:0", answer)
    }

    /// `answer` gives what follows `HTTP/1.1 `; without an empty line in it, there is no body.
    fn at(address: &str, answer: impl Fn(&str, &str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let own = address.clone();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
                let _ = reader.read_line(&mut first);
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    let lower = line.to_ascii_lowercase();
                    if let Some(count) = lower.strip_prefix("content-length:") {
                        length = count.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let _ = reader.read_exact(&mut vec![0; length]);
                let words: Vec<&str> = first.split(' ').take(2).collect();
                seen.lock().unwrap().push(words.join(" "));
                let answer = answer(words[0], &own);
                let _ = match answer.split_once("\r\n\r\n") {
                    Some(_) => write!(stream, "HTTP/1.1 {answer}"),
                    None => write!(
                        stream,
                        "HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                    ),
                };
                if answer.contains("event-stream") {
                    // A stream stays.
                    open.push(stream);
                }
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// What `tools` says of it.
    fn complaint(&self, home: &TempHome, code: i32) -> String {
        let url = format!("http://{}/mcp", self.address);
        home.write_settings(servers(&[("far", json!({ "type": "http", "url": url }))]));
        let output = toolway(home, &["tools", "far"]).expect_code(code);
        output.stderr.lines().next().unwrap().to_owned()
    }
}

/// A stream whose first event says to post there.
fn stream_to(place: &str) -> String {
    format!("200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: {place}\n\n")
}

#[test]
fn a_login_wall_is_no_reason_to_try_the_old_way() {
    for wall in [
        "401 Unauthorized\r\nwww-authenticate: Bearer",
        "403 Forbidden\r\nwww-authenticate: Bearer error=\"insufficient_scope\"",
        "403 Forbidden",
        "500 Internal Server Error",
    ] {
        let server = Answers::new(move |method, _| match method {
            "POST" => wall.to_owned(),
            _ => "404 Not Found".to_owned(),
        });
        let home = TempHome::new();
        let url = format!("http://{}/mcp", server.address);
        home.write_settings(servers(&[("far", json!({ "type": "http", "url": url }))]));
        let output = toolway(&home, &["tools", "far"]);
        assert_ne!(output.code, Some(0));
        let asked = server.asked();
        assert!(!asked.contains(&"GET /mcp".to_owned()), "{wall}: {asked:?}");
    }
}

#[test]
fn what_is_neither_a_present_nor_an_old_server_says_so() {
    let server = Answers::new(|_, _| "404 Not Found".to_owned());
    assert_eq!(
        server.complaint(&TempHome::new(), 4),
        "error: server `far` failed: the server answers HTTP 404 to `initialize`, and is no old \
         HTTP+SSE server either (it opens no event stream): its URL is wrong"
    );
    // An old server that wants a login for its stream says so there.
    let server = Answers::new(|method, _| match method {
        "GET" => "401 Unauthorized\r\nwww-authenticate: Bearer".to_owned(),
        _ => "405 Method Not Allowed".to_owned(),
    });
    assert_eq!(
        server.complaint(&TempHome::new(), 5),
        "error: server `far` wants a login first"
    );
}

#[test]
fn sec_20_an_old_server_leads_nowhere_else() {
    let server = Answers::new(|method, _| match method {
        "GET" => stream_to("http://127.0.0.1:9/steal"),
        _ => "405 Method Not Allowed".to_owned(),
    });
    let said = server.complaint(&TempHome::new(), 4);
    assert!(
        said.contains("the server wants messages posted to another origin"),
        "{said}"
    );
    // Nor where policy forbids.
    let home = TempHome::new();
    let server = Answers::new(|method, _| match method {
        "GET" => stream_to("/denied"),
        _ => "405 Method Not Allowed".to_owned(),
    });
    home.write(
        home.system().join("managed-settings.json"),
        json!({ "deniedMcpServers": [{ "serverUrl": "http://127.0.0.1:*/denied" }] }).to_string(),
    );
    let said = server.complaint(&home, 6);
    assert!(said.contains("policy forbids"), "{said}");
    let asked = server.asked();
    assert!(
        !asked.iter().any(|line| line.contains("denied")),
        "{asked:?}"
    );
}
