//! What rules speak of: all that a server offers (SEC-59), and the definition that a yes was given
//! for (SEC-57).

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, Script, ScriptedServer, TempHome};

use crate::permission::typing;
use crate::support::{servers, toolway};

fn kit() -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/offers_server.py");
    json!({ "command": "python3", "args": ["-u", script] })
}

/// A home whose settings hold these servers and permissions.
fn home(entries: &[(&str, Value)], permissions: &Value) -> TempHome {
    let home = TempHome::new();
    let mut settings: Value = serde_json::from_str(&servers(entries)).unwrap();
    settings["permissions"] = permissions.clone();
    home.write_settings(serde_json::to_string_pretty(&settings).unwrap());
    home
}

#[test]
fn sec_59_a_rule_about_a_server_holds_for_every_command_that_asks_it_for_something() {
    let home = home(&[("kit", kit())], &json!({ "deny": ["mcp__kit"] }));
    assert_snapshot!(toolway(&home, &["read", "kit://text", "kit"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: `ReadMcpResource` of server `kit` was refused by the rule `mcp__kit` in [HOME]/.config/toolway/settings.json:11
    hint: if it should run, take the rule out of `permissions.deny` at [HOME]/.config/toolway/settings.json:11
    "#);
    assert_snapshot!(toolway(&home, &["resources", "kit"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: `ListMcpResources` of server `kit` was refused by the rule `mcp__kit` in [HOME]/.config/toolway/settings.json:11
    hint: if it should run, take the rule out of `permissions.deny` at [HOME]/.config/toolway/settings.json:11
    "#);
    assert_snapshot!(toolway(&home, &["resources"]), @r#"
    exit: 0
    ----- stdout
    ----- stderr
    warning: server `kit`: its resources and its prompts are left out: refused by the rule `mcp__kit` in [HOME]/.config/toolway/settings.json:11
    no resources
    "#);
    assert_snapshot!(toolway(&home, &["prompts", "kit", "--json"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    {"exit":6,"error":"`ListMcpPrompts` of server `kit` was refused by the rule `mcp__kit` in [HOME]/.config/toolway/settings.json:11","details":[],"hint":"if it should run, take the rule out of `permissions.deny` at [HOME]/.config/toolway/settings.json:11"}
    "#);
    assert_snapshot!(toolway(&home, &["prompt", "kit", "draw", "what=x"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: `GetMcpPrompt` of server `kit` was refused by the rule `mcp__kit` in [HOME]/.config/toolway/settings.json:11
    hint: if it should run, take the rule out of `permissions.deny` at [HOME]/.config/toolway/settings.json:11
    "#);
    assert_snapshot!(toolway(&home, &["skills", "kit"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: `ListMcpSkills` of server `kit` was refused by the rule `mcp__kit` in [HOME]/.config/toolway/settings.json:11
    hint: if it should run, take the rule out of `permissions.deny` at [HOME]/.config/toolway/settings.json:11
    "#);
    assert_snapshot!(toolway(&home, &["call", "ReadMcpResource", "server=kit", "uri=kit://text"]), @r#"
    exit: 2
    ----- stdout
    ----- stderr
    warning: server `kit`: its resources and its prompts are left out: refused by the rule `mcp__kit` in [HOME]/.config/toolway/settings.json:11
    error: there is no `ReadMcpResource` now: no connected server has resources
    hint: see which servers are connected with `toolway list`
    "#);
    assert_snapshot!(toolway(&home, &["permissions", "kit", "ReadMcpResource"]), @r#"
    exit: 0
    ----- stdout
    ReadMcpResource: denied by `mcp__kit` in [HOME]/.config/toolway/settings.json:11
    ----- stderr
    "#);
}

#[test]
fn sec_59_a_hook_about_a_servers_tools_sees_what_is_read_on_the_command_line() {
    let home = home(&[("kit", kit())], &json!({}));
    let settings = home.config_home().join("settings.json");
    let mut text: Value = serde_json::from_str(&home.read(&settings)).unwrap();
    text["hooks"] = json!({ "PreToolUse": [{ "matcher": "mcp__kit__.*", "hooks": [
        { "type": "command", "command": "cat > \"$TOOLWAY_PROJECT_DIR/told.json\"; echo not today >&2; exit 2" },
    ] }] });
    home.write_settings(text.to_string());
    assert_snapshot!(toolway(&home, &["read", "kit://text"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: `ReadMcpResource` of server `kit` was refused by the hook `cat > "$TOOLWAY_PROJECT_DIR/told.json"; echo not today >&2; exit 2` in [HOME]/.config/toolway/settings.json:1: not today
    hint: mend the hook at [HOME]/.config/toolway/settings.json:1, or take it out; `toolway doctor` lists all hooks
    "#);
    let told: Value = serde_json::from_str(&home.read("told.json")).unwrap();
    assert_eq!(told["tool_name"], "ReadMcpResource");
    assert_eq!(told["server"], "kit");
    assert_eq!(
        told["tool_input"],
        json!({ "server": "kit", "uri": "kit://text" })
    );
}

fn scripted(script: Script) -> Value {
    ScriptedServer::new(script).entry()
}

/// A repository that brings a server of this name, approved.
fn repository(home: &TempHome, name: &str, entry: Value) {
    let path = home.project().join(".mcp.json");
    home.write(&path, servers(&[(name, entry)]));
    toolway(home, &["approve", name, "--yes"]).expect_code(0);
}

fn marked(mark: &str) -> Value {
    let mut entry = scripted(Script::default());
    entry["env"] = json!({ "MARK": mark });
    entry
}

const ECHO: [&str; 5] = ["call", "github", "echo", "text=hi", "--ask"];

fn echo(home: &TempHome) -> CommandOutput {
    toolway(home, &ECHO)
}

#[test]
fn sec_57_a_repositorys_server_does_not_inherit_what_was_allowed_for_the_persons_own() {
    let own = scripted(Script::default());
    let home = home(&[("github", own)], &json!({ "allow": ["mcp__github"] }));
    assert_eq!(echo(&home).expect_code(0).stdout, "hi\n");
    repository(&home, "github", marked("one"));
    assert_snapshot!(echo(&home), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: `echo` of server `github` was refused because a person must be asked and there is none: `github` here comes from [PROJECT]/.mcp.json:3, and the rule `mcp__github` in [HOME]/.config/toolway/settings.json:11 was given for another server of that name
    hint: run it on a terminal, or let your rules count for it as it is now with `toolway approve github --with-rules`
    "#);
    assert_snapshot!(toolway(&home, &["permissions"]), @r#"
    exit: 0
    ----- stdout
    LIST   RULE         SCOPE  PLACE
    allow  mcp__github  user   [HOME]/.config/toolway/settings.json:11
    mode default: without a rule you are asked
    pins ask: what happens when a tool's definition changed
    ----- stderr
    note: `github` here comes from [PROJECT]/.mcp.json:3, and `mcp__github` in [HOME]/.config/toolway/settings.json:11 was given for another server of that name
    hint: to let your rules count for `github` as it is now: `toolway approve github --with-rules`
    "#);
    assert_snapshot!(toolway(&home, &["permissions", "github", "echo"]), @r#"
    exit: 0
    ----- stdout
    mcp__github__echo: asked: `github` here comes from [PROJECT]/.mcp.json:3, and `mcp__github` in [HOME]/.config/toolway/settings.json:11 was given for another server of that name
    ----- stderr
    "#);
    // What a person types themselves is theirs.
    let typed = ["call", "github", "echo", "text=hi"];
    assert_eq!(toolway(&home, &typed).expect_code(0).stdout, "hi\n");
    // The way out, for this definition.
    let confirmed = toolway(&home, &["approve", "github", "--with-rules", "--yes"]).expect_code(0);
    assert!(
        confirmed
            .stderr
            .contains("from now on `mcp__github` in [HOME]/.config/toolway/settings.json"),
        "{confirmed}"
    );
    assert_eq!(echo(&home).expect_code(0).stdout, "hi\n");
    // Another definition begins anew, though it was approved.
    repository(&home, "github", marked("two"));
    echo(&home).expect_code(6);
    // And the person's own server is as allowed as ever.
    std::fs::remove_file(home.project().join(".mcp.json")).unwrap();
    assert_eq!(echo(&home).expect_code(0).stdout, "hi\n");
}

#[test]
fn sec_57_always_for_a_repositorys_server_is_kept_for_its_definition() {
    let home = home(&[], &json!({}));
    repository(&home, "github", marked("one"));
    let (shown, out) = typing(&home, &ECHO, &["t"]);
    assert_snapshot!(shown, @r#"
    Tool `echo` of server `github` wants to run with
      text: "hi"
    No rule speaks of it.
    Run it? y once, s for this session, t always this tool, all always this server, n no (n and a reason) [n] t
    "#);
    assert_eq!(out, "hi\nexit 0");
    assert_eq!(echo(&home).expect_code(0).stdout, "hi\n");
    assert_snapshot!(toolway(&home, &["permissions"]), @r#"
    exit: 0
    ----- stdout
    LIST   RULE               SCOPE    PLACE
    allow  mcp__github__echo  project  [HOME]/.config/toolway/approvals.json:1
    mode default: without a rule you are asked
    pins ask: what happens when a tool's definition changed
    ----- stderr
    "#);
    // Neither the person's servers of that name nor another definition get anything of it.
    let settings = home.read(home.config_home().join("settings.json"));
    assert!(!settings.contains("mcp__github"), "{settings}");
    repository(&home, "github", marked("two"));
    assert_snapshot!(echo(&home), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: `echo` of server `github` was refused because a person must be asked and there is none
    hint: run it on a terminal, where you can allow it for this server
    "#);
}

#[test]
fn sec_57_rules_that_restrict_and_rules_that_name_nobody_count_for_every_server() {
    for (rules, code) in [
        (json!({ "deny": ["mcp__github"], "allow": ["*"] }), 6),
        (json!({ "allow": ["*"] }), 0),
        (json!({ "allow": ["mcp__*__echo"] }), 0),
        (json!({ "allow": ["mcp__git*"] }), 6),
        (json!({ "allow": ["mcp__github__echo"] }), 6),
    ] {
        let home = home(&[], &rules);
        repository(&home, "github", marked("one"));
        let output = echo(&home);
        assert_eq!(output.code, Some(code), "{rules}: {output}");
    }
}

#[test]
fn sec_57_what_an_organisation_allows_by_name_does_not_count_for_a_repositorys_server() {
    let home = home(&[], &json!({}));
    let managed = json!({ "permissions": { "allow": ["mcp__github"] } });
    home.write(
        home.system().join("managed-settings.json"),
        managed.to_string(),
    );
    repository(&home, "github", marked("one"));
    echo(&home).expect_code(6);
}

/// A pattern can have a server's name in it without beginning with `mcp__`.
#[test]
fn sec_57_no_pattern_follows_a_name_that_a_repository_chose() {
    for (rule, code) in [
        ("*github__echo", 6),
        ("*__github__*", 6),
        ("mcp_*github__*", 6),
        ("mcp*github*", 6),
        ("*", 0),
    ] {
        let home = home(&[], &json!({ "allow": [rule] }));
        let entry = ScriptedServer::new(Script::default()).entry();
        home.write(".mcp.json", servers(&[("github", entry)]));
        toolway(&home, &["approve", "github", "--yes"]).expect_code(0);
        let words = ["call", "github", "echo", "text=hi", "--ask"];
        let output = toolway(&home, &words);
        assert_eq!(output.code, Some(code), "{rule}: {output}");
    }
}
