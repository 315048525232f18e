//! `audit`: which calls are written down, what is never in it, and what is shown of it.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::support::{command, home_with, toolway};

fn records(home: &TempHome, args: &[&str]) -> Vec<Value> {
    let output = toolway(home, &[&["audit", "--json"], args].concat()).expect_code(0);
    let lines = output.stdout.lines();
    lines
        .map(|line| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            record["time"] = json!("then");
            record["process"] = json!(0);
            record["milliseconds"] = json!(0);
            record
        })
        .collect()
}

#[test]
fn every_call_is_written_down_with_who_allowed_it_and_what_became_of_it() {
    let home = home_with(Script::default());
    toolway(&home, &["call", "chaos", "echo", "text=written"]).expect_code(0);
    toolway(&home, &["call", "chaos", "echo"]).expect_code(2);
    toolway(&home, &["call", "chaos", "ehco", "text=x"]).expect_code(2);
    let shown: Vec<String> = records(&home, &[])
        .iter()
        .map(|record| format!("{record}\n"))
        .collect();
    assert!(!shown.concat().contains("written"));
    assert_snapshot!(shown.concat(), @r#"
    {"time":"then","process":0,"who":"cli","server":"chaos","tool":"echo","decision":"allowed","by":{"kind":"typed"},"milliseconds":0,"sent":18,"received":70,"outcome":"answered"}
    {"time":"then","process":0,"who":"cli","server":"chaos","tool":"echo","milliseconds":0,"sent":2,"outcome":"invalid"}
    {"time":"then","process":0,"who":"cli","server":"chaos","tool":"ehco","milliseconds":0,"sent":12,"outcome":"unknown"}
    "#);
    let answered = records(&home, &["--outcome", "answered", "--tool", "echo"]);
    assert_eq!(answered.len(), 1);
    assert!(records(&home, &["other"]).is_empty());
    assert_eq!(
        records(&home, &["chaos", "--since", "1h", "-n", "2"]).len(),
        2
    );
}

#[test]
fn a_table_is_shown_to_people() {
    let home = home_with(Script::default());
    let nothing = toolway(&home, &["audit"]).expect_code(0);
    assert_eq!(nothing.stderr, "nothing was called yet\n");
    toolway(&home, &["call", "chaos", "echo", "text=hi"]).expect_code(0);
    let output = toolway(&home, &["audit"]).expect_code(0);
    let [head, line] = output.stdout.lines().collect::<Vec<_>>()[..] else {
        panic!("{}", output.stdout)
    };
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_snapshot!(words(head), @"TIME WHO SERVER TOOL OUTCOME TOOK SIZE DECIDED");
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(cells[1..5], ["cli", "chaos", "echo", "answered"]);
    assert_eq!(cells[7], "typed");
}

#[test]
fn arguments_and_results_are_kept_when_asked_for_and_nothing_when_switched_off() {
    let home = home_with(Script::default());
    let call = |value: &str| {
        let args = ["call", "chaos", "echo", "text=written"];
        let mut command = command(&home, &args);
        home.run(command.env("TOOLWAY_AUDIT", value)).expect_code(0);
    };
    call("off");
    assert!(records(&home, &[]).is_empty());
    call("arguments");
    call("results");
    let [arguments, results] = &records(&home, &[])[..] else {
        panic!("two calls")
    };
    assert_eq!(arguments["arguments"]["text"], "written");
    assert_eq!(arguments.get("result"), None);
    assert_eq!(results["result"]["content"][0]["text"], "written");
}

#[test]
fn what_was_sent_is_written_down_and_the_hooks_that_changed_what_was_said() {
    let home = TempHome::new();
    let pre = r#"printf '{"hookSpecificOutput": {"updatedInput": {"text": "rewritten by it"}}}'"#;
    let post = r#"printf '{"hookSpecificOutput": {"updatedToolOutput": "replaced"}}'"#;
    let command_hook = |line: &str| json!([{ "hooks": [{ "type": "command", "command": line }] }]);
    let mut settings = json!({
        "mcpServers": { "chaos": ScriptedServer::new(Script::default()).entry() },
        "hooks": { "PreToolUse": command_hook(pre), "PostToolUse": command_hook(post) },
    });
    home.write_settings(settings.to_string());
    let call = || {
        let mut command = command(&home, &["call", "chaos", "echo", "text=typed"]);
        home.run(command.env("TOOLWAY_AUDIT", "results"))
    };
    assert_eq!(call().expect_code(0).stdout, "replaced\n");
    settings["permissions"] = json!({ "deny": ["mcp__chaos__echo"] });
    home.write_settings(settings.to_string());
    call().expect_code(6);
    let [sent, refused] = &records(&home, &[])[..] else {
        panic!("two calls")
    };
    let arguments = json!({ "text": "rewritten by it" });
    assert_eq!(sent["arguments"], arguments);
    assert_eq!(sent["sent"], arguments.to_string().len());
    assert_eq!(sent["rewritten_by"]["hook"], pre);
    assert_eq!(sent["replaced_by"]["hook"], post);
    let origin = sent["replaced_by"]["origin"].as_str().unwrap();
    assert!(origin.contains("settings.json:"), "{origin}");
    assert_eq!(sent["result"]["content"][0]["text"], "rewritten by it");
    // Nothing was sent, so it is what was asked.
    assert_eq!(refused["arguments"], json!({ "text": "typed" }));
    assert_eq!(refused["sent"], r#"{"text":"typed"}"#.len());
    assert_eq!(refused["rewritten_by"]["hook"], pre);
    assert_eq!(refused.get("replaced_by"), None);
    let table = toolway(&home, &["audit"]).expect_code(0).stdout;
    let ending = format!("typed; arguments by hook `{pre}`; output by hook `{post}`");
    assert!(table.contains(&ending), "{table}");
}

#[test]
fn a_place_that_cannot_be_used_is_told_with_every_call_and_by_the_command() {
    let home = home_with(Script::default());
    let place = home.config_home().join("state/audit");
    home.write(&place, "a file in its place");
    assert_snapshot!(toolway(&home, &["call", "chaos", "echo", "text=hi"]), @"
    exit: 0
    ----- stdout
    hi
    ----- stderr
    warning: what was called could not be written down in `[HOME]/.config/toolway/state/audit`: File exists (os error 17); see `toolway audit`
    ");
    assert_snapshot!(toolway(&home, &["audit"]), @"
    exit: 1
    ----- stdout
    ----- stderr
    error: what was called cannot be read: Not a directory (os error 20)
    hint: a file stands where `[HOME]/.config/toolway/state/audit` needs a directory: move it away
    ");
}

#[test]
fn lines_that_cannot_be_read_are_counted() {
    let home = home_with(Script::default());
    toolway(&home, &["call", "chaos", "echo", "text=hi"]).expect_code(0);
    let file = home.config_home().join("state/audit/calls.jsonl");
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("nonsense\n{written}{{\"time\":\n")).unwrap();
    let output = toolway(&home, &["audit", "--json"]).expect_code(0);
    assert_eq!(output.stdout.lines().count(), 1);
    assert_eq!(
        output.stderr,
        "warning: 2 lines could not be read and are left out\n"
    );
}

#[test]
fn a_time_that_is_none_is_a_usage_error() {
    let home = TempHome::new();
    let output = toolway(&home, &["audit", "--since", "yesterday"]).expect_code(2);
    assert_snapshot!(output.stderr, @"
    error: invalid value 'yesterday' for '--since <TIME>': `yesterday` is no time such as `90s`, `15m`, `2h` or `7d`
    hint: see `toolway audit --help`
    ");
}
