//! The clients that were registered before, each under the issuer that knows it (SEC-19).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use toolway_types::Secret;
use url::Url;

use crate::discovery::canonical;
use crate::logins::{Logins, LoginsError};
use crate::registration::RegisteredClient;
use crate::vault::{SecretKind, VaultKey};

/// A client could not be kept or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ClientStoreError(pub String);

impl From<LoginsError> for ClientStoreError {
    fn from(error: LoginsError) -> Self {
        Self(error.to_string())
    }
}

/// What came of keeping or finding.
pub type ClientStoreFuture<'a, T> = BoxFuture<'a, Result<T, ClientStoreError>>;

/// Where clients are kept.
pub trait ClientStore: Send + Sync {
    /// The client that was registered with an issuer.
    fn find<'a>(&'a self, issuer: &'a str) -> ClientStoreFuture<'a, Option<RegisteredClient>>;

    /// Keeps a client that was registered with an issuer.
    fn keep<'a>(
        &'a self,
        issuer: &'a str,
        client: &'a RegisteredClient,
    ) -> ClientStoreFuture<'a, ()>;

    /// Forgets it.
    fn forget<'a>(&'a self, issuer: &'a str) -> ClientStoreFuture<'a, ()>;

    /// The issuer at which a configured client was first used. `what` names the client and the
    /// server it is for.
    fn bound<'a>(&'a self, what: &'a str) -> ClientStoreFuture<'a, Option<String>>;

    /// Remembers it.
    fn bind<'a>(&'a self, what: &'a str, issuer: &'a str) -> ClientStoreFuture<'a, ()>;
}

/// What a configured client is bound by: two servers may have clients of one name at two
/// authorization servers.
pub(crate) fn bound_as(client_id: &str, server: &Url) -> String {
    format!("{client_id} for {}", canonical(server))
}

/// Clients that are forgotten with this program.
#[derive(Debug, Default)]
pub struct MemoryClientStore(Mutex<MemoryClients>);

#[derive(Debug, Default)]
struct MemoryClients {
    clients: HashMap<String, RegisteredClient>,
    bound: HashMap<String, String>,
}

impl MemoryClientStore {
    fn lock(&self) -> MutexGuard<'_, MemoryClients> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientStore for MemoryClientStore {
    fn find<'a>(&'a self, issuer: &'a str) -> ClientStoreFuture<'a, Option<RegisteredClient>> {
        Box::pin(async move { Ok(self.lock().clients.get(issuer).cloned()) })
    }

    fn keep<'a>(
        &'a self,
        issuer: &'a str,
        client: &'a RegisteredClient,
    ) -> ClientStoreFuture<'a, ()> {
        Box::pin(async move {
            let mut inner = self.lock();
            inner.clients.insert(issuer.to_owned(), client.clone());
            Ok(())
        })
    }

    fn forget<'a>(&'a self, issuer: &'a str) -> ClientStoreFuture<'a, ()> {
        Box::pin(async move {
            self.lock().clients.remove(issuer);
            Ok(())
        })
    }

    fn bound<'a>(&'a self, what: &'a str) -> ClientStoreFuture<'a, Option<String>> {
        Box::pin(async move { Ok(self.lock().bound.get(what).cloned()) })
    }

    fn bind<'a>(&'a self, what: &'a str, issuer: &'a str) -> ClientStoreFuture<'a, ()> {
        Box::pin(async move {
            let mut inner = self.lock();
            inner.bound.insert(what.to_owned(), issuer.to_owned());
            Ok(())
        })
    }
}

/// Clients in the vault, where they outlive logins.
impl ClientStore for Logins {
    fn find<'a>(&'a self, issuer: &'a str) -> ClientStoreFuture<'a, Option<RegisteredClient>> {
        Box::pin(async move { Ok(self.client(issuer).await?) })
    }

    fn keep<'a>(
        &'a self,
        issuer: &'a str,
        client: &'a RegisteredClient,
    ) -> ClientStoreFuture<'a, ()> {
        Box::pin(async move { Ok(self.save_client(issuer, client).await?) })
    }

    fn forget<'a>(&'a self, issuer: &'a str) -> ClientStoreFuture<'a, ()> {
        Box::pin(async move {
            if let Some(known) = self.client(issuer).await? {
                self.remove_client(issuer, &known.client_id).await?;
            }
            Ok(())
        })
    }

    fn bound<'a>(&'a self, what: &'a str) -> ClientStoreFuture<'a, Option<String>> {
        Box::pin(async move {
            let read = self.vault().read(&bound(what)).await;
            let read = read.map_err(LoginsError::from)?;
            Ok(read.map(|issuer| issuer.expose().to_owned()))
        })
    }

    fn bind<'a>(&'a self, what: &'a str, issuer: &'a str) -> ClientStoreFuture<'a, ()> {
        Box::pin(async move {
            let written = self.vault().write(&bound(what), &Secret::new(issuer)).await;
            Ok(written.map_err(LoginsError::from)?)
        })
    }
}

/// Where it is kept at which issuer a configured client was first used.
fn bound(what: &str) -> VaultKey {
    VaultKey {
        kind: SecretKind::Client,
        server: String::new(),
        definition: String::new(),
        issuer: String::new(),
        resource: String::new(),
        account: what.to_owned(),
    }
}
