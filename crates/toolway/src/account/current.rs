//! The account of this moment, which a plan may replace while a host runs.
//!
//! Owns who it is, what is known of its connectors, and that nothing learnt of one account is
//! taken for another's. Asking the provider is `follow.rs`.

use std::sync::Arc;

use tokio::sync::watch;
use toolway_config::Plan;

use super::{Connectors, ConnectorsOf, DirectoryState};

/// The account of this moment.
pub(crate) struct CurrentAccount {
    of: Option<ConnectorsOf>,
    pub(crate) connectors: watch::Sender<Option<Connectors>>,
    state: watch::Sender<DirectoryState>,
}

/// What a plan changes about the account.
#[derive(Debug, Clone, Default)]
pub(crate) enum AccountChange {
    /// Nothing.
    #[default]
    Same,
    /// It is another one, or none any more.
    To(Option<Connectors>),
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

    /// What a plan changes.
    pub(crate) fn change(&self, plan: &Plan) -> AccountChange {
        let Some(of) = &self.of else {
            return AccountChange::Same;
        };
        let new = of(plan);
        let current = self.connectors.borrow();
        let is_same = match (&*current, &new) {
            (Some(current), Some(new)) => {
                current.copy == new.copy && current.provider.is_alike(&new.provider)
            }
            (None, None) => true,
            _ => false,
        };
        if is_same {
            AccountChange::Same
        } else {
            AccountChange::To(new)
        }
    }

    /// Puts another in its place. Nothing is known of that one yet.
    pub(crate) fn replace(&self, connectors: Option<Connectors>) {
        self.connectors.send_modify(|current| {
            if let Some(old) = std::mem::replace(current, connectors) {
                old.login_runner.end();
            }
            self.state.send_replace(DirectoryState::Asking);
        });
    }

    pub(crate) fn state(&self) -> DirectoryState {
        self.state.borrow().clone()
    }

    /// Takes in what was learnt of an account, unless another one took over meanwhile.
    pub(crate) fn learn(&self, of: &Connectors, state: DirectoryState) {
        let current = self.connectors.borrow();
        if current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(&current.provider, &of.provider))
        {
            self.state.send_replace(state);
        }
    }
}
