//! `toolway control`, as a program in any language sees it: a process, lines in, lines out.
//!
//! Owns the program that these tests are. What each part promises stands in a file below.

mod agents;
mod calls;
mod faults;
mod hooks;
mod looking;
mod questions;
mod residents;
mod schema;
mod servers;

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::support::{command, servers};

/// Far above any honest wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers what Toolway asks: the result, or an error.
type Answers = Box<dyn FnMut(&str, &Value) -> Option<Result<Value, Value>>>;

/// A program that uses Toolway.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// What came while something else was waited for.
    answered: VecDeque<Value>,
    /// What it was told, and what it was asked.
    told: Vec<Value>,
    asked: Vec<Value>,
    answers: Answers,
    last: u64,
    /// What it asked, by id.
    sent: HashMap<u64, (String, Value)>,
    /// What it runs in, where nobody else keeps that.
    home: Option<TempHome>,
}

/// A home, kept by the test or by its program.
trait Home {
    fn home(&self) -> &TempHome;
    fn kept(self) -> Option<TempHome>;
}

impl Home for &TempHome {
    fn home(&self) -> &TempHome {
        self
    }

    fn kept(self) -> Option<TempHome> {
        None
    }
}

impl Home for TempHome {
    fn home(&self) -> &TempHome {
        self
    }

    fn kept(self) -> Option<TempHome> {
        Some(self)
    }
}

impl Program {
    /// One that has said nothing yet.
    fn start(home: impl Home) -> Self {
        let mut program = Self::started(home.home(), &["control", "--no-daemon"]);
        program.home = home.kept();
        program
    }

    fn started(home: &TempHome, words: &[&str]) -> Self {
        let mut child = command(home, words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                let message = serde_json::from_str(&line).unwrap_or_else(|error| {
                    panic!("{error}: {line}");
                });
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            answered: VecDeque::new(),
            told: Vec::new(),
            asked: Vec::new(),
            answers: Box::new(|_, _| None),
            last: 0,
            sent: HashMap::new(),
            home: None,
        }
    }

    /// One that has said who it is, and this besides.
    fn begun(home: impl Home, said: &Value) -> Self {
        let mut program = Self::start(home);
        program.ask("toolway/initialize", said).unwrap();
        program
    }

    /// From now on it answers what it is asked like this.
    fn answers(
        &mut self,
        answers: impl FnMut(&str, &Value) -> Option<Result<Value, Value>> + 'static,
    ) {
        self.answers = Box::new(answers);
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
    }

    fn say(&mut self, message: &Value) {
        self.write(&message.to_string());
    }

    /// Sends a request; gives its id.
    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.sent.insert(id, (method.to_owned(), params.clone()));
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn cancel(&mut self, id: u64) {
        let params = json!({ "requestId": id });
        self.say(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
        );
    }

    /// Asks and waits for the answer: the result, or the error.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.answer_to(id)
    }

    /// The answer to a request that was sent.
    fn answer_to(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let place = self.answered.iter().position(|answer| answer["id"] == id);
            if let Some(mut answer) = place.and_then(|place| self.answered.remove(place)) {
                return match answer.get_mut("error") {
                    Some(error) => Err(error.take()),
                    None => Ok(answer["result"].take()),
                };
            }
            self.step();
        }
    }

    /// Waits until it was told or asked this often what fits.
    fn until_told(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(place) = self.told.iter().position(&fits) {
                return self.told.remove(place);
            }
            self.step();
        }
    }

    fn until_asked(&mut self, method: &str) -> Value {
        loop {
            let place = self
                .asked
                .iter()
                .position(|asked| asked["method"] == method);
            if let Some(place) = place {
                return self.asked.remove(place);
            }
            self.step();
        }
    }

    /// Takes one message.
    fn step(&mut self) {
        let message = self.lines.recv_timeout(PATIENCE);
        let message =
            message.unwrap_or_else(|error| panic!("{error}; {:?}", self.child.try_wait()));
        let Some(method) = message["method"].as_str() else {
            let id = message["id"].as_u64();
            if let Some((method, params)) = id.and_then(|id| self.sent.get(&id)) {
                schema::answered(method, params, &message);
            }
            self.answered.push_back(message);
            return;
        };
        if message.get("id").is_none() {
            schema::told(method, &message["params"]);
            self.told.push(message);
            return;
        }
        schema::asked(method, &message["params"]);
        let answer = (self.answers)(method, &message["params"]);
        if let Some(answer) = answer {
            let reply = match answer {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }),
                Err(error) => json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }),
            };
            self.say(&reply);
        }
        self.asked.push(message);
    }

    /// Hangs up; gives how it ended.
    fn hang_up(mut self) -> std::process::ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server with `echo`, `slow` and more, on stdio.
fn entry(name: &str) -> Value {
    let script = Script {
        name: name.to_owned(),
        drama: true,
        offers: true,
        ..Script::default()
    };
    ScriptedServer::new(script).entry()
}

/// A home whose settings hold these servers, and rules.
fn home_of(names: &[&str]) -> TempHome {
    let home = TempHome::new();
    let entries: Vec<_> = names.iter().map(|name| (*name, entry(name))).collect();
    home.write_settings(servers(&entries));
    home
}

/// The same with permissions.
fn ruled(names: &[&str], permissions: &Value) -> TempHome {
    let home = TempHome::new();
    let entries = names.iter().map(|name| ((*name).to_owned(), entry(name)));
    let entries: serde_json::Map<String, Value> = entries.collect();
    home.write_settings(json!({ "mcpServers": entries, "permissions": permissions }).to_string());
    home
}

/// The text of a result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
}

/// The names of rows.
fn names(rows: &Value) -> Vec<&str> {
    let rows = rows.as_array().into_iter().flatten();
    rows.filter_map(|row| row["name"].as_str()).collect()
}

/// Answers as a server that lives in the program, with the tool `add`.
fn calculator(message: &Value) -> Value {
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "calc", "version": "1" } }),
        "tools/list" => json!({ "tools": [add()] }),
        "tools/call" => {
            let arguments = &message["params"]["arguments"];
            let sum = arguments["a"].as_i64().unwrap() + arguments["b"].as_i64().unwrap();
            json!({ "content": [{ "type": "text", "text": sum.to_string() }] })
        }
        _ => {
            let error = json!({ "code": -32601, "message": "method not found" });
            return json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
        }
    };
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })
}

fn add() -> Value {
    json!({ "name": "add", "description": "Adds", "inputSchema": { "type": "object",
        "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
        "required": ["a", "b"] } })
}

/// Answers messages for such a server.
fn resident(method: &str, params: &Value) -> Option<Result<Value, Value>> {
    (method == "toolway/servers/message").then(|| {
        let message = &params["message"];
        Ok(match message.get("id") {
            Some(_) => json!({ "message": calculator(message) }),
            None => json!({}),
        })
    })
}
