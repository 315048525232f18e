//! How a client says who it is to a token endpoint (RFC 6749 section 2.3, RFC 7523).
//!
//! Owns the four ways. They serve every endpoint that wants to know the client: token, device,
//! revocation.
//! Does not own: which of them a client uses (`registration.rs`).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use toolway_types::Secret;
use url::form_urlencoded;

use crate::assertion::{AssertionError, ClientKey, JWT_BEARER};

/// Who we are to an authorization server.
#[derive(Debug, Clone)]
pub struct Client {
    /// The `client_id`.
    pub id: String,
    /// How that is proven.
    pub proof: Proof,
}

/// How a client proves who it is.
#[derive(Debug, Clone)]
pub enum Proof {
    /// Not at all: a public client (`none`).
    Nothing,
    /// By a secret in the header (`client_secret_basic`).
    Basic(Secret),
    /// By a secret in the form (`client_secret_post`).
    Post(Secret),
    /// By signing with a key (`private_key_jwt`).
    Key(Arc<ClientKey>),
}

impl Proof {
    /// The word in metadata and registrations.
    pub fn method(&self) -> &'static str {
        match self {
            Proof::Nothing => "none",
            Proof::Basic(_) => "client_secret_basic",
            Proof::Post(_) => "client_secret_post",
            Proof::Key(_) => "private_key_jwt",
        }
    }
}

/// What goes with a request to say who sends it.
#[derive(Debug, Default)]
pub(crate) struct Introduction {
    pub(crate) headers: HeaderMap,
    pub(crate) form: Vec<(&'static str, Secret)>,
    /// What must not come back in an error's text.
    pub(crate) secrets: Vec<Secret>,
}

impl Client {
    /// A client that has nothing to prove.
    pub fn public(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            proof: Proof::Nothing,
        }
    }

    pub(crate) fn introduce(&self, issuer: &str, now: u64) -> Result<Introduction, AssertionError> {
        let mut said = Introduction::default();
        let id = || ("client_id", Secret::new(self.id.as_str()));
        match &self.proof {
            Proof::Nothing => said.form.push(id()),
            Proof::Basic(secret) => {
                let encoded = |text: &str| -> String {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                let pair = format!("{}:{}", encoded(&self.id), encoded(secret.expose()));
                let pair = STANDARD.encode(pair);
                if let Ok(mut value) = HeaderValue::try_from(format!("Basic {pair}")) {
                    value.set_sensitive(true);
                    said.headers.insert(AUTHORIZATION, value);
                }
                said.secrets.extend([secret.clone(), Secret::new(pair)]);
            }
            Proof::Post(secret) => {
                said.form.extend([id(), ("client_secret", secret.clone())]);
                said.secrets.push(secret.clone());
            }
            Proof::Key(key) => {
                let assertion = key.assertion(&self.id, issuer, now)?;
                said.secrets.push(assertion.clone());
                said.form.extend([
                    id(),
                    ("client_assertion_type", Secret::new(JWT_BEARER)),
                    ("client_assertion", assertion),
                ]);
            }
        }
        Ok(said)
    }
}
