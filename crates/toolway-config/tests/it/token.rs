//! A session token in a file.

use std::fs;
use std::os::unix::fs::symlink;

use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::{RemoteKind, TransportSpec};

use crate::{Stage, findings, server, spec, word};

#[test]
fn the_text_of_the_file_is_sent_as_a_bearer() {
    let mut stage = Stage::new();
    let path = stage.write("home/token", marked!("  token-", "\n"));
    stage.set("TOKEN_FILE", &path.display().to_string());
    stage.user(
        r#"{"mcpServers": {"far": {
            "type": "ws", "url": "wss://example.com/", "sessionTokenFile": "${TOKEN_FILE}"
        }}}"#,
    );
    let plan = stage.plan();
    let TransportSpec::Remote(RemoteKind::Ws, remote) = &spec(&plan, "far").transport else {
        panic!("not a WebSocket");
    };
    let (name, value) = &remote.headers[0];
    assert_eq!(
        (name.as_str(), value.expose()),
        ("Authorization", marked!("Bearer token-"))
    );
    assert!(!format!("{plan:?}").contains(MARK));
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
    fs::write(&path, marked!("token-", "\r\nX-Evil: 1")).unwrap();
    let broken = with(&file);
    assert!(broken.contains("has a line break"), "{broken}");
    assert!(!broken.contains(MARK));
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

/// What an approved entry of a repository sends, or why it is not connected to.
fn of_repository(stage: &Stage, file: &str, token: &str) -> Result<String, String> {
    let text = format!(
        r#"{{"mcpServers": {{"far": {{
            "type": "http", "url": "https://example.com/", "sessionTokenFile": "{token}"
        }}}}}}"#
    );
    stage.write(file, &text);
    stage.approve("far", &[]);
    let plan = stage.plan();
    if let Some(reason) = server(&plan, "far").verdict.reason() {
        return Err(reason.to_owned());
    }
    let TransportSpec::Remote(RemoteKind::Http, remote) = &spec(&plan, "far").transport else {
        panic!("not HTTP");
    };
    Ok(remote.headers[0].1.expose().to_owned())
}

#[test]
fn sec_13_a_repository_leads_to_no_token_outside_of_it() {
    let mut stage = Stage::new();
    stage.cwd.push("deep");
    let outside = stage.write("home/private/key", marked!("key-"));
    stage.write("home/repo/inside/token", marked!("token-"));
    let repo = stage.root.join("home/repo");
    let link = |to: &std::path::Path, name: &str| symlink(to, repo.join(name)).unwrap();
    link(&outside, "file");
    link(outside.parent().unwrap(), "folder");
    link("../private/key".as_ref(), "relative");
    link(&repo.join("file"), "chain");
    let file = "home/repo/.mcp.json";
    let at_home = format!("{}/file", repo.display());
    symlink(&repo, stage.root.join("home/alias")).unwrap();
    let by_alias = format!("{}/home/alias/file", stage.root.display());
    for path in [
        "file",
        "./folder/key",
        "relative",
        "chain",
        "deep/../file",
        at_home.as_str(),
        by_alias.as_str(),
    ] {
        assert_eq!(
            of_repository(&stage, file, path),
            Err(
                "the file of `sessionTokenFile` is or lies behind a symbolic link, and links of a \
                 repository are not followed"
                    .to_owned()
            ),
            "{path}"
        );
    }
    for path in ["../private/key", "inside/../../private/key"] {
        assert_eq!(
            of_repository(&stage, file, path),
            Err("the file of `sessionTokenFile` lies outside of the repository".to_owned()),
            "{path}"
        );
    }
    // What lies in it is read, and so is a place elsewhere that the entry names in full.
    let token = Ok(marked!("Bearer token-").to_owned());
    for path in ["inside/token", "deep/../inside//token"] {
        assert_eq!(of_repository(&stage, file, path), token, "{path}");
    }
    let key = of_repository(&stage, file, outside.to_str().unwrap());
    assert_eq!(key, Ok(marked!("Bearer key-").to_owned()));
    fs::remove_file(stage.root.join(file)).unwrap();
    let nested = "home/repo/deep/.mcp.json";
    assert_eq!(of_repository(&stage, nested, "../inside/token"), token);
    assert!(of_repository(&stage, nested, "../file").is_err());
    fs::remove_file(stage.root.join(nested)).unwrap();
    let local = "home/repo/.toolway/settings.local.json";
    assert_eq!(of_repository(&stage, local, "inside/token"), token);
    assert!(of_repository(&stage, local, "file").is_err());
}

#[test]
fn sec_30_what_is_no_token_is_neither_waited_for_nor_read_whole() {
    let stage = Stage::new();
    let file = "home/repo/.mcp.json";
    let pipe = stage.root.join("home/repo/pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let not_a_file = Err("the file of `sessionTokenFile` is not a regular file".to_owned());
    assert_eq!(of_repository(&stage, file, "pipe"), not_a_file);
    assert_eq!(of_repository(&stage, file, "deep"), not_a_file);
    assert_eq!(of_repository(&stage, file, "/dev/zero"), not_a_file);
    stage.write("home/repo/large", &"x".repeat(64 * 1024 + 1));
    let large = stage.root.join("home/repo/large").display().to_string();
    for path in ["large", &large] {
        assert_eq!(
            of_repository(&stage, file, path),
            Err("the file of `sessionTokenFile` is larger than 65536 bytes".to_owned())
        );
    }
    let missing = Err("the file of `sessionTokenFile` does not exist".to_owned());
    for path in ["missing", "missing/too", "large/below"] {
        assert_eq!(of_repository(&stage, file, path), missing, "{path}");
    }
}
