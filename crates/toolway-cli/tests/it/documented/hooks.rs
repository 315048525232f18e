//! The hooks that the page shows, as they stand there, against those who would get past them.

use std::fs;

use serde_json::json;
use toolway_testkit::TempHome;
use toolway_testkit::peers::workspace;

use super::program_file;
use crate::support::{servers, toolway};

/// The n-th block of a language on the page.
fn block(language: &str, place: usize) -> String {
    let page = fs::read_to_string(workspace().join("docs/hooks.md")).unwrap();
    let fence = format!("```{language}\n");
    let block = page.split(&fence).nth(place + 1).unwrap();
    block.split("```").next().unwrap().to_owned()
}

/// A home whose one server answers so, with the settings that stand on the page.
fn home_with(server: &str, answer: &serde_json::Value, settings: &str) -> TempHome {
    let home = TempHome::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tools_server.py");
    let tools = json!([{ "name": "query", "inputSchema": { "type": "object" }, "answer": answer }]);
    let entry = json!({ "command": "python3", "args": ["-S", "-u", script, tools.to_string()] });
    let mut all: serde_json::Value = serde_json::from_str(settings).unwrap();
    let entries: serde_json::Value = serde_json::from_str(&servers(&[(server, entry)])).unwrap();
    all["mcpServers"] = entries["mcpServers"].clone();
    home.write_settings(all.to_string());
    home
}

#[test]
fn the_guard_of_the_page_is_passed_by_no_spelling() {
    let answer = json!({ "content": [{ "type": "text", "text": "sent" }] });
    let home = home_with("db", &answer, &block("json", 0));
    program_file(&home.home().join("bin/guard.py"), &block("python", 0));
    for sql in ["select * from users", " SELECT 1;\n"] {
        let output = toolway(&home, &["call", "db", "query", &format!("sql={sql}")]);
        assert_eq!(output.expect_code(0).stdout, "sent\n", "{sql}");
    }
    for arguments in [
        json!({ "sql": "DROP TABLE users" }),
        json!({ "sql": "select \"; drop table users" }),
        json!({ "sql": "drop/**/table users" }),
        json!({ "sql": "drop\ttable users" }),
        json!({ "sql": ["drop table users"] }),
        json!({ "SQL": "drop table users" }),
        json!({}),
    ] {
        let arguments = arguments.to_string();
        let output = toolway(&home, &["call", "db", "query", "--args", &arguments]).expect_code(6);
        let shown = output.stderr.lines().next().unwrap_or_default();
        let shown = shown.replace("[HOME]", "~");
        // Where the settings lie is the test's own.
        let (before, behind) = shown.split_once(" in ").unwrap();
        let page = block("text", 0);
        let (said_before, said_behind) = page.trim_end().split_once(" in ").unwrap();
        assert_eq!(before, said_before, "{arguments}");
        let reason = |text: &str| text.rsplit(": ").next().map(str::to_owned);
        assert_eq!(reason(behind), reason(said_behind), "{arguments}");
    }
}

#[test]
fn the_mask_of_the_page_leaves_no_address_anywhere() {
    let answer = json!({
        "content": [
            { "type": "text", "text": "write to <ann@example.com>" },
            { "type": "resource", "resource": { "uri": "crm://1", "text": "bob@example.com" } },
        ],
        "structuredContent": { "to": ["ann@example.com"], "bob@example.com": true },
    });
    let page = block("json", 2);
    let home = TempHome::new();
    let mask = home.home().join("bin/mask.py");
    let settings = page.replace("/home/me/bin/mask.py", mask.to_str().unwrap());
    let town = home_with("crm", &answer, &settings);
    program_file(&mask, &block("python", 1));
    for words in [
        &["call", "crm", "query"][..],
        &["call", "crm", "query", "--select", "."],
    ] {
        let output = toolway(&town, words).expect_code(0);
        assert!(output.stdout.contains("[address]"), "{output}");
        assert!(!output.to_string().contains("@example.com"), "{output}");
    }
}
