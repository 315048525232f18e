//! Which servers' names can meet.
//!
//! Owns the rule by which servers are looked at together when names are given, and by which the
//! servers are found that a name can belong to. Does not own what becomes of names that do meet
//! (`names.rs`).
//!
//! Every name with a prefix is `mcp__<server>__<tool>`, cut and with a digest at its end where it
//! would be too long. So two servers can have one name only if their normalised names begin alike,
//! up to the first `__`: the name itself has that start too. Names without a prefix can meet those
//! of any other server that goes without.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use toolway_types::ServerName;
use toolway_types::name::{MAX_EXPOSED_LEN, SUFFIX_LEN};

use super::names::PREFIX;

/// The longest start. Of the longest names this much of the server is left when a digest takes the
/// end, and one character less is the same wherever the first `__` lies.
const MAX_START: usize = MAX_EXPOSED_LEN - SUFFIX_LEN - 1 - PREFIX.len() - 1;

/// The servers of a catalogue, by their places in it, as far as their names can meet.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    by_start: HashMap<Box<str>, Vec<u32>, RandomState>,
    /// Those that show tools by their own names.
    bare: Vec<u32>,
    /// Those that have to be named together, two or more each.
    pub(super) shared: Vec<Vec<u32>>,
}

impl Neighbours {
    /// Of these servers, in this order; with each, whether its tools are shown by their own names.
    pub(super) fn of<'a>(servers: impl Iterator<Item = (&'a ServerName, bool)>) -> Self {
        let mut all = Self::default();
        // In order, so that the same servers always give the same groups.
        let mut groups: BTreeMap<Box<str>, Vec<u32>> = BTreeMap::new();
        for (place, (server, is_bare)) in (0_u32..).zip(servers) {
            let spelled = format!("{}__", server.normalized());
            groups
                .entry(start(&spelled).into())
                .or_default()
                .push(place);
            if is_bare {
                all.bare.push(place);
            }
        }
        let mut open = Vec::new();
        for group in groups.values() {
            if group
                .iter()
                .any(|place| all.bare.binary_search(place).is_ok())
            {
                open.extend(group);
            } else if group.len() > 1 {
                all.shared.push(group.clone());
            }
        }
        if open.len() > 1 {
            open.sort_unstable();
            all.shared.push(open);
        }
        all.by_start = groups.into_iter().collect();
        all
    }

    /// The servers that can have a tool of this exposed name or spelling, in their order.
    pub(super) fn that_may_have(&self, name: &str) -> &[u32] {
        match name.strip_prefix(PREFIX) {
            Some(rest) => self.by_start.get(start(rest)).map_or(&[], Vec::as_slice),
            None => &self.bare,
        }
    }
}

/// What a name begins with, behind the prefix.
fn start(rest: &str) -> &str {
    let end = rest.find("__").unwrap_or(rest.len()).min(MAX_START);
    // Names hold ASCII alone; what else is asked for belongs to nobody.
    rest.get(..end).unwrap_or(rest)
}
