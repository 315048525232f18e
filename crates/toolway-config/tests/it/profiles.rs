//! Profiles in the plan: who may write one, what is wrong with one, and which of two counts.

use insta::assert_snapshot;
use toolway_config::{NameForm, NoProfile, Plan, Profile, ProfileMode, ResultForm, ToolPatterns};
use toolway_types::ServerName;

use crate::{Stage, findings};

const SERVERS: &str = r#""mcpServers": {
    "github": {"type": "http", "url": "https://github.example/mcp"},
    "time": {"command": "true"}
}"#;

fn profile<'p>(plan: &'p Plan, name: &str) -> &'p Profile {
    plan.profile(name).unwrap()
}

/// What a use of the profile is told, one line each.
fn remarks(stage: &Stage, plan: &Plan, name: &str) -> String {
    let root = format!("{}/", stage.root.display());
    let remarks = plan.profile_remarks(profile(plan, name));
    let lines = remarks.iter().map(|found| {
        let place = found.origin.as_ref().unwrap();
        let hint = found.hint.as_ref();
        let hint = hint.map_or_else(String::new, |hint| format!(" | {hint}"));
        format!("{place} {}{hint}\n", found.message)
    });
    lines.collect::<String>().replace(&root, "")
}

#[test]
fn every_key_of_a_profile_is_read() {
    let stage = Stage::new();
    stage.user(
        r#"{"profiles": {
            "plain": {},
            "work": {
                "servers": ["github", "time"],
                "tools": ["mcp__github__*", "mcp__time__get_current_time"],
                "permissions": {"deny": ["mcp__github__delete_*"], "ask": ["mcp__github__create_*"]},
                "mode": "ask",
                "accounts": {"github": "office"},
                "results": "bounded",
                "toolSearch": true,
                "names": "mcp",
                "readOnly": true,
            },
        }}"#,
    );
    let plan = stage.plan();
    assert_snapshot!(findings(&stage, &plan), @"");
    let work = profile(&plan, "work");
    let servers: Vec<_> = work
        .servers
        .iter()
        .flatten()
        .map(ServerName::as_str)
        .collect();
    assert_eq!(servers, ["github", "time"]);
    let tools: Vec<_> = work
        .tools
        .iter()
        .flat_map(ToolPatterns::iter)
        .map(|it| it.0)
        .collect();
    assert_eq!(tools, ["mcp__github__*", "mcp__time__get_current_time"]);
    let rules: Vec<_> = work
        .permissions
        .rules()
        .map(|it| (it.0.as_str(), it.1))
        .collect();
    assert_eq!(
        rules,
        [
            ("deny", "mcp__github__delete_*"),
            ("ask", "mcp__github__create_*")
        ]
    );
    let accounts: Vec<_> = work.accounts.iter().collect();
    assert_eq!(
        format!("{accounts:?}"),
        r#"[(ServerName("github"), "office")]"#
    );
    assert_eq!(
        (
            work.mode,
            work.results,
            work.names,
            work.tool_search,
            work.read_only
        ),
        (
            ProfileMode::Ask,
            ResultForm::Bounded,
            NameForm::Mcp,
            true,
            true
        )
    );
    assert_eq!(work.origin.line(), Some(3));
    let usual = Profile {
        origin: profile(&plan, "plain").origin.clone(),
        ..Profile::default()
    };
    assert_eq!(*profile(&plan, "plain"), usual);
}

