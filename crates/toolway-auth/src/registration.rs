//! Who we are to an authorization server.
//!
//! Owns the choice of a client id: one that was configured, else our metadata document where the
//! server takes one, else dynamic registration (RFC 7591), which is kept and not repeated; and
//! the choice of how that client authenticates.
//! Does not own: keeping it (the vault, under the issuer it belongs to: SEC-19) or authenticating
//! (`token.rs`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolway_types::{Secret, Untrusted};
use url::Url;

use crate::assertion::ClientKey;
use crate::metadata::{ServerMetadata, shown};
use crate::token::{ClientAuth, OauthClient};
use crate::web::{WebClient, WebError};

/// The longest id that a server may give us.
const MAX_ID: usize = 2048;

/// A client id that expires within this many seconds is not used for a login, which takes a user's
/// time.
const MARGIN: u64 = 600;

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMethod {
    /// `none`: a public client; PKCE protects the code.
    #[default]
    None,
    /// `client_secret_basic`
    ClientSecretBasic,
    /// `client_secret_post`
    ClientSecretPost,
    /// `private_key_jwt` (RFC 7523)
    PrivateKeyJwt,
}

impl AuthMethod {
    /// The word of the registry.
    pub fn as_str(self) -> &'static str {
        match self {
            AuthMethod::None => "none",
            AuthMethod::ClientSecretBasic => "client_secret_basic",
            AuthMethod::ClientSecretPost => "client_secret_post",
            AuthMethod::PrivateKeyJwt => "private_key_jwt",
        }
    }

    fn is_in(self, offered: &[String]) -> bool {
        offered.iter().any(|word| word == self.as_str())
    }

    fn read(word: &str) -> Option<Self> {
        [
            AuthMethod::None,
            AuthMethod::ClientSecretBasic,
            AuthMethod::ClientSecretPost,
            AuthMethod::PrivateKeyJwt,
        ]
        .into_iter()
        .find(|method| method.as_str() == word)
    }

    /// How a client with this secret or key authenticates. Of both ways to send a secret it is the
    /// form: servers that offer both exist which look for the client in the form alone, and none
    /// the other way round. A server that does not say takes `client_secret_basic` (RFC 8414); one
    /// that takes only what we have no part of is asked in that way too, and says so itself.
    pub fn of(offered: Option<&[String]>, has_secret: bool, has_key: bool) -> Self {
        if has_key {
            return AuthMethod::PrivateKeyJwt;
        }
        if !has_secret {
            return AuthMethod::None;
        }
        if offered.is_some_and(|offered| AuthMethod::ClientSecretPost.is_in(offered)) {
            AuthMethod::ClientSecretPost
        } else {
            AuthMethod::ClientSecretBasic
        }
    }

    /// The other way to send a secret, unless the server says that it does not take it.
    fn other(self, offered: Option<&[String]>) -> Option<Self> {
        let other = match self {
            AuthMethod::ClientSecretBasic => AuthMethod::ClientSecretPost,
            AuthMethod::ClientSecretPost => AuthMethod::ClientSecretBasic,
            AuthMethod::None | AuthMethod::PrivateKeyJwt => return None,
        };
        let is_taken = offered.is_none_or(|offered| other.is_in(offered));
        is_taken.then_some(other)
    }

    /// What to ask for in a registration: we are a program on a user's machine, so nothing secret
    /// if it can be had.
    fn wanted(offered: Option<&[String]>) -> Self {
        let order = [
            AuthMethod::None,
            AuthMethod::ClientSecretPost,
            AuthMethod::ClientSecretBasic,
        ];
        let offers = |method: &AuthMethod| offered.is_none_or(|offered| method.is_in(offered));
        order.into_iter().find(offers).unwrap_or_default()
    }
}

/// Where a client id is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientSource {
    /// The user or the administrator registered it.
    Configured,
    /// It is the address of our metadata document.
    Document,
    /// We registered it.
    Dynamic,
}

/// A client as one authorization server knows it. Serialises with its secret: into the vault only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredClient {
    /// The id.
    pub client_id: String,
    /// The secret, if it has one.
    #[serde(default, with = "crate::secret::option")]
    pub client_secret: Option<Secret>,
    /// How it authenticates.
    pub auth_method: AuthMethod,
    /// How it may authenticate as well, where the server does not recognise it by the first.
    #[serde(default)]
    pub other_method: Option<AuthMethod>,
    /// Where it is from.
    pub source: ClientSource,
    /// Until when the secret is good, in seconds since 1970; `None` when it does not expire.
    #[serde(default)]
    pub secret_expires_at: Option<u64>,
    /// Where its logins come back to.
    #[serde(default)]
    pub redirect_uri: Option<String>,
    /// The scopes that it was registered for.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The outcome of its logins.
    #[serde(default, rename = "standing")]
    pub history: ClientHistory,
}

