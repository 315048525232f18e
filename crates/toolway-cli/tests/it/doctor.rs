//! `doctor`: what it says of the machine that logins depend on.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::TempHome;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;

use crate::support::{command, servers, toolway};

fn check(output: &Value, name: &str) -> Value {
    let checks = output["checks"].as_array().unwrap();
    checks
        .iter()
        .find(|check| check["name"] == name)
        .unwrap()
        .clone()
}

#[test]
fn the_machine_is_looked_at_without_asking_anybody() {
    let home = TempHome::new();
    let output = toolway(&home, &["doctor"]).expect_code(0);
    let lines: Vec<&str> = output
        .stdout
        .lines()
        .skip_while(|line| !line.starts_with("clock"))
        .collect();
    assert_snapshot!(lines.join("\n"), @"
    clock         ok: not compared with a server's: nothing is asked without `--network`
    callback      ok: a browser can come back to this machine
    proxy         ok: none
    certificates  ok: the system's

    no problems found
    ");
}

#[test]
fn what_stands_in_the_way_of_a_login_is_told_with_how_to_mend_it() {
    let home = TempHome::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    home.write_settings(servers(&[(
        "web",
        json!({ "type": "http", "url": "https://a.example/mcp", "oauth": { "callbackPort": port } }),
    )]));
    let output = toolway(&home, &["doctor", "--json"]).expect_code(0).json();
    let callback = check(&output, "callback");
    assert_eq!(callback["state"], "warn");
    let message = callback["message"].as_str().unwrap();
    assert!(
        message.starts_with(&format!("port {port}, which server `web` names, is taken")),
        "{message}"
    );
    assert!(callback["hint"].as_str().unwrap().contains("callbackPort"));

    let mut command_line = command(&home, &["doctor", "--json"]);
    command_line
        .env(
            "HTTPS_PROXY",
            marked!("http://user:", "@proxy.example:3128"),
        )
        .env("HTTP_PROXY", marked!("http://[broken:"))
        .env("NODE_EXTRA_CA_CERTS", home.home().join("absent.pem"));
    let output = home.run(&mut command_line).expect_code(3);
    assert!(!output.to_string().contains(MARK), "{output}");
    let output = output.json();
    assert_eq!(
        check(&output, "proxy")["message"],
        "`HTTP_PROXY` is not a URL"
    );
    let certificates = check(&output, "certificates");
    assert_eq!(certificates["state"], "fail");
    assert!(
        certificates["message"]
            .as_str()
            .unwrap()
            .contains("absent.pem"),
        "{certificates}"
    );
    assert_eq!(
        certificates["hint"],
        "mend the file, or unset `NODE_EXTRA_CA_CERTS`"
    );
}

#[test]
fn rel_16_the_clock_is_compared_with_a_servers_when_the_network_may_be_used() {
    let home = TempHome::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let entry = json!({ "type": "http", "url": url, "headers": { "Authorization": MARK } });
    home.write_settings(servers(&[("web", entry)]));
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            request.extend(byte);
        }
        let date = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 0\r\n\r\n";
        write!(stream, "HTTP/1.1 404 Not Found\r\n{date}").unwrap();
        String::from_utf8(request).unwrap()
    });
    let output = toolway(&home, &["doctor", "--network"]).expect_code(3);
    let request = serving.join().unwrap();
    assert!(request.starts_with("GET / HTTP/1.1\r\n"), "{request}");
    assert!(!request.contains(MARK), "{request}");
    let line = output
        .stdout
        .lines()
        .find(|line| line.starts_with("clock"))
        .unwrap();
    assert!(
        line.contains("fail: ") && line.ends_with(" s ahead of the one of server `web`"),
        "{line}"
    );
    assert!(
        output.stdout.contains("hint: set this machine's clock"),
        "{output}"
    );
}
