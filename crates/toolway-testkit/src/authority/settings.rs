//! How an authority is set up, before any misbehaviour.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Switch;

/// What the authorization endpoint does with a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsentMode {
    /// Consents at once, by redirect.
    #[default]
    AtOnce,
    /// Shows a page with a form: `decision` is `allow` or `deny`.
    Page,
}

/// Whether possession of a key is to be proven (RFC 9449).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DpopMode {
    /// Not advertised, not looked at.
    #[default]
    Off,
    /// Tokens are bound to a key when a proof comes.
    Accepted,
    /// Without a proof there is no token.
    Required,
    /// The proof must hold a nonce of the server's too.
    RequiredWithNonce,
}

/// A place where the server's metadata can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerMetadataPlace {
    /// `/.well-known/oauth-authorization-server/<path>`.
    Oauth,
    /// `/.well-known/openid-configuration/<path>`.
    OpenidInserted,
    /// `/<path>/.well-known/openid-configuration`.
    OpenidAppended,
}

/// A place where the resource's metadata can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceMetadataPlace {
    /// Named by the challenge.
    Challenge,
    /// `/.well-known/oauth-protected-resource/<path>`.
    Path,
    /// `/.well-known/oauth-protected-resource`.
    Root,
}

/// A client that is known without registration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KnownClient {
    /// Its id.
    pub id: String,
    /// Its secret; none for a public client. Put [`super::CANARY`] into it.
    pub secret: Option<String>,
    /// The one way it may authenticate, e.g. `client_secret_post`; any when none.
    pub method: Option<String>,
    /// The keys of a client that authenticates with `private_key_jwt`.
    pub jwks: Option<Value>,
    /// Where codes may go; every loopback address when empty.
    pub redirect_uris: Vec<String>,
}

/// An account that hosts connectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectorAccount {
    /// The connectors of the directory.
    pub connectors: Vec<String>,
    /// The header that a connector demands besides the bearer.
    pub header: String,
    /// The value it demands; any when none.
    pub value: Option<String>,
}

impl Default for ConnectorAccount {
    fn default() -> Self {
        Self {
            connectors: vec!["notes".to_owned(), "calendar".to_owned()],
            header: "x-account-client".to_owned(),
            value: None,
        }
    }
}

/// How an authority is set up. The default is well behaved and offers everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthoritySettings {
    /// The path of the issuer, e.g. `/tenant`; none when empty.
    pub issuer_path: String,
    /// The path of the protected resource.
    pub resource_path: String,
    /// Over TLS, with a certificate that only [`super::Authority::certificate`] vouches for.
    pub tls: bool,
    /// The misbehaviours from the start.
    pub switches: Vec<Switch>,
    /// Where the server's metadata stands.
    pub places: Vec<ServerMetadataPlace>,
    /// Where the resource's metadata stands.
    pub resource_places: Vec<ResourceMetadataPlace>,
    /// What the authorization endpoint does with a user.
    pub consent: ConsentMode,
    /// Who signs in.
    pub subject: String,
    /// The scopes there are.
    pub scopes: Vec<String>,
    /// What the challenge of a 401 asks for; nothing when empty.
    pub challenge_scopes: Vec<String>,
    /// The scopes without which `tools/call` is answered 403.
    pub call_scopes: Vec<String>,
    /// Tools beside `whoami` that answer the same, each with the scopes it takes in place of
    /// `call_scopes`.
    pub tool_scopes: BTreeMap<String, Vec<String>>,
    /// The scopes that the resource `who://ami` and the prompt `who` take; neither is there when
    /// empty.
    pub offer_scopes: Vec<String>,
    /// Whether a refusal for want of scopes says which.
    pub names_scopes: bool,
    /// The ways in which clients may authenticate, as the metadata lists them.
    pub auth_methods: Vec<String>,
    /// Whether the id of a client must stand in the form, as the official Python SDK has it, even
    /// where a header says it.
    pub client_in_form: bool,
    /// Whether revoking a token requires a secret, as the official Python SDK has it, even a client
    /// that has none: an empty one does.
    pub secret_in_revocation: bool,
    /// How long codes are, beside what makes them different.
    pub code_padding: usize,
    /// Whether a client is registered for one kind of login only, as django-oauth-toolkit has it,
    /// which lists the grant of devices and does not say where one begins.
    pub one_grant: bool,
    /// Whether clients can register.
    pub registration: bool,
    /// Whether an address of a metadata document is taken for a client.
    pub documents: bool,
    /// Documents that need not be fetched, by address: those not on loopback.
    pub known_documents: BTreeMap<String, Value>,
    /// Clients known from the start.
    pub clients: Vec<KnownClient>,
    /// Resources besides its own that tokens can be had for: other servers, which ask
    /// [`super::Authority::is_valid`].
    pub resources: Vec<String>,
    /// Whether `resource` must be in every request for a code or a token.
    pub demand_resource: bool,
    /// Whether logins get a refresh token.
    pub refresh_tokens: bool,
    /// Whether a refresh gives a new id token too, where there was one.
    pub refresh_id_tokens: bool,
    /// Whether access tokens are signed rather than opaque.
    pub signed_access: bool,
    /// How long an access token is good, in milliseconds. `expires_in` is this in whole seconds.
    pub access_ms: u64,
    /// How long a refresh token is good, in milliseconds.
    pub refresh_ms: u64,
    /// How long a code is good, in milliseconds.
    pub code_ms: u64,
    /// How long the token endpoint thinks before it looks at a request, in milliseconds.
    pub token_delay_ms: u64,
    /// When a token endpoint that is unavailable wants to be asked again, in seconds.
    pub retry_after: u64,
    /// For how long a used refresh token may be used again without harm, in milliseconds.
    pub grace_ms: u64,
    /// How long a device's code is good, in seconds.
    pub device_seconds: u64,
    /// How often a device may ask, in seconds.
    pub device_interval: u64,
    /// Whether asking more often is answered `slow_down`.
    pub device_strict: bool,
    /// After how many polls a device is let in; when none, by [`super::Authority::decide_device`]
    /// or the page at `verification_uri`.
    pub device_polls: Option<u32>,
    /// Whether possession of a key is to be proven.
    pub dpop: DpopMode,
    /// Identity providers whose assertions count, by issuer. Their keys are fetched from loopback.
    pub trusted: Vec<String>,
    /// Platforms whose tokens are taken from what runs on them: their key sets, by issuer.
    pub platforms: BTreeMap<String, Value>,
    /// Whether the metadata says that assertions are taken.
    pub assertions: bool,
    /// The client's id at the resource's own server, for assertions made here; the one it has here
    /// when none.
    pub assertion_client: Option<String>,
    /// The connectors of the account; none when it hosts none.
    pub account: Option<ConnectorAccount>,
}

