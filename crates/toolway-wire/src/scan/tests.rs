//! Reading JSON text without a parser.

use super::*;

fn pairs(json: &str) -> Vec<(&str, &str)> {
    members(json).collect()
}

#[test]
fn members_are_given_as_they_stand_there() {
    let json = r#" { "a" : [1, {"b": "}"}] , "c\"": "x\\" ,"d":-1.5 , "e" :{ } ,"f": null } "#;
    assert_eq!(
        pairs(json),
        [
            (r#""a""#, r#"[1, {"b": "}"}]"#),
            (r#""c\"""#, r#""x\\""#),
            (r#""d""#, "-1.5"),
            (r#""e""#, "{ }"),
            (r#""f""#, "null"),
        ]
    );
    for none in ["", "{}", "[1]", "7", r#""{""#, " "] {
        assert_eq!(pairs(none), [], "{none}");
    }
}

#[test]
fn sec_22_a_member_is_told_only_where_nobody_can_read_another() {
    let lone = |json| lone_member(json, "a");
    assert_eq!(lone(r#"{"b":1, "a" : [2] }"#), LoneMember::Is("[2]"));
    assert_eq!(lone(r#"{"a":null}"#), LoneMember::Is("null"));
    assert_eq!(lone(r#"{"b":{"a":1}}"#), LoneMember::Absent);
    assert_eq!(lone("{}"), LoneMember::Absent);
    for unclear in [
        r#"{"a":1,"a":2}"#,
        r#"{"b":1,"b":2,"a":3}"#,
        r#"{"\u0061":1}"#,
        "[1]",
        "7",
    ] {
        assert_eq!(lone(unclear), LoneMember::Unclear, "{unclear}");
    }
    let many: Vec<String> = (0..FEW_KEYS).map(|key| format!("\"k{key}\":0")).collect();
    let many = many.join(",");
    let (few, many) = (format!("{{{many}}}"), format!("{{{many},\"a\":1}}"));
    assert_eq!(lone_member(&few, "a"), LoneMember::Absent);
    assert_eq!(lone_member(&many, "a"), LoneMember::Unclear);
}

#[test]
fn sec_21_a_rare_name_is_missed_only_where_nobody_can_read_it() {
    let name = RareName::new("task");
    for json in [
        r#"{"task":1}"#,
        r#"{"\u0074ask":1}"#,
        r#"{"a":[{"t\u0061sk":1}]}"#,
    ] {
        assert!(name.may_stand_in(json), "{json}");
    }
    for json in ["{}", r#"{"tas":"k","Task":1}"#] {
        assert!(!name.may_stand_in(json), "{json}");
    }
}

#[test]
fn members_are_found_by_name() {
    let json = r#"{"x":"a","\u0061":1,"b":null}"#;
    assert_eq!(member(json, "a"), Some("1"));
    assert_eq!(member(json, "x"), Some("\"a\""));
    assert_eq!(member(json, "b"), None);
    assert_eq!(member(json, "c"), None);
}

#[test]
fn strings_end_where_they_end_however_long_they_are() {
    for length in 0..10 * NEAR {
        let text = "x".repeat(length);
        for string in [format!("\"{text}\""), format!("\"{text}\\\"{text}\"")] {
            let json = format!("{string},\"y\"");
            assert_eq!(string_end(json.as_bytes(), 0), string.len(), "{json}");
        }
        let cut = format!("\"{text}\\");
        assert_eq!(string_end(cut.as_bytes(), 0), cut.len());
    }
}

#[test]
fn every_byte_that_means_something_in_a_string_is_seen_wherever_it_stands() {
    for byte in 0..=u8::MAX {
        for (length, place) in (0..40).flat_map(|length| (0..length).map(move |at| (length, at))) {
            let mut text = vec![b'x'; length];
            text[place] = byte;
            let is_mark = matches!(byte, b'"' | b'\\');
            let end = |is_seen: bool| if is_seen { place } else { length };
            assert_eq!(plain_run(&text, false), end(is_mark), "{byte} at {place}");
            let is_seen = is_mark || byte < 0x20;
            assert_eq!(plain_run(&text, true), end(is_seen), "{byte} at {place}");
        }
    }
    assert_eq!(plain_run(&[b'x'; 9 * NEAR], true), 8 * NEAR);
    assert_eq!(plain_run(b"\xff\x7f\x1f\"\\\x00", true), 2);
}

#[test]
fn text_that_breaks_off_anywhere_is_survived() {
    let json = r#"{"a": {"b": ["é\\", "\"]"]}, "c": tru"#;
    for end in (0..json.len()).filter(|end| json.is_char_boundary(*end)) {
        let _ = pairs(&json[..end]);
    }
    assert_eq!(pairs(json)[1], (r#""c""#, "tru"));
    assert_eq!(pairs(r#"{"a": "x\"#), [(r#""a""#, r#""x\"#)]);
}

#[test]
fn texts_are_read_with_their_escapes() {
    for (json, read) in [
        (r#""plain""#, Some("plain")),
        (r#""\u00e9\n""#, Some("é\n")),
        (r#""\ud800""#, None),
        ("7", None),
        ("\"", None),
    ] {
        assert_eq!(text(json).as_deref(), read, "{json}");
    }
}
