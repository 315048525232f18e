//! The resolver of OAuth's connections: names lead only where they may.
//!
//! Owns the lookup of names and what is withheld of its answers. Does not own: what may be
//! reached, which is [`Reach`], or addresses written as numbers, which never get here.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Reach;
use super::address::{Class, classify};

/// How the addresses of a name are found.
pub trait Lookup: Send + Sync {
    /// All addresses of a host name.
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy)]
pub struct System;

impl Lookup for System {
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
pub(super) struct Withheld(pub(super) &'static str);

/// The resolver of the connections themselves: what it withholds is not connected to, whatever
/// an earlier lookup of the same name said.
pub(super) struct Filter {
    pub(super) reach: Reach,
    pub(super) secure: bool,
    /// See [`super::Web::pinned`].
    pub(super) pinned: Option<Arc<str>>,
    /// Names that the person wrote and that are no target.
    pub(super) proxies: Arc<[String]>,
    pub(super) lookup: Arc<dyn Lookup>,
}

impl Resolve for Filter {
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
        Box::pin(async move {
            let found = lookup.lookup(name.as_str()).await?;
            let mut admitted = Vec::new();
            let mut why = None;
            for address in found {
                let class = classify(address);
                if is_pinned && class == Class::Public {
                    why = Some("the server's name leads elsewhere than a moment ago");
                    continue;
                }
                match reach.admits(class, secure) {
                    Err(reason) if !is_proxy => why = Some(reason),
                    _ => admitted.push(SocketAddr::new(address, 0)),
                }
            }
            match why {
                Some(why) if admitted.is_empty() => Err(Withheld(why).into()),
                _ => Ok(Box::new(admitted.into_iter()) as Addrs),
            }
        })
    }
}