impl Default for AuthoritySettings {
    fn default() -> Self {
        let scopes = ["openid", "offline_access", "read", "write"];
        let methods = [
            "none",
            "client_secret_basic",
            "client_secret_post",
            "private_key_jwt",
        ];
        Self {
            issuer_path: String::new(),
            resource_path: "/mcp".to_owned(),
            tls: false,
            switches: Vec::new(),
            places: vec![
                ServerMetadataPlace::Oauth,
                ServerMetadataPlace::OpenidInserted,
                ServerMetadataPlace::OpenidAppended,
            ],
            resource_places: vec![
                ResourceMetadataPlace::Challenge,
                ResourceMetadataPlace::Path,
                ResourceMetadataPlace::Root,
            ],
            consent: ConsentMode::AtOnce,
            subject: "person-1".to_owned(),
            scopes: scopes.map(str::to_owned).to_vec(),
            challenge_scopes: Vec::new(),
            call_scopes: Vec::new(),
            tool_scopes: BTreeMap::new(),
            offer_scopes: Vec::new(),
            names_scopes: true,
            auth_methods: methods.map(str::to_owned).to_vec(),
            client_in_form: false,
            secret_in_revocation: false,
            code_padding: 0,
            one_grant: false,
            registration: true,
            documents: true,
            known_documents: BTreeMap::new(),
            clients: Vec::new(),
            resources: Vec::new(),
            demand_resource: true,
            refresh_tokens: true,
            refresh_id_tokens: false,
            signed_access: false,
            access_ms: 3_600_000,
            refresh_ms: 30 * 24 * 3_600_000,
            code_ms: 60_000,
            token_delay_ms: 0,
            retry_after: 2,
            grace_ms: 0,
            device_seconds: 600,
            device_interval: 5,
            device_strict: false,
            device_polls: Some(1),
            dpop: DpopMode::Off,
            trusted: Vec::new(),
            platforms: BTreeMap::new(),
            assertions: true,
            assertion_client: None,
            account: None,
        }
    }
}

impl AuthoritySettings {
    /// Well behaved but for these.
    pub fn with(switches: &[Switch]) -> Self {
        Self {
            switches: switches.to_vec(),
            ..Self::default()
        }
    }

    /// An identity provider: people sign in here, for no resource in particular.
    pub fn identity_provider() -> Self {
        Self {
            demand_resource: false,
            ..Self::default()
        }
    }

    /// An account that hosts connectors.
    pub fn account_provider() -> Self {
        Self {
            demand_resource: false,
            account: Some(ConnectorAccount::default()),
            ..Self::default()
        }
    }
}
