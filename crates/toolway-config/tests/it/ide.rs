//! Editors: found by their lock files, and only by those that can be believed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use toolway_config::Flags;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::{RemoteKind, RemoteSpec, TransportSpec};

use crate::{Stage, findings, server, spec, table, word};

const WS: &str = r#"{"mcpServers": {"editor": {"type": "ws-ide"}}}"#;

impl Stage {
    /// Leaves a lock file of a running editor that has the repository open.
    fn lock(&self, path: &str, change: impl FnOnce(&mut serde_json::Value)) {
        let mut lock = json!({
            "pid": std::process::id(),
            "workspaceFolders": ["/elsewhere", self.root.join("home/repo")],
            "ideName": "Some Editor",
            "transport": "ws",
            "authToken": marked!("lock-"),
        });
        change(&mut lock);
        self.lock_text(path, &lock.to_string(), 0o600);
    }

    fn lock_text(&self, path: &str, text: &str, mode: u32) {
        let path = self.write(path, text);
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
}

fn remote(transport: &TransportSpec) -> &RemoteSpec {
    match transport {
        TransportSpec::Remote(RemoteKind::WsIde | RemoteKind::SseIde, remote) => remote,
        other => panic!("{other:?}"),
    }
}

fn headers(remote: &RemoteSpec) -> Vec<(&str, &str)> {
    let headers = remote.headers.iter();
    headers
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect()
}

fn with_ide() -> Flags {
    Flags {
        ide: true,
        ..Flags::default()
    }
}

#[test]
fn an_entry_without_a_url_is_completed_from_the_lock_file() {
    for place in ["home/.config/toolway/ide", "home/.claude/ide"] {
        let mut stage = Stage::new();
        stage.cwd = stage.root.join("home/repo/deep");
        stage.user(WS);
        stage.lock(&format!("{place}/40123.lock"), |_| ());
        let plan = stage.plan();
        let remote = remote(&spec(&plan, "editor").transport);
        assert_eq!(remote.url.as_str(), "ws://127.0.0.1:40123/");
        let token = ("X-Claude-Code-Ide-Authorization", marked!("lock-"));
        assert_eq!(headers(remote), [token]);
        assert!(!format!("{plan:?}").contains(MARK));
        assert_eq!(findings(&stage, &plan), "");
    }
}

#[test]
fn an_editor_that_speaks_sse_is_reached_at_its_path() {
    let stage = Stage::new();
    stage.user(r#"{"mcpServers": {"editor": {"type": "sse-ide"}}}"#);
    // As the first editors wrote it.
    stage.lock("home/.claude/ide/40123.lock", |lock| {
        let lock = lock.as_object_mut().unwrap();
        lock.remove("transport");
        lock.remove("authToken");
    });
    let plan = stage.plan();
    let remote = remote(&spec(&plan, "editor").transport);
    assert_eq!(remote.url.as_str(), "http://127.0.0.1:40123/sse");
    assert_eq!(headers(remote), []);
}

#[test]
fn the_directory_may_be_moved_but_not_into_the_repository() {
    let mut stage = Stage::new();
    stage.user(WS);
    stage.lock("elsewhere/ide/1.lock", |_| ());
    let elsewhere = stage.root.join("elsewhere").display().to_string();
    stage.set("CLAUDE_CONFIG_DIR", &elsewhere);
    assert_eq!(word(&stage.plan(), "editor"), "admitted");

    stage.lock("home/repo/.evil/ide/2.lock", |_| ());
    for inside in ["home/repo/.evil", "home/repo/deep/../.evil"] {
        let inside = stage.root.join(inside).display().to_string();
        stage.set("CLAUDE_CONFIG_DIR", &inside);
        assert_eq!(word(&stage.plan(), "editor"), "invalid");
    }
}

#[test]
fn dead_editors_and_other_workspaces_are_skipped_in_silence() {
    let stage = Stage::new();
    stage.user(WS);
    stage.lock("home/.claude/ide/1.lock", |lock| {
        lock["pid"] = json!(i32::MAX);
    });
    stage.lock("home/.claude/ide/2.lock", |lock| lock["pid"] = json!(-1));
    stage.lock("home/.claude/ide/3.lock", |lock| {
        lock["workspaceFolders"] = json!([stage.root.join("home/repo2"), "repo", ""]);
    });
    stage.lock("home/.claude/ide/name.lock", |_| ());
    stage.lock("home/.claude/ide/70000.lock", |_| ());
    stage.lock("home/.claude/ide/4.txt", |_| ());
    let plan = stage.plan();
    assert_eq!(
        table(&stage, &plan),
        "editor [user] invalid: no editor with this workspace is running\n"
    );
    assert_eq!(plan.diagnoses.len(), 0, "{:?}", plan.diagnoses);
}

#[test]
fn lock_files_that_cannot_be_believed_or_understood_are_named_once_each() {
    let stage = Stage::new();
    let two = r#"{"mcpServers": {"editor": {"type": "ws-ide"}, "another": {"type": "ws-ide"}}}"#;
    stage.user(two);
    stage.lock_text("home/.claude/ide/1.lock", "{\"pid\": 1,", 0o600);
    stage.lock_text(
        "home/.claude/ide/2.lock",
        marked!("{\"authToken\": \"", "\"}"),
        0o600,
    );
    stage.lock("home/.claude/ide/3.lock", |lock| {
        lock["transport"] = json!(marked!("lock-"));
    });
    stage.lock("home/.claude/ide/4.lock", |lock| {
        lock["authToken"] = json!(marked!("a\r\n", ": x"));
    });
    for (port, mode) in [(5, 0o620), (6, 0o602), (7, 0o666)] {
        let path = format!("home/.claude/ide/{port}.lock");
        stage.lock(&path, |_| ());
        let path = stage.root.join(path);
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let plan = stage.plan();
    assert_eq!(word(&plan, "editor"), "invalid");
    let said: Vec<_> = plan
        .diagnoses
        .iter()
        .map(|found| found.message.as_str())
        .collect();
    assert_eq!(said.len(), 7, "{said:#?}");
    assert!(
        said[..3]
            .iter()
            .all(|said| said.contains("is not understood")),
        "{said:#?}"
    );
    assert!(
        said[3].contains("`authToken` has a line break"),
        "{said:#?}"
    );
    assert!(
        said[4..]
            .iter()
            .all(|said| said.contains("is not believed")),
        "{said:#?}"
    );
    assert!(!findings(&stage, &plan).contains(MARK));
}

#[test]
fn several_editors_and_another_transport_are_said() {
    let stage = Stage::new();
    stage.user(WS);
    stage.lock("home/.claude/ide/1.lock", |lock| {
        lock["transport"] = json!("sse");
    });
    let reason = |stage: &Stage| {
        let plan = stage.plan();
        server(&plan, "editor")
            .verdict
            .reason()
            .map(ToOwned::to_owned)
    };
    let other = "the editor with this workspace (`Some Editor` on port 1) speaks `sse-ide`";
    assert_eq!(reason(&stage).as_deref(), Some(other));
    stage.lock("home/.claude/ide/2.lock", |_| ());
    assert_eq!(reason(&stage), None);
    stage.lock("home/.claude/ide/3.lock", |_| ());
    assert_eq!(
        reason(&stage).as_deref(),
        Some(
            "several editors with this workspace are running: \
             `Some Editor` on port 2, `Some Editor` on port 3"
        )
    );
}

#[test]
fn a_url_of_its_own_must_be_on_this_machine_and_gets_the_token_of_its_port() {
    let stage = Stage::new();
    stage.user(
        r#"{"mcpServers": {
            "named": {"type": "ws-ide", "url": "ws://localhost:40123/x"},
            "other": {"type": "ws-ide", "url": "ws://127.0.0.1:40124"},
            "own": {"type": "ws-ide", "url": "ws://127.0.0.1:40123", "headers": {"x-claude-code-ide-authorization": "mine"}},
            "far": {"type": "ws-ide", "url": "ws://192.0.2.1:40123"},
            "trick": {"type": "ws-ide", "url": "ws://127.0.0.1.example.com:40123"}
        }}"#,
    );
    stage.lock("home/.claude/ide/40123.lock", |lock| {
        lock["workspaceFolders"] = json!(["/elsewhere"]);
    });
    let plan = stage.plan();
    let named = remote(&spec(&plan, "named").transport);
    assert_eq!(named.url.as_str(), "ws://127.0.0.1:40123/x");
    assert_eq!(headers(named)[0].1, marked!("lock-"));
    assert_eq!(headers(remote(&spec(&plan, "other").transport)), []);
    let own = headers(remote(&spec(&plan, "own").transport));
    assert_eq!(own, [("x-claude-code-ide-authorization", "mine")]);
    for name in ["far", "trick"] {
        let reason = server(&plan, name).verdict.reason().unwrap();
        assert!(reason.contains("must be on 127.0.0.1"), "{reason}");
    }
}

#[test]
fn the_flag_adds_the_one_editor_and_an_entry_of_the_same_name_wins() {
    let stage = Stage::new();
    let none = stage.plan_with(&with_ide());
    assert!(findings(&stage, &none).contains("`--ide`: no editor with this workspace is running"));
    assert_eq!(none.servers.len(), 0);

    stage.lock("home/.claude/ide/40123.lock", |_| ());
    let plan = stage.plan_with(&with_ide());
    assert_eq!(table(&stage, &plan), "ide [dynamic] admitted\n");
    let found = remote(&spec(&plan, "ide").transport);
    assert_eq!(found.url.as_str(), "ws://127.0.0.1:40123/");
    assert_eq!(headers(found)[0].1, marked!("lock-"));
    assert_eq!(stage.plan().servers.len(), 0, "only when asked for");

    let typed = Flags {
        mcp_server: vec!["ide=echo".to_owned()],
        ..with_ide()
    };
    let plan = stage.plan_with(&typed);
    assert!(matches!(
        spec(&plan, "ide").transport,
        TransportSpec::Stdio(_)
    ));

    stage.lock("home/.claude/ide/40124.lock", |_| ());
    let plan = stage.plan_with(&with_ide());
    assert_eq!(plan.servers.len(), 0);
    assert!(findings(&stage, &plan).contains("several editors"));
}

#[test]
fn the_setting_counts_for_a_person_and_not_for_a_repository() {
    let stage = Stage::new();
    let on = r#"{"autoConnectIde": true, "mcpServers": {}}"#;
    stage.lock("home/.claude/ide/40123.lock", |_| ());
    stage.project(on);
    stage.local(on);
    let plan = stage.plan();
    assert_eq!(plan.servers.len(), 0);
    assert_eq!(
        findings(&stage, &plan)
            .matches("`autoConnectIde` is ignored")
            .count(),
        2
    );

    stage.user(on);
    assert_eq!(word(&stage.plan(), "ide"), "admitted");
    let strict = Flags {
        strict: true,
        ..Flags::default()
    };
    assert_eq!(stage.plan_with(&strict).servers.len(), 0);
    let strict = Flags {
        strict: true,
        ..with_ide()
    };
    assert_eq!(word(&stage.plan_with(&strict), "ide"), "admitted");
    fs::remove_file(stage.root.join("home/.claude/ide/40123.lock")).unwrap();
    let plan = stage.plan();
    assert!(
        !findings(&stage, &plan).contains("no editor"),
        "the setting is for when there is one"
    );
}

#[test]
fn policy_holds_for_editors_too() {
    let stage = Stage::new();
    stage.lock("home/.claude/ide/40123.lock", |_| ());
    stage.managed(r#"{"deniedMcpServers": [{"serverUrl": "ws://127.0.0.1:*/*"}]}"#);
    assert_eq!(word(&stage.plan_with(&with_ide()), "ide"), "refused");
}

#[test]
fn sec_29_a_folder_that_others_may_write_is_not_believed() {
    let stage = Stage::new();
    stage.user(WS);
    stage.lock("home/.claude/ide/40123.lock", |_| ());
    let folder = stage.root.join("home/.claude/ide");
    // A lock file's name is the port that its token is sent to.
    for mode in [0o770, 0o1777] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        let plan = stage.plan();
        assert_eq!(word(&plan, "editor"), "invalid");
        let found = findings(&stage, &plan);
        let expected = format!(
            "home/.claude/ide:1 the editors' lock files here are not believed: its group or \
             everybody may write to it (mode {mode:04o})"
        );
        assert!(found.contains(&expected), "{found}");
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(word(&stage.plan(), "editor"), "admitted");
}

#[test]
fn sec_29_a_lock_file_that_is_a_link_is_not_believed() {
    let stage = Stage::new();
    stage.user(WS);
    stage.lock("home/40123.lock", |_| ());
    fs::create_dir_all(stage.root.join("home/.claude/ide")).unwrap();
    let link = stage.root.join("home/.claude/ide/40124.lock");
    std::os::unix::fs::symlink(stage.root.join("home/40123.lock"), link).unwrap();
    let plan = stage.plan();
    assert_eq!(word(&plan, "editor"), "invalid");
    assert!(findings(&stage, &plan).contains("is a symbolic link"));
}
