//! Results of real servers, as a model would get them.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use toolway::{CallOptions, Consent, ResultDelivery, ToolRequest, ToolTarget, Treatment};
use toolway_testkit::TempHome;

use super::{call, home_with, node};
use crate::results::{PNG, follow_recipes};
use crate::support::servers;

#[test]
fn everything_shows_its_picture_and_its_resources() {
    let home = home_with("everything", node("server-everything", &["stdio"]));
    let image = call(
        &home,
        &["everything", "get-tiny-image", "--bounded", "--json"],
    )
    .json();
    let blocks = image["content"].as_array().unwrap();
    let picture = blocks
        .iter()
        .find(|block| block["type"] == "image")
        .unwrap();
    assert_eq!(picture["mimeType"], "image/png");
    let plain = call(&home, &["everything", "get-tiny-image", "--bounded"]);
    assert!(plain.stdout.contains("[image/png, "), "{plain}");
    assert!(plain.stdout.contains(" pixels]"), "{plain}");

    let words = [
        "everything",
        "get-resource-reference",
        "resourceType=Text",
        "resourceId=1",
        "--bounded",
        "--json",
    ];
    let resource = call(&home, &words).json();
    let blocks = resource["content"].as_array().unwrap();
    let embedded = blocks
        .iter()
        .find(|block| block["type"] == "resource")
        .unwrap();
    assert!(embedded["resource"]["text"].is_string(), "{resource}");
    let words = [
        "everything",
        "get-resource-reference",
        "resourceType=Blob",
        "resourceId=1",
        "--bounded",
    ];
    let blob = call(&home, &words);
    assert!(blob.stdout.contains("[A resource from "), "{blob}");

    let links = call(
        &home,
        &["everything", "get-resource-links", "count=2", "--bounded"],
    );
    assert_eq!(links.stdout.matches("[link ").count(), 2, "{links}");
    let weather = call(
        &home,
        &[
            "everything",
            "get-structured-content",
            "location=New York",
            "--select",
            ".temperature",
        ],
    );
    assert!(weather.stdout.trim().parse::<f64>().is_ok(), "{weather}");
}

/// It gives the picture twice: as a block, and once more in its structured content.
#[test]
fn a_picture_of_the_filesystem_server_is_shown_once_and_never_as_base64() {
    let home = TempHome::new();
    let file = home.home().join("dot.png");
    std::fs::write(&file, STANDARD.decode(PNG).unwrap()).unwrap();
    let folder = home.home().display().to_string();
    let entry = node("server-filesystem", &[&folder]);
    home.write_settings(servers(&[("files", entry)]));
    let path = format!("path={}", file.display());
    let plain = call(&home, &["files", "read_media_file", &path]);
    assert_eq!(plain.stdout.lines().count(), 1, "{plain}");
    assert!(plain.stdout.starts_with("[image/png, "), "{plain}");
    let bounded = call(&home, &["files", "read_media_file", &path, "--bounded"]);
    assert_eq!(bounded.stdout, "[image/png, 1 × 1 pixels]\n");
    let whole = call(&home, &["files", "read_media_file", &path, "--json"]).json();
    let again = &whole["structuredContent"]["content"][0]["data"];
    assert_eq!(again, &whole["content"][0]["data"]);
}

/// A file of five megabytes: saved, and read back through the answer's own instructions.
#[test]
fn a_large_file_of_the_filesystem_server_is_read_by_the_answers_own_commands() {
    let home = TempHome::new();
    let mut lines = String::new();
    for n in 0..100_000 {
        let _ = writeln!(
            lines,
            "line {n:06} of a very long text, and all of it is here"
        );
    }
    assert!(lines.len() > 4_900_000);
    let file = home.write("notes/long.txt", &lines);
    let records: Vec<Value> = (0..60_000)
        .map(|id| serde_json::json!({"id": id, "name": "a record with a name", "tags": ["x", "y"]}))
        .collect();
    let json = serde_json::json!({ "records": records }).to_string();
    let data = home.write("notes/data.json", &json);
    let root = home.project().join("notes").canonicalize().unwrap();
    home.write_settings(servers(&[(
        "files",
        node("server-filesystem", &[root.to_str().unwrap()]),
    )]));
    let path = |file: &std::path::Path| format!("path={}", file.canonicalize().unwrap().display());

    let answer = call(
        &home,
        &["files", "read_text_file", &path(&file), "--bounded"],
    );
    assert!(answer.stdout.len() < 4_000, "{answer}");
    assert!(answer.stdout.contains("Format: plain text"), "{answer}");
    let read = follow_recipes(&home, &answer.stdout);
    assert!(read[0].1.starts_with("line 000000 of"), "{read:?}");
    // The second command goes on exactly where the first one ended.
    let both = format!("{}{}", read[0].1, read[1].1);
    assert!(
        lines.starts_with(&both) && both.len() > 20_000,
        "{}",
        both.len()
    );
    let saved = answer
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("File: "))
        .unwrap();
    let saved = saved.replace("[HOME]", &home.home().display().to_string());
    assert!(
        std::fs::read_to_string(&saved).unwrap() == lines,
        "not the same bytes"
    );

    let answer = call(
        &home,
        &["files", "read_text_file", &path(&data), "--bounded"],
    );
    assert!(
        answer
            .stdout
            .contains("Structure: {records: [{id: number, name: string, tags: [string]}]}"),
        "{answer}"
    );
    let read = follow_recipes(&home, &answer.stdout);
    assert_eq!(read[0].1, "60000\n");
    let first: Value = serde_json::from_str(&read[1].1).unwrap();
    assert_eq!(first[9]["id"], 9);
}

/// The same through the library: the whole result, and beside it what a model gets.
#[tokio::test]
async fn a_large_file_through_the_library_is_whole_and_bounded() {
    let home = TempHome::new();
    let text = "a line of words, again and again\n".repeat(150_000);
    let file = home.write("notes/long.txt", &text);
    let root = home.project().join("notes").canonicalize().unwrap();
    home.write_settings(servers(&[(
        "files",
        node("server-filesystem", &[root.to_str().unwrap()]),
    )]));
    let host = super::embedded::host(&home);
    host.settled().await;
    let path = file.canonicalize().unwrap().display().to_string();
    let request = ToolRequest::new(
        ToolTarget::Exposed("mcp__files__read_text_file".to_owned()),
        serde_json::Map::from_iter([("path".to_owned(), path.into())]),
    );
    let options = CallOptions {
        delivery: ResultDelivery::Bounded,
        ..CallOptions::new(Consent::Typed)
    };
    let outcome = host.call(request, options).await.unwrap();
    assert!(outcome.raw.get().len() > text.len());
    let bounded = outcome.bounded.as_ref().unwrap();
    let Treatment::Saved { files } = &bounded.treatment else {
        panic!("{:?}", bounded.treatment)
    };
    // The server repeats the text as structured content; it is saved once.
    assert_eq!(files.len(), 1);
    assert!(std::fs::read_to_string(&files[0].path).unwrap() == text);
    assert!(bounded.tokens < 1_000, "{}", bounded.tokens);
    let first = outcome.select(&".content[0:6]".parse().unwrap()).unwrap();
    assert_eq!(first, ["a line"]);
    host.shutdown().await;
}
