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
    assert_snapshot!(call(&home, &["kit", "look", "--bounded"]).stdout, @"");
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
    assert_snapshot!(call(&home, &["chaos", "count", "--parallel"]), @"");
}
