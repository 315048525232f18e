//! What a client assertion says, and that its key signed it.

use serde_json::{Value, json};
use toolway_types::Secret;

use super::ClientKey;
use crate::jwt::{JwtAlgorithm, KeySet, SigningKey, peek};

#[test]
fn an_assertion_says_who_to_whom_and_for_how_long() {
    let (key, _) = SigningKey::generate().expect("made");
    let public = Value::Object(key.public_jwk());
    let client = ClientKey {
        key,
        id: Some("k1".to_owned()),
    };
    let issuer = "https://as.example";
    let make = || client.assertion("me", issuer, 1_000).expect("made");
    let (one, other) = (make(), make());

    let document = json!({ "keys": [public] });
    let keys = KeySet::read(document.as_object().expect("an object"));
    // The set has no ids, and the assertion names one.
    assert!(keys.verify(one.expose(), &[JwtAlgorithm::Es256]).is_err());
    let mut named = document.clone();
    named["keys"][0]["kid"] = json!("k1");
    let keys = KeySet::read(named.as_object().expect("an object"));
    let claims = keys
        .verify(one.expose(), &[JwtAlgorithm::Es256])
        .expect("good");
    assert_eq!(claims["iss"], "me");
    assert_eq!(claims["sub"], "me");
    assert_eq!(claims["aud"], issuer);
    assert_eq!(claims["iat"], 1_000);
    assert_eq!(claims["exp"], 1_300);
    let id = |token: &Secret| peek(token.expose()).expect("a token")["jti"].clone();
    assert_ne!(id(&one), id(&other));
}
