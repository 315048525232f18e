//! `call`, `call --batch` and `permissions`: whatever has a name can be named, and what cannot be
//! called says why.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, TempHome};

use crate::support::{command, servers, toolway};

/// The entry of a server with these tools.
pub(crate) fn offering(tools: &Value) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tools_server.py");
    json!({ "command": "python3", "args": ["-u", script, tools.to_string()] })
}

pub(crate) fn home_of(entries: &[(&str, Value)]) -> TempHome {
    let home = TempHome::new();
    home.write_settings(servers(entries));
    home
}

fn call(home: &TempHome, words: &[&str]) -> CommandOutput {
    toolway(home, &[&["call"], words].concat())
}

/// What the server says it was called with.
fn sent(home: &TempHome, words: &[&str]) -> Value {
    call(home, words).expect_code(0).json()
}

fn batch(home: &TempHome, lines: &[Value]) -> (CommandOutput, Vec<Value>) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let words = ["call", "--batch", "-"];
    let output = home.run_with_input(&mut command(home, &words), &lines.join("\n"));
    let answers = output.stdout.lines();
    let answers = answers.map(|line| serde_json::from_str(line).unwrap());
    let answers = answers.collect();
    (output, answers)
}

fn plain(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

/// One tool that is found only by searching.
fn shy() -> Value {
    json!([{
        "name": "late",
        "description": "Tells how late it is",
        "inputSchema": { "type": "object" },
        "_meta": { "anthropic/deferLoading": true },
    }])
}

#[test]
fn the_hosts_own_tools_are_called_by_their_names() {
    let home = home_of(&[("kit", offering(&shy()))]);
    let listed = call(&home, &["ListMcpResources"]).expect_code(0);
    assert!(listed.stdout.contains("tools://one"), "{listed}");
    let read = ["ReadMcpResource", "server=kit", "uri=tools://one"];
    let read = call(&home, &read).expect_code(0);
    assert_eq!(read.stdout, "the only one\n");
    let found = call(&home, &["ToolSearch", "query=late", "max_results=1"]).expect_code(0);
    assert!(found.stdout.contains("mcp__kit__late"), "{found}");
    assert_snapshot!(call(&home, &["ToolSearch", "max_results=many"]), @r#"
    exit: 2
    ----- stdout
    ----- stderr
    error: the arguments do not fit `ToolSearch`
      `max_results`: value is not of type "integer"
      `query` is missing
    hint: it is called as `toolway call ToolSearch query=<string> [max_results=<integer>]`
    "#);
    assert_snapshot!(call(&home, &["ReadMcpResource", "server=nobody", "uri=tools://one"]), @"
    exit: 7
    ----- stdout
    there is no server `nobody`; servers with resources: `kit`
    ----- stderr
    error: tool `ReadMcpResource` answered an error
    hint: it is called as `toolway call ReadMcpResource server=<string> uri=<string>`
    ");

    let (output, answers) = batch(
        &home,
        &[
            json!({ "tool": "ListMcpResources" }),
            json!({ "tool": "ToolSearch", "arguments": { "query": "late" } }),
            json!({ "tool": "ToolSearch" }),
            json!({ "tool": "ToolSerch" }),
        ],
    );
    assert_eq!(output.code, Some(2), "{output}");
    assert!(answers[0].to_string().contains("tools://one"), "{output}");
    assert!(
        answers[1].to_string().contains("mcp__kit__late"),
        "{output}"
    );
    assert_snapshot!(answers[2], @r#"{"tool":"ToolSearch","exit":2,"error":"the arguments do not fit `ToolSearch`","details":["`query` is missing"],"hint":"it is called as `toolway call ToolSearch query=<string> [max_results=<integer>]`"}"#);
    assert_snapshot!(answers[3], @r#"{"tool":"ToolSerch","exit":3,"error":"no server named `ToolSerch` is configured","hint":"did you mean `ToolSearch`?"}"#);
}

#[test]
fn one_of_the_hosts_own_tools_that_is_not_there_says_when_it_is() {
    let home = home_of(&[("plain", json!({ "command": "/nonexistent/program" }))]);
    assert_snapshot!(call(&home, &["ToolSearch", "query=x"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: there is no `ToolSearch` now: no tool is deferred
    hint: search all tools with `toolway tools --search '<words>'`
    ");
    assert_snapshot!(call(&home, &["ListMcpResources"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: there is no `ListMcpResources` now: no connected server has resources
    hint: see which servers are connected with `toolway list`
    ");
    assert_snapshot!(call(&home, &["ToolSerch", "query=x"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `ToolSerch` is configured
    hint: did you mean `ToolSearch`?
    ");
}

#[test]
fn a_server_called_like_one_of_the_hosts_own_tools_keeps_its_tools() {
    let tools = json!([plain("echo"), plain("ToolSearch")]);
    let home = home_of(&[("ToolSearch", offering(&tools)), ("kit", offering(&shy()))]);
    assert_eq!(sent(&home, &["ToolSearch", "echo"]), json!({ "echo": {} }));
    let own = sent(&home, &["ToolSearch", "ToolSearch", "query=x"]);
    assert_eq!(own, json!({ "ToolSearch": { "query": "x" } }));
    let own = sent(&home, &["mcp__ToolSearch__ToolSearch"]);
    assert_eq!(own, json!({ "ToolSearch": {} }));
    let found = call(&home, &["ToolSearch", "query=late"]).expect_code(0);
    assert!(found.stdout.contains("mcp__kit__late"), "{found}");
}

#[test]
fn permissions_knows_the_hosts_own_tools() {
    let home = TempHome::new();
    let locked = json!({ "type": "http", "url": "http://127.0.0.1:9/mcp" });
    let mut all: Value =
        serde_json::from_str(&servers(&[("locked", locked), ("kit", offering(&shy()))])).unwrap();
    home.write_settings(all.to_string());
    let decided = |words: &[&str]| toolway(&home, &[&["permissions"], words].concat());
    assert_snapshot!(decided(&["ListMcpResources"]), @"
    exit: 0
    ----- stdout
    ListMcpResources: allowed: it is Toolway's own, and no rule names it
    ----- stderr
    ");
    assert_snapshot!(decided(&["mcp__locked__authenticate"]), @"
    exit: 0
    ----- stdout
    mcp__locked__authenticate: allowed while server `locked` wants a login: it is Toolway's own then, and no rule names it
    mcp__locked__authenticate: otherwise asked by the mode `default`: no rule names it
    ----- stderr
    ");
    assert_snapshot!(decided(&["locked", "authenticate", "--json"]), @r#"
    exit: 0
    ----- stdout
    {
      "server": "locked",
      "tool": "authenticate",
      "decision": "allowed",
      "rule": null,
      "source": null,
      "mode": "default",
      "while": "needs-auth",
      "otherwise": "asked"
    }
    ----- stderr
    "#);
    assert_snapshot!(decided(&["kit", "authenticate"]), @"
    exit: 0
    ----- stdout
    mcp__kit__authenticate: asked by the mode `default`: no rule names it
    ----- stderr
    ");
    assert_snapshot!(decided(&["ToolSearch", "--json"]), @r#"
    exit: 0
    ----- stdout
    {
      "server": "(built-in)",
      "tool": "ToolSearch",
      "decision": "allowed",
      "rule": null,
      "source": null,
      "mode": "default"
    }
    ----- stderr
    "#);
    assert_snapshot!(decided(&["ToolSerch"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `ToolSerch` names no tool
    hint: did you mean `ToolSearch`?
    ");

    all["permissions"] = json!({
        "deny": ["ToolSearch"],
        "ask": ["mcp__locked__*", "ReadMcpResource(@destructive)"],
    });
    home.write_settings(all.to_string());
    assert_snapshot!(decided(&["ToolSearch"]), @"
    exit: 0
    ----- stdout
    ToolSearch: denied by `ToolSearch` in [HOME]/.config/toolway/settings.json:1
    ----- stderr
    ");
    assert_snapshot!(decided(&["ReadMcpResource"]), @"
    exit: 0
    ----- stdout
    ReadMcpResource: allowed: it is Toolway's own, and no rule names it
    ----- stderr
    ");
    assert_snapshot!(decided(&["locked", "authenticate"]), @"
    exit: 0
    ----- stdout
    mcp__locked__authenticate: asked by `mcp__locked__*` in [HOME]/.config/toolway/settings.json:1
    ----- stderr
    ");
}

#[test]
fn the_hosts_own_tools_are_completed() {
    let home = home_of(&[("kit", offering(&shy()))]);
    let complete = |line: &str| {
        let output = toolway(&home, &["__complete", "fish", line]).expect_code(0);
        output.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let own = ["ListMcpResources", "ReadMcpResource", "ToolSearch", "kit"];
    for command in ["call", "permissions"] {
        let mut all = complete(&format!("toolway {command} "));
        all.sort();
        assert_eq!(all, own, "{command}");
    }
    assert_eq!(complete("toolway tools "), ["kit"]);
    assert_eq!(complete("toolway call Tool"), ["ToolSearch"]);
    assert_eq!(complete("toolway call ToolSearch q"), ["query="]);
    assert_eq!(complete("toolway call ReadMcpResource uri=x "), ["server="]);
}

#[test]
fn an_alias_is_called_and_judged_like_the_tool_it_stands_for() {
    let mut entry = offering(&json!([plain("get_a"), plain("get_b")]));
    entry["alias"] = json!({ "get_a": "first" });
    let mut all: Value = serde_json::from_str(&servers(&[("c", entry)])).unwrap();
    all["permissions"] = json!({ "deny": ["mcp__c__get_a"] });
    let home = TempHome::new();
    home.write_settings(all.to_string());
    let decided = toolway(&home, &["permissions", "c", "first"]).expect_code(0);
    assert_snapshot!(decided, @"
    exit: 0
    ----- stdout
    mcp__c__first: denied by `mcp__c__get_a` in [HOME]/.config/toolway/settings.json:1
    ----- stderr
    ");
    call(&home, &["c", "first"]).expect_code(6);

    all["permissions"] = json!({ "deny": ["mcp__c__first"] });
    home.write_settings(all.to_string());
    let decided = toolway(&home, &["permissions", "c", "get_a"]).expect_code(0);
    assert_snapshot!(decided, @"
    exit: 0
    ----- stdout
    mcp__c__first: denied by `mcp__c__first` in [HOME]/.config/toolway/settings.json:1
    ----- stderr
    ");

    all["permissions"] = json!({});
    home.write_settings(all.to_string());
    for words in [
        &["c", "first"][..],
        &["c", "get_a"],
        &["c.first"],
        &["mcp__c__first"],
        &["mcp__c__get_a"],
    ] {
        assert_eq!(sent(&home, words), json!({ "get_a": {} }), "{words:?}");
    }
    let found = toolway(&home, &["tools", "--search", "select:first"]).expect_code(0);
    assert!(found.stdout.contains("mcp__c__first"), "{found}");
    assert_snapshot!(call(&home, &["c", "frist"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: no tool `c.frist`
    hint: did you mean `toolway call c first`?
    ");
    let completed = toolway(&home, &["__complete", "fish", "toolway call c f"]).expect_code(0);
    assert_eq!(completed.stdout, "first\n");
}

#[test]
fn warnings_are_said_however_the_answer_is_printed() {
    let whole = json!({ "type": "object", "properties": { "x": { "type": "integer" } } });
    let answer = json!({ "content": [], "structuredContent": { "x": "no number" } });
    let home = home_of(&[(
        "kit",
        offering(&json!([
            { "name": "odd", "inputSchema": { "type": "object" }, "outputSchema": whole, "answer": answer },
            plain("even"),
        ])),
    )]);
    let usual = call(&home, &["kit", "odd"]).expect_code(0);
    assert!(
        usual.stderr.starts_with("warning: server `kit`: "),
        "{usual}"
    );
    let json = call(&home, &["kit", "odd", "--json"]).expect_code(0);
    assert_eq!(json.stderr, usual.stderr);
    assert_eq!(json.json(), answer);

    let line = |tool: &str| json!({ "server": "kit", "tool": tool });
    let (output, answers) = batch(&home, &[line("odd"), line("even")]);
    assert_eq!(output.code, Some(0), "{output}");
    let warnings = answers[0]["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1);
    let said = warnings[0].as_str().unwrap();
    assert_eq!(usual.stderr, format!("warning: server `kit`: {said}\n"));
    assert!(answers[1].get("warnings").is_none(), "{output}");
}

#[test]
fn arguments_are_typed_through_references_and_alternatives() {
    let home = home_of(&[(
        "kit",
        offering(&json!([
            { "name": "opt", "inputSchema": {
                "type": "object",
                "properties": {
                    "zip": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                    "count": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
                    "ref": { "$ref": "#/$defs/Text" },
                    "tags": { "anyOf": [
                        { "type": "array", "items": { "$ref": "#/$defs/Text" } },
                        { "type": "null" },
                    ] },
                    "both": { "type": ["integer", "string"] },
                    "loop": { "$ref": "#/$defs/Loop" },
                },
                "$defs": {
                    "Text": { "type": "string" },
                    "Loop": { "anyOf": [{ "$ref": "#/$defs/Loop" }, { "type": "string" }] },
                },
            } },
            { "name": "root", "inputSchema": {
                "$ref": "#/definitions/In",
                "definitions": { "In": {
                    "type": "object",
                    "properties": { "id": { "type": "string" } },
                    "required": ["id"],
                } },
            } },
            { "name": "all", "inputSchema": {
                "allOf": [
                    { "properties": { "a": { "type": "string" } }, "required": ["a"] },
                    { "properties": { "b": { "type": "integer" } }, "required": ["b"] },
                ],
            } },
            { "name": "one", "inputSchema": {
                "type": "object",
                "oneOf": [
                    { "properties": { "kind": { "const": "x" }, "a": { "type": "string" } }, "required": ["kind", "a"] },
                    { "properties": { "kind": { "const": "y" }, "b": { "type": "integer" } }, "required": ["kind", "b"] },
                ],
            } },
        ])),
    )]);
    let words = "zip=12345 count=7 ref=8 tags=1 tags=two both=9 loop=10";
    let words: Vec<&str> = words.split(' ').collect();
    assert_eq!(
        sent(&home, &[&["kit", "opt"], words.as_slice()].concat()),
        json!({ "opt": {
            "zip": "12345", "count": 7, "ref": "8", "tags": ["1", "two"], "both": 9, "loop": "10",
        } })
    );
    let nothing = sent(
        &home,
        &["kit", "opt", "zip=null", "count=null", "tags=null"],
    );
    assert_eq!(
        nothing,
        json!({ "opt": { "zip": null, "count": null, "tags": null } })
    );
    let sent = |words: &[&str]| sent(&home, words);
    assert_eq!(
        sent(&["kit", "root", "id=7"]),
        json!({ "root": { "id": "7" } })
    );
    assert_eq!(
        sent(&["kit", "all", "a=1", "b=2"]),
        json!({ "all": { "a": "1", "b": 2 } })
    );
    assert_eq!(
        sent(&["kit", "one", "kind=x", "a=3"]),
        json!({ "one": { "kind": "x", "a": "3" } })
    );
    for (tool, usage) in [
        ("root", "toolway call kit root id=<string>"),
        ("all", "toolway call kit all a=<string> b=<integer>"),
        (
            "one",
            "toolway call kit one kind=x|y (a=<string> | b=<integer>)",
        ),
    ] {
        let output = call(&home, &["kit", tool, "--args", "{}"]).expect_code(2);
        let hint = format!("hint: it is called as `{usage}`\n");
        assert!(output.stderr.ends_with(&hint), "{output}");
    }
}

#[test]
fn what_was_left_out_says_so_and_near_misses_are_all_named() {
    let mut tools: Vec<Value> = (0..600)
        .map(|index| plain(&format!("t{index:04}")))
        .collect();
    tools[0] = json!({ "name": "hidden", "inputSchema": {
        "type": "object", "properties": { "a\u{200b}b": { "type": "string" } } } });
    tools[1] = json!({ "name": "shapeless", "inputSchema": "none" });
    let few = json!([
        plain("opt"),
        plain("get_cat"),
        plain("get_car"),
        plain("get_cab"),
        plain("get_can")
    ]);
    let home = home_of(&[("big", offering(&json!(tools))), ("b", offering(&few))]);
    let error = |words: &[&str]| {
        let output = call(&home, words).expect_code(2);
        let lines = output
            .stderr
            .lines()
            .filter(|line| !line.starts_with("warning: "));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(error(&["big", "t0550"]), @"
    error: `t0550` of server `big` is not offered: the server offers 599 tools; only the first 512 it lists are used
    hint: choose with `includeTools` in its entry; see all with `toolway tools big --all`
    ");
    assert_snapshot!(error(&["mcp__big__t0550"]), @"
    error: `t0550` of server `big` is not offered: the server offers 599 tools; only the first 512 it lists are used
    hint: choose with `includeTools` in its entry; see all with `toolway tools big --all`
    ");
    assert_snapshot!(error(&["big", "hidden"]), @"
    error: `hidden` of server `big` is not offered: its input schema has an invisible character (U+200B) in a property name
    hint: its server has to mend it; see what is left out with `toolway tools big --all`
    ");
    assert_snapshot!(error(&["big", "shapeless"]), @"
    error: `shapeless` of server `big` is not offered: `inputSchema` is not an object
    hint: its server has to mend it; see what is left out with `toolway tools big --all`
    ");
    assert_snapshot!(error(&["mcp__b__otp"]), @"
    error: no tool `mcp__b__otp`
    hint: did you mean `mcp__b__opt`?
    ");
    assert_snapshot!(error(&["b", "get_cap"]), @"
    error: no tool `b.get_cap`
    hint: did you mean `toolway call b get_cab`, `toolway call b get_can` or `toolway call b get_car`?
    ");
    assert_snapshot!(error(&["b", "nothing_like_it"]), @"
    error: no tool `b.nothing_like_it`
    hint: see its tools with `toolway tools b`
    ");
}
