//! What a line may show.

use proptest::prelude::*;

use super::*;

const SECRET: &str = toolway_testkit::marked!("s3cr3t-", "/Äö\"x\\");

fn redactor() -> Redactor {
    Redactor::new(&[
        Secret::new(SECRET),
        Secret::new("lantern8"),
        Secret::new("abc"),
    ])
}

#[test]
fn a_known_value_is_replaced_however_it_is_spelled() {
    let redactor = redactor();
    let once = serde_json::Value::from(format!("a {SECRET} b")).to_string();
    let twice = serde_json::Value::from(once.clone()).to_string();
    for text in [once, twice] {
        let shown = redactor.json(&text, false);
        assert!(shown.contains(MARK) && !shown.contains("canary"), "{shown}");
    }
    let escaped = r#"{"text":"\u006cantern8 and lantern\u0038"}"#;
    assert_eq!(
        redactor.json(escaped, false),
        r#"{"text":"[redacted] and [redacted]"}"#
    );
    assert_eq!(
        redactor.text(toolway_testkit::marked!(
            "see /s3cr3t-",
            "%2F%C3%84%C3%B6%22x%5C?"
        )),
        "see /[redacted]?"
    );
    assert_eq!(
        redactor.text("abc is too short to hide"),
        "abc is too short to hide"
    );
}

#[test]
fn members_that_speak_of_a_secret_lose_their_value() {
    let none = Redactor::new(&[]);
    for (text, shown) in [
        (
            r#"{"access_token": "x", "a": 1}"#,
            r#"{"access_token": "[redacted]", "a": 1}"#,
        ),
        (
            r#"{"apiKey":{"value":["x","}"]},"a":1}"#,
            r#"{"apiKey":"[redacted]","a":1}"#,
        ),
        (
            r#"{"Client-Secret":12,"a":1}"#,
            r#"{"Client-Secret":"[redacted]","a":1}"#,
        ),
        (
            r#"{"password":null,"cookie":true}"#,
            r#"{"password":null,"cookie":true}"#,
        ),
        (
            r#"{"progressToken":7,"nextPageToken":"a"}"#,
            r#"{"progressToken":7,"nextPageToken":"a"}"#,
        ),
        (r#"{"pass\u0077ord":"x"}"#, r#"{"password":"[redacted]"}"#),
        (
            r#"{"text":"{\"token\": \"x\"}"}"#,
            r#"{"text":"{\"token\": \"[redacted]\"}"}"#,
        ),
        (
            r#"{"text":"[INFO] a  \"b\" c"}"#,
            r#"{"text":"[INFO] a  \"b\" c"}"#,
        ),
    ] {
        assert_eq!(none.json(text, false), shown);
    }
    assert_eq!(
        none.json(r#"{"token":"x and more"#, true),
        r#"{"token":"[redacted]""#
    );
}

#[test]
fn logged_text_loses_tokens_and_assignments() {
    let none = Redactor::new(&[]);
    for (text, shown) in [
        (
            toolway_testkit::marked!("Authorization: Bearer abc.def."),
            "Authorization: [redacted]",
        ),
        (
            "Authorization: Token abc.def, fine",
            "Authorization: [redacted], fine",
        ),
        (
            "got bearer abcdefghijklmnop, fine",
            "got bearer [redacted], fine",
        ),
        ("the bearer of news", "the bearer of news"),
        ("API_KEY=abc other=1", "API_KEY=[redacted] other=1"),
        ("url?token=abc&x=1", "url?token=[redacted]&x=1"),
        ("the token: missing", "the token: missing"),
        ("password: Lantern8", "password: [redacted]"),
        (
            r#"{"secret": "x", "y": 1}"#,
            r#"{"secret": "[redacted]", "y": 1}"#,
        ),
        ("a: b = c", "a: b = c"),
    ] {
        assert_eq!(none.text(text), shown);
    }
}

#[test]
fn a_secret_that_was_cut_in_two_is_not_half_shown() {
    let redactor = redactor();
    let whole = r#"{"a":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx lantern8"}"#;
    for end in 7..whole.len() {
        let shown = redactor.json(&whole[..end], true);
        assert!(!shown.contains("lant"), "{shown}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_it(text in "\\PC{0,80}", cut in any::<bool>()) {
        let redactor = redactor();
        redactor.json(&text, cut);
        redactor.text(&text);
    }

    #[test]
    fn json_stays_json_and_hides_the_secret(
        before in "[ -~]{0,20}", after in "[ -~]{0,20}", key in "[a-z]{1,8}",
    ) {
        let text = serde_json::json!({ key: [format!("{before}lantern8{after}")] }).to_string();
        let shown = redactor().json(&text, false);
        prop_assert!(!shown.contains("lantern8"), "{}", shown);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{}", shown);
    }
}

#[test]
fn what_is_kept_is_byte_for_byte_but_for_secrets() {
    let redactor = Redactor::new(&[Secret::new("lantern8-öx")]);
    for plain in [
        r#"{"a":"\u00e9é\u200b","b": [ 1.0, 1e3 ],"c":{"d":null}}"#,
        r#"{"properties":{"password":{"type":"string"},"token":{"enum":["a"]}}}"#,
        r#"{"_meta":{"progressToken":"p1"},"tokens":12,"maxToken":12}"#,
        r#"{"text":"{\"a\": \"b\"}"}"#,
        "not JSON at all",
        r#"{"cut":"off"#,
    ] {
        assert_eq!(redactor.kept(plain), plain);
    }
    for (text, kept) in [
        (
            r#"{"a":"x lantern8-\u00f6x y"}"#,
            r#"{"a":"x [redacted] y"}"#,
        ),
        (
            r#"{"a":"é","password":"p"}"#,
            r#"{"a":"é","password":"[redacted]"}"#,
        ),
        (
            r#"{"apiKeys":["one","two"],"b":"c"}"#,
            r#"{"apiKeys":["[redacted]","[redacted]"],"b":"c"}"#,
        ),
        (r#"{"lantern8-öx":1}"#, r#"{"[redacted]":1}"#),
        (
            r#"{"text":"{\"token\":\"abc\",\"n\":1}"}"#,
            r#"{"text":"{\"token\":\"[redacted]\",\"n\":1}"}"#,
        ),
        (
            concat!(r#"{"a":"Authorization: Bearer "#, r#"abcdefgh12345678"}"#),
            r#"{"a":"Authorization: [redacted]"}"#,
        ),
    ] {
        let found = redactor.kept(text);
        assert!(
            !found.contains("lantern8") && !redactor.is_in(&found),
            "{found}"
        );
        assert_eq!(found, kept);
    }
}
