//! The metadata of protected resources and authorization servers.
//!
//! Owns the typed documents of RFC 9728 and of RFC 8414 / OIDC discovery, and which
//! addresses in them are taken (SEC-16): `https`, or `http` to an address of this machine, with
//! nothing in them that a terminal or an opener could take for something else.
//! Does not own: where the documents are and whether they speak for the right party
//! (`discovery.rs`).
//!
//! Strings that are compared later, the issuer above all, are kept byte for byte: a URL type
//! takes two spellings for one (SEC-18). Members that this host does not use are not looked at.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use toolway_types::text::cut;
use toolway_types::{Untrusted, is_this_machine, may_be_opened};
use url::{Host, Url};

use crate::web::address::{AddressClass, classify};
use crate::web::{MAX_URL, NetworkReach};

/// The most entries that are read of a list.
const MAX_LIST: usize = 200;

/// The longest entry that is read of a list.
const MAX_WORD: usize = 256;

/// A document says something that is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// A member that must be there is not.
    #[error("it has no `{0}`")]
    Missing(&'static str),
    /// An address is none that is asked or opened.
    #[error("its `{field}` is no usable address: {why}")]
    Address {
        /// The member.
        field: &'static str,
        /// The rule.
        why: &'static str,
    },
}

/// A protected resource (RFC 9728).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceMetadata {
    /// `resource`, as written.
    pub resource: String,
    /// `authorization_servers`: issuers, as written.
    pub authorization_servers: Vec<String>,
    /// `scopes_supported`
    pub scopes: Vec<String>,
    /// `resource_name`
    pub name: Option<Untrusted>,
    /// `dpop_bound_access_tokens_required`
    pub requires_dpop: bool,
    /// `dpop_signing_alg_values_supported`
    pub dpop_algorithms: Vec<String>,
}

impl ResourceMetadata {
    /// Reads a document.
    pub fn read(document: &Map<String, Value>) -> Result<Self, MetadataError> {
        Ok(Self {
            resource: text(document, "resource").ok_or(MetadataError::Missing("resource"))?,
            authorization_servers: list(document, "authorization_servers", MAX_URL)
                .unwrap_or_default(),
            scopes: words(document, "scopes_supported").unwrap_or_default(),
            name: text(document, "resource_name").map(Untrusted::new),
            requires_dpop: says(document, "dpop_bound_access_tokens_required"),
            dpop_algorithms: words(document, "dpop_signing_alg_values_supported")
                .unwrap_or_default(),
        })
    }
}

/// An authorization server (RFC 8414).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerMetadata {
    /// `issuer`, as written.
    pub issuer: String,
    /// `authorization_endpoint`, which a user's browser opens.
    pub authorization_endpoint: Option<Url>,
    /// `token_endpoint`
    pub token_endpoint: Option<Url>,
    /// `registration_endpoint`
    pub registration_endpoint: Option<Url>,
    /// `device_authorization_endpoint`
    pub device_authorization_endpoint: Option<Url>,
    /// `revocation_endpoint`
    pub revocation_endpoint: Option<Url>,
    /// `jwks_uri`
    pub jwks_uri: Option<Url>,
    /// `scopes_supported`
    pub scopes: Vec<String>,
    /// `grant_types_supported`; `None` when it does not say.
    pub grant_types: Option<Vec<String>>,
    /// `token_endpoint_auth_methods_supported`; `None` when it does not say.
    pub token_auth_methods: Option<Vec<String>>,
    /// `token_endpoint_auth_signing_alg_values_supported`; `None` when it does not say.
    pub token_auth_algorithms: Option<Vec<String>>,
    /// `revocation_endpoint_auth_methods_supported`; `None` when it does not say.
    pub revocation_auth_methods: Option<Vec<String>>,
    /// `code_challenge_methods_supported`; `None` when it does not say.
    pub challenge_methods: Option<Vec<String>>,
    /// `authorization_response_iss_parameter_supported`
    pub promises_issuer: bool,
    /// `client_id_metadata_document_supported`
    pub takes_documents: bool,
    /// `dpop_signing_alg_values_supported`
    pub dpop_algorithms: Vec<String>,
    /// `authorization_grant_profiles_supported`
    pub grant_profiles: Vec<String>,
    /// `id_token_signing_alg_values_supported`
    pub id_token_algorithms: Vec<String>,
    /// `prompt_values_supported`
    pub prompts: Vec<String>,
    /// No document was found and the endpoints are where 2025-03-26 puts them.
    pub is_assumed: bool,
}

