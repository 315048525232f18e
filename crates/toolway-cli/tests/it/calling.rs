//! `call` as people and scripts use it: what is left out, what is nested, whose stdin it is, and
//! what nobody wants to read.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, Script, TempHome};

use crate::support::{command, home_with, program, servers, toolway};

/// The entry of a server with these tools; each answers what it was called with.
fn offering(tools: &Value) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tools_server.py");
    json!({ "command": "python3", "args": ["-u", script, tools.to_string()] })
}

fn home_of(entries: &[(&str, Value)]) -> TempHome {
    let home = TempHome::new();
    home.write_settings(servers(entries));
    home
}

/// A server `kit` with one tool of this schema, `ship`.
fn shipping(schema: &Value) -> TempHome {
    home_of(&[(
        "kit",
        offering(&json!([{ "name": "ship", "inputSchema": schema }])),
    )])
}

fn call(home: &TempHome, words: &[&str]) -> CommandOutput {
    toolway(home, &[&["call"], words].concat())
}

/// What the server says `ship` was called with.
fn shipped(home: &TempHome, words: &[&str]) -> Value {
    let output = call(home, &[&["kit", "ship"], words].concat()).expect_code(0);
    output.json()["ship"].clone()
}

/// A picture's worth of base64: it begins like a PNG.
fn picture() -> String {
    use base64::Engine as _;
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.extend((0..3_000_u32).map(|at| u8::try_from(at * 7919 % 251).unwrap()));
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A server `kit` whose `look` answers this.
fn showing(answer: &Value) -> TempHome {
    let tool = json!({ "name": "look", "inputSchema": { "type": "object" }, "answer": answer });
    home_of(&[("kit", offering(&json!([tool])))])
}

fn files(home: &TempHome) -> usize {
    let folder = home.config_home().join("state/results");
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn a_picture_that_structured_content_repeats_is_said_and_saved_once() {
    let picture = picture();
    let block = json!({ "type": "image", "data": picture, "mimeType": "image/png" });
    let home = showing(&json!({
        "content": [block],
        "structuredContent": { "content": [block] },
    }));
    assert_snapshot!(call(&home, &["kit", "look"]), @"
    exit: 0
    ----- stdout
    [image/png, 3008 bytes: [HOME]/.config/toolway/state/results/82d6b9aea4ac8f422220fec70d687acdd70ff2586780a0cd9d0c4b4452eb4ad9.png]
    ----- stderr
    ");
    assert_eq!(files(&home), 1);
    let bounded = call(&home, &["kit", "look", "--bounded"]).expect_code(0);
    assert!(bounded.stdout.len() < 1_000, "{bounded}");
    // For programs it is as the server sent it.
    let whole = call(&home, &["kit", "look", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(whole["structuredContent"]["content"][0]["data"], *picture);
    let selected = call(&home, &["kit", "look", "--select", ".content[0].data"]);
    assert_eq!(selected.expect_code(0).stdout.trim_end(), picture);
    let bounded = ["kit", "look", "--select", ".content[0].data", "--bounded"];
    assert!(call(&home, &bounded).expect_code(0).stdout.len() < 1_000);
}

#[test]
fn binary_data_anywhere_in_an_answer_is_named_and_not_printed() {
    let picture = picture();
    let home = showing(&json!({
        "content": [
            { "type": "image", "data": picture, "mimeType": "image/png" },
            { "type": "blob", "data": picture, "mimeType": "application/x-font" },
        ],
        "structuredContent": {
            "title": "Logo",
            "as": { "url": format!("data:image/gif;base64,{}", picture.replace('P', "Q")) },
            "raw": picture,
            "short": "aGVsbG8=",
        },
    }));
    assert_snapshot!(call(&home, &["kit", "look"]), @r#"
    exit: 0
    ----- stdout
    [image/png, 3008 bytes: [HOME]/.config/toolway/state/results/82d6b9aea4ac8f422220fec70d687acdd70ff2586780a0cd9d0c4b4452eb4ad9.png]
    {"type":"blob","data":"[image/png, 3008 bytes, the same as block 0: [HOME]/.config/toolway/state/results/82d6b9aea4ac8f422220fec70d687acdd70ff2586780a0cd9d0c4b4452eb4ad9.png]","mimeType":"application/x-font"}
    {
      "title": "Logo",
      "as": {
        "url": "[image/gif, 3008 bytes: [HOME]/.config/toolway/state/results/18fe2a6476195680a963854bfd59f0d90a85c5b577d7627071be7bbbf208d7f5.gif]"
      },
      "raw": "[image/png, 3008 bytes, the same as block 0: [HOME]/.config/toolway/state/results/82d6b9aea4ac8f422220fec70d687acdd70ff2586780a0cd9d0c4b4452eb4ad9.png]",
      "short": "aGVsbG8="
    }
    ----- stderr
    "#);
    let bounded = call(&home, &["kit", "look", "--bounded"])
        .expect_code(0)
        .stdout;
    let (_, rest) = bounded.split_once('\n').unwrap();
    assert_snapshot!(rest, @r#"
    {"type":"blob","data":"[image/png, 3008 bytes, the same as block 0: [HOME]/.config/toolway/state/results/82d6b9aea4ac8f422220fec70d687acdd70ff2586780a0cd9d0c4b4452eb4ad9.png]","mimeType":"application/x-font"}
    {"title":"Logo","as":{"url":"[image/gif, 3008 bytes: [HOME]/.config/toolway/state/results/18fe2a6476195680a963854bfd59f0d90a85c5b577d7627071be7bbbf208d7f5.gif]"},"raw":"[image/png, 3008 bytes, the same as block 0: [HOME]/.config/toolway/state/results/82d6b9aea4ac8f422220fec70d687acdd70ff2586780a0cd9d0c4b4452eb4ad9.png]","short":"aGVsbG8="}
    "#);
}

#[test]
fn a_model_gets_no_base64_in_text_and_a_person_gets_text_as_it_is() {
    let text = json!({ "file": picture(), "mimeType": "image/png" }).to_string();
    let home = showing(&json!({ "content": [{ "type": "text", "text": text }] }));
    let plain = call(&home, &["kit", "look"]).expect_code(0);
    assert_eq!(plain.stdout.trim_end(), text);
    assert_snapshot!(call(&home, &["kit", "look", "--bounded"]).stdout, @r#"{"file":"[image/png, 3008 bytes: [HOME]/.config/toolway/state/results/82d6b9aea4ac8f422220fec70d687acdd70ff2586780a0cd9d0c4b4452eb4ad9.png]","mimeType":"image/png"}"#);
}

#[test]
fn a_required_argument_with_a_default_may_be_left_out() {
    let home = shipping(&json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "speed": { "type": "string", "default": "slow" },
            "box": {
                "type": "object",
                "properties": { "size": { "type": "integer", "default": 3 } },
                "required": ["size"],
            },
        },
        "required": ["city", "speed"],
    }));
    assert_eq!(
        shipped(&home, &["city=Bergen"]),
        json!({ "city": "Bergen", "speed": "slow" })
    );
    assert_eq!(
        shipped(&home, &["city=Bergen", "speed=fast", "box:={}"]),
        json!({ "city": "Bergen", "speed": "fast", "box": { "size": 3 } })
    );
    assert_snapshot!(call(&home, &["kit", "ship"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: the arguments do not fit `ship` of server `kit`
      `city` is missing
    hint: it is called as `toolway call kit ship city=<string> [speed=<string>] [box:='{…}']`
    ");
}

#[test]
fn a_loop_keeps_its_input() {
    let home = home_with(Script::default());
    let line = format!(
        "printf 'a\\nb\\nc\\n' | while read x; do echo $x; '{}' call chaos count; done",
        program()
    );
    let mut shell = home.command("sh");
    shell.args(["-c", &line]);
    assert_snapshot!(home.run(&mut shell), @"
    exit: 0
    ----- stdout
    a
    1
    b
    1
    c
    1
    ----- stderr
    ");
    let lines = home.run_with_input(&mut command(&home, &["call", "chaos", "echo"]), "b\nc\n");
    assert_snapshot!(lines, @"
    exit: 2
    ----- stdout
    ----- stderr
    error: stdin does not hold a JSON object: expected value at line 1 column 1
    hint: stdin was read because `text` is missing: give it as `text=…`, or keep stdin out with `< /dev/null`
    ");
}

#[test]
fn all_calls_of_a_batch_run_beside_each_other_when_that_is_asked_for() {
    let home = home_with(Script::default());
    let lines = "{\"server\": \"chaos\", \"tool\": \"count\"}\n".repeat(3);
    let words = ["call", "--batch", "-", "--parallel"];
    let output = home.run_with_input(&mut command(&home, &words), &lines);
    assert_eq!(output.expect_code(0).stdout.lines().count(), 3);
    assert_snapshot!(call(&home, &["chaos", "count", "--parallel"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: the argument '[SERVER] [TOOL] [KEY=VALUE]...' cannot be used with '--parallel'

    Usage: toolway call <SERVER> [TOOL] [KEY=VALUE]... [-- <COMMAND>...]
    hint: see `toolway call --help`
    ");
}

/// A schema with an object, a list of objects, and names with dots in them.
fn nested() -> Value {
    json!({
        "type": "object",
        "properties": {
            "ship_to": { "$ref": "#/$defs/address" },
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": { "type": "string" },
                        "count": { "type": "integer" },
                        "tags": { "type": "array", "items": { "type": "string" } },
                    },
                },
            },
            "a.b": { "type": "string" },
            "a": { "type": "object", "properties": { "b": { "type": "integer" }, "c.d": {} } },
            "note": { "type": "string" },
        },
        "$defs": { "address": { "type": "object", "properties": {
            "street": { "type": "string" },
            "zip": { "type": "string" },
            "floor": { "type": ["integer", "null"] },
            "kind": { "enum": ["home", "work"] },
        }}},
    })
}

#[test]
fn nested_arguments_are_typed_by_the_schema() {
    let home = shipping(&nested());
    assert_eq!(
        shipped(
            &home,
            &[
                "ship_to.street=Main 1",
                "ship_to.zip=01234",
                "ship_to.floor=3",
                "items[0].id=7",
                "items[0].count=2",
                "items[1].id=x",
                "items[1].tags=red",
                "items[1].tags=blue",
                "items[1].extra:={\"deep\": true}",
            ],
        ),
        json!({
            "ship_to": { "street": "Main 1", "zip": "01234", "floor": 3 },
            "items": [
                { "id": "7", "count": 2 },
                { "id": "x", "tags": ["red", "blue"], "extra": { "deep": true } },
            ],
        })
    );
    // A property that really has a dot in its name is that property.
    assert_eq!(shipped(&home, &["a.b=7"]), json!({ "a.b": "7" }));
    assert_eq!(shipped(&home, &["a.c.d=7"]), json!({ "a": { "c.d": 7 } }));
    // What the schema does not know as an object stays one name, as it always was.
    assert_eq!(
        shipped(&home, &["note.x=1", "other.y=2"]),
        json!({ "note.x": 1, "other.y": 2 })
    );
    let base = [
        "--args",
        r#"{"ship_to": {"zip": "1"}}"#,
        "ship_to.street=Main",
    ];
    assert_eq!(
        shipped(&home, &base),
        json!({ "ship_to": { "zip": "1", "street": "Main" } })
    );
}

#[test]
fn nested_arguments_that_contradict_each_other_are_one_clear_error() {
    let home = shipping(&nested());
    assert_snapshot!(call(&home, &["kit", "ship", "ship_to.zip=1", "ship_to:={}"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `ship_to` and `ship_to.zip` cannot both be given
    hint: give the whole as `ship_to:='…'`, or its parts alone
    ");
    assert_snapshot!(call(&home, &["kit", "ship", "items[1].id=7"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `items[1].id` is given, but item 0 before it is not
    hint: number items from 0 on, in order
    ");
    assert_snapshot!(call(&home, &["kit", "ship", "items[x].id=7"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `items[x].id`: between brackets stands a number from 0 on
    hint: e.g. `items[0]=…`
    ");
    assert_snapshot!(call(&home, &["kit", "ship", "ship_to.=7"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `ship_to.` is not an argument of the form `name.name` or `name[0]`
    hint: e.g. `ship_to.street=…` or `items[0].id=…`
    ");
    let base = ["kit", "ship", "--args", r#"{"items": {}}"#, "items[0].id=7"];
    assert_snapshot!(call(&home, &base), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `items[0].id` has no place: what it is to stand in is not a list
    hint: look at what `--args` and the other arguments say
    ");
}

#[test]
fn nested_names_and_values_are_completed() {
    let home = shipping(&nested());
    let complete = |word: &str| {
        let line = format!("toolway call kit ship {word}");
        let found = toolway(&home, &["__complete", "fish", &line]).expect_code(0);
        let found: Vec<String> = found.stdout.lines().map(str::to_owned).collect();
        found
    };
    assert_eq!(
        complete("ship_to."),
        [
            "ship_to.street=",
            "ship_to.zip=",
            "ship_to.floor=",
            "ship_to.kind="
        ]
    );
    assert_eq!(
        complete("ship_to.kind="),
        ["ship_to.kind=home", "ship_to.kind=work"]
    );
}

#[test]
fn a_tool_that_one_server_alone_has_needs_no_server() {
    let tools = |names: &[&str]| {
        let tools: Vec<Value> = names
            .iter()
            .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }))
            .collect();
        offering(&json!(tools))
    };
    let home = home_of(&[
        ("one", tools(&["ship", "track"])),
        ("two", tools(&["track", "bill"])),
    ]);
    assert_snapshot!(call(&home, &["ship", "city=Bergen"]), @r#"
    exit: 0
    ----- stdout
    {"ship": {"city": "Bergen"}}
    ----- stderr
    "#);
    assert_snapshot!(call(&home, &["track"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `track` is a tool of several servers: `one`, `two`
    hint: name the one you mean, e.g. `toolway call one track`
    ");
    assert_snapshot!(call(&home, &["trak"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `trak` names neither a server nor a tool of one
    hint: did you mean `track`?
    ");
    assert_snapshot!(call(&home, &["onee", "ship"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `onee` is configured
    hint: did you mean `one`?
    ");
    // Nobody knows what a server has that is not there.
    home.write_settings(servers(&[
        ("one", tools(&["ship"])),
        ("gone", json!({ "command": "/nonexistent/program" })),
    ]));
    assert_snapshot!(call(&home, &["ship"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `ship` is a tool of server `one`, but server `gone`, which may have one too, is not connected
    hint: name the server: `toolway call one ship`
    ");
}

#[test]
fn tools_for_resources_are_there_where_a_server_says_that_it_has_some() {
    let script = declaring_server();
    let home = TempHome::new();
    let path = home.write("empty.py", script);
    let entry = json!({ "command": "python3", "args": ["-u", path] });
    home.write_settings(servers(&[("kit", entry)]));
    assert_snapshot!(call(&home, &["ListMcpResources"]), @r#"
    exit: 0
    ----- stdout
    {"resources":[],"resourceTemplates":[]}
    ----- stderr
    "#);
    let listed = |setting: &str| {
        let mut tools = command(&home, &["tools", "--format", "anthropic"]);
        tools.env("ENABLE_TOOL_SEARCH", setting);
        let listed = home.run(&mut tools).expect_code(0).json();
        let names = listed.as_array().unwrap().iter();
        let names: Vec<String> = names
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect();
        names
    };
    assert_eq!(
        listed("false"),
        ["ListMcpResources", "ReadMcpResource", "mcp__kit__t"]
    );
    assert_eq!(listed("true"), ["ToolSearch"]);
    let mut search = command(&home, &["call", "ToolSearch", "query=list resources"]);
    search.env("ENABLE_TOOL_SEARCH", "true");
    let found = home.run(&mut search).expect_code(0);
    assert!(found.stdout.contains("ListMcpResources"), "{found}");
}

/// A server that declares resources, and lists none.
fn declaring_server() -> &'static str {
    r#"
import json, sys
ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}},
        "serverInfo": {"name": "empty", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in ANSWERS:
        reply["result"] = ANSWERS[message["method"]]
    else:
        reply["error"] = {"code": -32601, "message": "not here"}
    print(json.dumps(reply), flush=True)
"#
}
