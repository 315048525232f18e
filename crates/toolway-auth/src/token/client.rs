//! How a client says who it is to a token endpoint (RFC 6749 section 2.3, RFC 7523).
//!
//! Owns the four ways, and asking once more in another one where the first is not recognised. They
//! serve every endpoint that wants to know the client: token, device, revocation.
//! Does not own: which of them a client uses (`registration.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use toolway_types::Secret;
use url::form_urlencoded;

use super::answer::refusal_in;
use crate::assertion::{AssertionError, ClientKey, JWT_BEARER};
use crate::web::WebReply;

/// Who we are to an authorization server.
#[derive(Debug, Clone)]
pub struct OauthClient {
    /// The `client_id`.
    pub id: String,
    /// How that is proven.
    pub proof: ClientAuth,
    /// What is tried where the server does not recognise the client by the first.
    other: Option<ClientAuth>,
    /// Whether the other one is the one that is recognised. Copies learn it together.
    is_turned: Arc<AtomicBool>,
}

/// How a client proves who it is.
#[derive(Debug, Clone)]
pub enum ClientAuth {
    /// Not at all: a public client (`none`).
    Nothing,
    /// By a secret in the header (`client_secret_basic`).
    Basic(Secret),
    /// By a secret in the form (`client_secret_post`).
    Post(Secret),
    /// By signing with a key (`private_key_jwt`).
    Key(Arc<ClientKey>),
}

impl ClientAuth {
    /// The word in metadata and registrations.
    pub fn method(&self) -> &'static str {
        match self {
            ClientAuth::Nothing => "none",
            ClientAuth::Basic(_) => "client_secret_basic",
            ClientAuth::Post(_) => "client_secret_post",
            ClientAuth::Key(_) => "private_key_jwt",
        }
    }
}

/// What goes with a request to say who sends it.
#[derive(Debug, Default)]
pub(crate) struct ClientAuthParts {
    pub(crate) headers: HeaderMap,
    pub(crate) form: Vec<(&'static str, Secret)>,
    /// What must not come back in an error's text.
    pub(crate) secrets: Vec<Secret>,
}

impl OauthClient {
    /// A client that proves who it is in one way.
    pub fn new(id: impl Into<String>, proof: ClientAuth) -> Self {
        Self {
            id: id.into(),
            proof,
            other: None,
            is_turned: Arc::default(),
        }
    }

    /// A client that has nothing to prove.
    pub fn public(id: impl Into<String>) -> Self {
        Self::new(id, ClientAuth::Nothing)
    }

    /// The same with a second way, for a server that does not recognise it by the first.
    #[must_use]
    pub fn or_by(self, other: Option<ClientAuth>) -> Self {
        Self { other, ..self }
    }

    /// The same for an endpoint that wants to see the secret of a client that has none, too, as the
    /// revocation of the official Python SDK does: an empty one says the same (RFC 6749 section
    /// 2.3.1).
    pub(crate) fn or_by_empty_secret(&self) -> Self {
        match (&self.proof, &self.other) {
            (ClientAuth::Nothing, None) => {
                Self::public(self.id.as_str()).or_by(Some(ClientAuth::Post(Secret::new(""))))
            }
            _ => self.clone(),
        }
    }

    /// Whether it was the second way by which the server recognised it.
    pub fn has_turned(&self) -> bool {
        self.is_turned.load(Ordering::Relaxed)
    }

    fn turn(&self) {
        self.is_turned.fetch_xor(true, Ordering::Relaxed);
    }

    /// Asks, and once more in the other way where the server does not recognise the client. Where
    /// it recognises neither, its first answer counts: that way is the one it was told to expect.
    pub(crate) async fn ask<T, E, F: Future<Output = Result<(WebReply, T), E>>>(
        &self,
        once: impl Fn() -> F,
    ) -> Result<(WebReply, T), E> {
        let first = once().await?;
        if self.other.is_none() || is_recognised(&first.0) {
            return Ok(first);
        }
        self.turn();
        let second = once().await?;
        if is_recognised(&second.0) {
            return Ok(second);
        }
        self.turn();
        Ok(first)
    }

    pub(crate) fn introduce(
        &self,
        issuer: &str,
        now: u64,
    ) -> Result<ClientAuthParts, AssertionError> {
        let mut said = ClientAuthParts::default();
        let id = || ("client_id", Secret::new(self.id.as_str()));
        // A server may repeat what it was shown a moment ago.
        for proof in [Some(&self.proof), self.other.as_ref()] {
            if let Some(ClientAuth::Basic(secret) | ClientAuth::Post(secret)) = proof {
                let pair = Secret::new(self.pair(secret));
                said.secrets.extend([secret.clone(), pair]);
            }
        }
        let proof = match &self.other {
            Some(other) if self.has_turned() => other,
            _ => &self.proof,
        };
        match proof {
            ClientAuth::Nothing => said.form.push(id()),
            ClientAuth::Basic(secret) => {
                let pair = format!("Basic {}", self.pair(secret));
                if let Ok(mut value) = HeaderValue::try_from(pair) {
                    value.set_sensitive(true);
                    said.headers.insert(AUTHORIZATION, value);
                }
            }
            ClientAuth::Post(secret) => {
                said.form.extend([id(), ("client_secret", secret.clone())]);
            }
            ClientAuth::Key(key) => {
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

    /// The id and a secret, as a header holds them.
    fn pair(&self, secret: &Secret) -> String {
        let encoded =
            |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
        let pair = format!("{}:{}", encoded(&self.id), encoded(secret.expose()));
        STANDARD.encode(pair)
    }
}

/// Whether an answer does not say that the server looked for the client elsewhere than it was
/// told. Some look for the id in the form alone, and call that by other names than the RFC.
fn is_recognised(reply: &WebReply) -> bool {
    let Some(refusal) = refusal_in(reply) else {
        return reply.status != 401;
    };
    let misses = |name: &str| {
        let description = refusal.description.as_ref();
        description.is_some_and(|text| text.as_received().contains(name))
    };
    match refusal.code.as_str() {
        "invalid_client" | "unauthorized_client" => false,
        "invalid_request" => !misses("client_id") && !misses("client_secret"),
        _ => true,
    }
}
