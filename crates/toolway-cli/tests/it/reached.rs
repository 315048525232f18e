//! The organisation's lists against what is really reached: where a server sends us on to, and
//! where its name leads.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, TempHome, marked};

use crate::support::{servers, toolway};

const KEY: &str = marked!("Bearer ");

/// A server that answers by the path of a request, and remembers every path.
struct Sender {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Sender {
    fn start(answer: fn(&str) -> String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&seen);
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let notes = Arc::clone(&notes);
                thread::spawn(move || serve(&stream, answer, &notes));
            }
        });
        Self { port, seen }
    }

    fn paths(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, answer: fn(&str) -> String, notes: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream).lines();
    let Some(Ok(first)) = lines.next() else {
        return;
    };
    while lines
        .next()
        .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
    {}
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let text = answer(&path);
    notes.lock().unwrap().push(path);
    let mut stream = stream;
    let _ = stream.write_all(text.as_bytes());
    // The client's end of a stream that stays open.
    if text.contains("event-stream") {
        let _ = lines.next();
    }
}

fn redirect(status: &str, location: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
}

fn posts_to(path: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         event: endpoint\ndata: {path}\n\n"
    )
}

/// A home whose organisation has these lists, and one server.
fn home(policy: &Value, entry: Value) -> TempHome {
    let home = TempHome::new();
    let managed = home.system().join("managed-settings.json");
    home.write(managed, policy.to_string());
    let mut entry = entry;
    entry["headers"] = json!({ "Authorization": KEY });
    home.may_hold_secrets(home.write_settings(servers(&[("web", entry)])));
    home
}

fn shown(output: &CommandOutput, port: u16) -> String {
    output.to_string().replace(&port.to_string(), "PORT")
}

