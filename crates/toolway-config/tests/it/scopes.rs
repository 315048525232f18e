//! Every scope, its place in the order, and what becomes of the rest.

use insta::assert_snapshot;
use serde_json::json;
use toolway_config::{ConnectorEntry, Flags, ServerVerdict};
use toolway_types::{Origin, Scope};

use crate::{Stage, findings, object, server, spec, table, word};

fn entry(command: &str) -> String {
    format!("{{\n  \"mcpServers\": {{\n    \"x\": {{\"command\": \"{command}\"}}\n  }}\n}}")
}

#[test]
fn the_highest_scope_wins_and_the_rest_is_kept() {
    let stage = Stage::new();
    stage.user(&entry("user"));
    stage.project(&entry("project"));
    stage.local(&entry("local"));
    stage.managed(&entry("managed"));
    let flags = Flags {
        mcp_server: vec!["x=dynamic".to_owned()],
        ..Flags::default()
    };
    let plan = stage.plan_with(&flags);
    assert_snapshot!(table(&stage, &plan), @"
    x [managed] admitted
    x [dynamic] shadowed: by precedence
    x [local] shadowed: by precedence
    x [project] shadowed: by precedence
    x [user] shadowed: by precedence
    ");
    let winner = server(&plan, "x");
    let path = stage.root.join("system/managed-settings.json");
    assert_eq!(winner.origin, Origin::file(path, 3));
    let shadowed: Vec<_> = winner.shadows.iter().map(|shadow| shadow.scope).collect();
    assert_eq!(
        shadowed,
        [Scope::Dynamic, Scope::Local, Scope::Project, Scope::User]
    );
    assert!(
        matches!(&plan.servers[1].verdict, ServerVerdict::Shadowed { by, .. } if by.scope == Scope::Managed)
    );
}

#[test]
fn the_nearest_project_file_wins_up_to_home() {
    let mut stage = Stage::new();
    stage.write(
        "home/.mcp.json",
        r#"{"mcpServers": {"x": {"command": "far"}, "home": {"command": "h"}}}"#,
    );
    stage.project(&entry("middle"));
    stage.write("home/repo/deep/.mcp.json", &entry("near"));
    stage.write(
        ".mcp.json",
        r#"{"mcpServers": {"above-home": {"command": "a"}}}"#,
    );
    stage.cwd = stage.root.join("home/repo/deep");
    let plan = stage.plan();
    assert_eq!(server(&plan, "x").definition["command"], "near");
    assert_eq!(server(&plan, "x").shadows.len(), 2);
    assert_eq!(word(&plan, "home"), "pending-approval");
    assert!(plan.winner("above-home").is_none());
}

#[test]
fn the_enterprise_file_excludes_every_other_scope() {
    let stage = Stage::new();
    stage.user(&entry("user"));
    stage.managed(r#"{"mcpServers": {"m": {"command": "m"}}}"#);
    stage.enterprise(r#"{"mcpServers": {"e": {"command": "e"}}}"#);
    let flags = Flags {
        mcp_server: vec!["d=d".to_owned()],
        strict: true,
        ..Flags::default()
    };
    assert_snapshot!(table(&stage, &stage.plan()), @"
    e [enterprise] admitted
    m [managed] refused: `system/managed-mcp.json` excludes every server that it does not name itself
    x [user] refused: `system/managed-mcp.json` excludes every server that it does not name itself
    ");
    assert_snapshot!(table(&stage, &stage.plan_with(&flags)), @"
    d [dynamic] refused: `system/managed-mcp.json` excludes every server that it does not name itself
    e [enterprise] admitted
    ");
    let typed = object(json!({"command": "x"}));
    let refused = toolway_config::adhoc(&stage.environment(), &stage.plan(), "typed", typed);
    assert!(
        refused
            .unwrap_err()
            .message
            .contains("excludes every server")
    );
}

#[test]
fn plugins_bring_servers_under_their_own_names() {
    let stage = Stage::new();
    let plugins = "home/.config/toolway/plugins";
    stage.write(
        &format!("{plugins}/a/.mcp.json"),
        r#"{"bare": {"command": "${TOOLWAY_PLUGIN_ROOT}/run", "cwd": "sub"}}"#,
    );
    stage.write(
        &format!("{plugins}/b/.claude-plugin/plugin.json"),
        r#"{"name": "b", "mcpServers": {"same": {"url": "https://p.example", "type": "http"}}}"#,
    );
    stage.write(
        &format!("{plugins}/c/plugin.json"),
        r#"{"mcpServers": {"again": {"url": "https://P.example/", "type": "http"}}}"#,
    );
    stage.write(
        &format!("{plugins}/off/.mcp.json"),
        r#"{"mcpServers": {"x": {"command": "x"}}}"#,
    );
    stage.user(r#"{"enabledPlugins": {"off": false}}"#);
    let plan = stage.plan();
    assert_snapshot!(table(&stage, &plan), @"
    plugin:a:bare [plugin] admitted
    plugin:b:same [plugin] admitted
    plugin:c:again [plugin] shadowed: duplicate of `plugin:b:same`
    plugin:off:x [plugin] disabled: the plugin `off` is switched off in `enabledPlugins` (home/.config/toolway/settings.json:1)
    ");
    assert_snapshot!(findings(&stage, &plan), @"");
    let toolway_types::TransportSpec::Stdio(stdio) = &spec(&plan, "plugin:a:bare").transport else {
        panic!("not a process");
    };
    let root = stage.root.join(plugins).join("a");
    assert_eq!(stdio.command, root.join("run").display().to_string());
    assert_eq!(stdio.cwd.path(), root.join("sub"));
    assert_eq!(
        stdio.env["CLAUDE_PLUGIN_ROOT"].expose(),
        root.display().to_string()
    );
}

#[test]
fn connectors_come_last() {
    let stage = Stage::new();
    stage.user(r#"{"mcpServers": {"My_Drive": {"command": "mine"}, "u": {"type": "http", "url": "https://same.example/mcp"}}}"#);
    let connector = |name: &str, url: &str| ConnectorEntry {
        name: name.to_owned(),
        definition: object(json!({"type": "claudeai-proxy", "url": url})),
    };
    let connectors = vec![
        connector("My  Drive!", "https://drive.example"),
        connector("Same", "https://same.example/mcp"),
        connector("Own", "https://own.example"),
    ];
    let plan = stage.plan_with(&Flags {
        connectors,
        ..Flags::default()
    });
    assert_snapshot!(table(&stage, &plan), @"
    My_Drive [user] admitted
    My_Drive [connector] shadowed: by precedence
    Own [connector] admitted
    Same [connector] shadowed: duplicate of `u`
    u [user] admitted
    ");
}

#[test]
fn one_broken_file_does_not_stop_the_others() {
    let stage = Stage::new();
    stage.user("{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\",, }\n  }\n}");
    stage.managed(&entry("fine"));
    std::fs::create_dir(stage.root.join("home/repo/.mcp.json")).unwrap();
    stage.write("home/repo/.toolway/settings.local.json", "\u{0}");
    let plan = stage.plan();
    assert_snapshot!(table(&stage, &plan), @"x [managed] admitted");
    assert_snapshot!(findings(&stage, &plan), @"
    home/.config/toolway/settings.json:3 (column 26) not valid JSON: unexpected token in object | mend the file at that place; nothing in it is read until then
    home/repo/.toolway/settings.local.json:1 (column 1) not valid JSON: unexpected token | mend the file at that place; nothing in it is read until then
    home/repo/.mcp.json:1 the file is not a regular file
    ");
}

#[test]
fn a_pipe_or_binary_file_is_a_finding_and_never_a_wait() {
    let stage = Stage::new();
    let pipe = stage.root.join("home/repo/.mcp.json");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    std::fs::create_dir_all(stage.root.join("home/.config/toolway")).unwrap();
    std::fs::write(
        stage.root.join("home/.config/toolway/settings.json"),
        b"{\n\xff}",
    )
    .unwrap();
    assert_snapshot!(findings(&stage, &stage.plan()), @"
    home/.config/toolway/settings.json:2 the file is not UTF-8 text
    home/repo/.mcp.json:1 the file is not a regular file
    ");
}

#[test]
fn names_are_suggested_and_switches_work() {
    let stage = Stage::new();
    stage.user(
        r#"{"mcpServers": {"github": {"command": "g"}, "off": {"command": "o", "disabled": true},
            "not-on": {"command": "o", "enabled": false}, "back": {"command": "b", "disabled": true},
            "named": {"command": "n"}},
            "disabledMcpServers": ["named", "m"], "enabledMcpServers": ["back"]}"#,
    );
    stage.managed(r#"{"mcpServers": {"m": {"command": "m"}}}"#);
    let plan = stage.plan();
    assert_snapshot!(table(&stage, &plan), @r#"
    back [user] admitted
    github [user] admitted
    m [managed] admitted
    named [user] disabled: `named` is in `disabledMcpServers` (home/.config/toolway/settings.json:4)
    not-on [user] disabled: its entry says `"enabled": false` (home/.config/toolway/settings.json:2)
    off [user] disabled: its entry says `"disabled": true` (home/.config/toolway/settings.json:1)
    "#);
    assert_eq!(plan.suggest("githbu").as_deref(), Some("github"));
    assert_eq!(plan.suggest("postgres"), None);
}
