//! Token answers of every odd kind (REL-16).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolway_testkit::marked;

use super::{AnswerTime, MAX_LIFE, MalformedTokenAnswer, form, refusal, tokens};
use crate::token::{TokenKind, Tokens};

const NOW: u64 = 1_800_000_000;
const HOUR: u64 = 3_600;
const YEAR: u64 = 365 * 24 * HOUR;

fn read_at(answer: Value, arrival: AnswerTime) -> Result<Tokens, MalformedTokenAnswer> {
    let answer: Map<String, Value> = serde_json::from_value(answer).expect("an object");
    tokens(&answer, arrival, &["asked".to_owned()], None)
}

fn read(answer: Value) -> Tokens {
    let arrival = AnswerTime {
        now: NOW,
        server: None,
    };
    read_at(answer, arrival).expect("tokens")
}

fn jwt(exp: &Value) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!(
        "{}.{}.c2ln",
        part(json!({"alg": "RS256"})),
        part(json!({ "exp": exp }))
    )
}

#[test]
fn rel_16_an_expiry_that_says_nothing_is_none() {
    let expiry = |value: Value| {
        read(json!({ "access_token": marked!("a-"), "expires_in": value })).expires_at
    };
    // What servers write when they mean an hour.
    for hour in [
        json!(3600),
        json!(3600.0),
        json!(3600.9),
        json!("3600"),
        json!(" 3600 "),
        json!("3600.5"),
        json!("3.6e3"),
    ] {
        assert_eq!(expiry(hour.clone()), Some(NOW + HOUR), "{hour}");
    }
    // Neither "expired on arrival", which would renew without end, nor "forever".
    for nothing in [
        json!(0),
        json!(-1),
        json!(-3600),
        json!("0"),
        json!("-5"),
        json!(0.4),
        json!(null),
        json!(""),
        json!("soon"),
        json!("NaN"),
        json!([3600]),
        json!({}),
        json!(true),
    ] {
        assert_eq!(expiry(nothing.clone()), None, "{nothing}");
    }
    for huge in [
        json!(u64::MAX),
        json!(i64::MAX),
        json!(1e300),
        json!("1e300"),
        json!("inf"),
        json!(99_999_999_999_u64),
    ] {
        assert_eq!(expiry(huge.clone()), Some(NOW + MAX_LIFE), "{huge}");
    }
    assert_eq!(
        read(json!({ "access_token": marked!("a-") })).expires_at,
        None
    );
}

#[test]
fn rel_16_a_token_without_an_expiry_may_say_it_itself_by_the_servers_clock() {
    // Our clock is off by an hour or a year, either way; the token lives for ten minutes.
    for off in [0, HOUR, YEAR] {
        for server in [NOW + off, NOW - off] {
            let arrival = AnswerTime {
                now: NOW,
                server: Some(server),
            };
            let answer = json!({ "access_token": jwt(&json!(server + 600)) });
            let tokens = read_at(answer, arrival).expect("tokens");
            assert_eq!(tokens.expires_at, Some(NOW + 600), "server at {server}");
            assert!(!tokens.is_due(NOW));
            assert!(tokens.is_due(NOW + 600));
        }
    }
    // What the server says beats what the token says.
    let both = read(json!({ "access_token": jwt(&json!(NOW + 60)), "expires_in": 3600 }));
    assert_eq!(both.expires_at, Some(NOW + HOUR));
    // No `Date`, and a clock that is a year ahead: it must not look expired on arrival.
    let past = read(json!({ "access_token": jwt(&json!(NOW - YEAR)) }));
    assert_eq!(past.expires_at, None);
    for odd in [json!("never"), json!(null), json!(-1), json!([])] {
        assert_eq!(read(json!({ "access_token": jwt(&odd) })).expires_at, None);
    }
}

#[test]
fn rel_16_the_clock_may_jump_after_the_token_came() {
    let tokens = read(json!({ "access_token": marked!("a-"), "expires_in": 3600 }));
    assert!(!tokens.is_due(NOW));
    assert!(!tokens.is_due(NOW + HOUR - 61));
    assert!(tokens.is_due(NOW + HOUR - 60), "a minute early");
    // Ahead: renewed once, and the next one is measured by the new clock.
    assert!(tokens.is_due(NOW + HOUR));
    assert!(tokens.is_due(NOW + YEAR));
    // Back: what we know of the expiry means nothing.
    assert!(!tokens.is_due(NOW - 30), "clocks wobble");
    assert!(tokens.is_due(NOW - HOUR));
    assert!(tokens.is_due(NOW - YEAR));
    // Not stated: only a refusal tells.
    let silent = read(json!({ "access_token": marked!("a-") }));
    assert!(!silent.is_due(NOW + 10 * YEAR));
}

#[test]
fn rel_16_a_token_that_lives_shorter_than_the_margin_is_used_all_the_same() {
    let short = read(json!({ "access_token": marked!("a-"), "expires_in": 2 }));
    assert!(!short.is_due(NOW));
    assert!(!short.is_due(NOW + 1));
    assert!(short.is_due(NOW + 2));
    let minute = read(json!({ "access_token": marked!("a-"), "expires_in": 60 }));
    assert!(!minute.is_due(NOW + 44));
    assert!(minute.is_due(NOW + 45));
}