/// The outcome of the logins that were made with a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientHistory {
    /// It never got a token; a new one would get none either.
    pub is_untried: bool,
    /// A login was begun with it, and nothing came back: a server that does not know a client any
    /// more shows the user a page, and us nothing.
    pub is_unanswered: bool,
}

impl RegisteredClient {
    /// A manually registered client, at a server that offers these methods.
    pub(crate) fn configured(
        id: &str,
        secret: Option<Secret>,
        has_key: bool,
        offered: Option<&[String]>,
    ) -> Self {
        let auth_method = AuthMethod::of(offered, secret.is_some(), has_key);
        Self {
            client_id: id.to_owned(),
            client_secret: secret,
            auth_method,
            other_method: auth_method.other(offered),
            source: ClientSource::Configured,
            secret_expires_at: None,
            redirect_uri: None,
            scopes: Vec::new(),
            history: ClientHistory::default(),
        }
    }

    /// Whether it can be used for another login.
    pub fn is_good(&self, now: u64) -> bool {
        let has_time = self
            .secret_expires_at
            .is_none_or(|end| now.saturating_add(MARGIN) < end);
        has_time && !self.history.is_unanswered
    }

    /// The client as requests want it.
    pub fn client(&self, key: Option<&Arc<ClientKey>>) -> OauthClient {
        let proof = |method| match (method, &self.client_secret, key) {
            (AuthMethod::PrivateKeyJwt, _, Some(key)) => ClientAuth::Key(Arc::clone(key)),
            (AuthMethod::ClientSecretBasic, Some(secret), _) => ClientAuth::Basic(secret.clone()),
            (AuthMethod::ClientSecretPost, Some(secret), _) => ClientAuth::Post(secret.clone()),
            _ => ClientAuth::Nothing,
        };
        let other = self.other_method.filter(|_| self.client_secret.is_some());
        let client = OauthClient::new(self.client_id.as_str(), proof(self.auth_method));
        client.or_by(other.map(proof))
    }

    /// Remembers by which way the server recognised it.
    pub fn learn(&mut self, client: &OauthClient) {
        if client.has_turned()
            && let Some(other) = self.other_method
        {
            self.other_method = Some(self.auth_method);
            self.auth_method = other;
        }
    }
}

/// Our metadata document (client id metadata documents).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientDocument {
    /// Where it is, which is the client id.
    pub url: Url,
    /// The loopback redirect address in it, e.g. `http://localhost/callback`.
    pub redirect_uri: String,
}

/// What a client is needed for.
#[derive(Debug, Clone, Default)]
pub struct ClientRequest<'a> {
    /// A client id that was configured.
    pub client_id: Option<&'a str>,
    /// Its secret.
    pub client_secret: Option<&'a Secret>,
    /// Whether it has a key to sign with.
    pub has_key: bool,
    /// Our metadata document.
    pub document: Option<&'a ClientDocument>,
    /// Where logins come back to; `None` for grants without a browser.
    pub redirect_uri: Option<&'a str>,
    /// The grant types.
    pub grants: &'a [&'a str],
    /// The scopes that will be asked for.
    pub scopes: &'a [String],
    /// What was registered with this issuer before.
    pub kept: Option<&'a RegisteredClient>,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// Why there is no client id.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// The server accepts only manually registered clients.
    #[error(
        "the authorization server {issuer} registers no clients by itself: register one there and set `oauth.clientId` (and `oauth.callbackPort`)"
    )]
    Unsupported {
        /// Who.
        issuer: String,
    },
    /// The server refused.
    #[error("the authorization server {issuer} refused to register this program (HTTP {status}){}", because(.why.as_ref()))]
    Refused {
        /// Who.
        issuer: String,
        /// The HTTP status.
        status: u16,
        /// What it said.
        why: Option<Untrusted>,
    },
    /// The answer is not usable.
    #[error(
        "the authorization server {issuer} answered the registration without a usable `{field}`"
    )]
    Malformed {
        /// Who.
        issuer: String,
        /// What is missing.
        field: &'static str,
    },
    /// It could not be asked.
    #[error("this program could not be registered: {0}")]
    Web(#[from] WebError),
}

fn because(why: Option<&Untrusted>) -> String {
    why.map_or_else(String::new, |text| {
        format!(": {}", toolway_types::text::cut(&text.line(), 300))
    })
}

