//! Where the secrets and logins of a host's connections come from, and by which way they leave.
//!
//! Owns which hosts may share a connection that rests on them: those that look in the same places, and
//! show the same certificate through the same proxy. A definition only names secrets, and says nothing
//! of logins or proxies, so that equal definitions of two hosts can mean two people. Looking is `toolway-auth`'s and `auth.rs`'s.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use toolway_auth::references::ReferenceResolver;
use toolway_transport::client::HttpClientOptions;

use crate::auth::{AccessTokenSource, AuthOptions};
use crate::server_source::ServerSource;

/// The places of one host.
#[derive(Default)]
pub(crate) struct CredentialPlaces {
    references: Option<ReferenceResolver>,
    /// The folder of the vault that logins are in.
    logins: Option<PathBuf>,
    access_tokens: Option<Arc<dyn AccessTokenSource>>,
    /// Proxies and certificates.
    http: HttpClientOptions,
}

impl CredentialPlaces {
    pub(crate) fn new(
        references: Option<&ReferenceResolver>,
        auth: &AuthOptions,
        http: HttpClientOptions,
    ) -> Self {
        let logins = auth.vault.as_ref();
        Self {
            references: references.cloned(),
            logins: logins.map(|vault| vault.folder().to_owned()),
            access_tokens: auth.access_tokens.clone(),
            http,
        }
    }

    /// The same, where a connection to this rests on them.
    pub(crate) fn of_source(self: &Arc<Self>, source: &ServerSource) -> Option<Arc<Self>> {
        let spec = source.spec()?;
        let rests_on_them = !spec.references.is_empty()
            || spec.transport.remote().is_some()
            || source.is_connector();
        rests_on_them.then(|| Arc::clone(self))
    }
}

impl PartialEq for CredentialPlaces {
    fn eq(&self, other: &Self) -> bool {
        let is_same_lookup = match (&self.references, &other.references) {
            (Some(one), Some(other)) => {
                one.vault.folder() == other.vault.folder()
                    && one.inherited == other.inherited
                    && one.cwd == other.cwd
            }
            (one, other) => one.is_none() && other.is_none(),
        };
        let is_same_source = match (&self.access_tokens, &other.access_tokens) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        is_same_lookup && is_same_source && self.logins == other.logins && self.http == other.http
    }
}

impl fmt::Debug for CredentialPlaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CredentialPlaces")
    }
}
