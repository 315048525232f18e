//! Headers as the specifications show them, as servers send them, and anything at all.

use proptest::prelude::*;

use super::*;

fn schemes(header: &str) -> Vec<String> {
    parse(header)
        .into_iter()
        .map(|challenge| challenge.scheme)
        .collect()
}

fn parameters(header: &str) -> Vec<(String, String)> {
    parse(header)
        .into_iter()
        .flat_map(|challenge| challenge.parameters)
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn several_challenges_share_one_header() {
    let header = r#"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#;
    let read = parse(header);
    assert_eq!(schemes(header), ["basic", "newauth"]);
    assert_eq!(read[0].parameters, pairs(&[("realm", "simple")]));
    assert_eq!(
        read[1].parameters,
        pairs(&[
            ("realm", "apps"),
            ("type", "1"),
            ("title", "Login to \"apps\"")
        ])
    );
    assert_eq!(schemes("Negotiate, Basic realm=x"), ["negotiate", "basic"]);
}

#[test]
fn a_bare_value_is_told_from_a_parameter() {
    let read = parse("Negotiate YII+/a-._~==, Bearer scope=a, NTLM");
    assert_eq!(read[0].token68.as_deref(), Some("YII+/a-._~=="));
    assert_eq!(read[1].token68, None);
    assert_eq!(read[1].parameters, pairs(&[("scope", "a")]));
    assert_eq!((read[2].scheme.as_str(), &read[2].token68), ("ntlm", &None));
    assert_eq!(parse("Basic abc=")[0].token68.as_deref(), Some("abc="));
}

#[test]
fn the_challenge_of_the_specification_is_read() {
    let read = bearer(
        r#"Bearer error="insufficient_scope", scope="files:read files:write files:read",
           resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource",
           error_description="needs, \"write\"""#,
    )
    .unwrap();
    assert_eq!(read.error, Some(BearerError::InsufficientScope));
    assert_eq!(read.scopes, ["files:read", "files:write"]);
    assert_eq!(
        read.resource_metadata.unwrap().as_str(),
        "https://mcp.example.com/.well-known/oauth-protected-resource"
    );
    assert_eq!(
        read.error_description.unwrap().to_string(),
        "needs, \"write\""
    );
}

#[test]
fn what_servers_get_wrong_is_still_read() {
    // No commas, spaces around `=`, an unquoted URL, odd case, stray commas, an open quote.
    for (header, expected) in [
        (
            r#"Bearer realm="a" scope="b""#,
            &[("realm", "a"), ("scope", "b")][..],
        ),
        (
            r#"BEARER Realm = "a" ,, SCOPE= b ,"#,
            &[("realm", "a"), ("scope", "b")],
        ),
        (
            "bearer resource_metadata=https://a.example/x?y=z, scope=b",
            &[
                ("resource_metadata", "https://a.example/x?y=z"),
                ("scope", "b"),
            ],
        ),
        (
            r#", ,Bearer realm="open, scope=b"#,
            &[("realm", "open, scope=b")],
        ),
        (
            r#"Bearer realm="", scope="#,
            &[("realm", ""), ("scope", "")],
        ),
        (r#"Bearer "junk, here", @@, realm="a""#, &[("realm", "a")]),
        (r#"Bearer realm="back\"#, &[("realm", "back")]),
    ] {
        assert_eq!(schemes(header), ["bearer"], "{header}");
        assert_eq!(parameters(header), pairs(expected), "{header}");
    }
    assert_eq!(parse(r#"realm="nobody's""#), []);
    assert_eq!(parse(""), []);
    assert_eq!(parse(" , ,, "), []);
}

#[test]
fn the_first_of_repeated_parameters_counts() {
    let read = bearer("Bearer scope=a, scope=b, error=invalid_token").unwrap();
    assert_eq!(read.scopes, ["a"]);
    assert_eq!(read.error, Some(BearerError::InvalidToken));
}

#[test]
fn a_bearer_that_says_where_to_log_in_is_preferred() {
    let read = bearer(
        "Basic realm=x, Bearer realm=a, Bearer realm=b, resource_metadata=\"https://b.example/\"",
    )
    .unwrap();
    assert_eq!(read.realm, Some(Untrusted::new("b")));
    assert_eq!(
        bearer("Bearer, Basic realm=x"),
        Some(BearerChallenge::default())
    );
    assert_eq!(bearer("Basic realm=Bearer"), None);
    assert_eq!(bearer("Bearerish realm=x"), None);
}

#[test]
fn sec_16_only_web_addresses_count_as_metadata() {
    for bad in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "/relative",
        "data:,x",
        "",
        "https://",
    ] {
        let read = bearer(&format!("Bearer resource_metadata=\"{bad}\"")).unwrap();
        assert_eq!(read.resource_metadata, None, "{bad}");
    }
}

#[test]
fn scopes_outside_the_grammar_are_left_out() {
    let read = bearer("Bearer scope=\"a b\\\"c \u{e4} d\\\\e  f\u{7f} g:h/i\"").unwrap();
    assert_eq!(read.scopes, ["a", "g:h/i"]);
}

#[test]
fn sec_35_what_the_server_says_is_shown_cleaned() {
    let read = bearer("Bearer error=\"\u{1b}[31modd\", error_description=\"x\u{202e}y\"").unwrap();
    assert_eq!(
        read.error,
        Some(BearerError::Other(Untrusted::new("\u{1b}[31modd")))
    );
    assert_eq!(read.error_description.unwrap().to_string(), "xy");
}

#[test]
fn a_login_is_told_from_a_failure() {
    assert_eq!(need(401, None), Some(AuthNeed::Login(None)));
    assert_eq!(need(403, None), None);
    assert_eq!(need(404, Some("Bearer")), None);
    let two = Some("Basic realm=\"\u{fffd}\", Bearer error=invalid_token");
    assert!(matches!(
        need(401, two),
        Some(AuthNeed::Login(Some(BearerChallenge {
            error: Some(BearerError::InvalidToken),
            ..
        })))
    ));
    assert_eq!(need(403, two), None);
    for wider in ["Bearer error=insufficient_scope", "Bearer scope=admin"] {
        let found = need(403, Some(wider));
        assert!(matches!(found, Some(AuthNeed::Scopes(_))), "{found:?}");
    }
}

proptest! {
    #[test]
    fn anything_is_read_without_panic(header in any::<String>()) {
        bearer(&header);
    }

    #[test]
    fn near_headers_never_give_more_than_stands_there(
        header in r#"([Bb]earer|Basic|[a-z_]{1,4}|[ ,="\\]{1,3}|é|/){0,24}"#,
    ) {
        let read = parse(&header);
        let held: usize = read
            .iter()
            .flat_map(|challenge| {
                let parameters =
                    challenge.parameters.iter().map(|(name, value)| name.len() + value.len());
                parameters.chain([challenge.scheme.len(), challenge.token68.iter().map(String::len).sum()])
            })
            .sum();
        prop_assert!(held <= header.len());
    }

    #[test]
    fn well_formed_challenges_are_read_back(
        challenges in prop::collection::vec(
            ("[a-z]{1,6}", prop::collection::vec(("[a-z_]{1,6}", "[ -~]{0,8}"), 1..4)),
            1..4,
        ),
    ) {
        let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let written: Vec<String> = challenges
            .iter()
            .map(|(scheme, parameters)| {
                let parameters: Vec<String> = parameters
                    .iter()
                    .map(|(name, value)| format!("{name}=\"{}\"", quote(value)))
                    .collect();
                format!("{scheme} {}", parameters.join(", "))
            })
            .collect();
        let read: Vec<_> = parse(&written.join(", "))
            .into_iter()
            .map(|challenge| (challenge.scheme, challenge.parameters))
            .collect();
        prop_assert_eq!(read, challenges);
    }
}

#[test]
fn a_challenge_for_proof_of_possession_says_where_to_log_in_too() {
    let header = "DPoP algs=\"ES256\", resource_metadata=\"https://a.example/prm\", scope=\"x y\"";
    let read = bearer(header).unwrap();
    assert_eq!(
        read.resource_metadata.unwrap().as_str(),
        "https://a.example/prm"
    );
    assert_eq!(read.scopes, ["x", "y"]);
    let both = "DPoP algs=\"ES256\", Bearer resource_metadata=\"https://a.example/prm\"";
    assert!(bearer(both).unwrap().resource_metadata.is_some());
    assert!(matches!(
        need(401, Some(header)),
        Some(AuthNeed::Login(Some(_)))
    ));
}
