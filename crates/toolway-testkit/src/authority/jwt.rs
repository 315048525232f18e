//! Signed tokens: the authority's own key, the keys of clients, and checking both.
//!
//! Owns signatures and key sets. Which claims a token must have is said where it is used.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::CANARY;

/// A P-256 key: the authority signs with one, and a client that authenticates with
/// `private_key_jwt` or proves possession has one.
pub struct TestKey {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
    kid: String,
}

impl std::fmt::Debug for TestKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "SigningKey({})", self.kid)
    }
}

impl Default for TestKey {
    fn default() -> Self {
        Self::new()
    }
}

impl TestKey {
    /// A fresh key.
    pub fn new() -> Self {
        let rng = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &rng).expect("a key is made");
        let pair =
            EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &rng).expect("a key is read");
        Self {
            pair,
            pkcs8: pkcs8.as_ref().to_vec(),
            kid: random(6),
        }
    }

    /// The private key as PKCS#8 in PEM, for a client's configuration.
    pub fn pem(&self) -> String {
        let text = STANDARD.encode(&self.pkcs8);
        let mut pem = "-----BEGIN PRIVATE KEY-----\n".to_owned();
        for line in text.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END PRIVATE KEY-----\n");
        pem
    }

    /// The public key as a JWK.
    pub fn jwk(&self) -> Value {
        // An uncompressed point: a mark, then both coordinates.
        let point = self.pair.public_key().as_ref();
        json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.kid,
            "x": encode(&point[1..33]), "y": encode(&point[33..65]) })
    }

    /// The public key as a key set.
    pub fn jwks(&self) -> Value {
        json!({ "keys": [self.jwk()] })
    }

    /// These claims, signed. The header begins with the canary, so that the text of every token
    /// begins alike.
    pub fn sign(&self, typ: &str, claims: &Value) -> String {
        self.sign_with(
            &json!({ "canary": CANARY, "alg": "ES256", "kid": self.kid, "typ": typ }),
            claims,
        )
    }

    /// These claims under exactly this header, e.g. with a `jwk` for a proof of possession.
    pub fn sign_with(&self, header: &Value, claims: &Value) -> String {
        let input = format!(
            "{}.{}",
            encode(header.to_string().as_bytes()),
            encode(claims.to_string().as_bytes())
        );
        let signature = self
            .pair
            .sign(&SystemRandom::new(), input.as_bytes())
            .expect("a signature is made");
        format!("{input}.{}", encode(signature.as_ref()))
    }
}

/// A token taken apart.
pub(super) struct DecodedToken {
    pub(super) header: Value,
    pub(super) claims: Value,
}

/// Takes a token apart without believing it.
pub(super) fn look(token: &str) -> Option<DecodedToken> {
    let mut parts = token.split('.');
    let mut part = || serde_json::from_slice(&decode(parts.next()?)?).ok();
    Some(DecodedToken {
        header: part()?,
        claims: part()?,
    })
}

/// Takes a token apart when one of these keys signed it.
pub(super) fn verify(token: &str, jwks: &Value) -> Option<DecodedToken> {
    let parts = look(token)?;
    let (input, signature) = token.rsplit_once('.')?;
    let signature = decode(signature)?;
    let alg = parts.header["alg"].as_str()?;
    let kid = parts.header["kid"].as_str();
    let keys = jwks["keys"].as_array()?;
    keys.iter()
        .filter(|key| kid.is_none() || key["kid"].is_null() || key["kid"].as_str() == kid)
        .any(|key| signed(alg, key, input.as_bytes(), &signature))
        .then_some(parts)
}

fn signed(alg: &str, key: &Value, input: &[u8], signature: &[u8]) -> bool {
    let field = |name: &str| key[name].as_str().and_then(decode).unwrap_or_default();
    match (alg, key["kty"].as_str()) {
        ("ES256", Some("EC")) if key["crv"] == "P-256" => {
            let point = [vec![4], field("x"), field("y")].concat();
            UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                .verify(input, signature)
                .is_ok()
        }
        ("RS256", Some("RSA")) => {
            let (n, e) = (field("n"), field("e"));
            signature::RsaPublicKeyComponents { n, e }
                .verify(&signature::RSA_PKCS1_2048_8192_SHA256, input, signature)
                .is_ok()
        }
        ("EdDSA", Some("OKP")) => UnparsedPublicKey::new(&signature::ED25519, field("x"))
            .verify(input, signature)
            .is_ok(),
        _ => false,
    }
}

/// A key's name by its content (RFC 7638).
pub(super) fn thumbprint(jwk: &Value) -> String {
    let text = match jwk["kty"].as_str() {
        Some("EC") => format!(
            r#"{{"crv":{},"kty":"EC","x":{},"y":{}}}"#,
            jwk["crv"], jwk["x"], jwk["y"]
        ),
        Some("RSA") => format!(r#"{{"e":{},"kty":"RSA","n":{}}}"#, jwk["e"], jwk["n"]),
        _ => format!(r#"{{"crv":{},"kty":"OKP","x":{}}}"#, jwk["crv"], jwk["x"]),
    };
    digest(&text)
}

/// SHA-256 in the alphabet of URLs: what S256 means, and how a proof names a token.
pub(super) fn digest(text: &str) -> String {
    encode(&Sha256::digest(text.as_bytes()))
}

/// So many random bytes as text.
pub(super) fn random(bytes: usize) -> String {
    let mut buffer = vec![0; bytes];
    SystemRandom::new()
        .fill(&mut buffer)
        .expect("the system has randomness");
    encode_hex(&buffer)
}

fn encode_hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    let pairs = bytes
        .iter()
        .map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    pairs.flatten().collect()
}

pub(super) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

/// What `Authorization: Basic` carries.
pub(super) fn decode_basic(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_believed_only_with_the_key_that_signed_it() {
        let (own, other) = (TestKey::new(), TestKey::new());
        let token = own.sign("JWT", &json!({ "sub": "a" }));
        assert_eq!(verify(&token, &own.jwks()).unwrap().claims["sub"], "a");
        assert!(verify(&token, &other.jwks()).is_none());
        let (head, rest) = token.split_once('.').unwrap();
        let (_, signature) = rest.rsplit_once('.').unwrap();
        let forged = format!("{head}.{}.{signature}", encode(br#"{"sub":"b"}"#));
        assert!(verify(&forged, &own.jwks()).is_none());
        let unsigned = format!("{}.{}.", encode(br#"{"alg":"none"}"#), encode(b"{}"));
        assert!(verify(&unsigned, &own.jwks()).is_none());
    }

    #[test]
    fn a_thumbprint_is_that_of_the_standard() {
        // RFC 7638 3.1 has only an RSA key; its digest is published there.
        let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        let jwk = json!({ "kty": "RSA", "e": "AQAB", "n": n });
        assert_eq!(
            thumbprint(&jwk),
            "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
        );
    }
}
