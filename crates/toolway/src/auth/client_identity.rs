//! What identifies a client without a user: the word of another party, such as the platform that
//! this runs on, and the secrets and keys of clients.
//!
//! Owns what the embedding program gives of them, and for which server. Does not own: what an entry
//! names in their place (`store.rs`), getting tokens by them (`toolway-auth`), or federated logins
//! by an organisation, which is in the settings (`organisation.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use toolway_auth::assertion::ClientKey;
use toolway_auth::voucher::workload::PlatformTokenSource;
use toolway_types::Secret;

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
