//! Follows the account while a host runs: its logins and its connectors.
//!
//! Owns the task. Asking the provider and keeping the copy is `account/follow.rs`.

use std::sync::Arc;

use toolway_types::{ConnectionState, Scope};
use tracing::{debug, info, warn};

use crate::account::{Connectors, DirectoryState, refresh};
use crate::host::reload::Reload;

/// Asks at the start and after every login and logout, and reloads the host.
pub(crate) async fn follow(connectors: Connectors, reload: &Reload) {
    let account = &reload.account;
    let mut changes = connectors.account.changes();
    loop {
        changes.mark_unchanged();
        // From before the asking, so that a login meanwhile is noticed.
        let mut shown = connectors.account.present().await.ok();
        let before = account.state();
        let now = refresh(&connectors).await.state;
        say(&now);
        // Also where the copy said the same: another process may have written it, or removed it
        // with the login, after this host's plan was made.
        if !matches!(now, DirectoryState::Kept { .. }) {
            // Without a source of plans the next start has them.
            if let Ok(changes) = reload.reload().await
                && !changes.is_empty()
            {
                info!(
                    started = changes.started.len(),
                    stopped = changes.stopped.len(),
                    "the account's connectors changed"
                );
            }
        }
        let is_out = matches!(now, DirectoryState::LoggedOut { .. });
        if matches!(before, DirectoryState::LoggedOut { .. }) && !is_out {
            reload.reconnect_waiting(waits_for_account).await;
        }
        account.learn(&connectors, now);
        loop {
            if changes.changed().await.is_err() {
                return;
            }
            changes.mark_unchanged();
            // Logins at servers move the same counter: only what the provider is shown matters.
            let present = match connectors.account.present().await {
                Ok(headers) => Some(headers),
                Err(error) if error.wants_login() => None,
                // It cannot be read now, which says nothing of who is logged in.
                Err(_) => continue,
            };
            if present == shown {
                continue;
            }
            let logged_out = present.is_none();
            debug!(logged_out, "somebody logged in or out, or renewed a login");
            if is_out || logged_out {
                break;
            }
            // The list is the same, but what was refused may be taken now.
            shown = present;
            reload.reconnect_waiting(waits_for_account).await;
        }
    }
}

pub(crate) fn waits_for_account(server: &crate::snapshot::ServerSnapshot) -> bool {
    server.scope == Scope::Connector && matches!(server.state, ConnectionState::NeedsAuth { .. })
}

pub(crate) fn say(state: &DirectoryState) {
    match state {
        DirectoryState::Kept { why, .. } => {
            warn!(%why, "the list of connectors is the one that was kept");
        }
        DirectoryState::Fresh { left_out } => {
            for what in left_out {
                warn!(%what, "left out of the account's connectors");
            }
        }
        DirectoryState::Asking | DirectoryState::LoggedOut { .. } => {}
    }
}

/// Keeps the list of connectors fresh, whichever account it is.
pub(crate) async fn follow_current(reload: Arc<Reload>) {
    let mut accounts = reload.account.connectors.subscribe();
    loop {
        let connectors = accounts.borrow_and_update().clone();
        let following = async {
            if let Some(connectors) = connectors {
                follow(connectors, &reload).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = following => {}
            changed = accounts.changed() => if changed.is_err() {
                return;
            },
        }
    }
}
