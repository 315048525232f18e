//! What an attempt asks for, and which answers it takes (SEC-18, SEC-47).

use std::collections::HashMap;

use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::Secret;
use url::Url;

use super::{
    AuthorizationOptions, AuthorizationResponse, AuthorizationResponseError,
    AuthorizationStartError, PasteError, PendingAuthorization, challenge, pasted,
};

const ISSUER: &str = "https://as.example/tenant";

fn attempt_with(promises_issuer: bool, endpoint: &str) -> PendingAuthorization {
    let endpoint = Url::parse(endpoint).expect("a URL");
    let options = AuthorizationOptions {
        issuer: ISSUER,
        endpoint: &endpoint,
        challenge_methods: Some(&["plain".to_owned(), "S256".to_owned()]),
        promises_issuer,
        client_id: "client one",
        redirect_uri: "http://127.0.0.1:4711/path",
        resource: Some("https://mcp.example/mcp"),
        scopes: &["a".to_owned(), "b:c".to_owned()],
        extra: &[("nonce", "n")],
    };
    PendingAuthorization::new(&options).expect("an attempt")
}

fn attempt(promises_issuer: bool) -> PendingAuthorization {
    attempt_with(promises_issuer, "https://as.example/authorize")
}

fn parameters(attempt: &PendingAuthorization) -> HashMap<String, String> {
    let pairs: Vec<_> = attempt.url().query_pairs().into_owned().collect();
    let map: HashMap<_, _> = pairs.iter().cloned().collect();
    assert_eq!(map.len(), pairs.len(), "no name twice");
    map
}

fn state(attempt: &PendingAuthorization) -> String {
    parameters(attempt)["state"].clone()
}

fn query(pairs: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs).finish()
}

fn answer(pairs: &[(&str, &str)]) -> AuthorizationResponse {
    AuthorizationResponse::from_query(&query(pairs))
}

#[test]
fn the_address_says_everything_once() {
    let attempt = attempt(false);
    let parameters = parameters(&attempt);
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "client one"),
        ("redirect_uri", "http://127.0.0.1:4711/path"),
        ("resource", "https://mcp.example/mcp"),
        ("scope", "a b:c"),
        ("code_challenge_method", "S256"),
        ("nonce", "n"),
    ] {
        assert_eq!(parameters[name], value);
    }
    let code = attempt
        .check(&answer(&[("state", &state(&attempt)), ("code", MARK)]))
        .expect("good");
    assert_eq!(parameters["code_challenge"], challenge(&code.verifier));
    assert_eq!(code.verifier.expose().len(), 43);
    let other = super::tests::attempt(false);
    assert_ne!(state(&attempt), state(&other));
}

#[test]
fn the_challenge_is_that_of_the_rfc() {
    // RFC 7636, appendix B.
    let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    assert_eq!(
        challenge(&verifier),
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    );
}

#[test]
fn an_endpoint_cannot_smuggle_parameters_in() {
    let attempt = attempt_with(
        false,
        "https://as.example/authorize?tenant=1&redirect_uri=https://evil.example&state=mine&scope=all&request_uri=x&request=y#frag",
    );
    let parameters = parameters(&attempt);
    assert_eq!(parameters["tenant"], "1");
    assert_eq!(parameters["redirect_uri"], "http://127.0.0.1:4711/path");
    assert_ne!(parameters["state"], "mine");
    assert_eq!(parameters["scope"], "a b:c");
    assert!(!parameters.contains_key("request_uri") && !parameters.contains_key("request"));
    assert_eq!(attempt.url().fragment(), None);
}

#[test]
fn without_pkce_there_is_no_attempt() {
    let endpoint = Url::parse("https://as.example/authorize").expect("a URL");
    for methods in [
        None,
        Some(vec![]),
        Some(vec!["plain".to_owned()]),
        Some(vec!["s256".to_owned()]),
    ] {
        let refused = PendingAuthorization::new(&AuthorizationOptions {
            issuer: ISSUER,
            endpoint: &endpoint,
            challenge_methods: methods.as_deref(),
            promises_issuer: false,
            client_id: "c",
            redirect_uri: "http://127.0.0.1/",
            resource: None,
            scopes: &[],
            extra: &[],
        });
        let error = refused.expect_err("refused");
        assert!(matches!(error, AuthorizationStartError::NoPkce { .. }));
        assert!(error.to_string().contains(ISSUER));
    }
}

#[test]
fn sec_18_the_issuer_of_an_answer_by_the_table() {
    // Promised by the metadata, said by the answer: what becomes of it.
    let rows = [
        (true, Some(ISSUER), true),
        (true, None, false),
        (false, Some(ISSUER), true),
        (false, None, true),
    ];
    for (promised, said, good) in rows {
        let attempt = attempt(promised);
        let state = state(&attempt);
        let mut pairs = vec![("state", state.as_str()), ("code", MARK)];
        pairs.extend(said.map(|issuer| ("iss", issuer)));
        let judged = attempt.check(&answer(&pairs));
        assert_eq!(judged.is_ok(), good, "{promised} {said:?}");
        // An error is held against the same table before it is believed.
        pairs[1] = ("error", "access_denied");
        match attempt.check(&answer(&pairs)) {
            Err(AuthorizationResponseError::Declined { .. }) => assert!(good),
            Err(AuthorizationResponseError::IssuerMissing { .. }) => assert!(!good),
            other => panic!("{promised} {said:?}: {other:?}"),
        }
    }
}