#[test]
fn only_the_person_and_the_organisation_write_profiles() {
    let stage = Stage::new();
    let wide = r#""profiles": {"work": {"mode": "bypass"}}"#;
    stage.project(&format!("{{\n{wide},\n\"mcpServers\": {{}}\n}}"));
    stage.local(&format!("{{\n{wide}\n}}"));
    stage.write("home/repo/.toolway/settings.json", &format!("{{{wide}}}"));
    stage.enterprise(&format!("{{\"mcpServers\": {{}},\n{wide}}}"));
    let plan = stage.plan();
    assert!(plan.profiles.is_empty());
    assert_snapshot!(findings(&stage, &plan), @"
    system/managed-mcp.json:2 `profiles` is ignored: it does not count in this file | it counts only in your own settings (`settings.json` in the config home)
    home/repo/.toolway/settings.local.json:2 `profiles` is ignored: it does not count in this file | it counts only in your own settings (`settings.json` in the config home)
    home/repo/.toolway/settings.json:1 `profiles` is ignored: a project's own file cannot set it | it counts only in your own settings (`settings.json` in the config home)
    home/repo/.mcp.json:2 `profiles` is ignored: a project's own file cannot set it | it counts only in your own settings (`settings.json` in the config home)
    ");
    stage.user(r#"{"profiles": {"work": {"mode": "ask"}}}"#);
    assert_eq!(profile(&stage.plan(), "work").mode, ProfileMode::Ask);
}

#[test]
fn sec_14_a_profile_with_a_fault_is_not_used_and_every_fault_has_its_line() {
    let stage = Stage::new();
    stage.user(
        r#"{"profiles": {
            "good": {"readOnly": true},
            "wrong": {
                "server": ["github"],
                "readonly": true,
                "colour": "red",
                "servers": "github",
                "tools": [
                    "mcp__github__*",
                    "mcp__github__*(repo:x)",
                    7,
                    "mcp__"
                ],
                "permissions": {
                    "allow": ["mcp__github"],
                    "denny": [],
                    "deny": ["mcp__github__x("]
                },
                "mode": "clint",
                "accounts": {"github": "",
                    "time": 3},
                "results": "short",
                "toolSearch": "yes",
                "names": 1,
                "readOnly": null
            },
            "a/b": {},
            "list": []
        }}"#,
    );
    let plan = stage.plan();
    assert_snapshot!(findings(&stage, &plan), @r#"
    home/.config/toolway/settings.json:4 `profiles.wrong.server` is not a key Toolway reads | did you mean `profiles.wrong.servers`?
    home/.config/toolway/settings.json:5 `profiles.wrong.readonly` is not a key Toolway reads | did you mean `profiles.wrong.readOnly`?
    home/.config/toolway/settings.json:6 `profiles.wrong.colour` is not a key Toolway reads | a profile has `servers`, `tools`, `permissions`, `mode`, `accounts`, `results`, `toolSearch`, `names`, `readOnly`
    home/.config/toolway/settings.json:7 `profiles.wrong.servers` must be an array of strings, not a string | write e.g. `["github"]`
    home/.config/toolway/settings.json:11 `profiles.wrong.tools[2]` must be a string, not a number
    home/.config/toolway/settings.json:10 `mcp__github__*(repo:x)` in `profiles.wrong.tools` cannot be read: a pattern names tools, and says nothing of how they are called | write conditions as rules that deny: `"permissions": {"deny": […]}`
    home/.config/toolway/settings.json:12 `mcp__` in `profiles.wrong.tools` cannot be read: it names no server | write `mcp__server`, `mcp__server__*` or `mcp__server__tool`
    home/.config/toolway/settings.json:15 `profiles.wrong.permissions` takes no `allow`: a profile only narrows | write `allow` in your `permissions`
    home/.config/toolway/settings.json:16 `profiles.wrong.permissions.denny` is not a key Toolway reads | did you mean `profiles.wrong.permissions.deny`?
    home/.config/toolway/settings.json:17 the rule `mcp__github__x(` in `profiles.wrong.permissions.deny` cannot be read: a `(` is not closed; the profile is not used | write `mcp__server`, `mcp__server__*`, `mcp__server__tool`, or `mcp__server__tool(argument:pattern)`
    home/.config/toolway/settings.json:19 `profiles.wrong.mode` cannot be `clint` | did you mean `client`?
    home/.config/toolway/settings.json:20 `profiles.wrong.accounts.github` must not be empty
    home/.config/toolway/settings.json:21 `profiles.wrong.accounts.time` must be a string, not a number
    home/.config/toolway/settings.json:22 `profiles.wrong.results` cannot be `short` | use one of `raw`, `bounded`
    home/.config/toolway/settings.json:23 `profiles.wrong.toolSearch` must be `true` or `false`, not a string
    home/.config/toolway/settings.json:24 `profiles.wrong.names` must be a string, not a number | use one of `short`, `mcp`, `own`
    home/.config/toolway/settings.json:25 `profiles.wrong.readOnly` must be `true` or `false`, not null
    home/.config/toolway/settings.json:27 `a/b` cannot name a profile | use at most 64 of the letters, digits, `-`, `_` and `.`
    home/.config/toolway/settings.json:28 `profiles.list` must be an object, not an array | write e.g. `{"servers": ["github"], "readOnly": true}`
    "#);
    assert_eq!(plan.profiles.keys().collect::<Vec<_>>(), ["good"]);
    let faulty = plan.profile("wrong").unwrap_err();
    assert_snapshot!(faulty, @"the profile `wrong` cannot be used: `profiles.wrong.server` is not a key Toolway reads");
    let NoProfile::Unknown { meant, .. } = plan.profile("goof").unwrap_err() else {
        panic!("it is not there");
    };
    assert_eq!(meant.as_deref(), Some("good"));
}

#[test]
fn the_organisations_profile_counts_as_a_whole() {
    let stage = Stage::new();
    stage.user(
        r#"{"profiles": {
            "work": {"servers": ["github"], "mode": "client", "results": "bounded"},
            "mine": {"names": "own"}
        }}"#,
    );
    stage.managed(r#"{"profiles": {"work": {"readOnly": true}}}"#);
    let plan = stage.plan();
    let work = profile(&plan, "work");
    assert_eq!((work.read_only, work.results), (true, ResultForm::Raw));
    assert_eq!(work.servers, None, "nothing of the other is left");
    assert_eq!(profile(&plan, "mine").names, NameForm::Own);
    // One that cannot be used has no other take its place.
    stage.managed(r#"{"profiles": {"work": {"readOnly": 1}}}"#);
    let plan = stage.plan();
    assert!(matches!(
        plan.profile("work"),
        Err(NoProfile::Faulty { .. })
    ));
    profile(&plan, "mine");
    stage.managed(r#"{"profiles": ["work"]}"#);
    let plan = stage.plan();
    assert!(plan.profiles.is_empty());
    assert_eq!(plan.faulty_profiles.len(), 2);
    assert!(plan.blocked.is_none());
}

#[test]
fn bypass_counts_as_ask_where_it_is_forbidden() {
    let stage = Stage::new();
    stage.user("{\"profiles\": {\n\"free\": {\"mode\": \"bypass\"}}}");
    assert_eq!(profile(&stage.plan(), "free").mode, ProfileMode::Bypass);
    stage.managed(r#"{"permissions": {"disableBypass": true}}"#);
    let plan = stage.plan();
    assert_eq!(profile(&plan, "free").mode, ProfileMode::Ask);
    assert_snapshot!(findings(&stage, &plan), @"home/.config/toolway/settings.json:2 `profiles.free.mode` counts as `ask`: system/managed-settings.json:1 forbids bypass | write `client` or `ask`");
}

#[test]
fn a_use_is_told_what_is_not_there() {
    let stage = Stage::new();
    stage.user(&format!(
        r#"{{{SERVERS}, "profiles": {{
            "work": {{
                "servers": ["githb", "time", "elsewhere"],
                "tools": [
                    "mcp__githb__*",
                    "mcp__time"
                ],
                "permissions": {{"deny": ["mcp__nowhere__x"]}},
                "accounts": {{"gitub": "a", "time": "b"}}
            }}
        }}}}"#
    ));
    let plan = stage.plan();
    assert_snapshot!(findings(&stage, &plan), @"");
    assert_snapshot!(remarks(&stage, &plan, "work"), @"
    home/.config/toolway/settings.json:5 `servers` of the profile names `githb`, which is not configured | did you mean `github`?
    home/.config/toolway/settings.json:5 `servers` of the profile names `elsewhere`, which is not configured
    home/.config/toolway/settings.json:5 `accounts` of the profile names `gitub`, which is not configured | did you mean `github`?
    home/.config/toolway/settings.json:5 `accounts` of the profile names `time`, which takes no login
    home/.config/toolway/settings.json:8 `mcp__githb__*` in `tools` of the profile names no tool of a configured server | did you mean `mcp__github__*`?
    home/.config/toolway/settings.json:11 `mcp__nowhere__x` in `deny` of the profile speaks of `nowhere`, which is not configured
    ");
}
