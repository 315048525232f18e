//! Keys of every kind, tokens of others, and tokens that are not to be believed.

use serde_json::{Map, Value, json};
use toolway_testkit::marked;
use toolway_types::Secret;

use super::{JwtAlgorithm, KeyError, KeySet, SigningKey, VerifyError, encode, peek};

const RSA: &str = include_str!("fixtures/rsa.pem");
const RSA_PKCS1: &str = include_str!("fixtures/rsa-pkcs1.pem");
const EC: &str = include_str!("fixtures/ec-sec1.pem");
const EC384: &str = include_str!("fixtures/ec384-sec1.pem");
const ED25519: &str = include_str!("fixtures/ed25519.pem");
/// Signed with the key above by another implementation.
const BY_OPENSSL: &str = include_str!("fixtures/rsa-by-openssl.jwt");

const EVERY: &[JwtAlgorithm] = &JwtAlgorithm::ALL;

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

fn key(pem: &str, algorithm: Option<JwtAlgorithm>) -> SigningKey {
    SigningKey::from_pem(&Secret::new(pem), algorithm).expect("the key is good")
}

fn set(keys: &[(&SigningKey, &str)]) -> KeySet {
    let keys: Vec<Value> = keys
        .iter()
        .map(|(key, id)| {
            let mut jwk = key.public_jwk();
            jwk.insert("kid".to_owned(), json!(id));
            Value::Object(jwk)
        })
        .collect();
    KeySet::read(&object(&json!({ "keys": keys })))
}

fn signed(key: &SigningKey, header: &Value) -> String {
    let token = key.sign(object(header), &object(&json!({ "sub": "me" })));
    token.expect("signed").expose().to_owned()
}

#[test]
fn every_kind_of_key_signs_what_its_public_half_believes() {
    let cases = [
        (RSA, None, "RS256"),
        (RSA_PKCS1, None, "RS256"),
        (RSA, Some(JwtAlgorithm::Rs384), "RS384"),
        (RSA, Some(JwtAlgorithm::Rs512), "RS512"),
        (RSA, Some(JwtAlgorithm::Ps256), "PS256"),
        (EC, None, "ES256"),
        (EC, Some(JwtAlgorithm::Es256), "ES256"),
        (EC384, None, "ES384"),
        (ED25519, None, "EdDSA"),
    ];
    for (pem, asked, name) in cases {
        let key = key(pem, asked);
        assert_eq!(key.algorithm().as_str(), name);
        let token = signed(&key, &json!({ "kid": "k" }));
        let claims = set(&[(&key, "k")]).verify(&token, EVERY);
        assert_eq!(claims.expect(name).get("sub"), Some(&json!("me")), "{name}");
    }
}

#[test]
fn what_others_signed_is_believed() {
    let rsa = key(RSA, None);
    let claims = set(&[(&rsa, "r")]).verify(BY_OPENSSL.trim(), EVERY);
    assert_eq!(claims.expect("good").get("sub"), Some(&json!("by openssl")));

    // RFC 7515, appendix A.3.
    let keys = KeySet::read(&object(&json!({ "keys": [{
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    }] })));
    let token = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let claims = keys.verify(token, EVERY).expect("good");
    assert_eq!(claims.get("iss"), Some(&json!("joe")));
}

#[test]
fn a_token_that_chooses_its_own_algorithm_is_not_believed() {
    let ec = key(EC, None);
    let keys = set(&[(&ec, "k")]);
    let good = signed(&ec, &json!({ "kid": "k" }));
    let (_, rest) = good.split_once('.').expect("three parts");
    for alg in ["none", "None", "HS256", "HS512", "ES256K", "RS1", ""] {
        let header = encode(json!({ "alg": alg, "kid": "k" }).to_string());
        assert_eq!(
            keys.verify(&format!("{header}.{rest}"), EVERY),
            Err(VerifyError::Algorithm),
            "{alg}"
        );
    }
    // Allowed in general, and not here.
    assert_eq!(
        keys.verify(&good, &[JwtAlgorithm::Rs256]),
        Err(VerifyError::Algorithm)
    );
    // The key is of another kind than the algorithm.
    let header = encode(json!({ "alg": "RS256", "kid": "k" }).to_string());
    assert_eq!(
        keys.verify(&format!("{header}.{rest}"), EVERY),
        Err(VerifyError::UnknownKey)
    );
}

#[test]
fn only_the_named_key_counts() {
    let (mine, other) = (key(EC, None), SigningKey::generate().expect("made").0);
    let token = signed(&mine, &json!({ "kid": "mine" }));
    let both = set(&[(&other, "other"), (&mine, "mine")]);
    assert!(both.verify(&token, EVERY).is_ok());
    let renamed = set(&[(&mine, "another name")]);
    assert_eq!(renamed.verify(&token, EVERY), Err(VerifyError::UnknownKey));
    let swapped = set(&[(&other, "mine")]);
    assert_eq!(swapped.verify(&token, EVERY), Err(VerifyError::Signature));
    // Without a name every fitting key is tried.
    let nameless = signed(&mine, &json!({}));
    assert!(both.verify(&nameless, EVERY).is_ok());
    // A key for encrypting signs nothing.
    let mut jwk = mine.public_jwk();
    jwk.insert("use".to_owned(), json!("enc"));
    let keys = KeySet::read(&object(&json!({ "keys": [jwk] })));
    assert_eq!(keys.verify(&nameless, EVERY), Err(VerifyError::UnknownKey));
}

#[test]
fn broken_tokens_are_refused_without_a_panic() {
    let ec = key(EC, None);
    let keys = set(&[(&ec, "k")]);
    let good = signed(&ec, &json!({ "kid": "k" }));
    for bad in [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "e30.e30.",
        &good[1..],
        &format!("{good}.x"),
    ] {
        assert!(keys.verify(bad, EVERY).is_err(), "{bad}");
    }
    let critical = signed(&ec, &json!({ "kid": "k", "crit": ["exp"] }));
    assert_eq!(keys.verify(&critical, EVERY), Err(VerifyError::Critical));
    let last = good.rfind('.').expect("three parts");
    let forged = format!(
        "{}.{}",
        encode(r#"{"alg":"ES256","kid":"k"}"#),
        encode(r#"{"sub":"root"}"#)
    );
    let forged = format!("{forged}{}", &good[last..]);
    assert_eq!(keys.verify(&forged, EVERY), Err(VerifyError::Signature));
    assert_eq!(peek("opaque-token"), None);
    assert_eq!(peek(&"a".repeat(1 << 20)), None);
}

#[test]
fn keys_that_cannot_be_used_say_what_is_wanted() {
    let read =
        |pem: &str, asked| SigningKey::from_pem(&Secret::new(pem), asked).expect_err("refused");
    assert_eq!(read(marked!("not-a-key-"), None), KeyError::NoKey);
    assert_eq!(
        read(
            "-----BEGIN PRIVATE KEY-----\nQ0FOQVJZ\n-----END PRIVATE KEY-----\n",
            None
        ),
        KeyError::Unusable
    );
    let wrong = read(EC, Some(JwtAlgorithm::Rs256));
    assert_eq!(
        wrong.to_string(),
        "the private key does not fit the algorithm RS256: it signs with ES256"
    );
    assert!(matches!(
        read(RSA, Some(JwtAlgorithm::Es256)),
        KeyError::WrongKind { .. }
    ));
}
