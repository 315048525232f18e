//! A session token in a file.

use std::fs;

use toolway_types::TransportSpec;

use crate::{Stage, findings, server, spec, word};

#[test]
fn the_text_of_the_file_is_sent_as_a_bearer() {
    let mut stage = Stage::new();
    let path = stage.write("home/token", "  token-canary\n");
    stage.set("TOKEN_FILE", &path.display().to_string());
    stage.user(
        r#"{"mcpServers": {"far": {
            "type": "ws", "url": "wss://example.com/", "sessionTokenFile": "${TOKEN_FILE}"
        }}}"#,
    );
    let plan = stage.plan();
    let TransportSpec::Ws(remote) = &spec(&plan, "far").transport else {
        panic!("not a WebSocket");
    };
    let (name, value) = &remote.headers[0];
    assert_eq!(
        (name.as_str(), value.expose()),
        ("Authorization", "Bearer token-canary")
    );
    assert!(!format!("{plan:?}").contains("token-canary"));
}

#[test]
fn a_file_that_gives_no_token_is_a_fault_of_that_server() {
    let stage = Stage::new();
    let path = stage.write("home/token", "");
    let with = |more: &str| {
        stage.user(&format!(
            r#"{{"mcpServers": {{"far": {{"type": "ws", "url": "wss://example.com/", {more}}}}}}}"#
        ));
        let plan = stage.plan();
        server(&plan, "far").verdict.reason().unwrap().to_owned()
    };
    let file = format!(r#""sessionTokenFile": "{}""#, path.display());
    assert_eq!(with(&file), "the file of `sessionTokenFile` is empty");
    let missing = with(r#""sessionTokenFile": "missing""#);
    assert_eq!(missing, "the file of `sessionTokenFile` does not exist");
    assert_eq!(
        with(r#""sessionTokenFile": " ""#),
        "`sessionTokenFile` must not be empty"
    );
    assert_eq!(
        with(r#""sessionTokenFile": "${NOWHERE}""#),
        "the variable `NOWHERE` is not set"
    );
    let directory = with(r#""sessionTokenFile": "/""#);
    assert_eq!(
        directory,
        "the file of `sessionTokenFile` is not a regular file"
    );
    let both = with(&format!(r#"{file}, "headers": {{"authorization": "x"}}"#));
    assert_eq!(
        both,
        "`sessionTokenFile` and `headers.Authorization` are both given"
    );
    fs::write(&path, "token-canary\r\nX-Evil: 1").unwrap();
    let broken = with(&file);
    assert!(broken.contains("has a line break"), "{broken}");
    assert!(!broken.contains("canary"));
}

#[test]
fn sec_01_no_file_is_read_for_a_repository_before_its_approval() {
    let stage = Stage::new();
    let text = r#"{"mcpServers": {"far": {"type": "ws", "url": "wss://example.com/", "sessionTokenFile": "missing"}}}"#;
    stage.project(text);
    let plan = stage.plan();
    assert_eq!(word(&plan, "far"), "pending-approval");
    assert_eq!(findings(&stage, &plan), "");
    stage.approve("far", &[]);
    let plan = stage.plan();
    assert_eq!(word(&plan, "far"), "invalid");
    assert!(findings(&stage, &plan).contains("does not exist"));
}
