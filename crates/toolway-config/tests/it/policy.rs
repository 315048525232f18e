//! The organisation's word: lists, files that cannot be believed, and everything refused.

use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use serde_json::json;
use toolway_config::{Flags, adhoc};

use crate::{Stage, findings, object, server, table, word};

const SERVERS: &str = r#"{"mcpServers": {
    "github": {"type": "http", "url": "https://api.github.com/mcp"},
    "fake": {"type": "http", "url": "https://api.github.com.evil.example/mcp"},
    "at": {"type": "http", "url": "https://api.github.com@evil.example/mcp"},
    "dot": {"type": "http", "url": "https://API.github.com./mcp"},
    "var": {"type": "http", "url": "https://${EVIL}/mcp"},
    "npx": {"command": "npx", "args": ["-y", "good"]},
    "npx-evil": {"command": "npx", "args": ["-y", "evil"]}
}}"#;

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.set("EVIL", "evil.example");
    stage.user(SERVERS);
    stage
}

#[test]
fn sec_13_an_allow_list_matches_parsed_urls_and_whole_commands() {
    let stage = stage();
    stage.managed(
        r#"{
  "allowedMcpServers": [
    {"serverUrl": "https://*.github.com/*"},
    {"serverCommand": ["npx", "-y", "g*"]},
    {"serverName": "fake"}
  ]
}"#,
    );
    assert_snapshot!(table(&stage, &stage.plan()), @"
    at [user] refused: not in `allowedMcpServers` (system/managed-settings.json:2)
    dot [user] admitted
    fake [user] refused: not in `allowedMcpServers` (system/managed-settings.json:2)
    github [user] admitted
    npx [user] admitted
    npx-evil [user] refused: not in `allowedMcpServers` (system/managed-settings.json:2)
    var [user] refused: not in `allowedMcpServers` (system/managed-settings.json:2)
    ");
}

#[test]
fn sec_13_a_deny_list_matches_every_spelling_and_says_which_rule() {
    let mut stage = stage();
    stage.managed(
        "{\n  \"deniedMcpServers\": [\n    {\"serverUrl\": \"https://evil.example/*\"},\n    {\"serverUrl\": \"https://*.evil.example/*\"},\n    {\"serverCommand\": [\"npx\", \"**\"]},\n    {\"serverName\": \"GITHUB\"}\n  ]\n}",
    );
    assert_snapshot!(table(&stage, &stage.plan()), @r#"
    at [user] refused: denied by `{"serverUrl":"https://evil.example/*"}` in `deniedMcpServers` (system/managed-settings.json:3)
    dot [user] admitted
    fake [user] refused: denied by `{"serverUrl":"https://*.evil.example/*"}` in `deniedMcpServers` (system/managed-settings.json:4)
    github [user] refused: denied by `{"serverName":"GITHUB"}` in `deniedMcpServers` (system/managed-settings.json:6)
    npx [user] refused: denied by `{"serverCommand":["npx","**"]}` in `deniedMcpServers` (system/managed-settings.json:5)
    npx-evil [user] refused: denied by `{"serverCommand":["npx","**"]}` in `deniedMcpServers` (system/managed-settings.json:5)
    var [user] refused: denied by `{"serverUrl":"https://evil.example/*"}` in `deniedMcpServers` (system/managed-settings.json:3)
    "#);
    // A program by another path or by a link is the same program.
    let tool = stage.write("tools/npx", "");
    std::os::unix::fs::symlink(&tool, stage.root.join("tools/innocent")).unwrap();
    stage.set("PATH", &stage.root.join("tools").display().to_string());
    let plan = stage.plan();
    for command in [
        tool.display().to_string(),
        "innocent".to_owned(),
        "../../tools/innocent".to_owned(),
    ] {
        let typed = adhoc(
            &stage.environment(),
            &plan,
            "t",
            object(json!({"command": command})),
        );
        assert!(typed.is_err(), "{command}");
    }
}

#[test]
fn an_allowed_folder_cannot_be_left_by_dots() {
    let stage = Stage::new();
    stage.write("opt/tool", "");
    stage.write("tmp/evil", "");
    let opt = stage.root.join("opt");
    stage.managed(
        &json!({"allowedMcpServers": [{"serverCommand": [format!("{}/*", opt.display())]}]})
            .to_string(),
    );
    let plan = stage.plan();
    let ask = |command: String| {
        adhoc(
            &stage.environment(),
            &plan,
            "t",
            object(json!({"command": command})),
        )
    };
    assert!(ask(format!("{}/tool", opt.display())).is_ok());
    assert!(ask(format!("{}/../tmp/evil", opt.display())).is_err());
}

#[test]
fn sec_14_denials_add_up_and_permissions_narrow_across_files() {
    let stage = Stage::new();
    stage.managed(r#"{"allowedMcpServers": [{"serverName": "a"}, {"serverName": "b"}, {"serverName": "c"}],
        "deniedMcpServers": [{"serverName": "c"}], "mcpServers": {"m": {"command": "m"}, "n": {"command": "n"}}}"#);
    stage.user(r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}, "c": {"command": "c"}, "d": {"command": "d"}},
        "allowedMcpServers": [{"serverName": "*"}], "deniedMcpServers": []}"#);
    assert_snapshot!(table(&stage, &stage.plan()), @r#"
    a [user] admitted
    b [user] admitted
    c [user] refused: denied by `{"serverName":"c"}` in `deniedMcpServers` (system/managed-settings.json:2)
    d [user] refused: not in `allowedMcpServers` (system/managed-settings.json:1)
    m [managed] admitted
    n [managed] admitted
    "#);
    stage.enterprise(
        r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}, "c": {"command": "c"}},
        "allowedMcpServers": [{"serverName": "b"}, {"serverName": "c"}]}"#,
    );
    assert_snapshot!(table(&stage, &stage.plan()), @r#"
    a [enterprise] refused: not in `allowedMcpServers` (system/managed-mcp.json:2)
    a [user] shadowed: by precedence
    b [enterprise] admitted
    b [user] shadowed: by precedence
    c [enterprise] refused: denied by `{"serverName":"c"}` in `deniedMcpServers` (system/managed-settings.json:2)
    c [user] shadowed: by precedence
    d [user] refused: `system/managed-mcp.json` excludes every server that it does not name itself
    m [managed] refused: `system/managed-mcp.json` excludes every server that it does not name itself
    n [managed] refused: `system/managed-mcp.json` excludes every server that it does not name itself
    "#);
}

