//! Mode `auto`: a classifier decides what no rule does, and nothing else.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, Script, ScriptedServer, TempHome};

use crate::permission::typing;
use crate::reaching::offering;
use crate::support::toolway;

/// A home with the server `chaos`, mode `auto`, and these further `permissions`.
fn home(permissions: Value) -> TempHome {
    let home = TempHome::new();
    let chaos = ScriptedServer::new(Script::default()).entry();
    write(&home, &json!({ "chaos": chaos }), permissions);
    home
}

fn write(home: &TempHome, servers: &Value, mut permissions: Value) {
    permissions["defaultMode"] = json!("auto");
    let settings = json!({ "mcpServers": servers, "permissions": permissions });
    home.write_settings(serde_json::to_string_pretty(&settings).unwrap());
}

/// Calls as an agent does, with nobody to ask.
fn ask(home: &TempHome) -> CommandOutput {
    toolway(home, &["call", "chaos", "echo", "text=hi", "--ask"])
}

fn saying(said: &str) -> Value {
    json!({ "classifier": format!("echo '{said}'") })
}

/// Who decided the last call, and what the classifier said of it, by the audit.
fn noted(home: &TempHome) -> (Value, Value) {
    let lines = toolway(home, &["audit", "--json"]).expect_code(0).stdout;
    let last = lines.lines().last().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    (last["by"]["kind"].clone(), last["classified"].clone())
}

