//! A plan on its way to the supervisor.
//!
//! Owns its shape. Orders about one server are `reconnect.rs`; carrying it out is `apply.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use toolway_types::ServerName;

use super::Member;
use crate::account::AccountChange;
use crate::event::Changes;
use crate::snapshot::Settings;

/// A new plan that takes over.
pub(crate) struct ApplyPlan {
    pub(crate) members: BTreeMap<ServerName, Member>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) anew: Anew,
    pub(crate) done: oneshot::Sender<Changes>,
}

/// What connections rest on and a new plan changes, beside their definitions.
#[derive(Debug, Default)]
pub(crate) struct Anew {
    /// Whether another organisation vouches for the person.
    pub organisation: bool,
    /// The account whose connectors are servers too.
    pub account: AccountChange,
}
