//! An account's connectors in the plan: who may say so, what they lose to, and what they cannot do.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Map, Value, json};
use toolway_config::{ConnectorDirectory, Flags, Planner};
use toolway_types::{Origin, RemoteKind, TransportSpec};

use crate::{Stage, findings, object, server, spec, table, word};

const ACCOUNT: &str = r#""account": {"url": "https://connect.example.com"}"#;

/// Keeps a directory as the host does after asking the provider.
fn keep(stage: &Stage, connectors: &Value) {
    let plan = stage.plan();
    let provider = plan.account.as_ref().unwrap();
    let answer: Map<String, Value> = object(json!({ "connectors": connectors }));
    let directory = ConnectorDirectory::read(provider, &answer).unwrap();
    let path = toolway_config::account::directory::copy_file(&stage.environment());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, directory.to_copy(provider)).unwrap();
}

#[test]
fn connectors_are_the_lowest_scope_and_duplicates_are_shown() {
    let stage = Stage::new();
    stage.user(&format!(
        r#"{{{ACCOUNT}, "mcpServers": {{
            "mine": {{"type": "http", "url": "https://Drive.example/mcp/"}},
            "calendar": {{"command": "own"}}
        }}}}"#
    ));
    keep(
        &stage,
        &json!([
            {"id": "d", "name": "Drive", "url": "https://drive.example/mcp"},
            {"id": "c", "name": "calendar", "url": "https://calendar.example/mcp"},
            {"id": "n", "name": "My  Notes!", "url": "https://notes.example/mcp"},
            {"id": "n2", "name": "Notes again", "url": "https://notes.example/mcp"},
        ]),
    );
    let plan = stage.plan();
    assert_snapshot!(table(&stage, &plan), @"
    Drive [connector] shadowed: duplicate of `mine`
    My_Notes [connector] admitted
    Notes_again [connector] shadowed: duplicate of `My_Notes`
    calendar [user] admitted
    calendar [connector] shadowed: by precedence
    mine [user] admitted
    ");
    assert_snapshot!(findings(&stage, &plan), @"");
    let notes = server(&plan, "My_Notes");
    assert_eq!(
        notes.origin,
        Origin::Directory("connect.example.com".into())
    );
    let TransportSpec::Remote(RemoteKind::Connector, remote) = &spec(&plan, "My_Notes").transport
    else {
        panic!("not a connector");
    };
    assert_eq!(
        remote.url.as_str(),
        "https://connect.example.com/proxy/n/mcp"
    );
    assert_eq!(remote.headers, []);
    assert_eq!(remote.headers_helper, None);
    assert_eq!(notes.variables, [""; 0]);
}

