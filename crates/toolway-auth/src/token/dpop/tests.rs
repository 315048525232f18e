//! Proofs of possession, their nonces, and the key in the vault.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::Secret;
use url::Url;

use super::DpopKey;
use crate::jwt::{JwtAlgorithm, KeySet, peek};

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

/// The header and the claims of a proof that is signed by the key in its own header.
fn verified(proof: &str) -> (Map<String, Value>, Map<String, Value>) {
    let header = proof.split('.').next().expect("a header");
    let header = URL_SAFE_NO_PAD.decode(header).expect("base64");
    let header: Map<String, Value> = serde_json::from_slice(&header).expect("an object");
    let document = json!({ "keys": [header["jwk"]] });
    let keys = KeySet::read(document.as_object().expect("an object"));
    let claims = keys.verify(proof, &[JwtAlgorithm::Es256]).expect("signed");
    (header, claims)
}

#[test]
fn a_proof_is_for_one_request_and_one_token() {
    let key = DpopKey::generate().expect("made");
    let target = url("https://mcp.example/mcp?session=1#there");
    let token = Secret::new("the-token");
    let make = || {
        key.proof_at("POST", &target, Some(&token), None, 42)
            .expect("made")
    };
    let (header, claims) = verified(&make());
    assert_eq!(header["typ"], "dpop+jwt");
    assert!(
        header["jwk"].get("d").is_none(),
        "the private half stays here"
    );
    assert_eq!(claims["htm"], "POST");
    assert_eq!(claims["htu"], "https://mcp.example/mcp");
    assert_eq!(claims["iat"], 42);
    // base64url of SHA-256 of "the-token".
    assert_eq!(claims["ath"], "wqc_z2HfvcrceaELozCy7162b8Cmc17Wm3lrs8l7l64");
    assert!(claims.get("nonce").is_none());
    assert_ne!(claims["jti"], verified(&make()).1["jti"]);
    let bare = key.proof_at("POST", &target, None, None, 42).expect("made");
    assert!(verified(&bare).1.get("ath").is_none());
}

#[test]
fn nonces_belong_to_the_origin_that_gave_them() {
    let key = DpopKey::generate().expect("made");
    let (server, other) = (
        url("https://as.example/token"),
        url("https://mcp.example/mcp"),
    );
    let nonce = |target: &Url| {
        let proof = key.proof("POST", target, None, None).expect("made");
        peek(&proof).expect("a token").get("nonce").cloned()
    };
    let mut headers = HeaderMap::new();
    assert!(!key.learn(&server, &headers));
    headers.insert("dpop-nonce", "n1".parse().expect("a value"));
    assert!(key.learn(&server, &headers));
    assert!(!key.learn(&server, &headers), "nothing new");
    assert_eq!(nonce(&url("https://as.example/other")), Some(json!("n1")));
    assert_eq!(nonce(&other), None);
    let named = key.proof("POST", &server, None, Some("n2")).expect("made");
    assert_eq!(peek(&named).expect("a token")["nonce"], "n2");
    for n in 0..1_000 {
        key.learn(&url(&format!("https://{n}.example/")), &headers);
    }
    assert!(key.nonces().len() <= super::MAX_ORIGINS);
}

#[test]
fn a_key_survives_the_vault_and_shows_itself_nowhere() {
    let key = DpopKey::generate().expect("made");
    let kept = serde_json::to_string(&key).expect("written");
    let again: DpopKey = serde_json::from_str(&kept).expect("read");
    assert_eq!(again, key);
    assert_eq!(again.thumbprint(), key.thumbprint());
    assert!(!format!("{key:?}").contains(key.kept().expose()));
    let broken = serde_json::from_str::<DpopKey>(marked!("\"", "\"")).expect_err("no key");
    assert!(!broken.to_string().contains(MARK));
}

#[test]
fn the_thumbprint_is_of_the_required_members_in_order() {
    let key = DpopKey::generate().expect("made");
    let names: Vec<String> = key.0.key.public_jwk().keys().cloned().collect();
    assert_eq!(names, ["crv", "kty", "x", "y"]);
    assert_eq!(key.thumbprint().len(), 43);
}
