//! Clients over stdio whose servers the daemon keeps.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use toolway_testkit::{Script, TempHome};

use super::{home_with, process, reporting, run, status, until};
use crate::support::command;

/// A client of `toolway serve`.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
    /// What was said beside answers.
    news: Vec<Value>,
}

impl Client {
    fn start(home: &TempHome) -> Self {
        let mut child = command(home, &["serve"])
            .env("TOOLWAY_DAEMON", "auto")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut client = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            last: 0,
            news: Vec::new(),
        };
        let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "tests", "version": "1" } });
        client.ask("initialize", &greeting);
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn wait(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
            if said["id"] == id && said.get("method").is_none() {
                return said;
            }
            self.news.push(said);
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.wait(id)
    }

    fn call(&mut self, tool: &str) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": {} }))
    }

    /// The process that answers a call.
    fn answering(&mut self) -> u64 {
        let answer = self.call("s__report");
        let process = answer["result"]["structuredContent"]["process"].as_u64();
        process.unwrap_or_else(|| panic!("{answer}"))
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn five_clients_share_one_process_of_each_server() {
    let (home, canary) = home_with(reporting());
    let mut clients: Vec<Client> = (0..5).map(|_| Client::start(&home)).collect();
    let answering: Vec<u64> = clients.iter_mut().map(Client::answering).collect();
    assert!(
        answering.iter().all(|it| *it == answering[0]),
        "{answering:?}"
    );
    assert_eq!(canary.processes().len(), 1);
    assert_eq!(status(&home)["runs"].as_array().unwrap().len(), 5);
    clients.into_iter().for_each(Client::end);
    until("they are gone", || status(&home)["runs"] == json!([]));
}

#[test]
fn of_many_clients_that_want_a_daemon_at_once_none_is_left_alone() {
    let (home, canary) = home_with(reporting());
    let starting: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..12)
            .map(|_| scope.spawn(|| Client::start(&home)))
            .collect();
        clients.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(status(&home)["runs"].as_array().unwrap().len(), 12);
    starting.into_iter().for_each(Client::end);
    assert!(canary.processes().len() <= 1);
}

#[test]
fn a_server_that_is_known_is_not_started_before_it_is_called() {
    let (home, canary) = home_with(reporting());
    Client::start(&home).answering();
    run(&home, &["daemon", "stop", "--now"]).expect_code(0);
    canary.assert_gone();
    let mut client = Client::start(&home);
    let listed = client.ask("tools/list", &json!({}));
    assert!(listed.to_string().contains("s__report"), "{listed}");
    canary.assert_gone();
    client.answering();
    assert_eq!(canary.processes().len(), 1);
}

#[test]
fn rel_29_a_client_outlives_its_daemon() {
    let (home, canary) = home_with(reporting());
    let mut client = Client::start(&home);
    let first = client.answering();
    client.ask("logging/setLevel", &json!({ "level": "debug" }));
    kill_process(process(&home), Signal::KILL).unwrap();
    until("its servers are gone", || canary.processes().is_empty());
    // Another one is there, and the client need not say again who it is.
    until("another one answers", || !status(&home).is_null());
    assert_ne!(client.answering(), first);
    let told = client.news.iter().map(|news| &news["method"]);
    assert!(
        told.clone()
            .any(|it| it == "notifications/tools/list_changed"),
        "{:?}",
        client.news
    );
    assert!(
        client.news.iter().all(|news| news.get("id").is_none()),
        "{:?}",
        client.news
    );
    client.end();
}

#[test]
fn rel_29_a_call_under_way_is_in_doubt_and_anything_else_is_asked_again() {
    let (home, canary) = home_with(Script {
        silent: vec!["tools/call".to_owned()],
        ..reporting()
    });
    let mut client = Client::start(&home);
    client.ask("tools/list", &json!({}));
    let calling = client.begin(
        "tools/call",
        &json!({ "name": "s__report", "arguments": {} }),
    );
    until("it calls", || !canary.processes().is_empty());
    kill_process(process(&home), Signal::KILL).unwrap();
    let listing = client.begin("tools/list", &json!({}));
    let in_doubt = client.wait(calling);
    assert_eq!(
        in_doubt["error"]["data"]["reason"], "in-doubt",
        "{in_doubt}"
    );
    let listed = client.wait(listing);
    assert!(listed.to_string().contains("s__report"), "{listed}");
}

#[test]
fn a_client_whose_daemon_is_stopped_goes_on_by_itself() {
    let (home, _canary) = home_with(reporting());
    let mut client = Client::start(&home);
    let first = client.answering();
    run(&home, &["daemon", "stop"]).expect_code(0);
    assert_ne!(client.answering(), first);
    assert_eq!(status(&home), Value::Null, "whoever stopped it meant it");
    client.end();
}

#[test]
fn a_client_that_hangs_up_ends_its_command_in_the_daemon() {
    let (home, canary) = home_with(reporting());
    let mut client = Client::start(&home);
    client.answering();
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    until("it is gone", || status(&home)["runs"] == json!([]));
    assert_eq!(canary.processes().len(), 1, "its server is kept");
}
