//! `call --bounded` and `call --select`: what a model would get, and a few fields of it.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, Script, ScriptedServer, TempHome};

use crate::support::{command, home_with, program, servers, toolway};

fn home() -> TempHome {
    home_with(Script {
        drama: true,
        ..Script::default()
    })
}

/// Calls a tool that answers exactly this; `words` come behind.
fn answered(home: &TempHome, result: &Value, words: &[&str]) -> CommandOutput {
    let arguments = json!({ "result": result }).to_string();
    let mut all = vec!["call", "chaos", "answer", "--args", "-"];
    all.extend(words);
    home.run_with_input(&mut command(home, &all), &arguments)
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The smallest picture there is.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What the commands of an answer print, each run by a shell.
pub(crate) fn follow_recipes(home: &TempHome, answer: &str) -> Vec<(String, String)> {
    let real = answer.replace("[HOME]", &home.home().display().to_string());
    let commands = real.lines().filter_map(|line| line.strip_prefix("  "));
    commands
        .map(|recipe| {
            let output = std::process::Command::new("sh")
                .args(["-c", recipe])
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && told.is_empty(),
                "{recipe}: {told}"
            );
            (recipe.to_owned(), String::from_utf8(output.stdout).unwrap())
        })
        .collect()
}

#[test]
fn sec_35_hidden_characters_are_removed_for_a_model_alone_and_a_setting_keeps_them() {
    let home = home();
    let sent = text("a\u{e0041}\u{202e}b");
    assert_snapshot!(answered(&home, &sent, &["--bounded"]).stdout, @"
    ab
    [2 hidden characters were removed from the text of this result]
    ");
    let raw = answered(&home, &sent, &["--json"]).json();
    assert_eq!(raw["content"], sent["content"]);
    let arguments = json!({ "result": sent }).to_string();
    let words = [
        "call",
        "chaos",
        "answer",
        "--args",
        "-",
        "--bounded",
        "--json",
    ];
    let mut keeping = command(&home, &words);
    keeping.env("TOOLWAY_RESULT_TEXT", "keep");
    let kept = home.run_with_input(&mut keeping, &arguments).json();
    assert_eq!(kept["content"], sent["content"]);
}

#[test]
fn a_short_result_passes_as_it_is() {
    let home = home();
    assert_snapshot!(answered(&home, &text("hello"), &["--bounded"]), @"
    exit: 0
    ----- stdout
    hello
    ----- stderr
    ");
    assert_snapshot!(answered(&home, &text("hello"), &["--bounded", "--json"]), @r#"
    exit: 0
    ----- stdout
    {
      "content": [
        {
          "type": "text",
          "text": "hello"
        }
      ],
      "isError": false
    }
    ----- stderr
    "#);
    assert!(!home.config_home().join("state/results").exists());
}

#[test]
fn a_long_result_is_saved_and_the_answer_says_how_to_read_it() {
    let home = home();
    let items: Vec<Value> = (0..5_000)
        .map(|id| json!({"id": id, "name": "a name"}))
        .collect();
    let whole = json!({"total": 5_000, "items": items}).to_string();
    let output = answered(&home, &text(&whole), &["--bounded"]);
    assert_snapshot!(output, @"
    exit: 0
    ----- stdout
    [The text of this result is too long to show: 138,914 characters, about 60,260 tokens; the limit is 100,000 characters and 25,000 tokens. It was saved whole.
    File: [HOME]/.config/toolway/state/results/deae35928e5bab5dd46d364a417ba59703f138f840b22b3ceba55feb4df71930.json
    Size: 138,914 bytes in one line
    Format: JSON
    Structure: {total: number, items: [{id: number, name: string}]}
    How to read it, in parts and never all at once:
      jq '.items | length' [HOME]/.config/toolway/state/results/deae35928e5bab5dd46d364a417ba59703f138f840b22b3ceba55feb4df71930.json
      jq -c '.items[0:10]' [HOME]/.config/toolway/state/results/deae35928e5bab5dd46d364a417ba59703f138f840b22b3ceba55feb4df71930.json | head -c 20000
      jq -r . [HOME]/.config/toolway/state/results/deae35928e5bab5dd46d364a417ba59703f138f840b22b3ceba55feb4df71930.json | head -c 20000
      head -c 20000 [HOME]/.config/toolway/state/results/deae35928e5bab5dd46d364a417ba59703f138f840b22b3ceba55feb4df71930.json
      tail -c +20001 [HOME]/.config/toolway/state/results/deae35928e5bab5dd46d364a417ba59703f138f840b22b3ceba55feb4df71930.json | head -c 20000
    It is removed after seven days, or earlier when room is needed.]
    ----- stderr
    ");
    let read = follow_recipes(&home, &output.stdout);
    assert_eq!(read[0].1, "5000\n");
    assert!(
        read[1].1.starts_with(r#"[{"id":0,"name":"a name"}"#),
        "{}",
        read[1].1
    );
    // The whole is printed as ever.
    let plain = answered(&home, &text(&whole), &[]).expect_code(0);
    assert_eq!(plain.stdout.trim_end(), whole);
}

#[test]
fn the_limit_of_tokens_comes_from_the_environment() {
    let home = home();
    let mut limited = command(&home, &["call", "chaos", "huge", "bytes=400", "--bounded"]);
    limited.env("MAX_MCP_OUTPUT_TOKENS", "99");
    let output = home.run(&mut limited).expect_code(0);
    assert!(
        output
            .stdout
            .contains("the limit is 100,000 characters and 99 tokens"),
        "{output}"
    );
    limited.env("MAX_MCP_OUTPUT_TOKENS", "100");
    let output = home.run(&mut limited).expect_code(0);
    assert_eq!(output.stdout.trim_end(), "x".repeat(400));
}

#[test]
fn what_cannot_be_shown_is_a_notice_and_the_call_succeeds() {
    let home = home();
    let image =
        |data: &str, mime_type: &str| json!({"type": "image", "data": data, "mimeType": mime_type});
    let result = json!({"content": [
        {"type": "text", "text": "before"},
        image(PNG, "image/png"),
        image("%%%", "image/png"),
        image("aGVsbG8=", "image/png"),
        image(PNG, "image/jpeg"),
        {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "notes://1", "mimeType": "text/plain", "text": "a note"}},
        {"type": "resource_link", "uri": "notes://2", "name": "two", "description": "a second note"},
        {"type": "text", "text": "after"},
    ]});
    assert_snapshot!(answered(&home, &result, &["--bounded"]), @"
    exit: 0
    ----- stdout
    before
    [image/png, 1 × 1 pixels]
    [The picture of block 2 is not shown: it is not base64 (Invalid symbol 37, offset 0.)]
    [The picture of block 3, declared as `image/png`, is not shown: it is not a picture; it is saved as [HOME]/.config/toolway/state/results/2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824.png]
    [image/png, 1 × 1 pixels]
    [The picture of block 4: declared as `image/jpeg`, but it is image/png]
    [A sound: audio/wav, 5 bytes, saved as [HOME]/.config/toolway/state/results/2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824.wav]
    [resource notes://1]
    a note
    [link notes://2] two: a second note
    after
    ----- stderr
    warning: server `chaos`: block 2 of this result was not saved: it is not base64 (Invalid symbol 37, offset 0.)
    ");
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// A small file system of its own, so that the disk really is full.
#[test]
fn rel_19_a_full_disk_leaves_the_cut_version_with_a_notice() {
    let home = home();
    let results = home.config_home().join("state/results");
    std::fs::create_dir_all(&results).unwrap();
    let alone = |words: &[&str]| {
        let mut command = home.command("unshare");
        command.args(["--user", "--map-root-user", "--mount"]);
        command.args(words);
        home.run(&mut command)
    };
    let place = results.display().to_string();
    let mount = [
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "size=64k,mode=0700",
        "tmpfs",
        &place,
    ];
    if alone(&mount).code != Some(0) {
        skipped("this kernel refuses namespaces");
        return;
    }
    let mount = mount.join(" ");
    let script = format!("{mount} && {} \"$@\" && ls {place} >&2", program());
    let call = ["call", "chaos", "huge", "bytes=300000", "--bounded"];
    let output = alone(&[&["sh", "-c", script.as_str(), "sh"][..], &call].concat());
    assert_eq!(output.code, Some(0), "{output}");
    let shown = output.stdout.chars().filter(|c| *c == 'x').count();
    assert!((90_000..100_000).contains(&shown), "{shown}");
    let last = output.stdout.lines().last().unwrap();
    assert!(
        last.contains(
            "of 300,000 characters are shown. The rest could not be saved: cannot write a file in"
        ),
        "{last}"
    );
    assert!(last.contains("No space left on device"), "{last}");
    // No half file stays.
    assert_eq!(output.stderr, "", "{output}");
}

#[test]
fn fields_are_selected_from_structure_and_from_text() {
    let home = home();
    let value = json!({"items": [{"id": 7, "name": "seven"}, {"id": 8, "name": "eight"}]});
    let structured = json!({
        "content": [{"type": "text", "text": "two items"}],
        "structuredContent": value,
    });
    assert_snapshot!(answered(&home, &structured, &["--select", ".items[].name"]), @"
    exit: 0
    ----- stdout
    seven
    eight
    ----- stderr
    ");
    assert_snapshot!(answered(&home, &text(&value.to_string()), &["--select", ".items[] | {id}"]), @r#"
    exit: 0
    ----- stdout
    {"id":7}
    {"id":8}
    ----- stderr
    "#);
    assert_snapshot!(answered(&home, &structured, &["--select", ".items[].id", "--json"]), @"
    exit: 0
    ----- stdout
    [
      7,
      8
    ]
    ----- stderr
    ");
    assert_snapshot!(answered(&home, &structured, &["--select", ".items[0]", "--bounded"]), @r#"
    exit: 0
    ----- stdout
    {"id":7,"name":"seven"}
    ----- stderr
    "#);
}

#[test]
fn all_of_an_answer_is_printed_and_nothing_twice() {
    let home = home();
    let answer = |text: &str, structured: Value, is_error: bool| {
        json!({
            "content": [{ "type": "text", "text": text }],
            "structuredContent": structured,
            "isError": is_error,
        })
    };
    // What only the structure says is printed too, also of an error.
    let beside = answer("two items", json!({ "items": [7, 8] }), false);
    assert_snapshot!(answered(&home, &beside, &[]), @r#"
    exit: 0
    ----- stdout
    two items
    {
      "items": [
        7,
        8
      ]
    }
    ----- stderr
    "#);
    let broke = answer("it broke", json!({ "code": 42 }), true);
    let output = answered(&home, &broke, &[]).expect_code(7);
    assert_eq!(output.stdout, "it broke\n{\n  \"code\": 42\n}\n");
    let empty = answer("", json!({ "id": 5 }), false);
    let output = answered(&home, &empty, &[]).expect_code(0);
    assert_eq!(output.stdout, "{\n  \"id\": 5\n}\n");
    // What the text says as well is not.
    let repeated = answer(r#"{"id": 5}"#, json!({ "id": 5 }), false);
    let output = answered(&home, &repeated, &[]).expect_code(0);
    assert_eq!(output.stdout, "{\"id\": 5}\n");
    let link = json!({ "content": [{
        "type": "resource_link", "uri": "x://a", "name": "report", "mimeType": "text/csv",
        "description": "all of\nMay",
    }] });
    let output = answered(&home, &link, &[]).expect_code(0);
    assert_eq!(output.stdout, "x://a  report  text/csv  all of May\n");
}

#[test]
fn a_filter_that_is_wrong_or_does_not_fit_is_told_with_its_column() {
    let home = home();
    let structured = json!({"structuredContent": {"items": [{"id": 7}]}});
    // Before anything is sent.
    assert_snapshot!(toolway(&home, &["call", "chaos", "count", "--select", ".items["]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value '.items[' for '--select <FILTER>': column 8: `]` is missing after `[`
    hint: see `toolway call --help`
    ");
    assert_snapshot!(answered(&home, &structured, &["--select", ".items.id"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `answer` of server `chaos` answered, but nothing can be selected: column 7: an array has no field `id`; for that of every element write `[].id`
    hint: the answer is {items: [{id: number}]}
    ");
    assert_snapshot!(answered(&home, &text("plain words"), &["--select", ".items"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `answer` of server `chaos` answered, but nothing can be selected: the result is neither structured nor JSON
    hint: leave out `--select` to see the answer
    ");
    // A tool's own error stays what it is.
    let failed = toolway(&home, &["call", "chaos", "fail", "--select", ".items"]);
    assert_eq!(
        (failed.code, failed.stdout.as_str()),
        (Some(7), "failed as asked\n")
    );
}

#[test]
fn sec_37_files_of_results_are_private_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    let mut loose = home.command("sh");
    loose.args(["-c", "umask 000; exec \"$@\"", "sh", program()]);
    loose.args(["call", "chaos", "huge", "bytes=100001", "--bounded"]);
    home.run(&mut loose).expect_code(0);
    let results = home.config_home().join("state/results");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&results), 0o700);
    let files: Vec<_> = std::fs::read_dir(&results)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1);
    assert_eq!(mode(&files[0]), 0o600);
}

#[test]
fn an_editors_answer_is_not_for_models_and_has_no_limits() {
    let home = TempHome::new();
    let server = ScriptedServer::new(Script::default()).serve_sse();
    let mut entry = server.entry();
    let bounded = |kind: &str, entry: &mut Value| {
        entry["type"] = json!(kind);
        home.write_settings(servers(&[("editor", entry.clone())]));
        let words = ["call", "editor", "huge", "bytes=200000", "--bounded"];
        toolway(&home, &words).expect_code(0).stdout
    };
    assert_eq!(
        bounded("sse-ide", &mut entry).trim_end(),
        "x".repeat(200_000)
    );
    assert!(bounded("sse", &mut entry).contains("It was saved whole."));
}
