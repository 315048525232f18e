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

use crate::catalog::deferral::{Deferral, HostPart};
use crate::catalog::{Catalog, ServerOffer};
use crate::catalog_memory::{CatalogMemory, KnownLists};
use crate::snapshot::{HostSnapshot, ServerSnapshot};
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
        let source = member.source.as_ref();
        if let Some(kept) = source.and_then(|source| memory.recall(source)) {
            member.lists = kept.lists;
            let (age, lists) = (kept.age, kept.known);
            known.insert(name.clone(), RecalledServer { age, lists });
        }
    }
    let own = ServerOffer {
        host: Some(Box::new(HostPart {
            own: Vec::new(),
            deferral: Deferral::of(&plan.limits),
        })),
        ..ServerOffer::new(ServerName::built_in())
    };
    let offers = members
        .iter()
        .filter(|(name, _)| known.contains_key(*name))
        .map(|(name, member)| member.offer(name, &plan.permissions));
    let catalog = Catalog::build(1, offers.chain([own]));
    let servers: Vec<ServerSnapshot> = members
        .iter()
        .map(|(name, member)| {
            let mut shown = member.show(&catalog);
            if known.contains_key(name) {
                shown.counts = Some(member.counts(&catalog));
            }
            shown
        })
        .collect();
    let snapshot = HostSnapshot {
        servers,
        catalog: Arc::clone(&catalog),
        ..HostSnapshot::default()
    };
    Recalled { snapshot, known }
}
