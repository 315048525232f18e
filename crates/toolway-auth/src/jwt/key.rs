//! Private keys: read from PEM or generated, and signing with them.

use std::fmt;

use ring::rand::SystemRandom;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Map, Value, json};
use toolway_types::Secret;

use super::{JwtAlgorithm, encode};

/// What stands before a SEC 1 key to make it a PKCS #8 key: `ring` reads only those. The three
/// gaps are lengths.
const P256: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
    0xce, 0x3d, 0x03, 0x01, 0x07,
];
const P384: &[u8] = &[
    0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04,
    0x00, 0x22,
];

/// A private key is of no use. Says nothing of what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No PEM, or no key in it.
    #[error(
        "no private key found: it must be PEM text that begins with `-----BEGIN PRIVATE KEY-----` and is not encrypted"
    )]
    NoKey,
    /// A key, of a kind that no algorithm here uses.
    #[error(
        "the private key is of no kind that can be used: use P-256, P-384, Ed25519 or RSA with at least 2048 bits"
    )]
    Unusable,
    /// A key of another kind than the algorithm that was asked for.
    #[error("the private key does not fit the algorithm {asked}: it signs with {fits}")]
    WrongKind {
        /// What was asked for.
        asked: JwtAlgorithm,
        /// What the key is for.
        fits: JwtAlgorithm,
    },
    /// The system could not sign, for lack of random bytes.
    #[error("signing failed: the system gave no random bytes")]
    Signing,
}

enum SigningPair {
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
    Ed25519(Ed25519KeyPair),
}

/// A private key with the algorithm it signs by.
pub struct SigningKey {
    algorithm: JwtAlgorithm,
    pair: SigningPair,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SigningKey")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Reads a private key. Without an algorithm, the key's own is taken (RS256 for RSA).
    pub fn from_pem(pem: &Secret, asked: Option<JwtAlgorithm>) -> Result<Self, KeyError> {
        let der =
            PrivateKeyDer::from_pem_slice(pem.expose().as_bytes()).map_err(|_| KeyError::NoKey)?;
        let key = match &der {
            PrivateKeyDer::Pkcs8(key) => Self::from_pkcs8(key.secret_pkcs8_der())?,
            PrivateKeyDer::Pkcs1(key) => {
                Self::rsa(RsaKeyPair::from_der(key.secret_pkcs1_der()).ok())?
            }
            PrivateKeyDer::Sec1(key) => Self::from_sec1(key.secret_sec1_der())?,
            _ => return Err(KeyError::NoKey),
        };
        key.signing_by(asked)
    }

    /// A new P-256 key, with its PKCS #8 form for the vault.
    pub(crate) fn generate() -> Result<(Self, Vec<u8>), KeyError> {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .map_err(|_| KeyError::Signing)?;
        let key = Self::from_pkcs8(document.as_ref())?;
        Ok((key, document.as_ref().to_vec()))
    }