#[test]
fn only_the_person_and_the_organisation_name_an_account() {
    let stage = Stage::new();
    stage.project(&format!("{{\n{ACCOUNT},\n\"mcpServers\": {{}}\n}}"));
    stage.local(&format!("{{\n{ACCOUNT}\n}}"));
    stage.write(
        "home/repo/.toolway/settings.json",
        &format!("{{{ACCOUNT}}}"),
    );
    let plan = stage.plan();
    assert!(plan.account.is_none());
    assert_snapshot!(findings(&stage, &plan), @"
    home/repo/.toolway/settings.local.json:2 `account` is ignored: it does not count in this file | it counts only in your own settings (`settings.json` in the config home)
    home/repo/.toolway/settings.json:1 `account` is ignored: a project's own file cannot set it | it counts only in your own settings (`settings.json` in the config home)
    home/repo/.mcp.json:2 `account` is ignored: a project's own file cannot set it | it counts only in your own settings (`settings.json` in the config home)
    ");
}

#[test]
fn the_organisations_account_wins_and_a_faulty_one_is_none() {
    let stage = Stage::new();
    stage.user(&format!("{{{ACCOUNT}}}"));
    stage.managed(r#"{"account": {"url": "https://work.example"}}"#);
    let plan = stage.plan();
    assert_eq!(plan.account.unwrap().host(), "work.example");
    stage.managed("{\n\"account\": {\"url\": \"ftp://work.example\"}}");
    let plan = stage.plan();
    assert!(plan.account.is_none(), "nothing else takes its place");
    assert!(plan.blocked.is_none());
    assert_snapshot!(findings(&stage, &plan), @r#"system/managed-settings.json:2 `account.url` must begin with `http://` or `https://`, not `ftp:` | write e.g. `"https://connect.example.com"`"#);
}

#[test]
fn anybody_may_switch_connectors_off() {
    let stage = Stage::new();
    stage.user(&format!("{{{ACCOUNT}}}"));
    keep(&stage, &json!([{"id": "n", "name": "notes"}]));
    assert_eq!(word(&stage.plan(), "notes"), "admitted");
    stage.local(r#"{"connectors": false}"#);
    let plan = stage.plan();
    assert!(plan.winner("notes").is_none());
    assert!(plan.connectors_off.is_some());
    stage.local(r#"{"connectors": {"directoryUrl": "https://evil.example"}}"#);
    let plan = stage.plan();
    assert_eq!(word(&plan, "notes"), "admitted");
    assert_snapshot!(findings(&stage, &plan), @"home/repo/.toolway/settings.local.json:1 `connectors` must be `true` or `false`, not an object | how connectors are reached is said in `account.connectors`");
}

#[test]
fn another_provider_and_a_strict_run_have_none_of_them() {
    let stage = Stage::new();
    stage.user(&format!("{{{ACCOUNT}}}"));
    keep(&stage, &json!([{"id": "n", "name": "notes"}]));
    let strict = Flags {
        strict: true,
        ..Flags::default()
    };
    assert!(stage.plan_with(&strict).servers.is_empty());
    stage.user(r#"{"account": {"url": "https://other.example"}}"#);
    assert!(stage.plan().servers.is_empty());
}

#[test]
fn policy_sees_a_connector_and_what_it_stands_for() {
    let stage = Stage::new();
    stage.user(&format!("{{{ACCOUNT}}}"));
    keep(
        &stage,
        &json!([
            {"id": "bad", "name": "bad", "url": "https://drive.evil.example/mcp"},
            {"id": "good", "name": "good", "url": "https://good.example/mcp"},
        ]),
    );
    stage.managed(r#"{"deniedMcpServers": [{"serverUrl": "https://*.evil.example/*"}]}"#);
    assert_eq!(word(&stage.plan(), "bad"), "refused");
    assert_eq!(word(&stage.plan(), "good"), "admitted");
    // What a directory claims widens nothing: the proxy's own address has to be allowed.
    stage.managed(r#"{"allowedMcpServers": [{"serverUrl": "https://good.example/*"}]}"#);
    assert_eq!(word(&stage.plan(), "good"), "refused");
    stage.managed(r#"{"allowedMcpServers": [{"serverUrl": "https://connect.example.com/*"}]}"#);
    assert_eq!(word(&stage.plan(), "good"), "admitted");
    stage.enterprise(r#"{"mcpServers": {}}"#);
    assert_eq!(word(&stage.plan(), "good"), "refused");
}

#[test]
fn an_entry_somebody_wrote_stands_for_itself() {
    let stage = Stage::new();
    stage.user(
        r#"{"mcpServers": {
            "claims": {"type": "http", "url": "https://a.example", "standsFor": "https://b.example"},
            "b": {"type": "http", "url": "https://b.example"}
        }}"#,
    );
    assert_eq!(word(&stage.plan(), "claims"), "admitted");
    assert_eq!(word(&stage.plan(), "b"), "admitted");
}

#[test]
fn a_running_host_sees_the_kept_directory_change() {
    let stage = Stage::new();
    stage.user(&format!("{{{ACCOUNT}}}"));
    let planner = Planner::new(stage.environment(), Flags::default());
    let copy = toolway_config::account::directory::copy_file(&stage.environment());
    assert!(planner.watched_paths().contains(&copy));
    assert!(planner.plan().winner("notes").is_none());
    keep(&stage, &json!([{"id": "n", "name": "notes"}]));
    assert_eq!(word(&planner.plan(), "notes"), "admitted");
    fs::remove_file(&copy).unwrap();
    assert!(planner.plan().winner("notes").is_none());
}

#[test]
fn a_copy_that_is_no_file_of_ours_is_not_followed() {
    let stage = Stage::new();
    stage.user(&format!("{{{ACCOUNT}}}"));
    keep(&stage, &json!([{"id": "n", "name": "notes"}]));
    let copy = toolway_config::account::directory::copy_file(&stage.environment());
    let elsewhere = stage.root.join("elsewhere.json");
    fs::rename(&copy, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &copy).unwrap();
    assert!(stage.plan().servers.is_empty());
}