#[test]
fn an_empty_allow_list_allows_nothing_but_what_is_managed() {
    let stage = stage();
    stage.managed(r#"{"allowedMcpServers": [], "mcpServers": {"m": {"command": "m"}}}"#);
    let plan = stage.plan();
    let admitted: Vec<_> = plan
        .admitted()
        .map(|(server, _)| server.name.as_str())
        .collect();
    assert_eq!(admitted, ["m"]);
    let refused = adhoc(
        &stage.environment(),
        &plan,
        "t",
        object(json!({"command": "x"})),
    );
    assert!(
        refused
            .unwrap_err()
            .message
            .contains("not in `allowedMcpServers`")
    );
}

#[test]
fn managed_servers_are_subject_to_denial() {
    let stage = Stage::new();
    stage.managed(r#"{"deniedMcpServers": [{"serverCommand": ["m"]}], "mcpServers": {"m": {"command": "m"}}}"#);
    assert_eq!(word(&stage.plan(), "m"), "refused");
}

#[test]
fn sec_14_an_unusable_policy_blocks_everything_and_says_why() {
    let cases: [(&str, &str); 6] = [
        ("managed-settings.json", "{\"deniedMcpServers\": ["),
        ("managed-settings.json", ""),
        ("managed-settings.json", "{\"deniedMcpServers\": [\"a\"]}"),
        ("managed-settings.json", "[]"),
        (
            "managed-mcp.json",
            "{\"mcpServers\": {\"e\": {\"command\": \"e\"}}",
        ),
        ("managed-mcp.json", "{\"allowedMcpServers\": null}"),
    ];
    for (name, text) in cases {
        let stage = stage();
        stage.write(&format!("system/{name}"), text);
        let flags = Flags {
            mcp_server: vec!["x=x".to_owned()],
            ..Flags::default()
        };
        let plan = stage.plan_with(&flags);
        let blocked = plan.blocked.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert!(
            blocked
                .message
                .starts_with("nothing may connect, because the policy in `")
        );
        assert!(blocked.message.contains(name), "{}", blocked.message);
        assert!(
            plan.servers
                .iter()
                .all(|server| server.verdict.word() == "refused"),
            "{text}"
        );
        assert_eq!(
            server(&plan, "github").verdict.reason(),
            Some(blocked.message.as_str())
        );
        let typed = adhoc(
            &stage.environment(),
            &plan,
            "t",
            object(json!({"command": "x"})),
        );
        assert!(typed.is_err(), "{text}");
    }
}

#[test]
fn sec_14_a_policy_others_could_have_written_is_not_believed() {
    let stage = stage();
    let path = stage.managed("{}");
    assert!(stage.plan().blocked.is_none());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
    let plan = stage.plan();
    assert_snapshot!(findings(&stage, &plan).lines().next().unwrap(), @"system/managed-settings.json:1 nothing may connect, because the policy in `system/managed-settings.json` is unusable: it cannot be trusted: its group or everybody may write to it (mode 0664) | ask the administrator of this machine to mend `system/managed-settings.json`");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let directory = stage.root.join("system");
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    let plan = stage.plan();
    assert_snapshot!(findings(&stage, &plan).lines().next().unwrap(), @"system/managed-settings.json:1 nothing may connect, because the policy in `system/managed-settings.json` is unusable: it cannot be trusted: its directory may be changed by others: its group or everybody may write to it (mode 0777) | ask the administrator of this machine to mend `system/managed-settings.json`");
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(
        stage.plan().blocked.is_some(),
        "a directory in its place is no policy"
    );
}

#[test]
fn sec_14_a_policy_replaced_during_a_run_counts_from_the_next_question_on() {
    let stage = stage();
    let plan = stage.plan();
    stage.managed(r#"{"deniedMcpServers": [{"serverName": "*"}]}"#);
    let typed = adhoc(
        &stage.environment(),
        &plan,
        "t",
        object(json!({"command": "x"})),
    );
    assert!(
        typed
            .unwrap_err()
            .message
            .starts_with("denied by `{\"serverName\":\"*\"}`")
    );
}

#[test]
fn a_typed_server_is_checked_and_expanded() {
    let stage = stage();
    let plan = stage.plan();
    let ask = |definition| adhoc(&stage.environment(), &plan, "t", object(definition));
    assert!(ask(json!({"type": "http", "url": "https://${EVIL}/x"})).is_ok());
    assert_eq!(
        ask(json!({"command": "${NOPE}"})).unwrap_err().message,
        "the variable `NOPE` is not set"
    );
    assert_eq!(
        ask(json!({})).unwrap_err().message,
        "neither `command` nor `url` is given"
    );
}

#[test]
fn sec_13_a_decoy_before_a_denied_program_does_not_hide_it() {
    let stage = Stage::new();
    let program = stage.write("bin/evil", "#!/bin/sh\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    stage.write("decoy/evil", "what cannot be executed is passed over");
    let root = stage.root.display();
    let rule = json!({"deniedMcpServers": [{"serverCommand": [program.display().to_string()]}]});
    stage.managed(&rule.to_string());
    let entry = |path: String, cwd: &str| json!({"command": "evil", "env": {"PATH": path}, "cwd": format!("{root}/{cwd}")});
    let servers = json!({"mcpServers": {
        "decoy": entry(format!("{root}/decoy:{root}/bin"), "home"),
        "relative": entry("bin".to_owned(), ""),
    }});
    stage.user(&servers.to_string());
    let plan = stage.plan();
    assert_eq!(word(&plan, "decoy"), "refused");
    assert_eq!(word(&plan, "relative"), "refused");
}

#[test]
fn sec_14_a_policy_behind_a_link_counts_only_where_nobody_else_can_move_it() {
    let stage = stage();
    let path = stage.managed("{}");
    let elsewhere = stage.write("elsewhere/policy.json", "{}");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert_eq!(word(&stage.plan(), "github"), "admitted");
    let folder = elsewhere.parent().unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(word(&stage.plan(), "github"), "refused");
    std::fs::remove_file(&elsewhere).unwrap();
    let plan = stage.plan();
    assert_eq!(word(&plan, "github"), "refused", "it leads nowhere");
    assert!(plan.blocked.is_some());
    let typed = object(json!({"command": "true"}));
    assert!(adhoc(&stage.environment(), &plan, "typed", typed).is_err());
}

#[test]
fn sec_14_a_rule_for_every_command_means_every_command() {
    let stage = stage();
    stage.managed(r#"{"deniedMcpServers": [{"serverCommand": ["**"]}]}"#);
    let plan = stage.plan();
    assert_eq!(
        word(&plan, "npx"),
        "refused",
        "its arguments do not save it"
    );
    assert_eq!(word(&plan, "github"), "admitted");
}

/// Whose instructions are dropped, and why.
fn silenced(stage: &Stage) -> String {
    let root = format!("{}/", stage.root.display());
    let plan = stage.plan();
    let lines = plan.servers.iter().map(|server| {
        let reason = server.curation.instructions_dropped.as_deref();
        format!("{}: {}\n", server.name, reason.unwrap_or("kept"))
    });
    lines.collect::<String>().replace(&root, "")
}

#[test]
fn sec_32_a_deny_list_drops_instructions_and_leaves_the_servers_alone() {
    let stage = stage();
    stage.managed(
        r#"{
  "deniedMcpInstructions": [
    {"serverUrl": "https://*.evil.example/*"},
    {"serverCommand": ["npx", "-y", "evil"]},
    {"serverName": "GITHUB"}
  ]
}"#,
    );
    assert_snapshot!(silenced(&stage), @r#"
    at: kept
    dot: kept
    fake: denied by `{"serverUrl":"https://*.evil.example/*"}` in `deniedMcpInstructions` (system/managed-settings.json:3)
    github: denied by `{"serverName":"GITHUB"}` in `deniedMcpInstructions` (system/managed-settings.json:5)
    npx: kept
    npx-evil: denied by `{"serverCommand":["npx","-y","evil"]}` in `deniedMcpInstructions` (system/managed-settings.json:4)
    var: kept
    "#);
    let plan = stage.plan();
    assert!(
        plan.servers
            .iter()
            .all(|server| server.verdict.word() == "admitted")
    );
}

#[test]
fn sec_32_an_allow_list_keeps_only_the_instructions_it_names() {
    let stage = stage();
    stage.managed(
        r#"{"allowedMcpInstructions": [{"serverUrl": "https://api.github.com/*"}, {"serverName": "npx*"}],
            "deniedMcpInstructions": [{"serverName": "npx-evil"}]}"#,
    );
    assert_snapshot!(silenced(&stage), @r#"
    at: not in `allowedMcpInstructions` (system/managed-settings.json:1)
    dot: kept
    fake: not in `allowedMcpInstructions` (system/managed-settings.json:1)
    github: kept
    npx: kept
    npx-evil: denied by `{"serverName":"npx-evil"}` in `deniedMcpInstructions` (system/managed-settings.json:2)
    var: not in `allowedMcpInstructions` (system/managed-settings.json:1)
    "#);
    // The organisation's own servers too: an empty list allows none.
    let stage = Stage::new();
    stage.managed(r#"{"allowedMcpInstructions": [], "mcpServers": {"m": {"command": "m"}}}"#);
    assert_snapshot!(silenced(&stage), @"m: not in `allowedMcpInstructions` (system/managed-settings.json:1)");
    let object = stage
        .plan()
        .curation_of_object(&toolway_types::ServerName::new("inside").unwrap());
    assert!(object.instructions_dropped.is_some());
}

#[test]
fn sec_32_only_the_organisation_has_these_lists_and_a_slip_in_them_is_named() {
    let stage = stage();
    stage.user(r#"{"mcpServers": {"a": {"command": "a"}}, "deniedMcpInstructions": [{"serverName": "*"}]}"#);
    assert_snapshot!(silenced(&stage), @"a: kept");
    assert_snapshot!(findings(&stage, &stage.plan()), @"home/.config/toolway/settings.json:1 `deniedMcpInstructions` is ignored: it does not count in this file | it counts only in the system directory's `managed-settings.json`");
    for (text, expected) in [
        (
            "{\n\"allowedMcpInstructions\": false}",
            "`allowedMcpInstructions` must be an array of rules, not ",
        ),
        (
            "{\"deniedMcpInstructions\": [\n\"a\"]}",
            "`deniedMcpInstructions[0]` must be an object",
        ),
    ] {
        stage.managed(text);
        let blocked = stage.plan().blocked.unwrap();
        assert!(blocked.message.contains(expected), "{}", blocked.message);
        assert_eq!(blocked.origin.unwrap().line(), Some(2), "{text}");
    }
}
