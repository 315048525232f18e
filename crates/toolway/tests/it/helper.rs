//! Headers helpers through the host: whose headers are sent, and what a broken one leaves behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};
use toolway::journal::Journal;
use toolway::{Host, HostOptions};
use toolway_testkit::marked;
use toolway_types::ConnectionState;

use crate::http::{Server, document, reply};
use crate::support::*;

const CANARY: &str = marked!("71c2f09b-");

struct Scene {
    home: Home,
    server: Server,
}

impl Scene {
    /// A server that accepts these keys, and a helper with this script.
    async fn new(keys: &'static [&'static str], script: &str) -> Self {
        let server = Server::start(move |message, headers| guarded(message, headers, keys)).await;
        let home = Home::new();
        let path = home.path().join("helper");
        home.may_hold_secrets(&path);
        fs::write(
            &path,
            format!("#!/bin/sh\ncd \"$(dirname \"$0\")\"\n{script}\n"),
        )
        .expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("rights");
        Self { home, server }
    }

    fn host(&self) -> Host {
        let helper = self.home.path().join("helper");
        let plan = self.home.plan(&json!({ "web": {
            "type": "http",
            "url": self.server.url,
            "headers": { "X-Key": "static", "X-Other": "stays" },
            "headersHelper": format!("'{}' one 'two three'", helper.display()),
            "protocol": "legacy",
        } }));
        let options = HostOptions {
            journal: Some(Journal::in_directory(self.home.path().join("logs"))),
            ..self.home.options()
        };
        Host::start(plan, options)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.home.path().join(file)).unwrap_or_default()
    }

    /// Everything that was written to files of the host's.
    fn written(&self) -> String {
        let mut all = String::new();
        for place in ["logs", "output", "home"] {
            for entry in walk(&self.home.path().join(place)) {
                all.push_str(&String::from_utf8_lossy(
                    &fs::read(entry).unwrap_or_default(),
                ));
            }
        }
        all
    }
}

