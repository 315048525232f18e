//! Plans that follow one another while files change.

use std::fs;

use toolway_config::{Flags, Planner, ServerVerdict, watched_paths};

use crate::{Stage, server};

const GOOD: &str = r#"{"mcpServers": {"one": {"command": "true"}}}"#;

fn admitted(planner: &Planner) -> Vec<String> {
    let plan = planner.plan();
    plan.admitted()
        .map(|(server, _)| server.name.to_string())
        .collect()
}

#[test]
fn servers_of_a_file_that_breaks_stay_until_it_is_mended() {
    let stage = Stage::new();
    let path = stage.user(GOOD);
    let planner = Planner::new(stage.environment(), Flags::default());
    assert_eq!(admitted(&planner), ["one"]);

    fs::write(&path, &GOOD[..20]).unwrap();
    let plan = planner.plan();
    assert_eq!(plan.admitted().count(), 1);
    let faults: Vec<String> = plan
        .all_diagnoses()
        .filter_map(|found| Some(found.origin.as_ref()?.path()))
        .collect();
    assert_eq!(faults, [path.display().to_string()]);
    // At a fresh start there is nothing to go by.
    assert_eq!(stage.plan().admitted().count(), 0);
    // Saving in place empties the file for a moment.
    fs::write(&path, "").unwrap();
    assert_eq!(admitted(&planner), ["one"]);

    fs::write(&path, GOOD.replace("one", "two")).unwrap();
    assert_eq!(admitted(&planner), ["two"]);
    fs::remove_file(&path).unwrap();
    assert_eq!(admitted(&planner), [""; 0]);
    // What is gone is not remembered.
    fs::write(&path, "{").unwrap();
    assert_eq!(admitted(&planner), [""; 0]);
}

#[test]
fn the_rules_of_a_settings_file_that_breaks_refuse_calls() {
    let stage = Stage::new();
    let path = stage.user(GOOD);
    let planner = Planner::new(stage.environment(), Flags::default());
    let before = planner.plan();
    fs::write(&path, "{").unwrap();
    let after = planner.plan();
    assert_ne!(
        format!("{:?}", before.permissions),
        format!("{:?}", after.permissions)
    );
    assert_eq!(
        format!("{:?}", after.permissions),
        format!("{:?}", stage.plan().permissions)
    );
}

#[test]
fn sec_14_a_policy_that_breaks_stops_everything_at_once() {
    let stage = Stage::new();
    stage.user(GOOD);
    let policy = stage.managed("{}");
    let planner = Planner::new(stage.environment(), Flags::default());
    assert_eq!(admitted(&planner), ["one"]);
    fs::write(&policy, "{").unwrap();
    let plan = planner.plan();
    assert!(plan.blocked.is_some());
    assert!(
        plan.servers
            .iter()
            .all(|server| matches!(server.verdict, ServerVerdict::Refused { .. }))
    );
    fs::write(&policy, "{}").unwrap();
    assert_eq!(admitted(&planner), ["one"]);
}

#[test]
fn every_file_that_counts_is_watched_whether_it_exists_or_not() {
    let stage = Stage::new();
    stage.write("home/.config/toolway/plugins/p/plugin.json", "{}");
    stage.write("home/.config/toolway/ide/80.lock", "{}");
    let flags = Flags {
        mcp_config: vec!["extra.json".to_owned(), "{}".to_owned()],
        ..Flags::default()
    };
    let watched = watched_paths(&stage.environment(), &flags);
    let shown: Vec<String> = watched
        .iter()
        .map(|path| {
            path.strip_prefix(&stage.root)
                .unwrap()
                .display()
                .to_string()
        })
        .collect();
    assert_eq!(
        shown,
        [
            "home/.claude/ide",
            "home/.config/toolway/approvals.json",
            "home/.config/toolway/ide",
            "home/.config/toolway/ide/80.lock",
            "home/.config/toolway/plugins",
            "home/.config/toolway/plugins/p/.claude-plugin/plugin.json",
            "home/.config/toolway/plugins/p/.mcp.json",
            "home/.config/toolway/plugins/p/.toolway-plugin/plugin.json",
            "home/.config/toolway/plugins/p/plugin.json",
            "home/.config/toolway/settings.json",
            "home/.local/state/toolway/connectors.json",
            "home/.mcp.json",
            "home/repo/.mcp.json",
            "home/repo/.toolway/settings.json",
            "home/repo/.toolway/settings.local.json",
            "home/repo/extra.json",
            "system/managed-mcp.json",
            "system/managed-settings.json",
        ]
    );
    let strict = Flags {
        strict: true,
        ..flags
    };
    let watched = watched_paths(&stage.environment(), &strict);
    assert!(!watched.iter().any(|path| path.ends_with(".mcp.json")));
}