    pub(crate) fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        if let Some(key) = Self::ecdsa(der) {
            return Ok(key);
        }
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            return Ok(Self {
                algorithm: JwtAlgorithm::EdDsa,
                pair: SigningPair::Ed25519(pair),
            });
        }
        Self::rsa(RsaKeyPair::from_pkcs8(der).ok())
    }

    fn ecdsa(der: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let curves = [
            (&ECDSA_P256_SHA256_FIXED_SIGNING, JwtAlgorithm::Es256),
            (&ECDSA_P384_SHA384_FIXED_SIGNING, JwtAlgorithm::Es384),
        ];
        curves.into_iter().find_map(|(curve, algorithm)| {
            let pair = EcdsaKeyPair::from_pkcs8(curve, der, &random).ok()?;
            Some(Self {
                algorithm,
                pair: SigningPair::Ecdsa(pair),
            })
        })
    }

    fn rsa(pair: Option<RsaKeyPair>) -> Result<Self, KeyError> {
        Ok(Self {
            algorithm: JwtAlgorithm::Rs256,
            pair: SigningPair::Rsa(
                pair.ok_or(KeyError::Unusable)?,
                &signature::RSA_PKCS1_SHA256,
            ),
        })
    }

    fn from_sec1(sec1: &[u8]) -> Result<Self, KeyError> {
        [P256, P384]
            .into_iter()
            .find_map(|curve| {
                let key = tagged(0x04, sec1);
                let body = [&[0x02, 0x01, 0x00], curve, &key].concat();
                Self::ecdsa(&tagged(0x30, &body))
            })
            .ok_or(KeyError::Unusable)
    }

    fn signing_by(mut self, asked: Option<JwtAlgorithm>) -> Result<Self, KeyError> {
        let Some(asked) = asked else {
            return Ok(self);
        };
        if let SigningPair::Rsa(_, encoding) = &mut self.pair {
            *encoding = match asked {
                JwtAlgorithm::Rs256 => &signature::RSA_PKCS1_SHA256,
                JwtAlgorithm::Rs384 => &signature::RSA_PKCS1_SHA384,
                JwtAlgorithm::Rs512 => &signature::RSA_PKCS1_SHA512,
                JwtAlgorithm::Ps256 => &signature::RSA_PSS_SHA256,
                JwtAlgorithm::Es256 | JwtAlgorithm::Es384 | JwtAlgorithm::EdDsa => {
                    return Err(KeyError::WrongKind {
                        asked,
                        fits: JwtAlgorithm::Rs256,
                    });
                }
            };
            self.algorithm = asked;
        }
        if self.algorithm == asked {
            Ok(self)
        } else {
            Err(KeyError::WrongKind {
                asked,
                fits: self.algorithm,
            })
        }
    }

    /// What it signs by.
    pub fn algorithm(&self) -> JwtAlgorithm {
        self.algorithm
    }

    /// Signs claims. `header` is what the token's header has beside the algorithm.
    pub fn sign(
        &self,
        mut header: Map<String, Value>,
        claims: &Map<String, Value>,
    ) -> Result<Secret, KeyError> {
        header.insert("alg".to_owned(), json!(self.algorithm.as_str()));
        let part = |object: &Map<String, Value>| {
            serde_json::to_vec(object)
                .map(encode)
                .map_err(|_| KeyError::Signing)
        };
        let signed = format!("{}.{}", part(&header)?, part(claims)?);
        let signature = self.raw(signed.as_bytes())?;
        Ok(Secret::new(format!("{signed}.{}", encode(signature))))
    }

    fn raw(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        match &self.pair {
            SigningPair::Ecdsa(pair) => pair
                .sign(&random, message)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| KeyError::Signing),
            SigningPair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            SigningPair::Rsa(pair, encoding) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(*encoding, &random, message, &mut signature)
                    .map_err(|_| KeyError::Signing)?;
                Ok(signature)
            }
        }
    }

    /// The public half as a JWK, with its required members in the order that a thumbprint
    /// (RFC 7638) is made of.
    pub fn public_jwk(&self) -> Map<String, Value> {
        let value = match &self.pair {
            SigningPair::Ecdsa(pair) => {
                // 0x04, then both coordinates.
                let point = pair.public_key().as_ref().get(1..).unwrap_or_default();
                let (x, y) = point.split_at(point.len() / 2);
                let curve = match self.algorithm {
                    JwtAlgorithm::Es384 => "P-384",
                    _ => "P-256",
                };
                json!({ "crv": curve, "kty": "EC", "x": encode(x), "y": encode(y) })
            }
            SigningPair::Ed25519(pair) => {
                json!({ "crv": "Ed25519", "kty": "OKP", "x": encode(pair.public_key()) })
            }
            SigningPair::Rsa(pair, _) => {
                let public: signature::RsaPublicKeyComponents<Vec<u8>> = pair.public().into();
                json!({ "e": encode(public.e), "kty": "RSA", "n": encode(public.n) })
            }
        };
        match value {
            Value::Object(jwk) => jwk,
            _ => Map::new(),
        }
    }
}

/// A DER value: tag, length, content.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut der = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => der.push(short),
        Ok(byte) => der.extend([0x81, byte]),
        Err(_) => {
            der.push(0x82);
            der.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    der.extend(content);
    der
}
