//! A new plan takes over from the old one.
//!
//! Owns the comparison: servers are compared by definition, wherever they stand, and only what
//! changed starts, stops or is replaced; so is what rests on an organisation or an account that
//! another one took over from. Rules, hooks and limits change with the snapshot, so a
//! call sees either the old ones or the new ones, never a mixture.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use tokio::sync::{broadcast, oneshot};
use toolway_types::ConnectionState;

use super::{ManagedServer, Roster, Supervisor};
use crate::account::AccountChange;
use crate::call::ServerLogs;
use crate::connection::{ConnectLimits, ConnectionReport};
use crate::event::{Changes, HostEvent};
use crate::server_source::ServerSource;
use crate::snapshot::CallSettings;

impl Supervisor {
    /// Makes the running servers those of a new roster.
    pub(super) fn apply(
        &mut self,
        mut fresh: Roster,
        settings: Arc<CallSettings>,
        anew: PlanEffects,
    ) -> Changes {
        let organisation = anew.organisation;
        let account = matches!(anew.account, AccountChange::To(_));
        let rests_on_it = |source: &ServerSource| {
            (organisation && source.takes_federated_login()) || (account && source.is_connector())
        };
        if let AccountChange::To(connectors) = anew.account {
            self.builtin_tools.set_connectors(connectors.clone());
            Arc::make_mut(&mut self.context).connectors = connectors;
        }
        if settings.limits != self.settings.limits {
            // Connections that stay keep the numbers they were made with.
            Arc::make_mut(&mut self.context).limits = ConnectLimits::new(&settings.limits);
        }
        let mut changes = Changes::default();
        // Connections that stay, and whose tools are seen differently all the same.
        let mut recast = Vec::new();
        let mut members = BTreeMap::new();
        let mut standing = Vec::new();
        for (name, mut old) in std::mem::take(&mut self.members) {
            let Some(new) = fresh.remove(&name) else {
                if old.source.is_some() {
                    changes.stopped.push(name.clone());
                }
                self.retire(&mut old, "no longer configured");
                continue;
            };
            match (old.source.is_some(), new.source.is_some()) {
                _ if old.source == new.source
                    && old.is_own == new.is_own
                    && !old.source.as_deref().is_some_and(rests_on_it) =>
                {
                    if old.source.is_some() {
                        changes.kept.push(name.clone());
                    }
                    if (&old.curation, old.no_prefix) != (&new.curation, new.no_prefix) {
                        recast.push(name.clone());
                    }
                    old.describe(new, &self.events);
                }
                (true, true) => {
                    changes.replaced.push(name.clone());
                    standing.extend(self.replace(&mut old, new));
                }
                (false, _) => {
                    changes.started.push(name.clone());
                    standing.extend(self.replace(&mut old, new));
                }
                (true, false) => {
                    changes.stopped.push(name.clone());
                    self.retire(&mut old, "switched off");
                    old.source = None;
                    old.is_own = new.is_own;
                    old.describe(new, &self.events);
                }
            }
            members.insert(name, old);
        }
        for (name, mut new) in fresh {
            if new.source.is_some() {
                changes.started.push(name.clone());
            }
            standing.extend(self.enter(&mut new));
            members.insert(name, new);
        }
        // Rules, limits and what entries say may all be others now.
        for member in members.values_mut() {
            member.is_touched = true;
        }
        self.builtin_tools.forget_servers();
        self.members = members;
        self.settings = settings;
        for report in standing {
            self.take(report, &mut Vec::new());
        }
        self.wake_restless(&mut recast);
        self.leaving.retain(|connection| !connection.is_gone());
        let Changes {
            started,
            stopped,
            replaced,
            ..
        } = &changes;
        let touched = [started, stopped, replaced, &recast]
            .map(Vec::as_slice)
            .concat();
        self.publish(&touched);
        let _ = self.events.send(HostEvent::Reloaded(changes.clone()));
        changes
    }

    /// A connection to another definition takes over; calls in flight finish on the old one.
    fn replace(&mut self, old: &mut ManagedServer, new: ManagedServer) -> Option<ConnectionReport> {
        // One that rests goes on resting where that is possible; one that does not is in use.
        let may_rest = old.is_resting() || old.source.is_none();
        old.clear();
        old.rest.end();
        old.rest.logs = ServerLogs::default();
        if !matches!(old.shown.state, ConnectionState::Pending { attempt: 1 }) {
            old.set_state(ConnectionState::Pending { attempt: 1 }, &self.events);
        }
        // An equal one is replaced for what it rests on, and that is no part of the key.
        let is_superseded = old.source == new.source && old.is_own == new.is_own;
        old.is_own = new.is_own;
        if let Some(claim) = old.claim.take() {
            self.leaving.extend(if is_superseded {
                claim.supersede()
            } else {
                claim.release()
            });
        }
        old.stood = false;
        old.trouble = None;
        old.source.clone_from(&new.source);
        old.definition = OnceLock::new();
        old.describe(new, &self.events);
        if may_rest && !is_superseded {
            self.enter(old)
        } else {
            self.claim(old)
        }
    }

    /// Ends a server's connection for good.
    fn retire(&mut self, member: &mut ManagedServer, reason: &str) {
        member.clear();
        member.rest.end();
        // It finishes what is in flight, watched until it has ended.
        if let Some(claim) = member.claim.take() {
            self.leaving.extend(claim.release());
        }
        // There is no way from any other state.
        if !matches!(
            member.shown.state,
            ConnectionState::Pending { .. } | ConnectionState::Disabled { .. }
        ) {
            member.set_state(ConnectionState::Pending { attempt: 1 }, &self.events);
        }
        let reason = reason.to_owned();
        member.set_state(ConnectionState::Disabled { reason }, &self.events);
    }
}

impl ManagedServer {
    /// Takes over what another roster says of the same server, its connection left alone.
    fn describe(&mut self, new: ManagedServer, events: &broadcast::Sender<HostEvent>) {
        // A reason can change while nothing else does.
        if new.source.is_none() && self.shown.state != new.shown.state {
            self.set_state(new.shown.state.clone(), events);
        }
        self.loading = new.loading;
        self.rest.idle = new.rest.idle;
        self.address = new.address;
        self.curation = new.curation;
        self.no_prefix = new.no_prefix;
        let state = std::mem::replace(&mut self.shown, new.shown).state;
        self.shown.state = state;
    }
}

/// A new plan that takes over.
pub(crate) struct ApplyPlan {
    pub(crate) members: Roster,
    pub(crate) settings: Arc<CallSettings>,
    pub(crate) anew: PlanEffects,
    pub(crate) done: oneshot::Sender<Changes>,
}

/// What connections rest on and a new plan changes, beside their definitions.
#[derive(Debug, Default)]
pub(crate) struct PlanEffects {
    /// Whether federated logins go by another organisation.
    pub organisation: bool,
    /// The account whose connectors are servers too.
    pub account: AccountChange,
}
