//! What logins can show that no person types: the token of the platform that this runs on, and
//! the secrets and keys of clients.
//!
//! Owns which of them belongs to which server, for its first login and for every renewal.
//! Does not own: getting tokens by them (`toolway-auth`), or the word of an organisation, which is
//! in the settings (`organisation.rs`).
//!
//! All of it comes from the embedding program. No server has a say in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolway_auth::assertion::ClientKey;
use toolway_auth::badge::Voucher;
use toolway_auth::logins::How;
use toolway_auth::workload::Source;
use toolway_types::Secret;

use super::pass::Target;

/// What logins can show, each by the name of the server it is for.
#[derive(Debug, Clone, Default)]
pub struct Papers {
    /// The platform's token, which is the login there.
    pub workloads: BTreeMap<String, Workload>,
    /// The secret of the configured client.
    pub secrets: BTreeMap<String, Secret>,
    /// The key of the configured client, in place of a secret.
    pub keys: BTreeMap<String, Arc<ClientKey>>,
}

/// A token of the platform.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Where it comes from.
    pub source: Arc<Source>,
    /// Whom it is for, when that is not the authorization server itself.
    pub audience: Option<String>,
}

impl Papers {
    pub(super) fn secret(&self, server: &str) -> Option<&Secret> {
        self.secrets.get(server)
    }

    pub(super) fn key(&self, server: &str) -> Option<&Arc<ClientKey>> {
        self.keys.get(server)
    }

    /// The platform's word, where it is the login: there is one, and policy has no other way in
    /// mind.
    pub(super) fn platform(&self, target: &Target) -> Option<Voucher> {
        let workload = self.workloads.get(target.server.as_str())?;
        target.allows(How::Workload).then(|| Voucher::Platform {
            source: Arc::clone(&workload.source),
            audience: workload.audience.clone(),
        })
    }
}
