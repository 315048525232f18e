//! Many calls in one run, a line of JSON each.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::support::{command, servers, toolway};

/// Two servers, and one that nobody can start.
fn home() -> TempHome {
    let home = TempHome::new();
    let chaos = || ScriptedServer::new(Script::default()).entry();
    home.write_settings(servers(&[
        ("one", chaos()),
        ("two", chaos()),
        ("gone", json!({ "command": "/nonexistent/program" })),
    ]));
    home
}

fn batch(home: &TempHome, lines: &[Value]) -> (Option<i32>, Vec<Value>, String) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let file = home.write(home.home().join("calls.jsonl"), lines.join("\n"));
    let mut command = command(home, &["call", "--batch"]);
    let output = home.run(command.arg(file));
    let lines = output.stdout.lines();
    let answers = lines.map(|line| serde_json::from_str(line).unwrap());
    (output.code, answers.collect(), output.stderr)
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[test]
fn a_batch_gives_one_line_for_each_call_in_its_order() {
    let home = home();
    let echo = |server: &str, words: &str| json!({ "server": server, "tool": "echo", "arguments": { "text": words } });
    let exposed = json!({ "tool": "mcp__two__echo", "arguments": { "text": "c" } });
    let (code, answers, said) = batch(&home, &[echo("one", "a"), echo("two", "b"), exposed]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let texts: Vec<&str> = answers.iter().map(text).collect();
    assert_eq!(texts, ["a", "b", "c"]);
    assert_eq!(answers[0]["server"], "one");
    assert_eq!(answers[2]["tool"], "mcp__two__echo");
    assert!(answers.iter().all(|answer| answer["exit"] == 0));
}

#[test]
fn a_call_that_fails_is_its_own_line_and_the_first_failure_the_exit_code() {
    let home = home();
    let (code, answers, _) = batch(
        &home,
        &[
            json!({ "server": "one", "tool": "echo", "arguments": { "text": "a" } }),
            json!({ "server": "gone", "tool": "echo" }),
            json!({ "server": "one", "tool": "ecko" }),
            json!({ "server": "nobody", "tool": "echo" }),
            json!({ "server": "one", "tool": "echo", "arguments": { "text": 7 } }),
            json!({ "server": "one", "tool": "echo", "arguments": { "text": "z" } }),
        ],
    );
    assert_eq!(code, Some(4));
    let exits: Vec<u64> = answers
        .iter()
        .map(|answer| answer["exit"].as_u64().unwrap())
        .collect();
    assert_eq!(exits, [0, 4, 2, 3, 2, 0]);
    assert_eq!((text(&answers[0]), text(&answers[5])), ("a", "z"));
    assert_eq!(answers[2]["error"], "no tool `one.ecko`");
    assert_eq!(
        answers[3]["error"],
        "no server named `nobody` is configured"
    );
    assert!(
        answers
            .iter()
            .all(|answer| { answer["result"].is_object() != answer["error"].is_string() })
    );
}

#[test]
fn a_line_that_is_no_call_is_named_and_nothing_is_sent() {
    let home = home();
    home.write(
        "calls.jsonl",
        "{\"server\": \"one\", \"tool\": \"echo\"}\n\n{\"tol\": 1}\n",
    );
    assert_snapshot!(toolway(&home, &["call", "--batch", "calls.jsonl"]), @r#"
    exit: 2
    ----- stdout
    ----- stderr
    error: calls.jsonl:3: this is no call: unknown field `tol`, expected one of `server`, `tool`, `arguments` at line 1 column 6
    hint: each line is `{"server": "…", "tool": "…", "arguments": {…}}`; nothing was sent
    "#);
    assert_snapshot!(toolway(&home, &["call", "--batch", "missing.jsonl"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: cannot read `missing.jsonl`: No such file or directory (os error 2)
    hint: name a file with a JSON object on each line, or `-` for stdin
    ");
    assert_snapshot!(toolway(&home, &["call", "--batch", "-"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `-` holds no call
    hint: see how one is written with `toolway call --help`
    ");
}