impl ServerMetadata {
    /// Reads a document. `reach` is what its endpoints may lie in.
    pub fn read(document: &Map<String, Value>, reach: NetworkReach) -> Result<Self, MetadataError> {
        let endpoint = |field| {
            text(document, field)
                .map(|text| endpoint(&text, reach))
                .transpose()
                .map_err(|why| MetadataError::Address { field, why })
        };
        let authorization_endpoint = endpoint("authorization_endpoint")?;
        if authorization_endpoint
            .as_ref()
            .is_some_and(|page| !may_be_opened(page))
        {
            return Err(MetadataError::Address {
                field: "authorization_endpoint",
                why: "only `https` pages are opened, or `http` ones on this machine",
            });
        }
        Ok(Self {
            issuer: text(document, "issuer").ok_or(MetadataError::Missing("issuer"))?,
            authorization_endpoint,
            token_endpoint: endpoint("token_endpoint")?,
            registration_endpoint: endpoint("registration_endpoint")?,
            device_authorization_endpoint: endpoint("device_authorization_endpoint")?,
            // No login depends on these two, so a fault in them ends none.
            revocation_endpoint: endpoint("revocation_endpoint").unwrap_or_default(),
            jwks_uri: endpoint("jwks_uri").unwrap_or_default(),
            scopes: words(document, "scopes_supported").unwrap_or_default(),
            grant_types: words(document, "grant_types_supported"),
            token_auth_methods: words(document, "token_endpoint_auth_methods_supported"),
            token_auth_algorithms: words(
                document,
                "token_endpoint_auth_signing_alg_values_supported",
            ),
            revocation_auth_methods: words(document, "revocation_endpoint_auth_methods_supported"),
            challenge_methods: words(document, "code_challenge_methods_supported"),
            promises_issuer: says(document, "authorization_response_iss_parameter_supported"),
            takes_documents: says(document, "client_id_metadata_document_supported"),
            dpop_algorithms: words(document, "dpop_signing_alg_values_supported")
                .unwrap_or_default(),
            grant_profiles: words(document, "authorization_grant_profiles_supported")
                .unwrap_or_default(),
            id_token_algorithms: words(document, "id_token_signing_alg_values_supported")
                .unwrap_or_default(),
            prompts: words(document, "prompt_values_supported").unwrap_or_default(),
            is_assumed: false,
        })
    }

    /// The `prompt` that makes the provider ask for the account: a choice where it is offered, else
    /// the login page, which every OIDC provider knows.
    pub fn choosing_prompt(&self) -> &'static str {
        const CHOICE: &str = "select_account";
        if self.prompts.iter().any(|prompt| prompt == CHOICE) {
            CHOICE
        } else {
            "login"
        }
    }

    /// Whether a grant type is offered; one that does not say is asked.
    pub fn offers(&self, grant: &str) -> bool {
        self.grant_types
            .as_ref()
            .is_none_or(|grants| grants.iter().any(|offered| offered == grant))
    }
}

/// An address as a document or an answer wrote it, when it is one that is asked.
pub fn endpoint(written: &str, reach: NetworkReach) -> Result<Url, &'static str> {
    if written.len() > MAX_URL {
        return Err("it is too long");
    }
    // A parser drops some of these in silence.
    if written
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || toolway_types::text::is_hidden(c))
    {
        return Err("it holds control characters or blanks");
    }
    let url = Url::parse(written).map_err(|_| "it is not an absolute address")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds a login");
    }
    if url.fragment().is_some() {
        return Err("it holds a fragment");
    }
    let place = match url.host() {
        Some(Host::Ipv4(address)) => Some(classify(address.into())),
        Some(Host::Ipv6(address)) => Some(classify(address.into())),
        Some(Host::Domain(_)) => is_this_machine(&url).then_some(AddressClass::Loopback),
        None => return Err("only `https` addresses are used, or `http` ones on this machine"),
    };
    match (url.scheme(), place) {
        ("https", _) | ("http", Some(AddressClass::Loopback)) => Ok(url),
        ("http", Some(AddressClass::Private)) if reach != NetworkReach::Public => Ok(url),
        _ => Err("only `https` addresses are used, or `http` ones on this machine"),
    }
}

fn text(document: &Map<String, Value>, name: &str) -> Option<String> {
    let text = document.get(name)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn says(document: &Map<String, Value>, name: &str) -> bool {
    document.get(name).and_then(Value::as_bool) == Some(true)
}

fn words(document: &Map<String, Value>, name: &str) -> Option<Vec<String>> {
    list(document, name, MAX_WORD)
}

/// The strings of a list; those that are too long, and what is not a string, are left out.
fn list(document: &Map<String, Value>, name: &str, longest: usize) -> Option<Vec<String>> {
    let entries = document.get(name)?.as_array()?;
    let entries = entries
        .iter()
        .filter_map(Value::as_str)
        .filter(|text| text.len() <= longest)
        .take(MAX_LIST);
    Some(entries.map(str::to_owned).collect())
}

/// An issuer or a resource for people: as written, but short and without surprises.
pub fn shown(written: &str) -> String {
    cut(&Untrusted::new(written).line(), 200).into_owned()
}
