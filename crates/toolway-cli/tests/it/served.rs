//! A running `toolway serve`, and clients that write every message themselves.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolway_testkit::patience::{PATIENCE, eventually_blocking};
use toolway_testkit::{CommandOutput, TempHome};

use crate::support::{command, toolway};

/// The folder of the owner's sockets.
pub(crate) fn sockets(home: &TempHome) -> PathBuf {
    home.config_home().join("state/gateways")
}

/// The names in it.
pub(crate) fn socket_names(home: &TempHome) -> Vec<String> {
    let entries = std::fs::read_dir(sockets(home)).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// A gateway that runs until it is dropped.
pub(crate) struct Gateway {
    child: Child,
    /// Where it listens, if it does.
    pub(crate) address: String,
    stderr: Receiver<String>,
    pipe: Option<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Gateway {
    /// Listens on HTTP, and lets everybody in.
    pub(crate) fn http(home: &TempHome, words: &[&str]) -> Self {
        let all = [&["serve", "--http", "127.0.0.1:0", "--no-token"], words].concat();
        let mut gateway = Self::start(home, &all);
        let (_, stdout) = gateway.pipe.as_mut().unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line
            .trim()
            .strip_prefix("http://")
            .and_then(|it| it.strip_suffix("/mcp"));
        let address = address.unwrap_or_else(|| panic!("no address: {line}"));
        gateway.address = address.to_owned();
        gateway
    }

    /// Talks over stdin and stdout, and has shaken hands.
    pub(crate) fn stdio(home: &TempHome, words: &[&str]) -> Self {
        let mut gateway = Self::start(home, &[&["serve"], words].concat());
        gateway.say(&initialize(0));
        assert_eq!(gateway.hear()["id"], 0);
        gateway.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        gateway
    }

    fn start(home: &TempHome, words: &[&str]) -> Self {
        let mut child = command(home, words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, stderr) = channel();
        let lines = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            address: String::new(),
            stderr,
            pipe: Some((stdin, stdout)),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes its stdin, and waits for its end.
    pub(crate) fn hang_up(&mut self) {
        drop(self.pipe.take());
        self.child.wait().unwrap();
    }

    /// Ends it by a signal, and waits for its end.
    pub(crate) fn end(&mut self, signal: Signal) {
        self.signal(signal);
        self.child.wait().unwrap();
    }

    /// The next line on its stderr that has this in it.
    pub(crate) fn said(&self, part: &str) -> String {
        loop {
            let line = self.stderr.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("it never says `{part}`"));
            if line.contains(part) {
                return line;
            }
        }
    }

    /// The id of the next question that it says waits for its owner.
    pub(crate) fn asked(&self) -> String {
        let hint = self.said("toolway approvals answer ");
        let (_, rest) = hint.split_once("toolway approvals answer ").unwrap();
        rest.split(' ').next().unwrap().to_owned()
    }

    /// Writes a message to its stdin.
    pub(crate) fn say(&mut self, message: &Value) {
        let (stdin, _) = self.pipe.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    /// The next message on its stdout.
    pub(crate) fn hear(&mut self) -> Value {
        let (_, stdout) = self.pipe.as_mut().unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// A client over HTTP that has shaken hands and can be asked nothing.
    pub(crate) fn client(&self, path: &str) -> HttpClient {
        let mut client = HttpClient {
            address: self.address.clone(),
            path: path.to_owned(),
            session: None,
        };
        let (head, _) = client.post(&initialize(0));
        let session = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id")
                .then(|| value.to_owned())
        });
        client.session = Some(session.unwrap_or_else(|| panic!("no session: {head}")));
        client
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn initialize(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "probe", "version": "1.2" },
    } })
}

/// A call of a tool.
pub(crate) fn call(id: u64, tool: &str, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": tool, "arguments": { "text": text },
    } })
}

/// What a call came to, in words.
pub(crate) fn outcome(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("no text: {answer}"));
    match answer["result"]["isError"].as_bool() {
        Some(true) => format!("error: {text}"),
        _ => text.to_owned(),
    }
}