#[test]
fn sec_53_a_redirect_leads_to_no_path_that_is_denied() {
    for (name, answer) in [
        (
            "307",
            (|path| match path {
                "/mcp" => redirect("307 There", "/admin/mcp"),
                _ => redirect("404 Gone", ""),
            }) as fn(&str) -> String,
        ),
        ("308", |path| match path {
            "/mcp" => redirect("308 There", "/x/..%2fadmin/mcp"),
            _ => redirect("404 Gone", ""),
        }),
        ("twice", |path| match path {
            "/mcp" => redirect("307 There", "/next"),
            "/next" => redirect("307 There", "/ADMIN;a/mcp"),
            _ => redirect("404 Gone", ""),
        }),
    ] {
        let server = Sender::start(answer);
        let url = format!("http://127.0.0.1:{}/mcp", server.port);
        let policy = json!({"deniedMcpServers": [{"serverUrl": "http://localhost:*/admin/*"}]});
        let home = home(&policy, json!({"type": "http", "url": url}));
        let output = toolway(&home, &["tools", "web"]);
        let reached = server.paths();
        assert!(
            reached.iter().all(|path| path == "/mcp" || path == "/next"),
            "{name}: {reached:?}\n{output}"
        );
        if name == "307" {
            assert_snapshot!(shown(&output, server.port), @r#"
            exit: 6
            ----- stdout
            ----- stderr
            error: server `web` failed: policy forbids an address on `127.0.0.1:PORT` that the server leads to: it is denied by `{"serverUrl":"http://localhost:*/admin/*"}` in `deniedMcpServers` ([SYSTEM]/managed-settings.json:1)
            hint: ask the administrator of this machine to allow it, or the server not to lead there
            "#);
        }
    }
}

#[test]
fn sec_53_messages_are_posted_to_no_path_that_is_denied() {
    let server = Sender::start(|path| match path {
        "/sse" => posts_to("/admin/post"),
        _ => redirect("404 Gone", ""),
    });
    let url = format!("http://127.0.0.1:{}/sse", server.port);
    let policy = json!({"deniedMcpServers": [{"serverUrl": "http://127.0.0.1:*/admin/*"}]});
    let home = home(&policy, json!({"type": "sse", "url": url}));
    let output = toolway(&home, &["tools", "web"]);
    let reached = server.paths();
    assert!(
        reached.iter().all(|path| path == "/sse"),
        "{reached:?}\n{output}"
    );
    assert_snapshot!(shown(&output, server.port), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `web` failed: policy forbids an address on `127.0.0.1:PORT` that the server leads to: it is denied by `{"serverUrl":"http://127.0.0.1:*/admin/*"}` in `deniedMcpServers` ([SYSTEM]/managed-settings.json:1)
    hint: ask the administrator of this machine to allow it, or the server not to lead there
    "#);
}

#[test]
fn sec_53_what_an_allow_list_does_not_have_is_not_reached_by_a_redirect() {
    let server = Sender::start(|path| match path {
        "/team/mcp" => redirect("307 There", "/other/mcp"),
        _ => redirect("404 Gone", ""),
    });
    let url = format!("http://127.0.0.1:{}/team/mcp", server.port);
    let policy = json!({"allowedMcpServers": [{"serverUrl": "http://127.0.0.1:*/team/*"}]});
    let home = home(&policy, json!({"type": "http", "url": url}));
    let output = toolway(&home, &["tools", "web"]);
    let reached = server.paths();
    assert!(
        reached.iter().all(|path| path == "/team/mcp"),
        "{reached:?}\n{output}"
    );
    assert_snapshot!(shown(&output, server.port), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `web` failed: policy forbids an address on `127.0.0.1:PORT` that the server leads to: it is not in `allowedMcpServers` ([SYSTEM]/managed-settings.json:1)
    hint: ask the administrator of this machine to allow it, or the server not to lead there
    "#);
}

#[test]
fn sec_53_a_helper_that_no_rule_names_is_not_started() {
    let server = Sender::start(|_| redirect("404 Gone", ""));
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let policy = json!({"allowedMcpServers": [
        {"serverUrl": "http://127.0.0.1:*/*"},
        {"serverCommand": ["/opt/acme/token", "--audience", "mcp"]},
    ]});
    let entry = json!({"type": "http", "url": url, "headersHelper": "/bin/sh -c 'touch canary'"});
    let home = home(&policy, entry);
    let output = toolway(&home, &["tools", "web"]);
    assert!(server.paths().is_empty(), "{output}");
    assert!(!home.home().join(".config/toolway/canary").exists());
    assert_snapshot!(shown(&output, server.port), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `web` cannot be used: its `headersHelper` runs `/bin/sh`, which is not in `allowedMcpServers` ([SYSTEM]/managed-settings.json:1)
    hint: see why with `toolway explain web`
    "#);
}

#[test]
fn sec_53_a_command_that_a_variable_redirects_is_refused_with_the_way_out() {
    let home = TempHome::new();
    let canary = home.home().join("canary");
    let policy = json!({"allowedMcpServers": [{"serverCommand": ["/bin/sh", "-c", "cat"]}]});
    home.write(
        home.system().join("managed-settings.json"),
        policy.to_string(),
    );
    let script = format!("touch '{}'", canary.display());
    let script = home.write(home.home().join("startup"), script);
    let entry = json!({
        "command": "/bin/sh",
        "args": ["-c", "cat"],
        "env": { "LD_PRELOAD": script, "ENV": script, "BASH_ENV": script },
    });
    home.write_settings(servers(&[("mine", entry)]));
    let output = toolway(&home, &["tools", "mine"]);
    assert!(!canary.exists());
    assert_snapshot!(output, @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `mine` cannot be used: `{"serverCommand":["/bin/sh","-c","cat"]}` in `allowedMcpServers` ([SYSTEM]/managed-settings.json:1) would allow it, but its entry sets `BASH_ENV`, which can decide what code runs; the organisation can permit it with `"env": ["BASH_ENV"]` in that rule
    hint: see why with `toolway explain mine`
    "#);
}

#[test]
fn sec_13_a_checked_program_is_started_by_its_file_and_told_its_name() {
    let home = TempHome::new();
    let told = home.home().join("told");
    let link = home.home().join("my-shell");
    std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
    let policy = json!({"deniedMcpServers": [{"serverCommand": ["/opt/evil", "**"]}]});
    home.write(
        home.system().join("managed-settings.json"),
        policy.to_string(),
    );
    let script = format!("echo \"$0\" > '{}'", told.display());
    let entry = json!({ "command": link, "args": ["-c", script] });
    home.write_settings(servers(&[("mine", entry)]));
    toolway(&home, &["tools", "mine"]);
    assert_eq!(home.read(&told).trim(), link.display().to_string());
}

#[test]
fn sec_11_doctor_tells_the_organisation_which_of_its_rules_are_no_boundary() {
    let home = TempHome::new();
    let policy = json!({"allowedMcpServers": [
        {"serverCommand": ["npx", "-y", "@acme/*"]},
        {"serverCommand": ["/opt/acme/server", "**"]},
    ]});
    home.write(
        home.system().join("managed-settings.json"),
        policy.to_string(),
    );
    let output = toolway(&home, &["doctor"]);
    let lines: Vec<_> = output
        .stdout
        .lines()
        .chain(output.stderr.lines())
        .skip_while(|line| !line.contains("allowedMcpServers"))
        .take(2)
        .collect();
    assert_snapshot!(home.normalise(&lines.join("\n")), @r#"
    warning: [SYSTEM]/managed-settings.json:1: `{"serverCommand":["npx","-y","@acme/*"]}` in `allowedMcpServers` is no boundary: `npx` runs whatever the words under its `*` say
    hint: write every word of the servers you mean, with their versions, or a program of your own
    "#);
    let listed = toolway(&home, &["list"]);
    assert!(!listed.to_string().contains("boundary"), "{listed}");
}
