//! What logins can show that no person types: the word of the person's organisation, the token of
//! the platform that this runs on, and the keys of clients.
//!
//! Owns which of them belongs to which server, for its first login and for every renewal.
//! Does not own: getting tokens by them (`toolway-auth`, `badge.rs` and `assertion.rs`).
//!
//! All of it comes from the embedding program. No server has a say in it (SEC-45).

use std::collections::BTreeMap;
use std::sync::Arc;

use toolway_auth::assertion::ClientKey;
use toolway_auth::badge::{Badge, Renewal};
use toolway_auth::idp::{IdentityProvider, IdentityStore, IdpSettings, Memory, VaultStore, Way};
use toolway_auth::logins::How;
use toolway_auth::vault::Vault;
use toolway_auth::web::Web;
use toolway_auth::workload::Source;
use toolway_auth::xaa::Rule;
use toolway_transport::client::Client;
use toolway_types::OauthSpec;

/// What logins can show.
#[derive(Debug, Clone, Default)]
pub struct Papers {
    /// Who vouches for the person at servers whose entry has `oauth.xaa`.
    pub organisation: Option<Organisation>,
    /// By the server's name: the platform's token, which is the login there.
    pub workloads: BTreeMap<String, Workload>,
    /// By the server's name: the key of its configured client, in place of a secret.
    pub keys: BTreeMap<String, Arc<ClientKey>>,
}

/// The person's organisation.
#[derive(Debug, Clone)]
pub struct Organisation {
    /// Its identity provider.
    pub settings: IdpSettings,
    /// Where it is kept who the person is: the host's vault when absent. A program that has logged
    /// its person in itself hands in what it knows.
    pub identities: Option<Arc<dyn IdentityStore>>,
    /// Whether another way to log in may follow.
    pub rule: Rule,
}

/// A token of the platform.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Where it comes from.
    pub source: Arc<Source>,
    /// Whom it is for, when that is not the authorization server itself.
    pub audience: Option<String>,
}

/// The same, as the host uses it.
#[derive(Debug, Default)]
pub(super) struct Held {
    organisation: Option<(IdentityProvider, Rule)>,
    workloads: BTreeMap<String, Workload>,
    keys: BTreeMap<String, Arc<ClientKey>>,
}

impl Held {
    pub(super) fn new(papers: Papers, vault: Option<&Vault>, client: &Client) -> Self {
        let organisation = papers.organisation.map(|organisation| {
            let store = organisation.identities.unwrap_or_else(|| match vault {
                Some(vault) => Arc::new(VaultStore::new(vault.clone())),
                None => Arc::new(Memory::default()),
            });
            let web = Web::trusted(client.clone());
            let provider = IdentityProvider::new(organisation.settings, web, store);
            (provider, organisation.rule)
        });
        Self {
            organisation,
            workloads: papers.workloads,
            keys: papers.keys,
        }
    }

    pub(super) fn key(&self, server: &str) -> Option<&Arc<ClientKey>> {
        self.keys.get(server)
    }

    /// Who vouches at a server; nobody where a person logs in there, or its client does.
    pub(super) fn badge<'a>(
        &'a self,
        server: &str,
        spec: &OauthSpec,
        way: Way<'a>,
    ) -> Option<Badge<'a>> {
        self.platform(server).or_else(|| {
            let vouches = spec.xaa.then(|| self.person(way));
            vouches.flatten()
        })
    }

    /// Renews a login in the way it came about. Nobody is asked: this happens at any moment.
    pub(super) fn renewal<'a>(
        &'a self,
        server: &str,
        how: How,
        web: &'a Web,
    ) -> Option<Renewal<'a>> {
        let badge = match how {
            How::CrossApp => self.person(Way::Kept),
            How::Workload => self.platform(server),
            _ => None,
        };
        Some(Renewal {
            badge: badge?,
            web,
            client_key: self.key(server),
        })
    }

    fn person<'a>(&'a self, way: Way<'a>) -> Option<Badge<'a>> {
        let (provider, rule) = self.organisation.as_ref()?;
        Some(Badge::Organisation {
            provider,
            way,
            rule: *rule,
        })
    }

    fn platform(&self, server: &str) -> Option<Badge<'_>> {
        let workload = self.workloads.get(server)?;
        Some(Badge::Platform {
            source: &workload.source,
            audience: workload.audience.as_deref(),
        })
    }
}
