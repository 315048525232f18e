//! The end of a host, and what it keeps for the next run.
//!
//! Owns the order in which things end. What each of them does to end is its own affair.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolway_auth::account::ProviderAccount;

use super::Host;
use super::view::View;
use crate::auth::Auth;
use crate::catalog_memory::CatalogMemory;
use crate::snapshot::HostSnapshot;

/// How long authorization servers have to answer when a host ends.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

impl Host {
    /// Keeps what the connected servers offer for the next run, where
    /// [`HostOptions::catalog_memory`] says so. Done by itself when the host ends.
    pub async fn remember(&self) {
        self.remember_of(self.own.view()).await;
    }

    /// The same of the servers that a view shows.
    pub async fn remember_of(&self, view: &View) {
        remember(self.catalogs.clone(), view.snapshot()).await;
    }

    /// Ends every connection. Every process is gone when this returns; calls in flight fail. A
    /// login that is being renewed is saved, if its authorization server answers within 5 s.
    pub async fn shutdown(self) {
        let settled_by = Instant::now() + SETTLED_WITHIN;
        // What they offer now, since nothing is connected any more in a moment.
        let remembering = remember(self.catalogs.clone(), self.snapshot());
        // Both may begin renewals.
        drop((self.following, self.attendant));
        self.own.background.end();
        if let Some(auth) = &self.auth {
            auth.end();
        }
        let connectors = self.reload.account.connectors();
        if let Some(connectors) = &connectors {
            connectors.login_runner.end();
        }
        let account = connectors.map(|connectors| connectors.account);
        drop(self.stop);
        let views = self.core.views.following.all();
        let others = futures_util::future::join_all(views.iter().map(View::end));
        let ending = self.core.views.ending.gone();
        tokio::join!(self.own.party.view.end(), others, ending, remembering);
        self.core.views.pool.settled().await;
        drop(self.hooks);
        let within = settled_by.saturating_duration_since(Instant::now());
        // The end of a server whose start was given up half-way is waited for here alone.
        tokio::join!(
            self.launcher.end(),
            settle(self.auth.as_deref(), account.as_ref(), within)
        );
        if let Some(journal) = &self.journal {
            journal.flush().await;
        }
        if let Some(audit) = &self.core.audit {
            audit.flush().await;
        }
    }
}

/// Files and locks may block; the end of a host waits for them beside the end of its servers.
async fn remember(catalogs: Option<CatalogMemory>, snapshot: Arc<HostSnapshot>) {
    if let Some(catalogs) = catalogs {
        let _ = tokio::task::spawn_blocking(move || catalogs.keep(&snapshot)).await;
    }
}

/// Waits for renewals under way: a token that took the place of another and was not saved is a
/// login that is lost.
async fn settle(auth: Option<&Auth>, account: Option<&ProviderAccount>, within: Duration) {
    let logins = async {
        if let Some(auth) = auth {
            auth.settle(within).await;
        }
    };
    let account = async {
        if let Some(account) = account {
            account.settle(within).await;
        }
    };
    tokio::join!(logins, account);
}