pub(crate) fn walk(place: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn guarded(message: &Value, headers: &HeaderMap, keys: &[&str]) -> Response {
    let all: Vec<&str> = headers
        .get_all("x-key")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let [key] = all[..] else {
        return document(400, &json!({}));
    };
    if !keys.contains(&key) || headers["x-other"] != "stays" {
        return document(403, &json!({}));
    }
    if message["method"] == "tools/call" {
        // A server that repeats what it got must not bring it into a log.
        let text = format!("your key is {key}");
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        return reply(message, Reply::Result(result));
    }
    reply(message, legacy(message))
}

#[tokio::test]
async fn its_headers_beat_those_of_the_entry_and_it_runs_once_for_a_connection() {
    let script = format!(r#"echo "$*" >> runs.txt; echo '{{"X-Key": "{CANARY}"}}'"#);
    let scene = Scene::new(&[CANARY], &script).await;
    let host = scene.host();
    host.settled().await;
    facts(&host, "web");
    let answer = echo(&host, "web", "hi").await.expect("an answer");
    assert!(text_of(&answer).contains(CANARY), "the server got it");
    assert_eq!(scene.read("runs.txt"), "one two three\n");
    host.shutdown().await;
    let written = scene.written();
    assert!(
        written.contains("your key is"),
        "the journal has the answer: {written}"
    );
    assert!(!written.contains(CANARY), "{written}");
}

#[tokio::test]
async fn it_runs_again_when_the_server_refuses_what_it_printed() {
    let script =
        r#"echo run >> runs.txt; printf '{"X-Key": "key-%s"}' "$(wc -l < runs.txt | tr -d ' ')""#;
    let scene = Scene::new(&["key-2"], script).await;
    let host = scene.host();
    host.settled().await;
    facts(&host, "web");
    assert_eq!(scene.server.methods()[..2], ["initialize", "initialize"]);
    assert_eq!(scene.read("runs.txt"), "run\nrun\n");
    host.shutdown().await;
}

#[tokio::test]
async fn rel_26_a_server_that_never_accepts_it_costs_two_runs() {
    let script = format!(r#"echo run >> runs.txt; echo '{{"X-Key": "{CANARY}"}}'"#);
    let scene = Scene::new(&["another"], &script).await;
    let host = scene.host();
    host.settled().await;
    assert!(failure(&host, "web").message.contains("HTTP 403"));
    assert_eq!(scene.server.methods(), ["initialize", "initialize"]);
    assert_eq!(scene.read("runs.txt"), "run\nrun\n");
    host.shutdown().await;
}

#[tokio::test]
async fn sec_15_a_broken_helper_fails_the_connection_closed_and_leaks_nothing() {
    for (script, expected) in [
        (
            format!(r#"printf %s '{{"X-Key": "{CANARY}\r\nEvil: 1"}}'"#),
            "a value for `x-key` that a header cannot have",
        ),
        (
            format!("echo {CANARY}; head -c 1073741824 /dev/zero"),
            "printed more than 65536 bytes",
        ),
        (
            format!("echo {CANARY}; echo {CANARY} >&2; exit 1"),
            "ended with exit code 1",
        ),
        (format!("echo {CANARY}"), "printed no JSON"),
        (
            format!(r#"setsid sleep 1000 & echo "[\"{CANARY}\"]""#),
            "printed another kind of JSON",
        ),
    ] {
        let scene = Scene::new(&[CANARY], &script).await;
        let host = scene.host();
        host.settled().await;
        let failure = failure(&host, "web");
        assert!(
            failure.message.contains("the headers helper `"),
            "{failure:?}"
        );
        assert!(failure.message.contains(expected), "{script}: {failure:?}");
        assert!(scene.server.methods().is_empty(), "nothing was sent");
        let call = echo(&host, "web", "hi").await.expect_err("not connected");
        host.shutdown().await;
        for shown in [format!("{failure:?} {call} {call:?}"), scene.written()] {
            assert!(!shown.contains(CANARY), "{script}: {shown}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rel_30_a_helper_that_hangs_has_ten_seconds() {
    let scene = Scene::new(&[CANARY], "sleep 1000").await;
    let host = scene.host();
    host.settled().await;
    let failure = failure(&host, "web");
    assert!(
        failure
            .message
            .contains("did not end within 10 s and was killed"),
        "{failure:?}"
    );
    assert!(scene.server.methods().is_empty(), "nothing was sent");
    host.shutdown().await;
}

#[tokio::test]
async fn sec_39_a_helper_sees_what_was_declared_and_nothing_else_of_the_host() {
    let script = r#"env | cut -d= -f1 | sort > env.txt; echo '{"X-Key": "k"}'"#;
    let scene = Scene::new(&["k"], script).await;
    let helper = scene.home.path().join("helper");
    let plan = scene.home.plan_with(
        &json!({ "web": {
            "type": "http", "url": scene.server.url, "headers": { "X-Other": "stays" },
            "headersHelper": helper.display().to_string(), "env": { "DECLARED": "${OWN}" },
            "protocol": "legacy",
        } }),
        &[
            ("OWN", "1"),
            ("SOME_TOKEN", CANARY),
            ("AWS_SECRET_ACCESS_KEY", CANARY),
        ],
    );
    let host = Host::start(plan, scene.home.options());
    host.settled().await;
    assert!(matches!(
        shown(&host, "web").state,
        ConnectionState::Connected(_)
    ));
    host.shutdown().await;
    let names = scene.read("env.txt");
    for expected in [
        "DECLARED",
        "TOOLWAY_SERVER_NAME",
        "TOOLWAY_SERVER_URL",
        "PATH",
        "HOME",
    ] {
        assert!(
            names.lines().any(|name| name == expected),
            "{expected}: {names}"
        );
    }
    for absent in ["OWN", "SOME_TOKEN", "AWS_SECRET_ACCESS_KEY"] {
        assert!(
            !names.lines().any(|name| name == absent),
            "{absent}: {names}"
        );
    }
}
