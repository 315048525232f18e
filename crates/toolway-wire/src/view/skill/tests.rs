//! Entries as servers write them, and as they must not.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::*;

const MAIN: &str = "skill://acme/refunds/SKILL.md";

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn file(uri: &str) -> Value {
    json!({ "uri": uri, "digest": format!("sha256:{}", "0f".repeat(32)), "size": 12 })
}

fn entry() -> Value {
    json!({
        "uri": MAIN,
        "frontmatter": { "name": "refunds", "description": "Refunds", "license": "MIT" },
        "resources": [file(MAIN), file("skill://acme/refunds/examples/email.md")],
    })
}

/// What is wrong with the only entry of a list.
fn fault(entry: &Value) -> String {
    let page = skills(&raw(&json!({ "skills": [entry] }))).unwrap();
    assert!(page.items.is_empty(), "{:?}", page.items);
    page.faults[0].reason.clone()
}

#[test]
fn an_entry_is_read_with_everything_its_author_wrote() {
    let page = skills(&raw(&json!({ "skills": [entry()], "nextCursor": "2" }))).unwrap();
    assert_eq!(page.next_cursor.as_deref(), Some("2"));
    let skill = &page.items[0];
    assert_eq!(
        (skill.name.as_str(), skill.root()),
        ("refunds", "skill://acme/refunds")
    );
    assert_eq!(skill.frontmatter["license"], "MIT");
    let SkillFiles::Listed(files) = &skill.files else {
        panic!("{:?}", skill.files)
    };
    assert_eq!((files.len(), files[0].size), (2, 12));
    let single = skill_result(&raw(&json!({ "skill": entry() }))).unwrap();
    assert_eq!(single.files, skill.files);
}

#[test]
fn files_that_are_made_when_read_are_said_to_be() {
    let mut entry = entry();
    entry["resources"] = json!("dynamic");
    let page = skills(&raw(&json!({ "skills": [entry] }))).unwrap();
    assert_eq!(page.items[0].files, SkillFiles::Dynamic);
}

#[test]
fn a_malformed_entry_costs_that_entry() {
    let list = json!({ "skills": [7, entry(), { "uri": MAIN }] });
    let page = skills(&raw(&list)).unwrap();
    assert_eq!((page.items.len(), page.faults.len()), (1, 2));
    assert_eq!(page.faults[1].name.as_deref(), Some(MAIN));
    assert!(skills(&raw(&json!({}))).is_err());
    assert!(skill_result(&raw(&json!({}))).is_err());
}

#[test]
fn an_entry_that_contradicts_itself_is_left_out() {
    let with = |change: fn(&mut Value)| {
        let mut changed = entry();
        change(&mut changed);
        fault(&changed)
    };
    let says = |reason: String, word: &str| assert!(reason.contains(word), "{reason}");
    says(
        with(|e| e["frontmatter"]["name"] = json!("payouts")),
        "payouts",
    );
    says(
        with(|e| e["uri"] = json!("skill://acme/refunds")),
        "SKILL.md",
    );
    says(
        with(|e| {
            e["frontmatter"].as_object_mut().unwrap().remove("name");
        }),
        "`name`",
    );
    says(
        with(|e| e["frontmatter"]["description"] = json!(1)),
        "description",
    );
    says(
        with(|e| e["resources"] = json!("static")),
        "neither a list nor",
    );
    says(with(|e| e["resources"] = Value::Null), "missing");
    says(with(|e| e["resources"] = json!([])), "lack its own");
    says(with(|e| e["resources"][1] = file(MAIN)), "is listed twice");
    says(with(|e| e["resources"][0]["size"] = json!(-1)), "size");
    says(
        with(|e| e["resources"][0]["digest"] = json!("sha256:ABC")),
        "digest",
    );
    let doubled = r#"{"skills":[{"uri":"skill://a/SKILL.md","frontmatter":
        {"name":"a","name":"b","description":"d"},"resources":"dynamic"}]}"#;
    let page = skills(&RawValue::from_string(doubled.to_owned()).unwrap()).unwrap();
    says(page.faults[0].reason.clone(), "twice");
}

#[test]
fn files_outside_the_folder_are_refused_however_they_are_spelled() {
    for outside in [
        "skill://acme/payouts/SKILL.md",
        "skill://acme/refundsother/x.md",
        "skill://acme/refunds/../payouts/x.md",
        "skill://acme/refunds/%2E%2e/payouts/x.md",
        "skill://acme/refunds/a\\..\\..\\x.md",
        "skill://acme/refunds//x.md",
        "skill://acme/refunds/",
        "file:///etc/passwd",
    ] {
        let mut entry = entry();
        entry["resources"][1] = file(outside);
        assert!(fault(&entry).contains("outside"), "{outside}");
    }
}
