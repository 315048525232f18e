//! One catalogue becomes the next.
//!
//! Owns what is taken over and what is made anew when servers change: the names of a server are
//! found again only if it, or one whose names can meet its own, is another than before. Nothing
//! here looks at the tools of other servers.

use std::collections::HashSet;
use std::sync::Arc;

use toolway_types::ServerName;

use super::deferral::HostPart;
use super::instructions::Instructions;
use super::naming::{Nameable, name_together};
use super::neighbours::Neighbours;
use super::server_catalog::ServerCatalog;
use super::{Catalog, ServerView};
use crate::offering::RESERVED;

impl Catalog {
    /// The catalogue of these servers, which takes over what is the same in this one.
    pub(super) fn replaced(
        &self,
        revision: u64,
        mut servers: Vec<Arc<ServerCatalog>>,
        host: Arc<HostPart>,
    ) -> Self {
        let changes = Changes::between(&self.servers, &servers);
        let neighbours = match changes {
            Changes::Anew => {
                servers.sort_by(|one, other| one.server.cmp(&other.server));
                let each = servers.iter().map(|one| (&one.server, one.bare_names));
                Arc::new(Neighbours::of(each))
            }
            Changes::At(_) => Arc::clone(&self.neighbours),
        };
        let is_same_host = Arc::ptr_eq(&self.host, &host);
        let is_kept = |place: usize| is_same_host && changes.spare(place);
        let views = servers.into_iter().enumerate().map(|(place, catalog)| {
            let before = self.servers.get(place).filter(|_| is_kept(place));
            ServerView {
                catalog,
                renamed: before.and_then(|before| before.renamed.clone()),
            }
        });
        let servers: Vec<ServerView> = views.collect();
        let mut next = Self {
            revision,
            instructions: self.next_instructions(revision, &changes, &servers),
            on_demand: if is_same_host && changes.are_none() {
                Arc::clone(&self.on_demand)
            } else {
                Arc::default()
            },
            servers,
            neighbours,
            host,
        };
        for group in &Arc::clone(&next.neighbours).shared {
            if !group.iter().all(|place| is_kept(*place as usize)) {
                next.name(group, &HashSet::new());
            }
        }
        next.free_host_names();
        next
    }

    /// What the servers say to models now.
    fn next_instructions(
        &self,
        revision: u64,
        changes: &Changes,
        servers: &[ServerView],
    ) -> Instructions {
        let is_unchanged = |place: &usize| {
            self.servers[*place].catalog.instructions == servers[*place].catalog.instructions
        };
        match changes {
            Changes::At(places) if places.iter().all(is_unchanged) => {
                self.instructions.unchanged(revision)
            }
            _ => {
                let said = servers.iter().filter_map(|server| {
                    let text = server.catalog.instructions.as_ref()?;
                    Some((&server.catalog.server, text))
                });
                self.instructions.next(revision, said)
            }
        }
    }

    /// Names the servers at these places together.
    fn name(&mut self, group: &[u32], taken: &HashSet<String>) {
        let group: Vec<usize> = group.iter().map(|place| *place as usize).collect();
        for place in &group {
            self.servers[*place].renamed = None;
        }
        let places = group.iter().copied();
        let places: Vec<usize> = places
            .filter(|place| !self.servers[*place].catalog.nameable.is_empty())
            .collect();
        if places.len() < 2 && taken.is_empty() {
            return;
        }
        let offered: Vec<(&ServerName, &Nameable)> = places
            .iter()
            .map(|place| &*self.servers[*place].catalog)
            .map(|catalog| (&catalog.server, &catalog.nameable))
            .collect();
        let named = name_together(&offered, taken);
        for (place, named) in places.into_iter().zip(named) {
            self.servers[place].renamed = Some(Arc::new(named));
        }
    }

    /// Takes the host's names from servers that show tools under them.
    fn free_host_names(&mut self) {
        let own = self.host.own.iter();
        let own: Vec<String> = own.map(|own| self.name_of_own(own).into_owned()).collect();
        let names = own.iter().map(String::as_str).chain(RESERVED);
        let mut groups: Vec<Vec<u32>> = Vec::new();
        for place in names.filter_map(|name| self.place_of(name)) {
            let mut shared = self.neighbours.shared.iter();
            let group = shared.find(|group| group.contains(&place));
            let group = group.cloned().unwrap_or_else(|| vec![place]);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        if groups.is_empty() {
            return;
        }
        let taken = own.into_iter().chain(RESERVED.map(str::to_owned)).collect();
        for group in groups {
            self.name(&group, &taken);
        }
    }
}

/// What is another than before.
enum Changes {
    /// The servers themselves are others, or their names are made otherwise.
    Anew,
    /// What the servers at these places offer, in order.
    At(Vec<usize>),
}

impl Changes {
    fn between(before: &[ServerView], now: &[Arc<ServerCatalog>]) -> Self {
        if before.len() != now.len() {
            return Self::Anew;
        }
        let mut places = Vec::new();
        for (place, (before, now)) in before.iter().zip(now).enumerate() {
            let before = &before.catalog;
            if Arc::ptr_eq(before, now) {
                continue;
            }
            if before.server != now.server || before.bare_names != now.bare_names {
                return Self::Anew;
            }
            places.push(place);
        }
        Self::At(places)
    }

    /// Whether the server at this place offers the same as before.
    fn spare(&self, place: usize) -> bool {
        match self {
            Self::Anew => false,
            Self::At(places) => places.binary_search(&place).is_err(),
        }
    }

    fn are_none(&self) -> bool {
        matches!(self, Self::At(places) if places.is_empty())
    }
}