#[test]
fn rel_16_odd_answers_keep_what_they_do_say() {
    let full = read(json!({
        "access_token": marked!("a-"), "token_type": "BEARER", "refresh_token": marked!("r-"), "id_token": marked!("i-"),
        "scope": "one two one",
    }));
    assert_eq!(full.kind, TokenKind::Bearer);
    assert_eq!(full.refresh.expect("kept").expose(), marked!("r-"));
    assert_eq!(full.id_token.expect("kept").expose(), marked!("i-"));
    assert_eq!(full.scopes, ["one", "two"]);

    let sparse = read(
        json!({ "access_token": marked!("a-"), "refresh_token": "", "scope": "", "token_type": null }),
    );
    assert_eq!(sparse.refresh, None);
    assert_eq!(sparse.scopes, ["asked"]);
    assert_eq!(
        read(
            json!({ "access_token": marked!("a-"), "refresh_token": null, "scope": ["x", 7, "y"] })
        )
        .scopes,
        ["x", "y"]
    );
    assert_eq!(
        read(json!({ "access_token": marked!("a-"), "token_type": "dpop" })).kind,
        TokenKind::Dpop
    );

    let endless: Vec<String> = (0..100_000).map(|n| format!("s{n}")).collect();
    let endless = endless.join(" ");
    assert_eq!(
        read(json!({ "access_token": marked!("a-"), "scope": endless }))
            .scopes
            .len(),
        256
    );

    let map = form(
        marked!(
            "access_token=gho_",
            "&scope=repo&token_type=bearer&expires_in=28800"
        )
        .as_bytes(),
    );
    let arrival = AnswerTime {
        now: NOW,
        server: None,
    };
    let form = tokens(&map, arrival, &[], None).expect("tokens");
    assert_eq!(form.access.expose(), marked!("gho_"));
    assert_eq!(form.expires_at, Some(NOW + 28_800));
}

#[test]
fn an_answer_without_a_usable_token_is_refused() {
    let arrival = AnswerTime {
        now: NOW,
        server: None,
    };
    let error = |answer| read_at(answer, arrival).expect_err("refused");
    for none in [
        json!({}),
        json!({ "access_token": null }),
        json!({ "access_token": "" }),
        json!({ "access_token": 7 }),
    ] {
        assert_eq!(error(none), MalformedTokenAnswer::NoToken);
    }
    // A header must not be what a token can break out of.
    for bad in [
        "a b",
        "a\r\nX-Evil: 1",
        "a\0",
        "tökén",
        &"a".repeat(65 * 1024),
    ] {
        assert_eq!(
            error(json!({ "access_token": bad })),
            MalformedTokenAnswer::BadToken
        );
    }
    for kind in [json!("mac"), json!(7), json!("Basic")] {
        assert_eq!(
            error(json!({ "access_token": marked!("a-"), "token_type": kind })),
            MalformedTokenAnswer::Kind
        );
    }
}

#[test]
fn refusals_are_found_wherever_they_are_put() {
    let read = |answer: Value| refusal(answer.as_object().expect("an object"));
    let plain = read(json!({ "error": "invalid_grant", "error_description": "too old" }));
    let plain = plain.expect("a refusal");
    assert_eq!(plain.code, "invalid_grant");
    assert_eq!(plain.description.expect("said").to_string(), "too old");
    let nested = read(json!({ "error": { "code": "invalid_client", "message": "who?" } }));
    assert_eq!(nested.expect("a refusal").code, "invalid_client");
    for odd in [
        json!(7),
        json!(["x"]),
        json!("two words"),
        json!(""),
        json!("é"),
        json!("x".repeat(65)),
        json!({}),
    ] {
        assert_eq!(
            read(json!({ "error": odd })).expect("a refusal").code,
            "unknown"
        );
    }
    for none in [
        json!({}),
        json!({ "error": null }),
        json!({ "error": false, "access_token": marked!("a-") }),
    ] {
        assert_eq!(read(none), None);
    }
}

#[test]
fn a_successor_keeps_what_was_not_replaced() {
    let old = read(
        json!({ "access_token": marked!("a-"), "refresh_token": marked!("r1-"), "id_token": marked!("i-") }),
    );
    let kept = read(json!({ "access_token": marked!("b-") })).succeeding(&old);
    assert_eq!(kept.refresh.expect("kept").expose(), marked!("r1-"));
    assert_eq!(kept.id_token.expect("kept").expose(), marked!("i-"));
    let rotated = read(json!({ "access_token": marked!("b-"), "refresh_token": marked!("r2-") }))
        .succeeding(&old);
    assert_eq!(rotated.refresh.expect("new").expose(), marked!("r2-"));
}

#[test]
fn tokens_survive_the_vault() {
    let tokens = read(json!({
        "access_token": marked!("a-"), "refresh_token": marked!("r-"), "expires_in": 9, "token_type": "DPoP",
    }));
    let kept = serde_json::to_string(&tokens).expect("written");
    assert_eq!(serde_json::from_str::<Tokens>(&kept).expect("read"), tokens);
    // What an older version did not write.
    let old: Tokens = serde_json::from_str(r#"{"access":"a","received_at":1}"#).expect("read");
    assert_eq!(old.refresh, None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,16}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Value::from)
    })
}

proptest! {
    #[test]
    fn no_answer_makes_a_panic_or_a_token_that_is_due_for_ever(
        access in any_json(), kind in any_json(), expires in any_json(), refresh in any_json(),
        scope in any_json(), now in any::<u64>(), server in any::<Option<u64>>(),
    ) {
        let answer = json!({
            "access_token": access, "token_type": kind, "expires_in": expires,
            "refresh_token": refresh, "scope": scope,
        });
        if let Ok(tokens) = read_at(answer, AnswerTime { now, server }) {
            prop_assert!(!tokens.is_due(now), "{tokens:?}");
        }
    }
}
