//! `call`: naming the tool, typing the arguments, reading the answer, exit codes.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::{Script, ScriptedServer, TempHome, marked};

use crate::support::{command, home_with, servers, toolway};

#[test]
fn a_tool_is_named_in_three_ways() {
    let home = home_with(Script::default());
    for words in [
        &["chaos", "echo"][..],
        &["chaos.echo"],
        &["mcp__chaos__echo"],
    ] {
        let mut all = vec!["call"];
        all.extend(words);
        all.push("text=hi");
        assert_eq!(
            toolway(&home, &all).expect_code(0).stdout,
            "hi\n",
            "{words:?}"
        );
    }
}

#[test]
fn a_url_or_a_command_needs_no_configuration() {
    let home = TempHome::new();
    let server = ScriptedServer::new(Script::default());
    let peer = server.serve_http();
    let by_url = toolway(&home, &["call", peer.url(), "echo", "text=hi"]).expect_code(0);
    assert_eq!(by_url.stdout, "hi\n");
    let mut words = vec![
        "call".to_owned(),
        "echo".to_owned(),
        "text=hi".to_owned(),
        "--".to_owned(),
    ];
    words.push(ScriptedServer::program().display().to_string());
    words.extend(server.args());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(toolway(&home, &words).expect_code(0).stdout, "hi\n");
    assert!(!home.config_home().join("settings.json").exists());
}