/// A client over HTTP.
#[derive(Clone)]
pub(crate) struct HttpClient {
    address: String,
    path: String,
    session: Option<String>,
}

impl HttpClient {
    /// The head and the body of what a message is answered.
    fn post(&self, message: &Value) -> (String, String) {
        let body = message.to_string();
        let session = self.session.as_ref();
        let session = session.map(|session| format!("mcp-session-id: {session}\r\n"));
        let session = session.unwrap_or_default();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        write!(
            stream,
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nconnection: close\r\n\
             {session}content-length: {}\r\n\r\n{body}",
            self.path,
            self.address,
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let body = if head.contains("transfer-encoding: chunked") {
            joined(body)
        } else {
            body.to_owned()
        };
        (head.to_owned(), body)
    }

    /// What a request is answered.
    pub(crate) fn ask(&self, message: &Value) -> Value {
        let (head, body) = self.post(message);
        // In a stream, other messages may stand before the answer.
        let messages = body.lines().filter_map(|line| {
            let json = line.strip_prefix("data:").unwrap_or(line);
            serde_json::from_str::<Value>(json).ok()
        });
        let mut answers = messages.filter(|it| it.is_object() && it["id"] == message["id"]);
        let answer = answers.next();
        answer.unwrap_or_else(|| panic!("no answer: {head}\n{body}"))
    }

    /// Asks beside the test.
    pub(crate) fn ask_beside(&self, message: Value) -> std::thread::JoinHandle<Value> {
        let client = self.clone();
        std::thread::spawn(move || client.ask(&message))
    }
}

/// A body that came in chunks.
fn joined(chunks: &str) -> String {
    let (mut body, mut rest) = (String::new(), chunks);
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&more[..size]);
        rest = more[size..].trim_start_matches("\r\n");
    }
    body
}

/// What was printed, without what differs from run to run: ids of questions, processes, ports, ages.
pub(crate) fn plain(gateways: &[&Gateway], output: &CommandOutput) -> String {
    plain_text(gateways, &output.to_string())
}

/// The same of a text.
pub(crate) fn plain_text(gateways: &[&Gateway], text: &str) -> String {
    let mut text = text.to_owned();
    for gateway in gateways {
        if !gateway.address.is_empty() {
            text = text.replace(&gateway.address, "[ADDRESS]");
        }
        for (before, after) in [("Gateway ", ":"), ("process ", " ")] {
            let (pid, hidden) = (gateway.pid(), format!("{before}[PID]{after}"));
            text = text.replace(&format!("{before}{pid}{after}"), &hidden);
        }
    }
    text = text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    let line = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        let mut words: Vec<String> = Vec::new();
        for word in line.split_whitespace() {
            let bare = word.trim_matches(|c: char| !c.is_ascii_hexdigit());
            let is_id = (bare.len() == 8 || bare.len() == 32)
                && bare.chars().all(|c| c.is_ascii_hexdigit());
            let is_unit = matches!(word.trim_end_matches([',', '.']), "s" | "min");
            match words.last_mut() {
                Some(last) if is_unit && last.parse::<u64>().is_ok() => {
                    *last = word.replacen(word.trim_end_matches([',', '.']), "[AGE]", 1);
                }
                _ if is_id => words.push(word.replace(bare, "[ID]")),
                _ => words.push(word.to_owned()),
            }
        }
        format!("{}{}\n", " ".repeat(indent), words.join(" "))
    };
    text.lines().map(line).collect()
}

/// Waits until a gateway knows of so many connected servers.
pub(crate) fn settled(home: &TempHome) {
    eventually_blocking(|| {
        let status = toolway(home, &["status", "--json"]).expect_code(0).json();
        let gateways = status["gateways"].as_array().unwrap();
        let servers = gateways.iter().flat_map(|gateway| {
            let servers = gateway["status"]["servers"].as_array();
            servers.cloned().unwrap_or_default()
        });
        let mut servers = servers.filter(|server| server["state"] == "pending");
        servers
            .next()
            .map_or(Ok(()), |pending| Err(pending.to_string()))
    });
}
