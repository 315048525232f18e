//! The resolver of OAuth's connections: names lead only where they may.
//!
//! Owns the lookup of names and what is withheld of its answers.
//! Does not own: what may be reached, which is [`NetworkReach`], or addresses written as numbers,
//! which never get here.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use toolway_types::UrlRules;
use url::Url;

use super::NetworkReach;
use super::address::{AddressClass, classify};

/// How the addresses of a name are found.
pub trait NameLookup: Send + Sync {
    /// All addresses of a host name.
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

impl NameLookup for SystemLookup {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// No address of a name may be reached.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NoAllowedAddress(pub(super) String);

/// The resolver of the connections themselves: what it withholds is not connected to, whatever
/// an earlier lookup of the same name said.
pub(super) struct FilteringResolver {
    pub(super) reach: NetworkReach,
    pub(super) secure: bool,
    /// See [`super::WebClient::pinned`].
    pub(super) pinned: Option<Arc<str>>,
    /// Names that the user wrote and that are no target.
    pub(super) proxies: Arc<[String]>,
    pub(super) lookup: Arc<dyn NameLookup>,
    /// What policy denies, and the address that is asked.
    pub(super) denied: Option<PolicyFilter>,
}

/// What policy denies at the addresses that the name in a URL leads to.
#[derive(Clone)]
pub(super) struct PolicyFilter {
    pub(super) url: Url,
    pub(super) rules: Arc<UrlRules>,
}

impl PolicyFilter {
    fn admits(&self, address: IpAddr) -> Result<(), String> {
        let leads = |why| format!("it leads to {address}, which is {why}");
        self.rules.denies_at(&self.url, address).map_err(leads)
    }
}

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { reach, secure, .. } = *self;
        let lookup = Arc::clone(&self.lookup);
        let is_proxy = self
            .proxies
            .iter()
            .any(|proxy| proxy.eq_ignore_ascii_case(name.as_str()));
        let is_pinned = self
            .pinned
            .as_ref()
            .is_some_and(|pinned| pinned.eq_ignore_ascii_case(name.as_str()));
        // A proxy is not who is asked.
        let denied = self.denied.clone().filter(|_| !is_proxy);
        Box::pin(async move {
            let found = lookup.lookup(name.as_str()).await?;
            let mut admitted = Vec::new();
            let mut why = None;
            for address in found {
                let class = classify(address);
                if is_pinned && class == AddressClass::Public {
                    why = Some("the server's name leads elsewhere than a moment ago".to_owned());
                    continue;
                }
                if let Some(Err(reason)) = denied.as_ref().map(|denied| denied.admits(address)) {
                    why = Some(reason);
                    continue;
                }
                match reach.admits(class, secure) {
                    Err(reason) if !is_proxy => why = Some(reason.to_owned()),
                    _ => admitted.push(SocketAddr::new(address, 0)),
                }
            }
            match why {
                Some(why) if admitted.is_empty() => Err(NoAllowedAddress(why).into()),
                _ => Ok(Box::new(admitted.into_iter()) as Addrs),
            }
        })
    }
}