#[test]
fn a_classifier_allows_and_denies_and_the_audit_has_its_word() {
    let home = home(saying(
        r#"{"decision": "allow", "reason": "it only echoes"}"#,
    ));
    assert_snapshot!(ask(&home), @"
    exit: 0
    ----- stdout
    hi
    ----- stderr
    ");
    let (by, classified) = noted(&home);
    assert_eq!(by, "classifier");
    assert_eq!(classified["verdict"], "allow");
    assert_eq!(classified["reason"], "it only echoes");
    let home = self::home(saying(
        r#"{"decision": "deny", "reason": "not on a Friday"}"#,
    ));
    assert_snapshot!(ask(&home), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: `echo` of server `chaos` was refused by the classifier `echo '{"decision": "deny", "reason": "not on a Friday"}'` in [HOME]/.config/toolway/settings.json:11: not on a Friday
    hint: if it should run, allow it with `toolway permissions allow mcp__chaos__echo`: the classifier is not asked about what a rule allows
    "#);
    let (by, classified) = noted(&home);
    assert_eq!(
        (by, &classified["verdict"]),
        (json!("classifier"), &json!("deny"))
    );
    // What a person types is that person's yes.
    toolway(&home, &["call", "chaos", "echo", "text=hi"]).expect_code(0);
}

#[test]
fn a_classifier_that_asks_or_fails_or_talks_nonsense_has_a_person_asked() {
    for (classifier, verdict) in [
        (json!(r#"echo '{"decision": "ask"}'"#), "ask"),
        (json!("echo allow"), "failed"),
        (
            json!(r#"echo '{"decision": "deny", "decision": "allow"}'"#),
            "failed",
        ),
        (json!(r#"echo '{"decision": "allow"}'; exit 1"#), "failed"),
        (json!(r#"echo '{"decision": "allow"}'; exit 2"#), "failed"),
        (json!("/nonexistent/classifier"), "failed"),
        (json!("true"), "failed"),
        (
            json!({ "type": "command", "command": "sleep 60", "timeout": 0.2 }),
            "failed",
        ),
        (
            json!({ "type": "mcp_tool", "server": "nobody", "tool": "judge" }),
            "failed",
        ),
        (json!(7), "failed"),
    ] {
        let home = home(json!({ "classifier": classifier }));
        let output = ask(&home).expect_code(6);
        assert!(output.stdout.is_empty(), "{classifier}: {output}");
        assert_eq!(noted(&home).1["verdict"], verdict, "{classifier}: {output}");
    }
    let home = home(saying(r#"{"decision": "ask", "reason": "I am not sure"}"#));
    assert_snapshot!(ask(&home), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: `echo` of server `chaos` was refused because the classifier `echo '{"decision": "ask", "reason": "I am not sure"}'` in [HOME]/.config/toolway/settings.json:11 wants a person asked and there is nobody to ask: I am not sure
    hint: run it on a terminal, where you are asked
    "#);
    let words = ["call", "chaos", "echo", "text=hi", "--ask"];
    let (shown, out) = typing(&home, &words, &["y"]);
    assert!(
        shown.contains("The classifier `echo ") && shown.contains("asks: I am"),
        "{shown}"
    );
    assert!(out.contains("hi"), "{out}");
    assert_eq!(noted(&home).0, "person");
}

#[test]
fn sec_a_classifier_never_stands_against_a_rule() {
    let home = TempHome::new();
    let ran = home.home().join("ran");
    let line = format!(
        "touch '{}'; echo '{{\"decision\": \"allow\"}}'",
        ran.display()
    );
    let chaos = json!({ "chaos": ScriptedServer::new(Script::default()).entry() });
    for list in ["deny", "ask"] {
        let permissions = json!({ list: ["mcp__chaos__echo"], "classifier": line });
        write(&home, &chaos, permissions);
        let output = ask(&home).expect_code(6);
        assert!(output.stderr.contains("`mcp__chaos__echo`"), "{output}");
        assert!(!ran.exists(), "it was not even asked: {output}");
    }
    // Nor is it asked where a rule allows.
    write(
        &home,
        &chaos,
        json!({ "allow": ["mcp__chaos"], "classifier": line }),
    );
    ask(&home).expect_code(0);
    assert!(!ran.exists());
}

#[test]
fn a_classifier_is_told_the_call_its_rules_and_its_annotations() {
    let home = TempHome::new();
    let seen = home.home().join("seen.json");
    let line = format!(
        "pwd > '{0}.cwd'; cat > '{0}'; echo '{{\"decision\": \"allow\"}}'",
        seen.display()
    );
    let tools = json!([{
        "name": "drop",
        "title": "Drop it",
        "description": "Drops a table",
        "inputSchema": { "type": "object" },
        "annotations": { "destructiveHint": true, "readOnlyHint": false },
    }]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tools_server.py");
    let db = json!({ "command": "python3", "args": ["-u", script, tools.to_string()] });
    let rule = "mcp__db__drop(table:old_*)";
    write(
        &home,
        &json!({ "db": db }),
        json!({ "allow": [rule, "mcp__other"], "classifier": line }),
    );
    toolway(&home, &["call", "db", "drop", "table=new", "--ask"]).expect_code(0);
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&seen).unwrap()).unwrap();
    assert_eq!(told["server"], "db");
    assert_eq!(told["tool"], "drop");
    assert_eq!(told["tool_name"], "mcp__db__drop");
    assert_eq!(told["tool_input"], json!({ "table": "new" }));
    assert_eq!(told["description"], "Drops a table");
    assert_eq!(
        told["annotations"],
        json!({ "destructiveHint": true, "readOnlyHint": false })
    );
    assert_eq!(told["rules"].as_array().unwrap().len(), 1);
    assert_eq!(told["rules"][0]["rule"], rule);
    assert_eq!(told["rules"][0]["list"], "allow");
    assert_eq!(told["brought"], false);
    // It runs where no repository chooses what it finds.
    let cwd = std::fs::read_to_string(format!("{}.cwd", seen.display())).unwrap();
    assert_ne!(cwd.trim(), home.project().display().to_string());
}

#[test]
fn a_tool_may_be_the_classifier_but_not_that_of_a_repository() {
    let judging = |decision: &str| {
        let text = json!({ "decision": decision }).to_string();
        let answer = json!({ "content": [{ "type": "text", "text": text }] });
        offering(
            &json!([{ "name": "judge", "inputSchema": { "type": "object" }, "answer": answer }]),
        )
    };
    let home = TempHome::new();
    let chaos = ScriptedServer::new(Script::default()).entry();
    let classifier = json!({
        "type": "mcp_tool", "server": "guard", "tool": "judge",
        "input": { "call": "${tool_name}", "arguments": "${tool_input}" },
    });
    write(
        &home,
        &json!({ "chaos": chaos, "guard": judging("allow") }),
        json!({ "classifier": classifier }),
    );
    ask(&home).expect_code(0);
    // A repository's server of that name comes before the person's own, once it is approved.
    let theirs = json!({ "mcpServers": { "guard": judging("allow") } });
    home.write(".mcp.json", theirs.to_string());
    toolway(&home, &["approve", "guard", "--yes"]).expect_code(0);
    let output = ask(&home).expect_code(6);
    assert!(
        output
            .stderr
            .contains("a repository's server decides nothing"),
        "{output}"
    );
    // Nobody is told that it decides.
    assert_snapshot!(toolway(&home, &["permissions"]), @r"
    exit: 0
    ----- stdout
    mode auto: without a rule you are asked, as in default
    classifier `guard.judge` in [HOME]/.config/toolway/settings.json:19 decides nothing: `guard` here comes from [PROJECT]/.mcp.json:1
    pins ask: what happens when a tool's definition changed
    ----- stderr
    ");
    assert_snapshot!(toolway(&home, &["permissions", "chaos", "echo"]), @r"
    exit: 0
    ----- stdout
    mcp__chaos__echo: asked by the mode `auto`, whose classifier `guard.judge` decides nothing (`guard` here comes from [PROJECT]/.mcp.json:1): no rule names it
    ----- stderr
    ");
    let listed = toolway(&home, &["permissions", "--json"]).json();
    assert_eq!(listed["classifier"]["decides"], false);
    let judged = toolway(&home, &["permissions", "chaos", "echo", "--json"]).json();
    assert_eq!(judged["decision"], "asked");
}

#[test]
fn only_the_person_or_their_organisation_names_a_classifier() {
    let home = home(json!({}));
    let theirs = json!({ "permissions": {
        "defaultMode": "auto",
        "classifier": "echo '{\"decision\": \"allow\"}'",
    }});
    home.write(".toolway/settings.local.json", theirs.to_string());
    ask(&home).expect_code(6);
    let approved = toolway(&home, &["approve", "--local-settings", "--yes"]);
    ask(&home).expect_code(6);
    let told = toolway(&home, &["doctor"]);
    assert!(
        told.stdout
            .contains("`permissions.classifier` is ignored in local scope")
            || told
                .stderr
                .contains("`permissions.classifier` is ignored in local scope"),
        "{approved} {told}"
    );
}

#[test]
fn auto_without_a_classifier_says_that_it_is_default() {
    let home = home(json!({}));
    assert_snapshot!(toolway(&home, &["permissions"]), @"
    exit: 0
    ----- stdout
    mode auto: without a rule you are asked, as in default: no classifier is named
    pins ask: what happens when a tool's definition changed
    ----- stderr
    ");
    assert_snapshot!(toolway(&home, &["permissions", "chaos", "echo"]), @"
    exit: 0
    ----- stdout
    mcp__chaos__echo: asked by the mode `auto`, which has no classifier: no rule names it
    ----- stderr
    ");
    assert_snapshot!(ask(&home), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    warning: mode `auto` has no classifier to decide, so you are asked as in mode `default`
    error: `echo` of server `chaos` was refused because a person must be asked and there is none
    hint: run it on a terminal, or allow it with `toolway permissions allow mcp__chaos__echo`
    "#);
    let told = toolway(&home, &["doctor"]).expect_code(0);
    assert!(
        format!("{told}").contains("mode `auto` has no classifier to decide"),
        "{told}"
    );
    let (_, out) = typing(
        &home,
        &["call", "chaos", "echo", "text=hi", "--ask"],
        &["y"],
    );
    assert!(out.contains("hi"), "{out}");
    let classified = self::home(saying(r#"{"decision": "allow"}"#));
    assert_snapshot!(toolway(&classified, &["permissions"]), @r#"
    exit: 0
    ----- stdout
    mode auto: without a rule the classifier decides
    classifier `echo '{"decision": "allow"}'` in [HOME]/.config/toolway/settings.json:11
    pins ask: what happens when a tool's definition changed
    ----- stderr
    "#);
    assert_snapshot!(toolway(&classified, &["permissions", "chaos", "echo"]), @r#"
    exit: 0
    ----- stdout
    mcp__chaos__echo: classified by `echo '{"decision": "allow"}'` in the mode `auto`: no rule names it
    ----- stderr
    "#);
}
