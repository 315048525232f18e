//! `toolway serve` as people start it: what it says, how it ends, and what becomes of calls.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolway_testkit::{
    Canary, CommandOutput, Script, ScriptedServer, SpokenEras, TempHome, eventually_blocking,
};

use crate::gateway::Gateway;
use crate::support::{command, servers, toolway};

fn scripted(name: &str) -> Script {
    Script {
        name: name.to_owned(),
        offers: true,
        ..Script::default()
    }
}

fn home_of(names: &[&str]) -> TempHome {
    let home = TempHome::new();
    let entries: Vec<_> = (names.iter())
        .map(|name| (*name, ScriptedServer::new(scripted(name)).entry()))
        .collect();
    home.write_settings(servers(&entries));
    home
}

/// A client of the legacy era over HTTP, with a session.
struct SessionClient<'a> {
    gateway: &'a Gateway,
    session: String,
    last: Cell<u64>,
}

impl<'a> SessionClient<'a> {
    fn open(gateway: &'a Gateway) -> Self {
        let mut client = Self {
            gateway,
            session: String::new(),
            last: Cell::new(0),
        };
        let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "tests", "version": "1" } });
        let (head, _) = client.post("initialize", &greeting);
        let session = head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let session = session.unwrap_or_else(|| panic!("{head}"));
        session.clone_into(&mut client.session);
        client
    }

    fn post(&self, method: &str, params: &Value) -> (String, Value) {
        let stream = self.send(method, params);
        answer(stream)
    }

    fn send(&self, method: &str, params: &Value) -> TcpStream {
        let id = self.last.get() + 1;
        self.last.set(id);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.request("POST", &message.to_string())
    }

    fn request(&self, verb: &str, body: &str) -> TcpStream {
        let rest = self.gateway.url.strip_prefix("http://").unwrap();
        let (address, path) = rest.split_once('/').unwrap();
        let session = match self.session.as_str() {
            "" => String::new(),
            id => format!("mcp-session-id: {id}\r\n"),
        };
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "{verb} /{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n{session}\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.gateway.token,
            body.len(),
        )
        .unwrap();
        stream
    }

    fn call(&self, tool: &str) -> Value {
        let params = json!({ "name": tool, "arguments": {} });
        self.post("tools/call", &params).1
    }

    /// The process that answers.
    fn process(&self, server: &str) -> u64 {
        let report = self.call(&format!("{server}__report"));
        let process = report["result"]["structuredContent"]["process"].as_u64();
        process.unwrap_or_else(|| panic!("{report}"))
    }

    fn leave(self) {
        let (head, _) = answer(self.request("DELETE", ""));
        assert!(head.starts_with("HTTP/1.1 204"), "{head}");
    }
}

/// The head, and the last message of the body.
fn answer(mut stream: TcpStream) -> (String, Value) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let body = if head.contains("transfer-encoding: chunked") {
        unchunked(body)
    } else {
        body.to_owned()
    };
    let messages = body
        .lines()
        .map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let last = messages.filter_map(|line| serde_json::from_str(line).ok());
    let last = last.rev().find(Value::is_object);
    (head.to_owned(), last.unwrap_or_default())
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&rest[..size]);
        body = rest[size..].strip_prefix("\r\n").unwrap_or_default();
    }
    whole
}

/// What one that does not start says.
fn refused(home: &TempHome, words: &[&str]) -> CommandOutput {
    toolway(home, &[&["serve"], words].concat())
}

/// What one that listens says until it is told to end, with its port made `PORT`.
fn listening(home: &TempHome, words: &[&str]) -> String {
    let gateway = Gateway::start(home, words);
    let (url, port) = (gateway.url.clone(), gateway.url.clone());
    let port = port
        .split([':', '/'])
        .find(|it| it.parse::<u16>().is_ok())
        .unwrap()
        .to_owned();
    gateway.signal(Signal::TERM);
    let (code, rest) = gateway.ended();
    let said = format!("{url}\n{rest}exit: {}\n", code.unwrap());
    home.normalise(&said).replace(&port, "PORT")
}

