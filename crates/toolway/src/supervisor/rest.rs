//! Servers that rest: which are left alone at first, when one gives its connection back, and how it
//! is woken.
//!
//! Owns these orders. What using a server means is `managed_server/rest.rs`; that a connection ends
//! when nobody claims it is the pool's; who asks for a server that rests is `host/attached.rs`,
//! `snapshot/waking.rs` and the way itself (`connection/server_route.rs`).
//!
//! Invariants: a server that rests has no claim and offers what it last listed; it is looked at every
//! few seconds, and never rests while something of it is in use; however many ask for it, it is woken
//! once.

use std::time::Duration;

use toolway_types::{ConnectionState, ServerName};

use super::{ManagedServer, Supervisor};
use crate::catalog_memory::{CatalogMemory, RememberedLists};
use crate::connection::{ConnectionClaim, ConnectionReport, RetryMode};
use crate::listing::ServerLists;
use crate::tasks::{self, Task};

impl Supervisor {
    fn rest_after(&self) -> Option<Duration> {
        self.context.rest_after
    }

    /// Has a server that is new here rest, if it may and what it offers is known; claims it otherwise.
    pub(super) fn enter(&mut self, member: &mut ManagedServer) -> Option<ConnectionReport> {
        if member.may_idle(self.rest_after()).is_some()
            && member.recall_whole(self.context.remembered.as_ref())
        {
            member.lie_down();
            return None;
        }
        self.claim(member)
    }

    /// Looks which servers nobody uses any more.
    pub(super) fn look_for_rest(&mut self) {
        let usual = self.rest_after();
        if usual.is_none() {
            return;
        }
        self.leaving.retain(|connection| !connection.is_gone());
        self.keeping.retain(|task| !task.is_finished());
        let mut news = Vec::new();
        for member in self.members.values_mut() {
            if !member.stops_serving(usual) {
                continue;
            }
            tracing::debug!(server = %member.shown.name, "rests: nobody has used it for a while");
            member.lie_down();
            let pending = ConnectionState::Pending { attempt: 1 };
            news.extend(member.change_state(pending));
            let left = member
                .claim
                .take()
                .and_then(ConnectionClaim::release_unused);
            self.leaving.extend(left);
            let memory = self.context.remembered.clone();
            self.keeping.extend(memory.map(|memory| {
                let (name, lists) = (member.shown.name.clone(), member.lists.clone());
                keep(memory, name, lists)
            }));
        }
        if news.is_empty() {
            return;
        }
        self.publish(&[]);
        // Told once the snapshot says that it rests.
        for event in news {
            let _ = self.events.send(event);
        }
    }

    /// Wakes those of these servers that rest, or of all when none is named.
    pub(super) fn wake(&mut self, servers: &[ServerName]) {
        let resting = self.members.iter().filter(|(name, member)| {
            member.is_resting() && (servers.is_empty() || servers.contains(name))
        });
        let resting: Vec<ServerName> = resting.map(|(name, _)| name.clone()).collect();
        if resting.is_empty() {
            return;
        }
        let mut changed = Vec::new();
        for server in resting {
            self.wake_one(&server, &mut changed);
        }
        self.publish(&changed);
    }

    /// Wakes a server that somebody wants connected anew; false if it does not rest.
    pub(super) fn wake_anew(&mut self, server: &str) -> bool {
        let resting = self.members.iter();
        let mut resting = resting.filter(|(_, member)| member.is_resting());
        let Some(name) = resting.find_map(|(name, _)| (name.as_str() == server).then_some(name))
        else {
            return false;
        };
        let (name, mut changed) = (name.clone(), Vec::new());
        if self.wake_one(&name, &mut changed) {
            // Others have it connected, and it is to connect anew for all of them.
            self.begin_anew(server, RetryMode::AsFirst);
        } else {
            self.publish(&changed);
        }
        true
    }

    /// Gives whether its connection was there already.
    fn wake_one(&mut self, server: &ServerName, changed: &mut Vec<ServerName>) -> bool {
        let Some(mut member) = self.members.remove(server) else {
            return false;
        };
        member.rest.end();
        member.is_touched = true;
        let standing = self.claim(&mut member);
        self.members.insert(server.clone(), member);
        let stands = standing.is_some();
        if let Some(report) = standing {
            self.take(report, changed);
        }
        stands
    }

    /// Wakes those that may not rest by the new plan.
    pub(super) fn wake_restless(&mut self, changed: &mut Vec<ServerName>) {
        let usual = self.rest_after();
        let members = self.members.iter();
        let restless =
            members.filter(|(_, member)| member.is_resting() && member.may_idle(usual).is_none());
        let restless: Vec<ServerName> = restless.map(|(name, _)| name.clone()).collect();
        for server in restless {
            self.wake_one(&server, changed);
        }
    }
}

/// Keeps what a server listed, so that it can rest from the start in other views and the next run.
fn keep(memory: CatalogMemory, server: ServerName, lists: ServerLists) -> Task<()> {
    tasks::spawn("catalogue", async move {
        let kept = tasks::blocking("catalogue", move || memory.keep_lists(&server, &lists));
        if let Err(failure) = kept.await {
            tracing::warn!(%failure, "what a server offers was not kept");
        }
    })
}

impl ManagedServer {
    /// Has it offer what it did when it was last connected, until it is again.
    pub(super) fn recall(&mut self, memory: Option<&CatalogMemory>) {
        self.recall_if(memory, |_| true);
    }

    /// The same where all that it offers is known; false where it is not.
    fn recall_whole(&mut self, memory: Option<&CatalogMemory>) -> bool {
        self.recall_if(memory, |kept| kept.known.is_whole())
    }

    fn recall_if(
        &mut self,
        memory: Option<&CatalogMemory>,
        is_enough: impl Fn(&RememberedLists) -> bool,
    ) -> bool {
        let source = self.source.as_deref();
        let kept = memory
            .zip(source)
            .and_then(|(memory, source)| memory.recall(source))
            .filter(is_enough);
        let Some(kept) = kept else {
            return false;
        };
        self.set_lists(kept.lists);
        self.is_recalled = true;
        self.is_touched = true;
        true
    }
}
