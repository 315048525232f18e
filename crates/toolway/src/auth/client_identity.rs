//! What identifies a client without a user: the word of another party, such as the platform that
//! this runs on, and the secrets and keys of clients.
//!
//! Owns which of them belongs to which server, for its first login and for every renewal.
//! Does not own: getting tokens by them (`toolway-auth`), or federated logins by an organisation,
//! which is in the settings (`organisation.rs`).
//!
//! All of it comes from the embedding program, or from an entry that the user or the organisation
//! wrote. No server decides about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolway_auth::assertion::ClientKey;
use toolway_auth::references::{ReferenceError, no_resolver_error};
use toolway_auth::voucher::Voucher;
use toolway_auth::voucher::workload::PlatformTokenSource;
use toolway_transport::OpenOptions;
use toolway_types::{OauthSpec, Secret};

use crate::auth::access_token::LoginTarget;
use crate::auth::store::LoginStore;

/// What logins can show, each by the name of the server it is for.
#[derive(Debug, Clone, Default)]
pub struct ClientIdentities {
    /// The platform's token, which is the login there.
    pub workloads: BTreeMap<String, WorkloadToken>,
    /// The secret of the configured client.
    pub secrets: BTreeMap<String, Secret>,
    /// The key of the configured client, in place of a secret.
    pub keys: BTreeMap<String, Arc<ClientKey>>,
}

/// A token of the platform.
#[derive(Debug, Clone)]
pub struct WorkloadToken {
    /// Where it comes from.
    pub source: Arc<PlatformTokenSource>,
    /// The audience, where it is not the authorization server itself.
    pub audience: Option<String>,
}

impl ClientIdentities {
    pub(super) fn secret(&self, server: &str) -> Option<&Secret> {
        self.secrets.get(server)
    }

    pub(super) fn key(&self, server: &str) -> Option<&Arc<ClientKey>> {
        self.keys.get(server)
    }
}

impl LoginStore {
    /// Who vouches for the client: whoever the program or the entry names, unless policy has another
    /// way in mind.
    pub(super) fn voucher(&self, target: &LoginTarget) -> Option<Voucher> {
        let workload = self.client_identities.workloads.get(target.server.as_str());
        let voucher = match workload {
            Some(workload) => Voucher::Platform {
                source: Arc::clone(&workload.source),
                audience: workload.audience.clone(),
            },
            None => {
                let spec = target.oauth.voucher.as_ref()?;
                Voucher::of(spec, self.references.clone(), self.open())
            }
        };
        target.allows(voucher.grant()).then_some(voucher)
    }

    /// The settings of a login with the secrets that they name.
    pub(super) async fn filled(&self, spec: OauthSpec) -> Result<OauthSpec, ReferenceError> {
        let Some(first) = spec.references.first() else {
            return Ok(spec);
        };
        let finder = self
            .references
            .as_ref()
            .ok_or_else(|| no_resolver_error(first))?;
        finder.resolve_login(&spec, &self.open()).await
    }

    fn open(&self) -> OpenOptions {
        OpenOptions {
            client: self.client.clone(),
            ..OpenOptions::default()
        }
    }
}