#[test]
fn sec_18_an_issuer_that_is_nearly_right_is_wrong() {
    for near in [
        "https://as.example/tenant/",
        "https://as.example/Tenant",
        "https://AS.example/tenant",
        "https://as.example:443/tenant",
        "https://as.example/%74enant",
        "https://as.example/./tenant",
        "https://as.example/tenant?",
        "https://as.example/tenant#",
        "HTTPS://as.example/tenant",
        "http://as.example/tenant",
        "https://as.example",
        " https://as.example/tenant",
        "https://evil.example/tenant",
        "",
    ] {
        for promised in [true, false] {
            let attempt = attempt(promised);
            let state = state(&attempt);
            let code = answer(&[("state", &state), ("code", MARK), ("iss", near)]);
            let error = attempt.check(&code).expect_err(near);
            assert!(
                matches!(error, AuthorizationResponseError::IssuerMismatch { .. }),
                "{near}"
            );
            // What another server says about errors is neither believed nor shown.
            let lie = answer(&[
                ("state", &state),
                ("error", marked!("code-")),
                ("error_description", marked!("text-")),
                ("iss", near),
            ]);
            let error = attempt.check(&lie).expect_err(near);
            assert!(
                matches!(error, AuthorizationResponseError::IssuerMismatch { .. }),
                "{near}"
            );
            assert!(!format!("{error} {error:?}").contains(MARK));
        }
    }
}

#[test]
fn a_foreign_state_ends_the_reading() {
    let attempt = attempt(true);
    let state = state(&attempt);
    let short = &state[..state.len() - 1];
    let long = format!("{state}x");
    for wrong in [
        None,
        Some(""),
        Some("x"),
        Some(short),
        Some(long.as_str()),
        Some(&state.to_uppercase()),
    ] {
        let mut pairs = vec![("code", MARK), ("iss", ISSUER), ("error", "access_denied")];
        pairs.extend(wrong.map(|state| ("state", state)));
        assert_eq!(
            attempt.check(&answer(&pairs)),
            Err(AuthorizationResponseError::State)
        );
    }
    for (name, twice) in [
        ("state", state.as_str()),
        ("code", MARK),
        ("iss", ISSUER),
        ("error", "e"),
    ] {
        let pairs = [
            ("state", state.as_str()),
            ("code", MARK),
            ("iss", ISSUER),
            ("error", "e"),
            (name, twice),
        ];
        assert_eq!(
            attempt.check(&answer(&pairs)),
            Err(AuthorizationResponseError::Repeated(name))
        );
    }
}

#[test]
fn a_refusal_is_told_and_a_missing_code_too() {
    let attempt = attempt(false);
    let state = state(&attempt);
    let refused = attempt.check(&answer(&[
        ("state", &state),
        ("error", "invalid_scope"),
        ("error_description", "no such\u{1b}[31m scope\n"),
        ("code", MARK),
    ]));
    assert_eq!(
        refused.expect_err("refused").to_string(),
        "the authorization server https://as.example/tenant refused the login: invalid_scope (no such scope)"
    );
    for pairs in [
        vec![("state", state.as_str())],
        vec![("state", state.as_str()), ("code", "")],
    ] {
        let error = attempt.check(&answer(&pairs)).expect_err("no code");
        assert!(matches!(error, AuthorizationResponseError::NoCode { .. }));
    }
}

#[test]
fn what_a_person_pastes_is_read() {
    let attempt = attempt(false);
    let state = state(&attempt);
    let query = query(&[("code", marked!("the code ")), ("state", &state)]);
    let (begin, end) = query.split_at(20);
    for text in [
        format!("http://127.0.0.1:4711/path?{query}"),
        format!("  \"http://127.0.0.1:4711/path?{query}\"\r\n"),
        format!("<http://localhost/callback?{query}#_=_>"),
        format!("http://127.0.0.1:4711/path?{begin}\n  {end}"),
        format!("?{query}"),
        query.clone(),
    ] {
        let answer = pasted(&text).expect("an answer");
        let code = attempt.check(&answer).expect("ours");
        assert_eq!(code.code.expose(), marked!("the code "), "{text}");
    }
    assert_eq!(pasted(" \n ").expect_err("nothing"), PasteError::Empty);
    for text in [
        marked!("just-a-code-"),
        "http://127.0.0.1/path",
        marked!("code="),
        "state=s",
        marked!("http://127.0.0.1/?code="),
    ] {
        assert_eq!(
            pasted(text).expect_err(text),
            PasteError::NotWhole,
            "{text}"
        );
    }
    assert_eq!(
        pasted(attempt.url().as_str()).expect_err("the way there"),
        PasteError::LoginPage
    );
}

#[test]
fn sec_47_an_attempt_and_its_answers_show_no_secret() {
    let attempt = attempt(true);
    let state = state(&attempt);
    let given = answer(&[
        ("state", &state),
        ("code", marked!("code-")),
        ("iss", ISSUER),
    ]);
    let code = attempt.check(&given).expect("good");
    let foreign = attempt.check(&answer(&[
        ("state", marked!("state-")),
        ("code", marked!("code-")),
    ]));
    let shown = format!(
        "{attempt:?} {given:?} {code:?} {foreign:?} {:#?}",
        (&attempt, &given)
    );
    for secret in [MARK, state.as_str(), code.verifier.expose()] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
