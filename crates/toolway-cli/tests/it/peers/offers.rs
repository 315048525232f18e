//! Resources, prompts and completion of `server-everything`.

use serde_json::Value;
use toolway_testkit::TempHome;

use super::{home_with, node};
use crate::support::toolway;

fn everything() -> TempHome {
    home_with("everything", node("server-everything", &["stdio"]))
}

#[test]
fn everything_has_resources_to_list_and_to_read() {
    let home = everything();
    let listing = toolway(&home, &["resources", "--json"])
        .expect_code(0)
        .json();
    let listed = listing["resources"].as_array().unwrap();
    let markdown = listed
        .iter()
        .find(|resource| resource["mimeType"] == "text/markdown")
        .unwrap_or_else(|| panic!("{listing}"));
    let uri = markdown["uri"].as_str().unwrap();
    let text = toolway(&home, &["read", uri]).expect_code(0);
    assert!(text.stdout.contains('#'), "{text}");
    let templates: Vec<&str> = listing["templates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|template| template["uriTemplate"].as_str().unwrap())
        .collect();
    assert_eq!(
        templates,
        [
            "demo://resource/dynamic/blob/{resourceId}",
            "demo://resource/dynamic/text/{resourceId}"
        ]
    );

    let read = toolway(&home, &["read", templates[1], "resourceId=7"]).expect_code(0);
    assert!(
        read.stdout
            .starts_with("Resource 7: This is a plaintext resource"),
        "{read}"
    );
    // The same by its URI alone, which no list has.
    let whole = toolway(&home, &["read", "demo://resource/dynamic/text/7"]).expect_code(0);
    assert!(whole.stdout.starts_with("Resource 7: "), "{whole}");
    let file = home.project().join("seven");
    let path = file.to_str().unwrap();
    toolway(&home, &["read", templates[0], "resourceId=7", "-o", path]).expect_code(0);
    let bytes = std::fs::read_to_string(&file).unwrap();
    assert!(
        bytes.starts_with("Resource 7: This is a base64 blob"),
        "{bytes}"
    );
    let saved = toolway(&home, &["read", templates[0], "resourceId=8"]).expect_code(0);
    assert!(saved.stdout.starts_with("[text/plain, "), "{saved}");
    let refused = toolway(
        &home,
        &["read", "demo://resource/dynamic/text/no", "everything"],
    );
    assert_eq!(refused.code, Some(7), "{refused}");
}

#[test]
fn everything_has_prompts_that_take_arguments() {
    let home = everything();
    let simple = toolway(&home, &["prompt", "mcp__everything__simple-prompt"]).expect_code(0);
    assert!(simple.stdout.starts_with("[user]\n"), "{simple}");
    let words = [
        "prompt",
        "everything",
        "args-prompt",
        "city=Rome",
        "state=Lazio",
    ];
    let weather = toolway(&home, &words).expect_code(0);
    assert_eq!(weather.stdout, "[user]\nWhat's weather in Rome, Lazio?\n");
    let missing = toolway(&home, &["prompt", "everything", "args-prompt"]).expect_code(2);
    assert!(
        missing.stderr.contains(
            "hint: it is called as `toolway prompt everything args-prompt city=<text> [state=<text>]`"
        ),
        "{missing}"
    );
    let words = [
        "prompt",
        "everything",
        "resource-prompt",
        "resourceType=Text",
        "resourceId=3",
    ];
    let embedded = toolway(&home, &words).expect_code(0);
    assert!(
        embedded
            .stdout
            .contains("<demo://resource/dynamic/text/3>\nResource 3: "),
        "{embedded}"
    );
}

#[test]
fn everything_completes_by_what_was_given_before() {
    let home = everything();
    let offered = |line: &str| {
        let (_, replaced) = line.rsplit_once('=').unwrap();
        let output = toolway(&home, &["__complete", "bash", line, replaced]).expect_code(0);
        output.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let prompt = "toolway prompt everything completable-prompt";
    assert_eq!(
        offered(&format!("{prompt} department=S")),
        ["Sales", "Support"]
    );
    assert_eq!(
        offered(&format!("{prompt} department=Sales name=")),
        ["David", "Eve", "Frank"]
    );
    assert_eq!(
        offered("toolway read demo://resource/dynamic/text/{resourceId} resourceId=4"),
        ["4"]
    );
}

#[test]
fn everything_is_checked_against_what_it_promises() {
    let home = everything();
    let words = [
        "call",
        "everything",
        "get-structured-content",
        "location=New York",
        "--json",
    ];
    let output = toolway(&home, &words).expect_code(0);
    let result: Value = output.json();
    assert!(result["structuredContent"].is_object(), "{output}");
    assert_eq!(output.stderr, "");
}
