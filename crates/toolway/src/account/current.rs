//! The account of this moment, which a plan may replace while a host runs.
//!
//! Owns who it is, what is known of its connectors, and that nothing learnt of one account is
//! taken for another's. Asking the provider is `follow.rs`.

use std::sync::Arc;

use tokio::sync::watch;
use toolway_config::Plan;

use super::follow::follow;
use super::{Connectors, ConnectorsOf, DirectoryState};
use crate::host::reload::Reload;

/// The account of this moment.
pub(crate) struct CurrentAccount {
    of: Option<ConnectorsOf>,
    connectors: watch::Sender<Option<Connectors>>,
    state: watch::Sender<DirectoryState>,
}

impl CurrentAccount {
    /// The account of a plan. `of` says how its connectors are had.
    pub(crate) fn new(of: Option<ConnectorsOf>, plan: &Plan) -> Self {
        let connectors = of.as_ref().and_then(|of| of(plan));
        Self {
            of,
            connectors: watch::Sender::new(connectors),
            state: watch::Sender::new(DirectoryState::Asking),
        }
    }

    pub(crate) fn connectors(&self) -> Option<Connectors> {
        self.connectors.borrow().clone()
    }

    /// Whether there can ever be one.
    pub(crate) fn is_possible(&self) -> bool {
        self.of.is_some()
    }

    /// What is known of its connectors; nothing without an account.
    pub(crate) fn directory(&self) -> Option<watch::Receiver<DirectoryState>> {
        let connectors = self.connectors.borrow();
        connectors.is_some().then(|| self.state.subscribe())
    }

    /// The account of a plan, where it is another than that of this moment, or none any more.
    pub(crate) fn other(&self, plan: &Plan) -> Option<Option<Connectors>> {
        let of = self.of.as_ref()?;
        let new = of(plan);
        let current = self.connectors.borrow();
        let is_same = match (&*current, &new) {
            (Some(current), Some(new)) => {
                current.copy == new.copy && current.provider.is_alike(&new.provider)
            }
            (None, None) => true,
            _ => false,
        };
        (!is_same).then_some(new)
    }

    /// Puts another in its place. Nothing is known of that one yet.
    pub(crate) fn replace(&self, connectors: Option<Connectors>) {
        self.connectors.send_modify(|current| {
            if let Some(old) = std::mem::replace(current, connectors) {
                old.door.end();
            }
            self.state.send_replace(DirectoryState::Asking);
        });
    }

    pub(super) fn state(&self) -> DirectoryState {
        self.state.borrow().clone()
    }

    /// Takes in what was learnt of an account, unless another one took over meanwhile.
    pub(super) fn learn(&self, of: &Connectors, state: DirectoryState) {
        let current = self.connectors.borrow();
        if current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(&current.provider, &of.provider))
        {
            self.state.send_replace(state);
        }
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
            std::future::pending().await
        };
        tokio::select! {
            () = following => {}
            changed = accounts.changed() => if changed.is_err() {
                return;
            },
        }
    }
}
