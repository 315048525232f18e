//! The clients that were registered before, each under the issuer that knows it (SEC-19).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;

use crate::registration::Registered;

/// A client could not be kept or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeepError(pub String);

/// What came of keeping or finding.
pub type Keeping<'a, T> = BoxFuture<'a, Result<T, KeepError>>;

/// Where clients are kept.
pub trait Clients: Send + Sync {
    /// The client that was registered with an issuer.
    fn find<'a>(&'a self, issuer: &'a str) -> Keeping<'a, Option<Registered>>;

    /// Keeps a client that was registered with an issuer.
    fn keep<'a>(&'a self, issuer: &'a str, client: &'a Registered) -> Keeping<'a, ()>;

    /// Forgets it.
    fn forget<'a>(&'a self, issuer: &'a str) -> Keeping<'a, ()>;

    /// The issuer at which a configured client was first used. `what` names the client and the
    /// server it is for.
    fn bound<'a>(&'a self, what: &'a str) -> Keeping<'a, Option<String>>;

    /// Remembers it.
    fn bind<'a>(&'a self, what: &'a str, issuer: &'a str) -> Keeping<'a, ()>;
}

/// Clients that are forgotten with this program.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    clients: HashMap<String, Registered>,
    bound: HashMap<String, String>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clients for Memory {
    fn find<'a>(&'a self, issuer: &'a str) -> Keeping<'a, Option<Registered>> {
        Box::pin(async move { Ok(self.lock().clients.get(issuer).cloned()) })
    }

    fn keep<'a>(&'a self, issuer: &'a str, client: &'a Registered) -> Keeping<'a, ()> {
        Box::pin(async move {
            let mut inner = self.lock();
            inner.clients.insert(issuer.to_owned(), client.clone());
            Ok(())
        })
    }

    fn forget<'a>(&'a self, issuer: &'a str) -> Keeping<'a, ()> {
        Box::pin(async move {
            self.lock().clients.remove(issuer);
            Ok(())
        })
    }

    fn bound<'a>(&'a self, what: &'a str) -> Keeping<'a, Option<String>> {
        Box::pin(async move { Ok(self.lock().bound.get(what).cloned()) })
    }

    fn bind<'a>(&'a self, what: &'a str, issuer: &'a str) -> Keeping<'a, ()> {
        Box::pin(async move {
            let mut inner = self.lock();
            inner.bound.insert(what.to_owned(), issuer.to_owned());
            Ok(())
        })
    }
}