#[test]
fn it_says_where_it_listens_and_where_its_token_is() {
    let home = home_of(&["s"]);
    assert_snapshot!(listening(&home, &[]), @"
    http://127.0.0.1:PORT/mcp
    clients show the token in [HOME]/.config/toolway/state/gateway-token
    exit: 0
    ");
    assert_snapshot!(listening(&home, &["--no-token"]), @"
    http://127.0.0.1:PORT/mcp
    warning: every program of this machine can use this gateway, whoever runs it
    exit: 0
    ");
    assert_snapshot!(listening(&home, &["--token-file", "token", "--sse"]), @"
    http://127.0.0.1:PORT/mcp
    clients show the token in token
    exit: 0
    ");
}

#[test]
fn without_servers_it_says_how_to_get_some() {
    let home = TempHome::new();
    assert_snapshot!(listening(&home, &[]), @"
    http://127.0.0.1:PORT/mcp
    warning: no server is configured, so clients see no tools
    hint: `toolway add <name> -- <command>` adds one, `toolway import` takes those of other programs over; both take effect at once
    clients show the token in [HOME]/.config/toolway/state/gateway-token
    exit: 0
    ");
    assert_snapshot!(refused(&home, &[]), @"
    exit: 0
    ----- stdout
    ----- stderr
    warning: no server is configured, so clients see no tools
    hint: `toolway add <name> -- <command>` adds one, `toolway import` takes those of other programs over; both take effect at once
    ");
}

#[test]
fn an_address_that_is_none_is_refused_with_one_that_is() {
    let home = home_of(&["s"]);
    assert_snapshot!(refused(&home, &["--http", "nonsense"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value 'nonsense' for '--http <ADDRESS>': write an address and a port, such as `127.0.0.1:8808`, or a port
    hint: see `toolway serve --help`
    ");
    assert_snapshot!(refused(&home, &["--http", "127.0.0.1:99999"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value '127.0.0.1:99999' for '--http <ADDRESS>': write an address and a port, such as `127.0.0.1:8808`, or a port
    hint: see `toolway serve --help`
    ");
    assert_snapshot!(refused(&home, &["--http", "192.0.2.1:0", "--behind-proxy"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: cannot listen on `192.0.2.1:0`: Cannot assign requested address (os error 99)
    hint: this machine does not have that address
    ");
}

#[test]
fn a_port_alone_is_one_of_this_machine() {
    let home = home_of(&["s"]);
    for address in ["0", "localhost:0"] {
        let gateway = Gateway::start(&home, &["--metrics", address]);
        assert!(
            gateway.url.starts_with("http://127.0.0.1:"),
            "{}",
            gateway.url
        );
    }
}

#[test]
fn an_address_in_use_is_named() {
    let home = home_of(&["s"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refused(&home, &["--http", &port])
        .to_string()
        .replace(&port, "PORT");
    assert_snapshot!(said, @"
    exit: 2
    ----- stdout
    ----- stderr
    error: cannot listen on `127.0.0.1:PORT`: Address already in use (os error 98)
    hint: another program listens there; `--http 127.0.0.1:0` takes a port that is free
    ");
}

#[test]
fn sec_10_other_machines_need_tokens_and_encryption() {
    let home = home_of(&["s"]);
    assert_snapshot!(refused(&home, &["--http", "0.0.0.0:0"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: refusing to listen on `0.0.0.0:0`: other machines can reach it, so it needs TLS, or a proxy in front that has it
    hint: `toolway serve --http 127.0.0.1:0` serves this machine; beyond it are needed `--tls-cert` and `--tls-key`, and tokens of `toolway tokens` or `--oauth-issuer`
    ");
    assert_snapshot!(refused(&home, &["--http", "0.0.0.0:0", "--no-token"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: refusing to listen on `0.0.0.0:0`: other machines can reach it, so it needs authentication, and TLS or a proxy in front that has it
    hint: `toolway serve --http 127.0.0.1:0` serves this machine; beyond it are needed `--tls-cert` and `--tls-key`, and tokens of `toolway tokens` or `--oauth-issuer`
    ");
    assert_snapshot!(refused(&home, &["--http", "127.0.0.1:0", "--no-token", "--behind-proxy"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: refusing to listen on `127.0.0.1:0` behind a proxy: what it passes on needs authentication
    hint: leave `--no-token` out
    ");
}

#[test]
fn a_profile_or_a_server_that_is_not_there_is_refused_with_the_one_that_was_meant() {
    let home = home_of(&["time", "files"]);
    assert_snapshot!(refused(&home, &["--profile", "reader"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no profile is called `reader`
    hint: write it below `profiles` in your settings: see docs/configuration.md
    ");
    assert_snapshot!(refused(&home, &["--servers", "time,flies"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server `flies` is configured
    hint: did you mean `files`?
    ");
    assert_snapshot!(refused(&home, &["--servers", "weather"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server `weather` is configured
    hint: `toolway list --no-connect` shows all of them
    ");
    home.write_settings(r#"{ "profiles": { "reader": { "readOnly": true }, "writer": {} } }"#);
    assert_snapshot!(refused(&home, &["--profile", "raeder"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no profile is called `raeder`
    hint: did you mean `reader`?
    ");
    assert_snapshot!(refused(&home, &["--profile", "everything"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no profile is called `everything`
    hint: there are: reader, writer
    ");
    home.write_settings(r#"{ "profiles": { "reader": { "readOnly": "yes" } } }"#);
    assert_snapshot!(refused(&home, &["--profile", "reader"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: [HOME]/.config/toolway/settings.json:1: `profiles.reader.readOnly` must be `true` or `false`, not a string
    hint: mend it at that place, then check with `toolway doctor`
    error: the profile `reader` cannot be used: `profiles.reader.readOnly` must be `true` or `false`, not a string
    hint: `toolway doctor` says where that stands
    ");
}

#[test]
fn a_certificate_needs_its_key_and_files_that_hold_them() {
    let home = home_of(&["s"]);
    home.write("broken.pem", "no certificate\n");
    let http = ["--http", "127.0.0.1:0", "--tls-cert"];
    assert_snapshot!(refused(&home, &[&http[..], &["broken.pem"]].concat()), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: the following required arguments were not provided:
      --tls-key <FILE>

    Usage: toolway serve --http <ADDRESS> --tls-cert <FILE> --tls-key <FILE>
    hint: see `toolway serve --help`
    ");
    let with_key = |file| [&http[..], &[file, "--tls-key", "broken.pem"]].concat();
    assert_snapshot!(refused(&home, &with_key("broken.pem")), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `broken.pem` has no certificate in PEM form
    hint: `--tls-cert` and `--tls-key` take PEM files that belong together
    ");
    assert_snapshot!(refused(&home, &with_key("absent.pem")), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: cannot read `absent.pem`: No such file or directory (os error 2)
    hint: `--tls-cert` and `--tls-key` take PEM files that belong together
    ");
}

#[test]
fn sec_10_a_token_that_others_may_read_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = home_of(&["s"]);
    let token = home.write("token", "twg_0123456789abcdefghijklmnopqrstuvwxyz\n");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let words = ["--http", "127.0.0.1:0", "--token-file", "token"];
    assert_snapshot!(refused(&home, &words), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `token` may be read by others, so that its token is not used
    hint: make another where others cannot read it: `rm token`, and it is made anew
    ");
    home.write("token", "short\n");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_snapshot!(refused(&home, &words), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `token` holds no token: one line of 22 to 1024 letters, digits and signs
    hint: name a file that is not there, and a token is made in it; or `rm token`
    ");
}

#[test]
fn flags_that_need_each_other_say_so() {
    let home = home_of(&["s"]);
    assert_snapshot!(refused(&home, &["--no-token"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: the following required arguments were not provided:
      --http <ADDRESS>

    Usage: toolway serve --http <ADDRESS> --no-token
    hint: see `toolway serve --help`
    ");
    assert_snapshot!(refused(&home, &["--wait", "soon"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value 'soon' for '--wait <SECONDS>': not a number
    hint: see `toolway serve --help`
    ");
    assert_snapshot!(refused(&home, &["--wait", "601"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value '601' for '--wait <SECONDS>': not between 0 and 600
    hint: see `toolway serve --help`
    ");
}

/// One broken file, and one broken entry, beside good ones.
#[test]
fn what_is_broken_is_named_and_the_rest_is_served() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("good", ScriptedServer::new(scripted("good")).entry()),
        ("wrong", json!({ "type": "http" })),
    ]));
    home.write(".mcp.json", "{ \"mcpServers\": {");
    let gateway = Gateway::start(&home, &["--wait", "30"]);
    let client = SessionClient::open(&gateway);
    let (_, listed) = client.post("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(
        tools
            .iter()
            .all(|tool| tool["name"].as_str().unwrap().starts_with("good__"))
    );
    assert!(client.process("good") > 0);
    gateway.signal(Signal::TERM);
    let (code, said) = gateway.ended();
    assert_eq!(code, Some(0));
    assert_snapshot!(home.normalise(&said), @r#"
    error: [PROJECT]/.mcp.json:1:17: not valid JSON: unterminated object
    hint: mend the file at that place; nothing in it is read until then
    error: [HOME]/.config/toolway/settings.json:11: server `wrong`: `type` is `http`, but `url` is missing
    hint: add `"url": "https://…"`
    clients show the token in [HOME]/.config/toolway/state/gateway-token
    "#);
}

#[test]
fn a_server_that_dies_in_mid_call_takes_its_call_with_it_and_nothing_else() {
    let home = home_of(&["frail", "other"]);
    let gateway = Gateway::start(&home, &["--wait", "30"]);
    let client = SessionClient::open(&gateway);
    let other = client.process("other");
    let first = client.process("frail");
    let died = client.call("frail__crash");
    assert_snapshot!(died["result"], @r#"
    {"content":[{"type":"text","text":"the call of `crash` of server `frail` was sent, but its answer was lost: its process ended (exit status: 9); nobody knows whether it ran"}],"isError":true}
    "#);
    assert_eq!(client.process("other"), other);
    // It comes back, and calls wait for it.
    let back = client.call("frail__report");
    assert_ne!(back["result"]["structuredContent"]["process"], first);
    // It speaks the modern era, and its client does not.
    assert_eq!(back["result"]["resultType"], Value::Null, "{back}");
}

#[test]
fn rel_32_a_signal_ends_it_while_calls_run_and_leaves_nothing() {
    for (signal, expected) in [(Signal::TERM, 0), (Signal::INT, 130), (Signal::HUP, 0)] {
        let home = TempHome::new();
        let canary = Canary::new();
        let stubborn = Script {
            ignores_end_of_input: true,
            grandchild: true,
            ..scripted("s")
        };
        let env = [(canary.name(), canary.value())];
        let entry = ScriptedServer::new(stubborn).entry_with_env(env);
        home.write_settings(servers(&[("s", entry)]));
        let gateway = Gateway::start(&home, &["--wait", "30"]);
        let client = SessionClient::open(&gateway);
        let before = client.call("s__report")["result"]["structuredContent"]["calls"].clone();
        let hanging = client.send("tools/call", &json!({ "name": "s__hang", "arguments": {} }));
        // Until the server has it.
        eventually_blocking(|| {
            let report = client.call("s__report");
            let calls = &report["result"]["structuredContent"]["calls"];
            let more = calls.as_u64().unwrap() - before.as_u64().unwrap();
            if more > 1 {
                Ok(())
            } else {
                Err(report.to_string())
            }
        });
        gateway.signal(signal);
        let (code, said) = gateway.ended();
        assert_eq!(code, Some(expected), "{signal:?}: {said}");
        assert!(!said.contains("error"), "{said}");
        canary.assert_gone();
        // Whoever waits hears that it is over.
        let mut rest = String::new();
        drop({ hanging }.read_to_string(&mut rest));
        assert!(!rest.contains("\"result\""), "{rest}");
    }
}

#[test]
fn rel_32_the_end_of_stdin_ends_it_and_leaves_nothing() {
    let home = TempHome::new();
    let canary = Canary::new();
    let env = [(canary.name(), canary.value())];
    let entry = ScriptedServer::new(scripted("s")).entry_with_env(env);
    home.write_settings(servers(&[("s", entry)]));
    let mut child = command(&home, &["serve", "--wait", "30"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let greeting = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "tests", "version": "1" } } });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    writeln!(stdin, "{greeting}\n{list}").unwrap();
    let mut lines = String::new();
    stdout.read_line(&mut lines).unwrap();
    stdout.read_line(&mut lines).unwrap();
    assert!(lines.contains("s__report"), "{lines}");
    assert!(!canary.processes().is_empty());
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    canary.assert_gone();
}

#[test]
fn rel_32_a_signal_ends_it_also_while_nobody_hangs_up() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = TempHome::new();
        let canary = Canary::new();
        let env = [(canary.name(), canary.value())];
        let entry = ScriptedServer::new(scripted("s")).entry_with_env(env);
        home.write_settings(servers(&[("s", entry)]));
        let mut child = command(&home, &["serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        writeln!(stdin, "{ping}").unwrap();
        stdout.read_line(&mut String::new()).unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        child.wait().unwrap();
        canary.assert_gone();
        drop(stdin);
    }
}

/// What is only served is started only where nothing else can be asked for.
#[test]
fn a_client_of_few_servers_starts_no_others() {
    let home = TempHome::new();
    let canary = Canary::new();
    let env = [(canary.name(), canary.value())];
    let other = ScriptedServer::new(scripted("other")).entry_with_env(env);
    let wanted = ScriptedServer::new(scripted("wanted")).entry();
    home.write_settings(servers(&[("other", other), ("wanted", wanted)]));
    let mut child = command(&home, &["serve", "--servers", "wanted", "--wait", "30"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let greeting = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "tests", "version": "1" } } });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    writeln!(stdin, "{greeting}\n{list}").unwrap();
    let mut lines = String::new();
    stdout.read_line(&mut lines).unwrap();
    stdout.read_line(&mut lines).unwrap();
    assert!(
        lines.contains("wanted__report") && !lines.contains("other__"),
        "{lines}"
    );
    canary.assert_gone();
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_server_that_is_shared_by_nobody_has_a_process_for_each_session() {
    let home = TempHome::new();
    let script = Script {
        speaks: SpokenEras::Legacy,
        ..scripted("s")
    };
    let mut entry = ScriptedServer::new(script).entry();
    entry["share"] = "session".into();
    home.write_settings(servers(&[("s", entry)]));
    let gateway = Gateway::start(&home, &["--wait", "30"]);
    let [first, second] = [(); 2].map(|()| SessionClient::open(&gateway));
    let processes = [first.process("s"), second.process("s")];
    assert_ne!(processes[0], processes[1]);
    assert_eq!(first.process("s"), processes[0], "it stays its own");
    first.leave();
    let is_there = |process: u64| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    eventually_blocking(|| {
        if is_there(processes[0]) {
            return Err("it is still there".to_owned());
        }
        Ok(())
    });
    assert!(is_there(processes[1]));
    assert_eq!(second.process("s"), processes[1]);
}
