//! Public keys as an issuer publishes them (RFC 7517), and whether one of them signed a token.

use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::{Map, Value};

use super::{JwtAlgorithm, JwtParts, decode};

/// The most keys of a set that are looked at. Real sets have a handful.
const MAX_KEYS: usize = 64;

/// Why a token is not believed. Names no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// It has no three parts, or they cannot be read.
    #[error("it is no signed JSON web token")]
    Malformed,
    /// Its algorithm is unknown, symmetric, `none`, or not among those allowed.
    #[error("it is signed by an algorithm that is not allowed")]
    Algorithm,
    /// It says that a reader must understand something, which this one does not.
    #[error("it has critical header members that are not understood")]
    Critical,
    /// No key of the set is the one it names. A newer set may have it.
    #[error("it is signed by a key that its issuer does not publish")]
    UnknownKey,
    /// The signature is wrong.
    #[error("its signature is wrong")]
    Signature,
}

/// The keys of an issuer.
#[derive(Debug, Clone, Default)]
pub struct KeySet(Vec<Map<String, Value>>);

impl KeySet {
    /// Reads a key set. Keys that cannot be used are left out, as the RFC asks.
    pub fn read(document: &Map<String, Value>) -> Self {
        let keys = document.get("keys").and_then(Value::as_array);
        Self(
            keys.into_iter()
                .flatten()
                .filter_map(Value::as_object)
                .filter(|key| {
                    let text = |name| key.get(name).and_then(Value::as_str);
                    matches!(text("use"), None | Some("sig"))
                })
                .take(MAX_KEYS)
                .cloned()
                .collect(),
        )
    }

    /// The claims of a token, if one of these keys signed it by one of the allowed algorithms.
    pub fn verify(
        &self,
        token: &str,
        allowed: &[JwtAlgorithm],
    ) -> Result<Map<String, Value>, VerifyError> {
        let parts = JwtParts::of(token).ok_or(VerifyError::Malformed)?;
        let algorithm = parts
            .text("alg")
            .and_then(JwtAlgorithm::named)
            .filter(|algorithm| allowed.contains(algorithm))
            .ok_or(VerifyError::Algorithm)?;
        if parts.header.contains_key("crit") {
            return Err(VerifyError::Critical);
        }
        let named = parts.text("kid");
        let mut error = VerifyError::UnknownKey;
        for key in self.fitting(algorithm, named) {
            if signed_by(key, algorithm, &parts) {
                return parts.claims().ok_or(VerifyError::Malformed);
            }
            error = VerifyError::Signature;
        }
        Err(error)
    }

    fn fitting<'a>(
        &'a self,
        algorithm: JwtAlgorithm,
        named: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Map<String, Value>> {
        self.0.iter().filter(move |key| {
            let text = |name| key.get(name).and_then(Value::as_str);
            let kind = match algorithm {
                JwtAlgorithm::Es256 => ("EC", Some("P-256")),
                JwtAlgorithm::Es384 => ("EC", Some("P-384")),
                JwtAlgorithm::EdDsa => ("OKP", Some("Ed25519")),
                JwtAlgorithm::Rs256
                | JwtAlgorithm::Rs384
                | JwtAlgorithm::Rs512
                | JwtAlgorithm::Ps256 => ("RSA", None),
            };
            let own = text("alg").is_none_or(|word| JwtAlgorithm::named(word) == Some(algorithm));
            // A token without a key's name may be from any of them.
            let asked = named.is_none_or(|named| text("kid") == Some(named));
            text("kty") == Some(kind.0)
                && (kind.1.is_none() || text("crv") == kind.1)
                && own
                && asked
        })
    }
}

fn signed_by(key: &Map<String, Value>, algorithm: JwtAlgorithm, parts: &JwtParts<'_>) -> bool {
    let bytes = |name| key.get(name).and_then(Value::as_str).and_then(decode);
    let message = parts.signed.as_bytes();
    let by = |algorithm: &'static dyn VerificationAlgorithm, public: Vec<u8>| {
        UnparsedPublicKey::new(algorithm, public)
            .verify(message, &parts.signature)
            .is_ok()
    };
    let point = |size: usize| {
        let (x, y) = (bytes("x")?, bytes("y")?);
        (x.len() == size && y.len() == size).then(|| [&[0x04], &x[..], &y[..]].concat())
    };
    let rsa = |parameters: &'static RsaParameters| {
        let (Some(n), Some(e)) = (bytes("n"), bytes("e")) else {
            return false;
        };
        RsaPublicKeyComponents { n, e }
            .verify(parameters, message, &parts.signature)
            .is_ok()
    };
    match algorithm {
        JwtAlgorithm::Es256 => point(32).is_some_and(|key| by(&ECDSA_P256_SHA256_FIXED, key)),
        JwtAlgorithm::Es384 => point(48).is_some_and(|key| by(&ECDSA_P384_SHA384_FIXED, key)),
        JwtAlgorithm::EdDsa => bytes("x").is_some_and(|key| by(&ED25519, key)),
        JwtAlgorithm::Rs256 => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        JwtAlgorithm::Rs384 => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        JwtAlgorithm::Rs512 => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        JwtAlgorithm::Ps256 => rsa(&signature::RSA_PSS_2048_8192_SHA256),
    }
}
