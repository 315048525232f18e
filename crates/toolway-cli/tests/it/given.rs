//! Servers that flags or words gave to one run: hints about them name commands that work.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::TempHome;

use crate::support::{servers, toolway};

/// The commands in the hints of an output.
fn commands(stderr: &str) -> Vec<Vec<String>> {
    let hints = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("hint: "));
    let quoted = hints.flat_map(|hint| hint.split('`').skip(1).step_by(2));
    let commands = quoted.filter_map(|words| words.strip_prefix("toolway "));
    commands
        .map(|line| {
            line.split(' ')
                .map(|word| word.trim_matches('\'').to_owned())
                .collect()
        })
        .collect()
}

#[test]
fn hints_about_servers_of_flags_name_commands_that_work() {
    let home = TempHome::new();
    home.write(
        "m.json",
        servers(&[
            ("bad", json!({ "command": "false" })),
            (
                "far",
                json!({ "type": "http", "url": "http://127.0.0.1:9/mcp" }),
            ),
        ]),
    );
    assert_snapshot!(toolway(&home, &["--mcp-config", "m.json", "tools", "bad"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `bad` failed: the server process ended (exit status: 1)
    hint: see what it wrote with `toolway logs bad`, its command with `toolway --mcp-config m.json get bad`
    ");
    for words in [
        &["--mcp-config", "m.json", "tools", "bad"][..],
        &["--mcp-config", "m.json", "call", "far", "x"],
        &["--mcp-config", "m.json", "--strict-mcp-config", "list"],
        &["--mcp-server", "q=false", "tools", "q"],
    ] {
        let output = toolway(&home, words);
        let hinted = commands(&output.stderr);
        assert!(!hinted.is_empty(), "{output}");
        for command in hinted {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            toolway(&home, &command).expect_code(0);
        }
    }
}

#[test]
fn hints_about_servers_that_were_typed_name_commands_that_work() {
    let home = TempHome::new();
    let server = toolway_testkit::ScriptedServer::new(toolway_testkit::Script::default());
    let http = server.serve_http();
    let output = toolway(&home, &["call", http.url(), "fail"]);
    assert_eq!(output.code, Some(7), "{output}");
    let hinted = commands(&output.stderr);
    for command in hinted {
        assert!(!command.iter().any(|word| word == "127-0-0-1"), "{output}");
    }
    let program = toolway_testkit::ScriptedServer::program().to_str().unwrap();
    let unknown = toolway(&home, &["call", "nothing_like_it", "--", program]);
    let hinted = commands(&unknown.stderr);
    assert_eq!(hinted.len(), 1, "{unknown}");
    let command: Vec<&str> = hinted[0].iter().map(String::as_str).collect();
    toolway(&home, &command).expect_code(0);
}

/// A server that answers in plain HTTP to whatever it is told, once per connection.
fn plain_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    port
}

#[test]
fn a_server_that_speaks_no_tls_is_told_with_the_scheme_that_fits() {
    for (kind, scheme, plain) in [
        ("http", "https", "http"),
        ("sse", "https", "http"),
        ("ws", "wss", "ws"),
    ] {
        let home = TempHome::new();
        let url = format!("{scheme}://127.0.0.1:{}/mcp", plain_port());
        home.write_settings(servers(&[("far", json!({ "type": kind, "url": url }))]));
        let output = toolway(&home, &["tools", "far"]).expect_code(4);
        let said = format!("it does not speak TLS: try `{plain}://` in its URL");
        assert!(output.stderr.contains(&said), "{kind}: {output}");
        assert!(!output.stderr.contains("corrupt"), "{kind}: {output}");
    }
}
