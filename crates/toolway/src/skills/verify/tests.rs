//! Heads and digests that agree, and those that nearly do.

use std::fmt::Write as _;

use serde_json::json;

use super::*;

fn check(listed: Value, head: &str) -> Result<(), FailedCheck> {
    let Value::Object(listed) = listed else {
        panic!("a listed head is an object")
    };
    frontmatter(&listed, &format!("---\n{head}---\n\nBody.\n"))
}

fn listed() -> Value {
    json!({ "name": "pdf", "description": "Fills: forms", "metadata": { "version": 1, "tags": ["a", "b"] } })
}

#[test]
fn a_head_that_says_the_same_in_yaml_is_the_same() {
    let head =
        "name: pdf\ndescription: 'Fills: forms'\nmetadata:\n  tags: [a, b]\n  version: 1.0\n";
    assert_eq!(check(listed(), head), Ok(()));
    let folded =
        "name: pdf\ndescription: >-\n  Fills:\n  forms\nmetadata: {version: 1, tags: [a, b]}\n";
    assert_eq!(check(listed(), folded), Ok(()));
}

#[test]
fn words_are_words_and_dates_are_text() {
    let listed = json!({ "answer": "no", "sure": true, "on": "2026-07-28", "octal": 10 });
    let head = "answer: no\nsure: true\non: 2026-07-28\noctal: 010\n";
    assert_eq!(check(listed, head), Ok(()));
}

#[test]
fn line_ends_and_a_byte_order_mark_do_not_matter() {
    let text = "\u{feff}--- \r\nname: pdf\r\ndescription: d\r\n---\r\nBody";
    let Value::Object(listed) = json!({ "name": "pdf", "description": "d" }) else {
        unreachable!()
    };
    assert_eq!(frontmatter(&listed, text), Ok(()));
}

#[test]
fn any_difference_in_any_field_is_found_and_named() {
    let differs = |head: &str| match check(listed(), head) {
        Err(FailedCheck::Frontmatter {
            field,
            expected,
            found,
        }) => (
            field.to_string(),
            expected.map(|it| it.to_string()),
            found.map(|it| it.to_string()),
        ),
        other => panic!("{other:?}"),
    };
    let rest = "metadata: {version: 1, tags: [a, b]}\n";
    let head = |description: &str| format!("name: pdf\ndescription: {description}\n{rest}");
    assert_eq!(
        differs(&head("Exfiltrate")),
        (
            "description".to_owned(),
            Some("\"Fills: forms\"".to_owned()),
            Some("\"Exfiltrate\"".to_owned())
        )
    );
    let more = format!("{}allowed-tools: Bash\n", head("'Fills: forms'"));
    assert_eq!(
        differs(&more),
        (
            "allowed-tools".to_owned(),
            None,
            Some("\"Bash\"".to_owned())
        )
    );
    assert_eq!(
        differs("name: pdf\ndescription: 'Fills: forms'\n").0,
        "metadata"
    );
    let nested = head("'Fills: forms'").replace("[a, b]", "[a, b, c]");
    assert_eq!(differs(&nested).0, "metadata");
    // Text that looks like a number is not that number.
    let quoted = head("'Fills: forms'").replace("version: 1", "version: '1'");
    assert_eq!(differs(&quoted).0, "metadata");
}

#[test]
fn a_file_without_a_usable_head_says_why() {
    let Value::Object(listed) = listed() else {
        unreachable!()
    };
    let huge = format!("---\nname: {}\n---\n", "x".repeat(MAX_HEAD));
    for text in [
        "",
        "# No head",
        "---\nname: pdf\n",
        "----\nname: pdf\n---\n",
        " ---\nname: pdf\n---\n",
        "---\n- a list\n---\n",
        "---\nname: [\n---\n",
        "---\nname: pdf\nname: other\n---\n",
        "---\na: &a [x, x]\nb: &b [*a, *a]\nc: *missing\n---\n",
        &huge,
    ] {
        let outcome = frontmatter(&listed, text);
        assert!(
            matches!(outcome, Err(FailedCheck::NoFrontmatter { .. })),
            "{text:.40}: {outcome:?}"
        );
    }
}

#[test]
fn a_head_that_grows_when_it_is_read_is_refused() {
    let mut head = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let alias = format!("*a{},", level - 1).repeat(10);
        writeln!(head, "a{level}: &a{level} [{alias}]").expect("a string takes all");
    }
    let outcome = check(listed(), &head);
    assert!(
        matches!(outcome, Err(FailedCheck::NoFrontmatter { .. })),
        "{outcome:?}"
    );
}

#[test]
fn size_and_digest_are_both_compared() {
    let digest = |text: &str| format!("sha256:{}", hex::encode(Sha256::digest(text)));
    let listed = SkillFile {
        uri: "skill://a/SKILL.md".to_owned(),
        digest: digest("abc"),
        size: 3,
    };
    assert_eq!(bytes(&listed, b"abc"), Ok(()));
    assert_eq!(
        bytes(&listed, b"abcd"),
        Err(FailedCheck::Size {
            expected: 3,
            found: 4
        })
    );
    assert_eq!(
        bytes(&listed, b"abd"),
        Err(FailedCheck::Digest {
            expected: digest("abc"),
            found: digest("abd"),
        })
    );
}
