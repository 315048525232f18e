//! Every token here is one that must not be taken.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};
use toolway_auth::clock::unix_now;
use toolway_auth::inbound::{AccessClaimError, InboundFault};
use toolway_auth::jwt::VerifyError;
use toolway_testkit::authority::TestKey;

use super::{OURS, Stage};

fn encode(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

#[tokio::test]
async fn sec_46_a_token_for_somebody_else_or_another_time_is_not_taken() {
    let stage = Stage::new().await;
    let (now, issuer) = (unix_now(), stage.issuer.origin());
    for (changes, error) in [
        (
            json!({ "aud": "https://other.example/mcp" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": ["https://a.example", "https://b.example"] }),
            AccessClaimError::Audience,
        ),
        (json!({ "aud": [] }), AccessClaimError::Audience),
        (json!({ "aud": null }), AccessClaimError::Audience),
        (json!({ "aud": { "0": OURS } }), AccessClaimError::Audience),
        (json!({ "aud": "editor" }), AccessClaimError::Audience),
        (
            json!({ "aud": "https://gateway.example" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "https://gateway.example/mcp/" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "https://gateway.example/mcp2" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "https://gateway.example/MCP" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "http://gateway.example/mcp" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "https://gateway.example:8443/mcp" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "https://gateway.example.evil/mcp" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "https://gateway.example@evil.example/mcp" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "https://evil@gateway.example/mcp" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "https://gateway.example/mcp?for=other" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "https://gateway.example/mcp#other" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": "https://gateway.example/m\tcp" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "aud": format!("{OURS} https://other.example") }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "resource": OURS, "aud": "other" }),
            AccessClaimError::Audience,
        ),
        (
            json!({ "iss": stage.attacker.origin() }),
            AccessClaimError::Issuer,
        ),
        (
            json!({ "iss": format!("{issuer}/") }),
            AccessClaimError::Issuer,
        ),
        (
            json!({ "iss": format!("{issuer}.evil.example") }),
            AccessClaimError::Issuer,
        ),
        (
            json!({ "iss": &issuer[..issuer.len() - 1] }),
            AccessClaimError::Issuer,
        ),
        (
            json!({ "iss": issuer.to_uppercase() }),
            AccessClaimError::Issuer,
        ),
        (json!({ "iss": [issuer] }), AccessClaimError::Issuer),
        (json!({ "iss": null }), AccessClaimError::Issuer),
        (json!({ "exp": now - 61 }), AccessClaimError::Expired),
        (json!({ "exp": 0 }), AccessClaimError::Expired),
        (json!({ "exp": -1 }), AccessClaimError::Expired),
        (json!({ "exp": "never" }), AccessClaimError::Expired),
        (json!({ "exp": null }), AccessClaimError::Expired),
        (json!({ "nbf": now + 3600 }), AccessClaimError::NotYet),
        (json!({ "nbf": "soon" }), AccessClaimError::NotYet),
        (json!({ "iat": now + 3600 }), AccessClaimError::NotYet),
        (json!({ "sub": null }), AccessClaimError::Subject),
        (json!({ "sub": "" }), AccessClaimError::Subject),
        (json!({ "sub": "x".repeat(256) }), AccessClaimError::Subject),
        (json!({ "sub": 7 }), AccessClaimError::Subject),
        (json!({ "cnf": { "jkt": "abc" } }), AccessClaimError::Bound),
        (
            json!({ "cnf": { "x5t#S256": "abc" } }),
            AccessClaimError::Bound,
        ),
    ] {
        let token = stage.token(&changes);
        assert_eq!(
            stage.refused(&token).await,
            InboundFault::Claims(error),
            "{changes}"
        );
    }
    assert!(
        stage.attacker.lines().is_empty(),
        "no issuer is learned from a token"
    );
}

#[tokio::test]
async fn sec_46_a_token_that_no_accepted_issuer_signed_is_not_taken() {
    let stage = Stage::new().await;
    let good = stage.token(&json!({}));
    assert!(stage.check(&good).await.is_ok());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (_, payload) = signed.split_once('.').unwrap();
    let jwk = stage.key.jwk();
    let kid = &jwk["kid"];
    let under = |header: &Value, signature: &str| {
        format!("{}.{payload}.{signature}", encode(header.to_string()))
    };
    // What only the public key is needed for.
    let symmetric = |secret: &[u8]| {
        let header = json!({ "alg": "HS256", "kid": kid, "typ": "at+jwt" });
        let input = format!("{}.{payload}", encode(header.to_string()));
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let tag = hmac::sign(&key, input.as_bytes());
        format!("{input}.{}", encode(tag.as_ref()))
    };
    let point = [
        &[4][..],
        &URL_SAFE_NO_PAD.decode(jwk["x"].as_str().unwrap()).unwrap(),
        &URL_SAFE_NO_PAD.decode(jwk["y"].as_str().unwrap()).unwrap(),
    ]
    .concat();
    let other = TestKey::new();
    let theirs = other.jwk();
    stage.attacker.put("/keys", &other.jwks());
    let claims = stage.claims(&json!({}));
    let at = |path: &str| stage.attacker.url(path).to_string();
    let from_other = |more: &Value| {
        let mut header = json!({ "alg": "ES256", "kid": kid, "typ": "at+jwt" });
        for (name, value) in more.as_object().unwrap() {
            header[name] = value.clone();
        }
        other.sign_with(&header, &claims)
    };
    let changed = stage.claims(&json!({ "sub": "somebody else" })).to_string();
    let header = signed.split_once('.').unwrap().0;
    let doubled = format!("{{\"alg\":\"ES256\",\"kid\":{kid},\"alg\":\"none\"}}");
    for (what, token, error) in [
        (
            "none",
            under(&json!({ "alg": "none" }), ""),
            VerifyError::Algorithm,
        ),
        (
            "None",
            under(&json!({ "alg": "None" }), signature),
            VerifyError::Algorithm,
        ),
        (
            "no alg",
            under(&json!({ "kid": kid }), signature),
            VerifyError::Algorithm,
        ),
        (
            "alg list",
            under(&json!({ "alg": ["ES256"] }), signature),
            VerifyError::Algorithm,
        ),
        (
            "symmetric by the point",
            symmetric(&point),
            VerifyError::Algorithm,
        ),
        (
            "symmetric by the JWK",
            symmetric(jwk.to_string().as_bytes()),
            VerifyError::Algorithm,
        ),
        (
            "another kind of key",
            under(&json!({ "alg": "RS256", "kid": kid }), signature),
            VerifyError::UnknownKey,
        ),
        ("wrong key", from_other(&json!({})), VerifyError::Signature),
        (
            "own key",
            from_other(&json!({ "jwk": theirs })),
            VerifyError::Signature,
        ),
        (
            "own key set",
            from_other(&json!({ "jku": at("/keys") })),
            VerifyError::Signature,
        ),
        (
            "own certificate",
            from_other(&json!({ "x5u": at("/cert"), "x5c": ["AA=="] })),
            VerifyError::Signature,
        ),
        (
            "own name of a key",
            from_other(&json!({ "kid": theirs["kid"] })),
            VerifyError::UnknownKey,
        ),
        (
            "a path for a name",
            from_other(&json!({ "kid": "../../../../dev/null" })),
            VerifyError::UnknownKey,
        ),
        (
            "an address for a name",
            from_other(&json!({ "kid": at("/keys") })),
            VerifyError::UnknownKey,
        ),
        (
            "a query for a name",
            from_other(&json!({ "kid": "x' UNION SELECT 'k" })),
            VerifyError::UnknownKey,
        ),
        (
            "critical",
            stage.headed(&json!({ "alg": "ES256", "kid": kid, "crit": ["exp"] })),
            VerifyError::Critical,
        ),
        ("no signature", format!("{signed}."), VerifyError::Signature),
        (
            "zeros for a signature",
            format!("{signed}.{}", encode([0; 64])),
            VerifyError::Signature,
        ),
        (
            "other claims",
            format!("{header}.{}.{signature}", encode(changed)),
            VerifyError::Signature,
        ),
        (
            "doubled header",
            format!("{}.{payload}.{signature}", encode(doubled)),
            VerifyError::Malformed,
        ),
        ("two parts", signed.to_owned(), VerifyError::Malformed),
        (
            "four parts",
            format!("{good}.{signature}"),
            VerifyError::Malformed,
        ),
        (
            "encrypted",
            format!("{good}.{signature}.{signature}"),
            VerifyError::Malformed,
        ),
        (
            "opaque",
            "0123456789abcdef".to_owned(),
            VerifyError::Malformed,
        ),
        ("nothing", String::new(), VerifyError::Malformed),
        ("padding", format!("{good}=="), VerifyError::Malformed),
    ] {
        assert_eq!(
            stage.refused(&token).await,
            InboundFault::Signature(error),
            "{what}"
        );
    }
    let deep = format!("{{\"iss\":{}1{}}}", "[".repeat(3000), "]".repeat(3000));
    let deep = format!("{header}.{}.{signature}", encode(deep));
    assert_eq!(
        stage.refused(&deep).await,
        InboundFault::Signature(VerifyError::Malformed)
    );
    for kind in ["logout+jwt", "dpop+jwt", "oauth-id-jag+jwt", ""] {
        let token = stage.headed(&json!({ "alg": "ES256", "kid": kid, "typ": kind }));
        let why = stage.refused(&token).await;
        assert_eq!(why, InboundFault::Claims(AccessClaimError::Kind), "{kind}");
    }
    assert!(
        stage.attacker.lines().is_empty(),
        "{:?}",
        stage.attacker.lines()
    );
    assert_eq!(stage.fetches(), 1, "strangers do not make us ask");
}
