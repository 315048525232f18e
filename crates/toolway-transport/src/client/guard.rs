//! What a server's name may lead to, where policy denies addresses.
//!
//! Owns the check when a name is resolved, right before connecting, for the one URL of the
//! connection.
//! Does not own: IP addresses in a URL (checked before), or names that a proxy looks up.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use toolway_types::UrlRules;
use url::Url;

/// Every address of a name is denied; `why` completes the sentence "it is …".
#[derive(Debug, Clone, thiserror::Error)]
#[error("it leads to {address}, which is {why}")]
pub(crate) struct AddressesDenied {
    /// The first of the addresses.
    pub(crate) address: IpAddr,
    pub(crate) why: String,
}

/// Filters the addresses of one server's name.
#[derive(Clone)]
pub(crate) struct AddressGuard {
    url: Url,
    rules: Arc<UrlRules>,
    /// The resolver, if not the system's.
    resolver: Option<Arc<dyn Resolve>>,
}

impl AddressGuard {
    /// For requests to one URL: rules may speak of its path.
    pub(crate) fn of(url: &Url, rules: &Arc<UrlRules>) -> Self {
        Self {
            url: url.clone(),
            rules: Arc::clone(rules),
            resolver: None,
        }
    }

    pub(crate) fn looking_up(self, resolver: Option<Arc<dyn Resolve>>) -> Self {
        Self { resolver, ..self }
    }

    /// The addresses that may be connected to.
    pub(crate) fn admitted(
        &self,
        found: impl Iterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, AddressesDenied> {
        let (mut admitted, mut withheld) = (Vec::new(), None);
        for address in found {
            match self.rules.denies_at(&self.url, address.ip()) {
                Ok(()) => admitted.push(address),
                Err(why) => {
                    withheld.get_or_insert_with(|| AddressesDenied {
                        address: address.ip(),
                        why: why.to_owned(),
                    });
                }
            }
        }
        match withheld {
            Some(withheld) if admitted.is_empty() => Err(withheld),
            _ => Ok(admitted),
        }
    }
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let admitted = match &guard.resolver {
                Some(resolver) => guard.admitted(resolver.resolve(name).await?)?,
                None => guard.admitted(lookup_host((name.as_str(), 0)).await?)?,
            };
            Ok(Box::new(admitted.into_iter()) as Addrs)
        })
    }
}
