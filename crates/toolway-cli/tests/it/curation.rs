//! What a server's entry changes about its tools, as people see it.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::support::{servers, toolway};

fn home_with_entry(changes: &Value) -> TempHome {
    let home = TempHome::new();
    let mut entry = ScriptedServer::new(Script::default()).entry();
    for (key, value) in changes.as_object().unwrap() {
        entry[key] = value.clone();
    }
    home.write_settings(servers(&[("chaos", entry)]));
    home
}

fn curated() -> TempHome {
    home_with_entry(&json!({
        "includeTools": ["e*", "count", "slow"],
        "excludeTools": ["slow"],
        "alias": {"count": "calls"},
        "tools": {"echo": {"description": "Repeats what it is told"}},
    }))
}

#[test]
fn tools_shows_what_is_offered_and_with_all_also_what_is_not() {
    let home = curated();
    assert_snapshot!(toolway(&home, &["tools"]), @"
    exit: 0
    ----- stdout
    NAME               DESCRIPTION
    mcp__chaos__calls  How often this process was called
    mcp__chaos__echo   Repeats what it is told
    ----- stderr
    ");
    assert_snapshot!(toolway(&home, &["tools", "--all"]), @"
    exit: 0
    ----- stdout
    NAME                 OFFERED  DESCRIPTION
    mcp__chaos__calls    yes      How often this process was called
    mcp__chaos__echo     yes      Repeats what it is told
    mcp__chaos__crash    no       `includeTools` does not have it ([HOME]/.config/toolway/settings.json:9)
    mcp__chaos__fail     no       `includeTools` does not have it ([HOME]/.config/toolway/settings.json:9)
    mcp__chaos__hang     no       `includeTools` does not have it ([HOME]/.config/toolway/settings.json:9)
    mcp__chaos__huge     no       `includeTools` does not have it ([HOME]/.config/toolway/settings.json:9)
    mcp__chaos__inspect  no       `includeTools` does not have it ([HOME]/.config/toolway/settings.json:9)
    mcp__chaos__slow     no       `excludeTools` has `slow` ([HOME]/.config/toolway/settings.json:15)
    ----- stderr
    ");
    let all = toolway(&home, &["tools", "--all", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(all["tools"][0]["name"], "mcp__chaos__calls");
    assert_eq!(all["tools"][0]["tool"], "count");
    let slow = all["leftOut"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["tool"] == "slow")
        .unwrap();
    assert_eq!(slow["server"], "chaos");
    assert_eq!(slow["description"], "Answers after a while");
}

#[test]
fn a_call_goes_by_alias_or_own_name_and_not_to_what_is_left_out() {
    let home = curated();
    toolway(&home, &["call", "mcp__chaos__calls"]).expect_code(0);
    toolway(&home, &["call", "chaos", "count"]).expect_code(0);
    assert_snapshot!(toolway(&home, &["call", "chaos", "slow"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `slow` of server `chaos` is not offered: `excludeTools` has `slow` ([HOME]/.config/toolway/settings.json:15)
    hint: change the entry, or see what it leaves out with `toolway tools chaos --all`
    ");
}

#[test]
fn a_pattern_that_matches_nothing_is_named_with_its_line() {
    let home = home_with_entry(&json!({ "excludeTools": ["delete_*"] }));
    let output = toolway(&home, &["tools"]).expect_code(0);
    assert!(
        output.stderr.contains(
            "warning: server `chaos`: `delete_*` in `excludeTools` matches none of its tools ("
        ),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("settings.json:"),
        "{}",
        output.stderr
    );
}

#[test]
fn instructions_are_shown_by_server_and_can_be_dropped() {
    let home = home_with_entry(&json!({}));
    assert_snapshot!(toolway(&home, &["tools", "--instructions"]), @"
    exit: 0
    ----- stdout
    ## chaos
    
    > Does what its script says.
    ----- stderr
    ");
    assert_eq!(
        toolway(&home, &["tools", "--instructions", "--json"]).json(),
        json!({ "instructions": [{ "server": "chaos", "text": "Does what its script says." }] })
    );
    let home = home_with_entry(&json!({ "instructions": false }));
    assert_snapshot!(toolway(&home, &["tools", "--instructions"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no instructions
    ");
}

#[test]
fn sec_32_instructions_that_policy_drops_are_shown_nowhere() {
    const WORDS: &str = "Does what its script says";
    let home = home_with_entry(&json!({}));
    let commands: [&[&str]; 8] = [
        &["tools", "--instructions"],
        &["tools", "--instructions", "--json"],
        &["tools", "--json"],
        &["tools", "--format", "anthropic"],
        &["list", "--json"],
        &["get", "chaos"],
        &["explain", "chaos"],
        &["doctor"],
    ];
    let showing = |home: &TempHome| {
        let shows = |command: &&&[&str]| {
            let output = toolway(home, command).expect_code(0);
            output.stdout.contains(WORDS) || output.stderr.contains(WORDS)
        };
        commands.iter().filter(shows).count()
    };
    assert_eq!(showing(&home), 2, "with no policy they are seen");
    for policy in [
        json!({ "allowedMcpInstructions": [{ "serverName": "other" }] }),
        json!({ "deniedMcpInstructions": [{ "serverName": "ch*" }] }),
    ] {
        home.write(
            home.system().join("managed-settings.json"),
            policy.to_string(),
        );
        assert_eq!(showing(&home), 0, "{policy}");
    }
    assert_snapshot!(toolway(&home, &["tools", "--instructions"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no instructions
    ");
    let explained = toolway(&home, &["explain", "chaos"]).expect_code(0);
    assert!(
        explained.stdout.contains(
            "  its instructions are dropped: denied by `{\"serverName\":\"ch*\"}` in \
             `deniedMcpInstructions` ("
        ),
        "{}",
        explained.stdout
    );
    let explained = toolway(&home, &["explain", "chaos", "--json"]).json();
    let reason = explained["entries"][0]["instructionsDropped"].as_str();
    assert!(reason.unwrap().contains("managed-settings.json:1"));
}

#[test]
fn sec_32_a_slip_in_the_lists_about_instructions_is_named_with_its_line() {
    let home = home_with_entry(&json!({}));
    home.write(
        home.system().join("managed-settings.json"),
        "{\n  \"allowedMcpInstructions\": false\n}",
    );
    assert_snapshot!(toolway(&home, &["tools", "--instructions"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    error: [SYSTEM]/managed-settings.json:2: nothing may connect, because the policy in `[SYSTEM]/managed-settings.json` is unusable: `allowedMcpInstructions` must be an array of rules, not a boolean
    hint: ask the administrator of this machine to mend `[SYSTEM]/managed-settings.json`
    no instructions
    ");
}

#[test]
fn the_pool_is_printed_as_each_provider_takes_it() {
    let home = home_with_entry(&json!({ "includeTools": ["echo"], "alias": {"echo": "say"} }));
    let printed = |format: &str| {
        let output = toolway(&home, &["tools", "--format", format]).expect_code(0);
        assert_eq!(output.stderr, "", "{format}");
        output.json()
    };
    let tools = toolway(&home, &["tools", "--json"]).expect_code(0).json();
    let (description, schema) = (
        tools["tools"][0]["description"].clone(),
        tools["tools"][0]["inputSchema"].clone(),
    );
    let name = "mcp__chaos__say";
    assert_eq!(
        printed("anthropic"),
        json!([{ "name": name, "description": description, "input_schema": schema }])
    );
    assert_eq!(
        printed("openai"),
        json!([{ "type": "function", "function":
            { "name": name, "description": description, "parameters": schema } }])
    );
    assert_eq!(
        printed("openai-responses"),
        json!([{ "type": "function", "name": name, "description": description,
            "parameters": schema, "strict": false }])
    );
    let gemini = printed("gemini");
    let declared = &gemini[0]["functionDeclarations"][0];
    assert_eq!(declared["name"], name);
    assert_eq!(declared["parameters"]["type"], "OBJECT");
    assert_eq!(declared["parameters"]["required"], json!(["text"]));
    assert_eq!(
        declared["parameters"]["properties"]["text"]["type"],
        "STRING"
    );
}