#[test]
fn arguments_are_typed_by_the_schema() {
    let home = home_with(Script::default());
    let output = toolway(&home, &["call", "chaos", "huge", "bytes=12"]).expect_code(0);
    assert_eq!(output.stdout, "xxxxxxxxxxxx\n");
    // A text stays a text, whatever it looks like.
    assert_eq!(
        toolway(&home, &["call", "chaos", "echo", "text=12"])
            .expect_code(0)
            .stdout,
        "12\n"
    );
    assert_eq!(
        toolway(&home, &["call", "chaos", "echo", "text=a=b"])
            .expect_code(0)
            .stdout,
        "a=b\n"
    );
    let file = home.write("note.txt", "from a file");
    let words = format!("text=@{}", file.display());
    assert_eq!(
        toolway(&home, &["call", "chaos", "echo", &words])
            .expect_code(0)
            .stdout,
        "from a file\n"
    );
    let json = toolway(&home, &["call", "chaos", "echo", r#"text:="raw""#]).expect_code(0);
    assert_eq!(json.stdout, "raw\n");
    let all = toolway(
        &home,
        &["call", "chaos", "echo", "--args", r#"{"text": "whole"}"#],
    );
    assert_eq!(all.expect_code(0).stdout, "whole\n");
}

#[test]
fn arguments_come_from_stdin() {
    let home = home_with(Script::default());
    for words in [
        &["call", "chaos", "echo"][..],
        &["call", "chaos", "echo", "-"],
        &["call", "chaos", "echo", "--args", "-"],
    ] {
        let output = home.run_with_input(&mut command(&home, words), r#"{"text": "piped"}"#);
        assert_eq!(output.expect_code(0).stdout, "piped\n", "{words:?}");
    }
}

#[test]
fn an_open_but_silent_stdin_does_not_hang_a_call_without_arguments() {
    let home = home_with(Script::default());
    let mut child = command(&home, &["call", "chaos", "count"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let held = child.stdin.take();
    let output = marked::output_of(child);
    drop(held);
    assert!(output.status.success());
}

#[test]
fn wrong_arguments_are_named_before_anything_is_sent() {
    let home = home_with(Script::default());
    assert_snapshot!(toolway(&home, &["call", "chaos", "echo", "text:=7"]), @r#"
    exit: 2
    ----- stdout
    ----- stderr
    error: the arguments do not fit `echo` of server `chaos`
      `text`: value is not of type "string"
    hint: it is called as `toolway call chaos echo text=<string>`
    "#);
    assert_snapshot!(toolway(&home, &["call", "chaos", "huge", "bytes=many"]), @r#"
    exit: 2
    ----- stdout
    ----- stderr
    error: the arguments do not fit `huge` of server `chaos`
      `bytes`: value is not of type "integer"
    hint: it is called as `toolway call chaos huge bytes=<integer>`
    "#);
    assert_snapshot!(toolway(&home, &["call", "chaos", "echo", "oops"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `oops` is not an argument of the form `key=value`
    hint: use `key=value`, `key:=json`, `key=@file`, or `--args '{…}'`
    ");
    assert_snapshot!(toolway(&home, &["call", "chaos", "echo", "--args", "[1]"]), @r#"
    exit: 2
    ----- stdout
    ----- stderr
    error: --args does not hold a JSON object: invalid type: sequence, expected a map at line 1 column 0
    hint: e.g. `--args '{"key": "value"}'`
    "#);
    assert_snapshot!(toolway(&home, &["call", "chaos", "echo", "text=@/nonexistent"]), @r#"
    exit: 2
    ----- stdout
    ----- stderr
    error: cannot read `/nonexistent`: No such file or directory (os error 2)
    hint: for a value that begins with `@`, use `key:='"@…"'`
    "#);
}

#[test]
fn unknown_names_get_a_suggestion() {
    let home = home_with(Script::default());
    assert_snapshot!(toolway(&home, &["call", "chaos", "ehco", "text=x"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: no tool `chaos.ehco`
    hint: did you mean `toolway call chaos echo`?
    ");
    assert_snapshot!(toolway(&home, &["call", "chaso", "echo", "text=x"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `chaso` is configured
    hint: did you mean `chaos`?
    ");
    assert_snapshot!(toolway(&home, &["call", "chaos"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: which tool of `chaos`?
    hint: see its tools with `toolway tools chaos`
    ");
    for unsaid in ["chaos.", "mcp__chaos", "mcp__chaos__"] {
        let output = toolway(&home, &["call", unsaid]).expect_code(2);
        assert!(output.stderr.contains("which tool of `chaos`?"), "{output}");
    }
    assert_snapshot!(toolway(&home, &["call", "chaos", "echo", "txt=x"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    warning: `echo` has no argument `txt`; did you mean `text`?
    error: the arguments do not fit `echo` of server `chaos`
      `text` is missing
    hint: it is called as `toolway call chaos echo text=<string>`
    ");
    assert_snapshot!(toolway(&home, &["call", "chaos", "echo", "text=x", "extra=1"]), @"
    exit: 0
    ----- stdout
    x
    ----- stderr
    warning: `echo` has no argument `extra`
    ");
    assert_snapshot!(toolway(&home, &["call", "mcp__chaos__ehco"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: no tool `mcp__chaos__ehco`
    hint: did you mean `mcp__chaos__echo`?
    ");
    assert_snapshot!(toolway(&home, &["call", "mcp__nobody__ehco"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `nobody` is configured
    hint: see what is configured with `toolway list --no-connect`
    ");
}

#[test]
fn a_tools_own_error_is_a_result_with_its_own_exit_code() {
    let home = home_with(Script::default());
    assert_snapshot!(toolway(&home, &["call", "chaos", "fail"]), @"
    exit: 7
    ----- stdout
    failed as asked
    ----- stderr
    error: tool `fail` of server `chaos` answered an error
    hint: see what it does with `toolway tools chaos`
    ");
    let json = toolway(&home, &["call", "chaos", "fail", "--json"]);
    assert_eq!(json.code, Some(7));
    assert_eq!(json.json()["isError"], true);
}

#[test]
fn a_call_that_takes_too_long_is_given_up() {
    let home = home_with(Script::default());
    assert_snapshot!(toolway(&home, &["call", "chaos", "hang", "--timeout", "1"]), @"
    exit: 8
    ----- stdout
    ----- stderr
    error: `hang` of server `chaos` did not answer within 1s
    hint: give it longer with `--timeout <seconds>`
    ");
}

#[test]
fn a_server_that_cannot_start_or_be_reached() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("missing", json!({ "command": "/nonexistent/server" })),
        (
            "nobody",
            json!({ "type": "http", "url": "http://127.0.0.1:9/mcp" }),
        ),
    ]));
    assert_snapshot!(toolway(&home, &["call", "missing", "x"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `missing` failed: cannot start `/nonexistent/server`: no such program, or its interpreter is missing
    hint: check the program with `toolway get missing` and `toolway doctor`
    ");
    assert_snapshot!(toolway(&home, &["call", "nobody", "x"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `nobody` failed: cannot reach the server: 127.0.0.1:9: Connection refused
    hint: is it up? check its address with `toolway get nobody`
    ");
}

#[test]
fn the_time_limit_counts_for_connecting_too() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["call", "x", "--timeout", "1", "--", "sleep", "60"]), @"
    exit: 8
    ----- stdout
    ----- stderr
    error: server `sleep` is not connected after 1s
    hint: give it longer with `--timeout <seconds>`
    ");
    assert_snapshot!(toolway(&home, &["call", "a", "b", "--timeout", "0"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value '0' for '--timeout <SECONDS>': 0 is not in 1..18446744073709551615
    hint: see `toolway call --help`
    ");
}

/// There is no entry behind what is typed, so no hint may lead to one.
#[test]
fn a_typed_server_that_fails_leads_to_no_entry() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["call", "x", "--", "/nonexistent/server"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `server` failed: cannot start `/nonexistent/server`: no such program, or its interpreter is missing
    hint: check the program's name, or write its full path
    ");
    assert_snapshot!(toolway(&home, &["call", "x", "--", "sh", "-c", "echo no key >&2; exit 3"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `sh` failed: the server process ended (exit status: 3)
      | no key
    hint: run it by hand to see what it does: `sh -c 'echo no key >&2; exit 3'`
    ");
    assert_snapshot!(toolway(&home, &["tools", "--", "false"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `false` failed: the server process ended (exit status: 1)
    hint: run it by hand to see what it does: `false`
    ");
    assert_snapshot!(toolway(&home, &["tools", "http://127.0.0.1:9/mcp"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `127-0-0-1` failed: cannot reach the server: 127.0.0.1:9: Connection refused
    hint: check that an MCP server answers at `http://127.0.0.1:9/mcp`
    ");
    let locked = ScriptedServer::new(Script {
        http_status: Some(401),
        ..Script::default()
    })
    .serve_http();
    let output = toolway(&home, &["tools", locked.url()]).expect_code(5);
    let hint = format!(
        "hint: add it, then log in: `toolway add <name> {}`, `toolway login <name>`",
        locked.url()
    );
    assert!(output.stderr.contains(&hint), "{output}");
}

#[test]
fn a_typed_servers_tools_have_plain_names() {
    let home = TempHome::new();
    let peer = ScriptedServer::new(Script::default()).serve_http();
    let output = toolway(&home, &["tools", peer.url()]).expect_code(0);
    assert!(
        output.stdout.contains("\nmcp__127-0-0-1__echo "),
        "{output}"
    );
}

#[test]
fn a_server_that_wants_a_login_says_so() {
    let home = TempHome::new();
    let locked = ScriptedServer::new(Script {
        http_status: Some(401),
        ..Script::default()
    })
    .serve_http();
    home.write_settings(servers(&[("locked", locked.entry())]));
    assert_snapshot!(toolway(&home, &["call", "locked", "x"]), @r#"
    exit: 5
    ----- stdout
    ----- stderr
    error: server `locked` wants a login first
    hint: log in with `toolway login locked`
    "#);
}

#[test]
fn a_deny_rule_refuses_what_is_typed_too() {
    let home = TempHome::new();
    let server = ScriptedServer::new(Script::default());
    home.write_settings(
        json!({
            "mcpServers": { "chaos": server.entry() },
            "permissions": { "deny": ["mcp__chaos__echo"], "ask": ["mcp__chaos__count"] },
        })
        .to_string(),
    );
    assert_snapshot!(toolway(&home, &["call", "chaos", "echo", "text=x"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    error: `echo` of server `chaos` was refused by the rule `mcp__chaos__echo` in [HOME]/.config/toolway/settings.json:1
    hint: if it should run, take the rule out of `permissions.deny` at [HOME]/.config/toolway/settings.json:1
    ");
    // What a person types is that person's yes.
    toolway(&home, &["call", "chaos", "count"]).expect_code(0);
}

#[test]
fn a_policy_refuses_a_typed_url_too() {
    let home = TempHome::new();
    home.write(
        home.system().join("managed-settings.json"),
        json!({ "deniedMcpServers": [{ "serverUrl": "http://127.0.0.1*/*" }] }).to_string(),
    );
    assert_snapshot!(toolway(&home, &["call", "http://127.0.0.1:9/mcp", "x"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `127-0-0-1` cannot be used: denied by `{"serverUrl":"http://127.0.0.1*/*"}` in `deniedMcpServers` ([SYSTEM]/managed-settings.json:1)
    hint: ask the administrator of this machine to allow it
    "#);
    assert_snapshot!(toolway(&home, &["tools", "http://127.0.0.1:9/mcp"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `127-0-0-1` cannot be used: denied by `{"serverUrl":"http://127.0.0.1*/*"}` in `deniedMcpServers` ([SYSTEM]/managed-settings.json:1)
    hint: ask the administrator of this machine to allow it
    "#);
}
