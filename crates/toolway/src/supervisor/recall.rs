//! The snapshot of servers that were not asked today: what they offered when they were last
//! connected, as the plan of this moment lets it be seen.
//!
//! Owns putting kept lists in the place of fetched ones; where they are kept is
//! `catalog_memory.rs`. A server that may not connect has nothing to show, whatever was kept of it.
//! No server of such a snapshot is connected, and no call can be sent by it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use toolway_config::Plan;
use toolway_types::ServerName;

use crate::catalog::deferral::Deferral;
use crate::catalog::{Catalog, HostPart};
use crate::catalog_memory::{CatalogMemory, KnownLists};
use crate::snapshot::HostSnapshot;
use crate::supervisor::managed_server::roster;

/// What servers offered when they were last connected.
#[derive(Debug)]
pub struct Recalled {
    /// Every server, not connected, and the catalogue of what is known of them.
    pub snapshot: HostSnapshot,
    /// The servers that something is known of.
    pub known: BTreeMap<ServerName, RecalledServer>,
}

/// What is known of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecalledServer {
    /// How long ago it was asked.
    pub age: Duration,
    /// Which of its lists are known.
    pub lists: KnownLists,
}

/// Recalls what the admitted servers of a plan offered, from the folder that
/// [`HostOptions`](crate::HostOptions) names. Starts nothing and connects to nothing.
pub fn recall_catalog(folder: &Path, plan: &Plan) -> Recalled {
    let memory = CatalogMemory::at(folder.to_owned());
    let mut members = roster(plan, &[], None);
    let mut known = BTreeMap::new();
    for (name, member) in &mut members {
        let source = member.source.as_deref();
        if let Some(kept) = source.and_then(|source| memory.recall(source)) {
            member.lists = kept.lists;
            member.is_recalled = true;
            let (age, lists) = (kept.age, kept.known);
            known.insert(name.clone(), RecalledServer { age, lists });
        }
    }
    let offers = members.values_mut();
    let offers = offers.map(|member| member.catalog(&plan.permissions));
    let own = HostPart::new(Vec::new(), Vec::new(), Deferral::of(&plan.limits));
    let catalog = Catalog::of_host(&Catalog::default(), offers.collect(), Arc::new(own));
    let both = members.values_mut().zip(catalog.servers());
    let servers = both.map(|(member, view)| member.show(view)).collect();
    let snapshot = HostSnapshot {
        servers,
        catalog: Arc::clone(&catalog),
        ..HostSnapshot::default()
    };
    Recalled { snapshot, known }
}