/// A client that needs no request: configured, our metadata document, or registered before.
pub fn known_client(
    server: &ServerMetadata,
    wanted: &ClientRequest<'_>,
) -> Option<RegisteredClient> {
    let redirect_uri = wanted.redirect_uri.map(str::to_owned);
    if let Some(id) = wanted.client_id {
        let offered = server.token_auth_methods.as_deref();
        let secret = wanted.client_secret.cloned();
        let configured = RegisteredClient::configured(id, secret, wanted.has_key, offered);
        return Some(RegisteredClient {
            redirect_uri,
            ..configured
        });
    }
    if let Some(document) = wanted.document.filter(|_| server.takes_documents) {
        return Some(RegisteredClient {
            source: ClientSource::Document,
            redirect_uri,
            ..RegisteredClient::configured(document.url.as_str(), None, false, None)
        });
    }
    wanted
        .kept
        .filter(|kept| kept.source == ClientSource::Dynamic && kept.is_good(wanted.now))
        // A server may hold us to the very address that was registered.
        .filter(|kept| redirect_uri.is_none() || kept.redirect_uri == redirect_uri)
        // And to the very scopes: a client that was registered for fewer gets no more.
        .filter(|kept| {
            let mut scopes = wanted.scopes.iter();
            scopes.all(|scope| kept.scopes.contains(scope))
        })
        .cloned()
}

/// A client at this server: a known one, else a new one.
pub async fn register(
    web: &WebClient,
    server: &ServerMetadata,
    wanted: &ClientRequest<'_>,
) -> Result<RegisteredClient, RegistrationError> {
    if let Some(client) = known_client(server, wanted) {
        return Ok(client);
    }
    let issuer = || shown(&server.issuer);
    let endpoint = server
        .registration_endpoint
        .as_ref()
        .ok_or_else(|| RegistrationError::Unsupported { issuer: issuer() })?;
    let offered = server.token_auth_methods.as_deref();
    let asked = AuthMethod::wanted(offered);
    let reply = web
        .post_json(endpoint, &request(wanted, asked), http::HeaderMap::new())
        .await?;
    // Where no registration endpoint was announced, a missing one is no refusal.
    if server.is_assumed && matches!(reply.status, 404 | 405) {
        return Err(RegistrationError::Unsupported { issuer: issuer() });
    }
    if !reply.is_success() {
        let why = reply.object().ok().and_then(|answer| {
            let text = ["error_description", "error"].map(|name| answer.get(name)?.as_str());
            text.into_iter().flatten().next().map(Untrusted::new)
        });
        return Err(RegistrationError::Refused {
            issuer: issuer(),
            status: reply.status,
            why,
        });
    }
    let answer = reply.object()?;
    read(&answer, wanted, asked, offered).map_err(|field| RegistrationError::Malformed {
        issuer: issuer(),
        field,
    })
}

fn request(wanted: &ClientRequest<'_>, asked: AuthMethod) -> Value {
    let mut request = json!({
        "client_name": "Toolway",
        "software_id": "toolway",
        "software_version": env!("CARGO_PKG_VERSION"),
        "application_type": "native",
        "grant_types": wanted.grants,
        "token_endpoint_auth_method": asked.as_str(),
    });
    // Said even where there are none: what is left out stands for a browser that comes back with a
    // code, and servers then want to know where to.
    let (uris, kinds) = match wanted.redirect_uri {
        Some(uri) => (json!([uri]), json!(["code"])),
        None => (json!([]), json!([])),
    };
    request["redirect_uris"] = uris;
    request["response_types"] = kinds;
    if !wanted.scopes.is_empty() {
        request["scope"] = json!(wanted.scopes.join(" "));
    }
    request
}

fn read(
    answer: &Map<String, Value>,
    wanted: &ClientRequest<'_>,
    asked: AuthMethod,
    offered: Option<&[String]>,
) -> Result<RegisteredClient, &'static str> {
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let client_id = text("client_id")
        .filter(|id| !id.is_empty() && id.len() <= MAX_ID && !id.chars().any(char::is_control))
        .ok_or("client_id")?;
    let client_secret = text("client_secret").filter(|secret| !secret.is_empty());
    let auth_method = match text("token_endpoint_auth_method").map(AuthMethod::read) {
        // It tells us to authenticate in a way that was not offered to it.
        Some(None | Some(AuthMethod::PrivateKeyJwt)) => return Err("token_endpoint_auth_method"),
        Some(Some(told)) => told,
        // It gave a secret unasked, and did not say what for.
        None if client_secret.is_some() && asked == AuthMethod::None => {
            AuthMethod::of(offered, true, false)
        }
        None => asked,
    };
    if auth_method != AuthMethod::None && client_secret.is_none() {
        return Err("client_secret");
    }
    let secret_expires_at = answer
        .get("client_secret_expires_at")
        .and_then(Value::as_u64)
        .filter(|end| *end != 0 && client_secret.is_some());
    Ok(RegisteredClient {
        client_id: client_id.to_owned(),
        client_secret: client_secret.map(Secret::new),
        auth_method,
        other_method: auth_method.other(offered),
        source: ClientSource::Dynamic,
        secret_expires_at,
        redirect_uri: wanted.redirect_uri.map(str::to_owned),
        scopes: wanted.scopes.to_vec(),
        history: ClientHistory {
            is_untried: true,
            is_unanswered: false,
        },
    })
}
