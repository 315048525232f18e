//! `toolway run`: a program with an endpoint of its own.
//!
//! Owns the program that is run in these tests, and a client of its endpoint. What it shows is
//! `run/view.rs`, how it ends `run/ending.rs`, what reaches for more than its own `run/attacks.rs`.

mod attacks;
mod ending;
mod view;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolway_testkit::{
    Canary, CommandOutput, Script, ScriptedServer, TempHome, eventually_blocking,
};

use crate::support::{command, program, servers, toolway};

/// Says where its endpoint is, and ends with its input.
const PROGRAM: &str = "echo \"$TOOLWAY_ENDPOINT\"; echo $$; cat > /dev/null";

fn scripted(script: Script, canary: &Canary) -> Value {
    let mut entry = ScriptedServer::new(script).entry();
    entry["env"] = json!({ canary.name(): canary.value() });
    entry
}

fn offering(canary: &Canary) -> Value {
    let script = Script {
        offers: true,
        ..Script::default()
    };
    scripted(script, canary)
}

/// An agent of the person's own.
fn write_agent(home: &TempHome, name: &str, front_matter: &str) -> PathBuf {
    let text = format!("---\nname: {name}\n{front_matter}---\nYou work.\n");
    home.write(home.config_home().join(format!("agents/{name}.md")), text)
}

/// A program that runs with an endpoint.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    socket: PathBuf,
    program: Pid,
}

impl Running {
    fn start(home: &TempHome, flags: &[&str]) -> Self {
        Self::of(command(home, &["run"]).args(flags))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command
            .args(["--", "sh", "-c", PROGRAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            line.trim().to_owned()
        };
        let (socket, program) = (line(), line());
        let program: i32 = program.parse().unwrap_or_else(|_| panic!("{program:?}"));
        Self {
            input: child.stdin.take(),
            child,
            output,
            socket: socket.into(),
            program: Pid::from_raw(program).unwrap(),
        }
    }

    fn client(&self) -> Client {
        Client::new(&self.socket)
    }

    fn folder(&self) -> &Path {
        self.socket.parent().unwrap()
    }

    fn process(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    /// Lets the program end.
    fn end(mut self) -> i32 {
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        let status = self.child.wait().unwrap();
        toolway_testkit::shell_code(status).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its end belongs to nobody then.
        let _ = kill_process(self.program, Signal::KILL);
    }
}

/// A client of an endpoint.
struct Client {
    stream: BufReader<UnixStream>,
    last: u64,
}

impl Client {
    fn new(socket: &Path) -> Self {
        let mut client = Self {
            stream: BufReader::new(UnixStream::connect(socket).unwrap()),
            last: 0,
        };
        let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "tests", "version": "1" } });
        client.ask("initialize", &greeting);
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.stream.get_mut().write_all(line.as_bytes()).unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
            if said["id"] == id && said.get("method").is_none() {
                return said;
            }
        }
    }

    fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().cloned();
        let tools = tools.unwrap_or_else(|| panic!("{listed}"));
        let names = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    fn call(&mut self, tool: &str) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": {} }))
    }

    /// The process that answers a call.
    fn answering(&mut self, server: &str) -> u64 {
        let answer = self.call(&format!("{server}__report"));
        let process = &answer["result"]["structuredContent"]["process"];
        process.as_u64().unwrap_or_else(|| panic!("{answer}"))
    }
}

fn until(what: &str, condition: impl Fn() -> bool) {
    eventually_blocking(|| {
        if condition() {
            Ok(())
        } else {
            Err(format!("not yet: {what}"))
        }
    });
}

/// Runs `toolway run` with these words to its end.
fn run(home: &TempHome, words: &[&str]) -> CommandOutput {
    home.run(command(home, &["run"]).args(words))
}

#[test]
fn a_program_has_its_own_streams_words_directory_and_exit_code() {
    let home = TempHome::new();
    let script = "pwd | sed 's/.*\\///'; read line; echo \"$line $1\"; echo err >&2; exit 7";
    let mut command = command(&home, &["run", "--", "sh", "-c", script, "sh", "--agent"]);
    let output = home.run_with_input(&mut command, "hello\n");
    assert_snapshot!(output, @"
    exit: 7
    ----- stdout
    project
    hello --agent
    ----- stderr
    err
    ");
}

#[test]
fn a_program_ends_by_the_signal_that_it_ended_by() {
    let home = TempHome::new();
    let output = run(&home, &["--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(output.code, Some(143), "{output}");
}

#[test]
fn a_program_that_is_not_there_is_said() {
    let home = TempHome::new();
    assert_snapshot!(run(&home, &["--", "no-such-program"]), @"
    exit: 127
    ----- stdout
    ----- stderr
    error: there is no program `no-such-program`
    hint: what stands behind `--` is started as it is: give its name or path
    ");
    let file = home.write("plain", "no program\n");
    let output = run(&home, &["--", file.to_str().unwrap()]);
    assert_eq!(output.code, Some(126), "{output}");
    assert_snapshot!(run(&home, &["sh"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: unexpected argument 'sh' found

    Usage: toolway run [OPTIONS] -- <COMMAND>...
    hint: see `toolway run --help`
    ");
}

#[test]
fn signals_are_the_programs_to_answer() {
    let home = TempHome::new();
    let script = "trap 'echo told; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = command(&home, &["run", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\ntold\n");
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn what_was_ignored_stays_ignored() {
    let home = TempHome::new();
    let line = format!(
        "trap '' HUP; exec {} run -- sh -c 'grep SigIgn /proc/self/status'",
        program()
    );
    let output = home.run(home.command("sh").args(["-c", &line]));
    let mask = output.stdout.trim().rsplit('\t').next().unwrap().to_owned();
    let mask = u64::from_str_radix(&mask, 16).unwrap_or_else(|_| panic!("{output}"));
    assert_eq!(mask & 1, 1, "{output}");
}
