//! `permissions allow|ask|deny|remove`: rules changed from the command line.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, Script, TempHome};

use crate::support::{home_with, toolway};

fn rules(home: &TempHome, words: &[&str]) -> CommandOutput {
    toolway(home, &[&["permissions"], words].concat())
}

fn settings(home: &TempHome) -> Value {
    let text = home.read(home.config_home().join("settings.json"));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_rule_is_written_moved_and_taken_out_with_its_scope_and_file_named() {
    let home = home_with(Script::default());
    assert_snapshot!(rules(&home, &["allow", "chaos", "echo"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    `mcp__chaos__echo` is in `permissions.allow` of the user scope: [HOME]/.config/toolway/settings.json:12
    ");
    toolway(&home, &["call", "chaos", "echo", "text=hi", "--ask"]).expect_code(0);
    assert_snapshot!(rules(&home, &["allow", "mcp__chaos__echo"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    `mcp__chaos__echo` is in `permissions.allow` of the user scope: [HOME]/.config/toolway/settings.json:12 (no change)
    ");
    assert_snapshot!(rules(&home, &["deny", "chaos.echo"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    `mcp__chaos__echo` is in `permissions.deny` of the user scope, no longer in `permissions.allow`: [HOME]/.config/toolway/settings.json:13
    ");
    toolway(&home, &["call", "chaos", "echo", "text=hi"]).expect_code(6);
    assert_eq!(
        settings(&home)["permissions"],
        json!({ "allow": [], "deny": ["mcp__chaos__echo"] })
    );
    assert_snapshot!(rules(&home, &["ask", "mcp__chaos__*(@destructive)", "-s", "local"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    `mcp__chaos__*(@destructive)` is in `permissions.ask` of the local scope: [PROJECT]/.toolway/settings.local.json:3
    ");
    assert_snapshot!(rules(&home, &[]), @r"
    exit: 0
    ----- stdout
    LIST  RULE                         SCOPE  PLACE
    deny  mcp__chaos__echo             user   [HOME]/.config/toolway/settings.json:11
    ask   mcp__chaos__*(@destructive)  local  [PROJECT]/.toolway/settings.local.json:2
    mode default: without a rule you are asked
    pins ask: what happens when a tool's definition changed
    ----- stderr
    ");
    assert_snapshot!(rules(&home, &["remove", "chaos", "echo"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    `mcp__chaos__echo` is no longer in `permissions.deny` of the user scope: [HOME]/.config/toolway/settings.json:13
    ");
    assert_snapshot!(rules(&home, &["remove", "mcp__chaos__*(@destructive)", "-s", "user"]), @r"
    exit: 3
    ----- stdout
    ----- stderr
    error: `mcp__chaos__*(@destructive)` is in no list of the user scope
    hint: it stands in the local scope: `toolway permissions remove 'mcp__chaos__*(@destructive)' -s local`
    ");
    assert_snapshot!(rules(&home, &["remove", "mcp__chaos__*(@destructive)"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    `mcp__chaos__*(@destructive)` is no longer in `permissions.ask` of the local scope: [PROJECT]/.toolway/settings.local.json:3
    ");
    assert_snapshot!(rules(&home, &["remove", "mcp__chaos__echo"]), @r"
    exit: 3
    ----- stdout
    ----- stderr
    error: no list of rules has `mcp__chaos__echo`
    hint: see the rules with `toolway permissions`
    ");
}

#[test]
fn a_comment_stays_where_a_rule_is_added_or_taken_out() {
    let home = TempHome::new();
    let text = "{\n  \"permissions\": {\n    // never\n    \"deny\": [\n      \"mcp__a\", // not even a\n      \"mcp__b\"\n    ]\n  }\n}\n";
    home.write_settings(text);
    rules(&home, &["deny", "mcp__c"]).expect_code(0);
    rules(&home, &["remove", "mcp__b"]).expect_code(0);
    assert_snapshot!(home.read(home.config_home().join("settings.json")), @r#"
    {
      "permissions": {
        // never
        "deny": [
          "mcp__a", // not even a
          "mcp__c"
        ]
      }
    }
    "#);
}

#[test]
fn what_cannot_be_a_rule_is_not_written() {
    let home = home_with(Script::default());
    let before = home.read(home.config_home().join("settings.json"));
    assert_snapshot!(rules(&home, &["deny", "mcp__chaos__echo("]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: `mcp__chaos__echo(` cannot be read as a rule: a `(` is not closed; nothing was written
    hint: write `mcp__server`, `mcp__server__*`, `mcp__server__tool`, or `mcp__server__tool(argument:pattern)`
    ");
    assert_snapshot!(rules(&home, &["allow", "choas.echo"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: `choas.echo` names no tool of a configured server; nothing was written
    hint: did you mean `toolway permissions allow mcp__chaos__echo`?
    ");
    assert_snapshot!(rules(&home, &["allow", "echo"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: `echo` names no server, and would allow nothing; nothing was written
    hint: name the server too: `toolway permissions allow <server> echo`
    ");
    assert_snapshot!(rules(&home, &["allow", "mcp__*(@readOnly)"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: `mcp__*(@readOnly)` cannot be read as a rule: an annotation is only a server's claim, and no server is named; nothing was written
    hint: name the server whose annotations you believe: `mcp__server__*(@readOnly)`
    ");
    assert_snapshot!(rules(&home, &["deny", "mcp__chaos", "-s", "project"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: a repository's `.mcp.json` holds no permission rules
    hint: use `-s local` for this project or `-s user` for every project
    ");
    assert_eq!(home.read(home.config_home().join("settings.json")), before);
    // For a server of another project it is as it should be.
    assert_snapshot!(rules(&home, &["deny", "mcp__elsewhere"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    `mcp__elsewhere` is in `permissions.deny` of the user scope: [HOME]/.config/toolway/settings.json:12
    note: no server named `elsewhere` is configured here
    ");
}

#[test]
fn what_stands_against_a_rule_is_said() {
    let home = home_with(Script::default());
    let managed = json!({ "permissions": { "deny": ["mcp__chaos__echo"] } });
    home.write(
        home.system().join("managed-settings.json"),
        managed.to_string(),
    );
    assert_snapshot!(rules(&home, &["allow", "chaos", "echo"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    `mcp__chaos__echo` is in `permissions.allow` of the user scope: [HOME]/.config/toolway/settings.json:12
    warning: `mcp__chaos__echo` also stands in `permissions.deny` at [SYSTEM]/managed-settings.json:1, which beats it
    ");
    assert_snapshot!(rules(&home, &["remove", "mcp__chaos__echo"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    `mcp__chaos__echo` is no longer in `permissions.allow` of the user scope: [HOME]/.config/toolway/settings.json:12
    note: `mcp__chaos__echo` stands in `permissions.deny` of the managed scope at [SYSTEM]/managed-settings.json:1, which this does not change
    ");
    assert_snapshot!(rules(&home, &["remove", "mcp__chaos__echo"]), @r"
    exit: 6
    ----- stdout
    ----- stderr
    error: `mcp__chaos__echo` stands in `permissions.deny` of the managed scope at [SYSTEM]/managed-settings.json:1, which this does not change
    hint: ask the administrator of this machine
    ");
}

#[test]
fn slips_of_the_pen_are_noticed() {
    let home = home_with(Script::default());
    assert_snapshot!(rules(&home, &["alow", "mcp__chaos"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: there is no server `alow`
    hint: did you mean `toolway permissions allow mcp__chaos`?
    ");
    for words in [
        &["permissions", "choas", "echo"][..],
        &["permissions", "mcp__choas__echo"],
        &["permissions", "choas.echo"],
        &["permissions", "allow", "choas", "echo"],
        &["explain", "choas"],
    ] {
        insta::allow_duplicates!(assert_snapshot!(toolway(&home, words), @r"
        exit: 3
        ----- stdout
        ----- stderr
        error: no server named `choas` is configured
        hint: did you mean `chaos`?
        "));
    }
    assert_snapshot!(rules(&home, &["chaos"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: `chaos` names no tool
    hint: name one of its tools: `toolway permissions chaos <tool>`
    ");
    assert_snapshot!(rules(&home, &["elsewhere", "x"]), @r"
    exit: 0
    ----- stdout
    mcp__elsewhere__x: asked by the mode `default`: no rule names it
    ----- stderr
    note: no server named `elsewhere` is configured here; this is what rules would say
    ");
    for (slip, near) in [("permision", "permissions"), ("lists", "list")] {
        let said = toolway(&home, &["man", slip]).expect_code(2);
        let expected = format!(
            "error: there is no command `{slip}`\nhint: did you mean `toolway man {near}`?\n"
        );
        assert_eq!(said.stderr, expected);
    }
}

/// What a repository committed is trusted as a whole or not at all.
#[test]
fn sec_06_no_rule_that_allows_is_written_where_it_would_not_count() {
    let home = home_with(Script::default());
    let committed = r#"{ "permissions": { "allow": ["mcp__other"] } }"#;
    home.write(".toolway/settings.local.json", committed);
    assert_snapshot!(rules(&home, &["allow", "chaos", "echo", "-s", "local"]), @r"
    exit: 6
    ----- stdout
    ----- stderr
    error: `[PROJECT]/.toolway/settings.local.json` has what you did not approve, so no rule that allows counts there; look at it with `toolway approve --local-settings`, or keep the rule in the user scope
    hint: nothing was written
    ");
    assert_eq!(home.read(".toolway/settings.local.json"), committed);
    rules(&home, &["deny", "chaos", "echo", "-s", "local"]).expect_code(0);
    toolway(&home, &["call", "chaos", "echo", "text=hi"]).expect_code(6);
}
