//! A project's servers wait for a person, and the person's word holds for what was shown.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use toolway_config::{Flags, ServerVerdict};
use toolway_types::TransportSpec;

use crate::{Stage, server, spec, table, waiting, word};

const SERVER: &str =
    r#"{"mcpServers": {"x": {"command": "run", "args": ["a"], "env": {"K": "v"}}}}"#;

#[test]
fn a_project_server_waits_until_it_is_approved() {
    let stage = Stage::new();
    stage.project(SERVER);
    assert_eq!(word(&stage.plan(), "x"), "pending-approval");
    stage.approve("x", &[]);
    assert_eq!(word(&stage.plan(), "x"), "admitted");
    let again = stage.project("{\n  // the same, otherwise written\n  \"mcpServers\": {\"x\": {\"env\": {\"K\": \"v\"}, \"args\": [\"a\"], \"command\": \"run\",},}}");
    assert_eq!(word(&stage.plan(), "x"), "admitted", "{}", again.display());
    let forgotten = toolway_config::reset(&stage.environment()).unwrap();
    assert_eq!(forgotten.value, 1);
    assert_eq!(word(&stage.plan(), "x"), "pending-approval");
}

#[test]
fn sec_05_any_change_asks_again_and_shows_the_difference() {
    let definition = serde_json::json!({"command": "run", "args": ["a"], "env": {"K": "v"}});
    for (key, value) in [
        ("command", serde_json::json!("./run")),
        ("args", serde_json::json!(["a", "--evil"])),
        (
            "env",
            serde_json::json!({"K": "v", "NODE_OPTIONS": "--require ./evil.js"}),
        ),
        ("cwd", serde_json::json!("evil")),
        ("headersHelper", serde_json::json!("./evil")),
        ("unknown", serde_json::json!(1)),
    ] {
        let stage = Stage::new();
        stage.project(SERVER);
        stage.approve("x", &[]);
        let mut changed = definition.clone();
        changed[key] = value;
        stage.project(&serde_json::json!({"mcpServers": {"x": changed}}).to_string());
        let plan = stage.plan();
        let ServerVerdict::PendingApproval {
            changed: Some(diff),
            ..
        } = &server(&plan, "x").verdict
        else {
            panic!("{key}: {:?}", server(&plan, "x").verdict);
        };
        assert!(diff.contains('+'), "{key}: {diff}");
        let flags = Flags {
            approve_project_servers: true,
            ..Flags::default()
        };
        assert_eq!(
            word(&stage.plan_with(&flags), "x"),
            "pending-approval",
            "{key}"
        );
        stage.user(r#"{"enableAllProjectMcpServers": true}"#);
        assert_eq!(word(&stage.plan(), "x"), "pending-approval", "{key}");
    }
}

#[test]
fn the_difference_is_a_readable_diff_without_hidden_characters() {
    let stage = Stage::new();
    stage.project(r#"{"mcpServers": {"x": {"type": "http", "url": "https://a.example"}}}"#);
    stage.approve("x", &[]);
    stage.project(
        "{\"mcpServers\": {\"x\": {\"type\": \"http\", \"url\": \"https://a.example/\u{202E}b\"}}}",
    );
    let plan = stage.plan();
    let ServerVerdict::PendingApproval {
        reason,
        changed: Some(diff),
    } = &server(&plan, "x").verdict
    else {
        panic!("{:?}", server(&plan, "x").verdict);
    };
    assert_snapshot!(format!("{reason}\n{diff}"), @r#"
    `x` has changed since it was approved
    --- approved
    +++ now
    @@ -1,4 +1,4 @@
     {
       "type": "http",
    -  "url": "https://a.example"
    +  "url": "https://a.example/\u{202E}b"
     }
    "#);
}

#[test]
fn sec_05_a_repository_does_not_switch_accounts_behind_an_approval() {
    let entry = |account: &str| {
        let entry = serde_json::json!({"type": "http", "url": "https://a.example",
            "oauth": {"account": account}});
        serde_json::json!({"mcpServers": {"x": entry}}).to_string()
    };
    let stage = Stage::new();
    stage.project(&entry("home"));
    stage.approve("x", &[]);
    assert_eq!(stage.plan().admitted().count(), 1);
    stage.project(&entry("work"));
    assert_snapshot!(table(&stage, &stage.plan()), @"x [project] pending-approval: `x` has changed since it was approved");
}

#[test]
fn rejected_beats_approved_and_names_alone_admit_only_the_unknown() {
    let stage = Stage::new();
    stage.project(r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}, "c": {"command": "c"}, "d": {"command": "d"}}}"#);
    stage.user(
        r#"{"enabledMcpjsonServers": ["a", "b", "c"], "disabledMcpjsonServers": ["b", "d"]}"#,
    );
    stage.approve("d", &[]);
    let plan = stage.plan();
    toolway_config::reject(&stage.environment(), server(&plan, "c")).unwrap();
    assert_snapshot!(table(&stage, &stage.plan()), @"
    a [project] admitted
    b [project] rejected: `b` is in `disabledMcpjsonServers` (home/.config/toolway/settings.json:1)
    c [project] rejected: `c` was rejected in this project
    d [project] rejected: `d` is in `disabledMcpjsonServers` (home/.config/toolway/settings.json:1)
    ");
}

#[test]
fn sec_06_a_run_without_a_person_starts_nothing_unless_its_starter_says_so() {
    let stage = Stage::new();
    stage.project(SERVER);
    assert_eq!(stage.plan().admitted().count(), 0);
    let flags = Flags {
        approve_project_servers: true,
        ..Flags::default()
    };
    assert_eq!(stage.plan_with(&flags).admitted().count(), 1);
    let plan = stage.plan();
    toolway_config::reject(&stage.environment(), server(&plan, "x")).unwrap();
    assert_eq!(
        stage.plan_with(&flags).admitted().count(),
        0,
        "a rejection stays"
    );
}

#[test]
fn sec_04_an_approval_holds_in_its_own_directory_only() {
    let mut stage = Stage::new();
    stage.project(SERVER);
    stage.approve("x", &[]);
    stage.write("home/other/.mcp.json", SERVER);
    stage.write("home/other/.git", "gitdir: ../repo/.git\n");
    stage.cwd = stage.root.join("home/other");
    assert_eq!(word(&stage.plan(), "x"), "pending-approval");
    std::fs::remove_file(stage.root.join("home/other/.mcp.json")).unwrap();
    std::os::unix::fs::symlink(
        stage.root.join("home/repo/.mcp.json"),
        stage.root.join("home/other/.mcp.json"),
    )
    .unwrap();
    assert_eq!(
        word(&stage.plan(), "x"),
        "pending-approval",
        "a link carries no trust"
    );
    stage.write("home/repo/sub/.mcp.json", SERVER);
    stage.cwd = stage.root.join("home/repo/sub");
    let plan = stage.plan();
    let below = waiting(&plan, "x").map(|server| server.origin.path());
    let expected = stage.root.join("home/repo/sub/.mcp.json");
    assert_eq!(
        below,
        expected.to_str().map(str::to_owned),
        "nor does a parent"
    );
    std::os::unix::fs::symlink(stage.root.join("home/repo"), stage.root.join("home/link")).unwrap();
    stage.cwd = stage.root.join("home/link");
    assert_eq!(
        word(&stage.plan(), "x"),
        "admitted",
        "the same directory by another name"
    );
}

#[test]
fn a_broken_store_approves_nobody() {
    let stage = Stage::new();
    stage.project(SERVER);
    stage.user(r#"{"enabledMcpjsonServers": ["x"]}"#);
    assert_eq!(word(&stage.plan(), "x"), "admitted");
    let store = stage.write("home/.config/toolway/approvals.json", "{\"projects\": ");
    let plan = stage.plan();
    assert_eq!(word(&plan, "x"), "pending-approval");
    assert!(
        plan.diagnoses[0]
            .message
            .starts_with("no project server is approved")
    );
    let edited = toolway_config::approve(
        &stage.environment(),
        server(&plan, "x"),
        &[],
        &BTreeMap::new(),
    );
    assert!(edited.is_err(), "an invalid file is never overwritten");
    assert_eq!(std::fs::read_to_string(store).unwrap(), "{\"projects\": ");
}

#[test]
fn only_servers_of_the_projects_folder_can_be_approved() {
    let stage = Stage::new();
    stage.user(r#"{"mcpServers": {"u": {"command": "u"}}}"#);
    let plan = stage.plan();
    let refused = toolway_config::approve(
        &stage.environment(),
        server(&plan, "u"),
        &[],
        &BTreeMap::new(),
    );
    assert_eq!(
        refused.unwrap_err().to_string(),
        "`u` is of user scope and needs no approval"
    );
}

#[test]
fn a_store_of_another_shape_approves_nobody_and_says_so() {
    for text in [
        r#"{"version": 2, "projects": {}}"#,
        r#"{"version": 1, "projects": []}"#,
        r#"{"projects": {}, "projects": {}}"#,
        r#"{"projects": {"PLACE": []}}"#,
        r#"{"projects": {"PLACE": {"servers": ["x"]}}}"#,
        r#"{"projects": {"PLACE": {"servers": {}, "servers": {}}}}"#,
    ] {
        let stage = Stage::new();
        stage.project(SERVER);
        stage.user(r#"{"enabledMcpjsonServers": ["x"]}"#);
        let place = stage.root.join("home/repo").display().to_string();
        let text = text.replace("PLACE", &place);
        stage.write("home/.config/toolway/approvals.json", &text);
        let plan = stage.plan();
        assert_eq!(word(&plan, "x"), "pending-approval", "{text}");
        assert!(
            plan.diagnoses[0]
                .message
                .starts_with("no project server is approved"),
            "{text}"
        );
    }
}

#[test]
fn sec_04_an_approved_server_runs_in_its_own_directory_wherever_one_stands() {
    let mut stage = Stage::new();
    stage.project(r#"{"mcpServers": {"x": {"command": "./run", "args": ["server.js"]}}}"#);
    stage.approve("x", &[]);
    stage.write("home/repo/deep/run", "another repository's");
    stage.cwd = stage.root.join("home/repo/deep");
    let plan = stage.plan();
    let TransportSpec::Stdio(stdio) = &spec(&plan, "x").transport else {
        panic!("a process");
    };
    assert_eq!(stdio.cwd.path(), stage.root.join("home/repo"));
}

#[test]
fn names_in_lists_are_compared_as_servers_are_called() {
    let stage = Stage::new();
    stage.project(
        r#"{"mcpServers": {"my server": {"command": "a"}, "other.one": {"command": "b"},
        "off one": {"command": "c"}, "off.one": {"command": "d"}}}"#,
    );
    stage.user(
        r#"{"enabledMcpjsonServers": ["my_server", "other one", "off one"],
        "disabledMcpjsonServers": ["off_one"]}"#,
    );
    assert_snapshot!(table(&stage, &stage.plan()), @"
    my server [project] admitted
    off one [project] rejected: `off one` is in `disabledMcpjsonServers` as `off_one` (home/.config/toolway/settings.json:2)
    off.one [project] rejected: `off.one` is in `disabledMcpjsonServers` as `off_one` (home/.config/toolway/settings.json:2)
    other.one [project] admitted
    ");
}

#[test]
fn sec_05_a_name_that_could_mean_two_servers_enables_only_the_one_that_it_spells() {
    let stage = Stage::new();
    stage.project(
        r#"{"mcpServers": {"a b": {"command": "a"}, "a.b": {"command": "b"},
        "c d": {"command": "c"}, "c.d": {"command": "d"}}}"#,
    );
    stage.user(r#"{"enabledMcpjsonServers": ["a b", "c_d"]}"#);
    assert_snapshot!(table(&stage, &stage.plan()), @"
    a b [project] admitted
    a.b [project] pending-approval: `a.b` comes from the project's `.mcp.json` and is not approved
    c d [project] pending-approval: `c d` comes from the project's `.mcp.json` and is not approved; `c_d` in `enabledMcpjsonServers` (home/.config/toolway/settings.json:1) could mean another server too
    c.d [project] pending-approval: `c.d` comes from the project's `.mcp.json` and is not approved; `c_d` in `enabledMcpjsonServers` (home/.config/toolway/settings.json:1) could mean another server too
    ");
}