#[test]
fn a_settings_file_that_is_a_link_is_watched_at_both_ends() {
    let stage = Stage::new();
    let real = stage.write("dotfiles/settings.json", GOOD);
    let folder = stage.root.join("home/.config/toolway");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&real, folder.join("settings.json")).unwrap();
    let watched = watched_paths(&stage.environment(), &Flags::default());
    assert!(watched.contains(&real));
    assert!(watched.contains(&folder.join("settings.json")));
}

fn run_command(name: &str, command: &str) -> String {
    format!(r#"{{"mcpServers": {{"{name}": {{"command": "{command}"}}}}}}"#)
}

/// What a run that vouches for whole repositories makes of one that changes under it.
fn assert_vouched_as_it_began(stage: &Stage, flags: Flags) {
    let path = stage.project(&run_command("tool", "true"));
    let planner = Planner::new(stage.environment(), flags);
    assert_eq!(admitted(&planner), ["tool"]);

    fs::write(&path, run_command("tool", "evil")).unwrap();
    let plan = planner.plan();
    match &server(&plan, "tool").verdict {
        ServerVerdict::PendingApproval { reason, changed } => {
            assert_eq!(reason, "`tool` has changed since this run began");
            let changed = changed.as_deref().unwrap();
            assert!(changed.contains("-  \"command\": \"true\""), "{changed}");
            assert!(changed.contains("+  \"command\": \"evil\""), "{changed}");
        }
        other => panic!("{other:?}"),
    }
    // Nor does a server that was not there, under whatever name or in whatever file.
    fs::write(&path, run_command("other", "true")).unwrap();
    let plan = planner.plan();
    assert_eq!(
        server(&plan, "other").verdict.reason(),
        Some("`other` was not there when this run began, and is not approved")
    );
    let nearer = stage.write("home/repo/deep/.mcp.json", &run_command("tool", "true"));
    stage.local(&run_command("mine", "true"));
    assert_eq!(admitted(&planner), [""; 0]);
    fs::remove_file(nearer).unwrap();

    // What it was is what was vouched for, and a person can approve anything at any time.
    fs::write(&path, run_command("tool", "true")).unwrap();
    assert_eq!(admitted(&planner), ["tool"]);
    fs::write(&path, run_command("tool", "evil")).unwrap();
    let plan = planner.plan();
    let files = std::collections::BTreeMap::new();
    toolway_config::approve(&stage.environment(), server(&plan, "tool"), &[], &files).unwrap();
    assert_eq!(admitted(&planner), ["tool"]);
}

#[test]
fn sec_05_a_run_vouches_for_a_repository_as_it_stood_when_it_began() {
    let flags = Flags {
        approve_project_servers: true,
        ..Flags::default()
    };
    let mut stage = Stage::new();
    stage.cwd.push("deep");
    assert_vouched_as_it_began(&stage, flags);
}

#[test]
fn sec_05_so_do_settings_that_name_its_servers_or_all_of_them() {
    for settings in [
        r#"{"enableAllProjectMcpServers": true}"#,
        r#"{"enabledMcpjsonServers": ["tool", "other"]}"#,
    ] {
        let mut stage = Stage::new();
        stage.cwd.push("deep");
        stage.user(settings);
        assert_vouched_as_it_began(&stage, Flags::default());
    }
}

#[test]
fn a_person_who_enables_what_stood_there_all_along_need_not_start_again() {
    let stage = Stage::new();
    stage.project(&run_command("tool", "true"));
    let planner = Planner::new(stage.environment(), Flags::default());
    assert_eq!(admitted(&planner), [""; 0]);
    stage.user(r#"{"enableAllProjectMcpServers": true}"#);
    assert_eq!(admitted(&planner), ["tool"]);
}
