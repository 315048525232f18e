//! Which tools are deferred, and which of the host's own are there.
//!
//! Owns the decision for one catalogue, made once while it is built. A person's word about a
//! server comes first, then the setting of the host, then what the tool says of itself.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use toolway_config::{RunLimits, ToolSearch};
use toolway_types::ServerName;

use crate::catalog::{Catalog, CatalogBuiltin, CatalogTool, CatalogWarning, Presence, ServerOffer};
use crate::offering::RESERVED;
use crate::pool::Loading;
use crate::tokens::estimate;

/// The most servers that the search tool names.
const MAX_NAMED: usize = 40;

/// When tools are deferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deferral {
    /// The setting.
    pub(crate) search: ToolSearch,
    /// How many tokens the context holds.
    pub(crate) context_tokens: usize,
}

impl Default for Deferral {
    fn default() -> Self {
        Self::of(&RunLimits::default())
    }
}

impl Deferral {
    /// As a plan has it.
    pub(crate) fn of(limits: &RunLimits) -> Self {
        Self {
            search: limits.tool_search,
            context_tokens: limits.context_tokens,
        }
    }
}

/// The host's part of a catalogue, beside what servers offer.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostPart {
    /// The host's own tools, by the name they were offered under.
    pub(crate) own: Vec<CatalogBuiltin>,
    /// When tools are deferred.
    pub(crate) deferral: Deferral,
}

/// What the offers say about the pool.
pub(crate) struct Terms {
    host: HostPart,
    loading: HashMap<ServerName, Loading>,
    /// Whether any server says that it has resources.
    resources: bool,
}

impl Terms {
    /// Reads the offers, before they are taken apart.
    pub(crate) fn of(offers: &mut [ServerOffer]) -> Self {
        let host = offers.iter_mut().find_map(|offer| offer.host.take());
        Self {
            host: host.map(|host| *host).unwrap_or_default(),
            loading: offers
                .iter()
                .filter(|offer| offer.loading != Loading::Usual)
                .map(|offer| (offer.server.clone(), offer.loading))
                .collect(),
            resources: offers.iter().any(|offer| offer.declares_resources),
        }
    }

    /// Settles a catalogue whose tools have their names.
    pub(crate) fn settle(self, catalog: &mut Catalog) {
        let (own, tools): (Vec<_>, Vec<_>) = std::mem::take(&mut catalog.tools)
            .into_iter()
            .partition(|tool| tool.key.server.is_built_in());
        catalog.tools = tools;
        let mut own = self.introduce(own);
        give_way(catalog, &mut own);
        free_names(catalog, &own);
        let all_deferred = self.defer(&mut catalog.tools);
        let listed = !catalog.resources.is_empty() || !catalog.templates.is_empty();
        let resources = self.resources || listed;
        let deferred = deferred_servers(&catalog.tools);
        let any_deferred = !deferred.is_empty() || (resources && all_deferred);
        own.retain(|(_, presence)| match presence {
            Presence::Always => true,
            Presence::WithResources => resources,
            Presence::WithDeferred => any_deferred,
        });
        let mut named = name_servers(&deferred);
        for (tool, presence) in &mut own {
            if all_deferred && *presence == Presence::WithResources {
                tool.deferred = true;
            }
        }
        if all_deferred && resources {
            named.push_str("\n\nTools for the resources of servers are to be found, too.");
        }
        let own = own.into_iter().map(|(mut tool, presence)| {
            if presence == Presence::WithDeferred {
                tool.description.push_str(&named);
            }
            tool
        });
        catalog.set_built_in(own.collect());
    }

    /// Gives the host's own tools their names and their answers.
    fn introduce(&self, tools: Vec<CatalogTool>) -> Vec<(CatalogTool, Presence)> {
        let mut known: HashMap<&str, &CatalogBuiltin> = self
            .host
            .own
            .iter()
            .map(|own| (own.name.as_str(), own))
            .collect();
        tools
            .into_iter()
            .filter_map(|mut tool| {
                let own = known.remove(tool.key.tool.as_str())?;
                tool.name.clone_from(&own.name);
                tool.key = own.key.clone();
                tool.own = Some(own.answers.clone());
                Some((tool, own.presence))
            })
            .collect()
    }

    /// Defers what is to be; says whether that is everything that does not object.
    fn defer(&self, tools: &mut [CatalogTool]) -> bool {
        let search = self.host.deferral.search;
        for tool in tools.iter_mut() {
            match self.loading.get(&tool.key.server) {
                Some(Loading::Always) => (tool.always_load, tool.deferred) = (true, false),
                Some(Loading::Deferred) => (tool.always_load, tool.deferred) = (false, true),
                Some(Loading::Usual) | None => {}
            }
        }
        let all = match search {
            ToolSearch::Off => {
                for tool in tools {
                    tool.deferred = false;
                }
                return false;
            }
            ToolSearch::On => true,
            ToolSearch::Auto { percent } => {
                let limit = self.host.deferral.context_tokens / 100 * usize::from(percent);
                exceeds(tools, limit)
            }
        };
        if all {
            for tool in tools.iter_mut().filter(|tool| !tool.always_load) {
                tool.deferred = true;
            }
        }
        all
    }
}

/// About how many tokens of a context a tool takes: its name, its description and its schema.
pub(crate) fn tokens(tool: &CatalogTool) -> usize {
    [
        tool.name.as_str(),
        tool.description.as_str(),
        tool.input_schema.get(),
    ]
    .map(estimate)
    .iter()
    .sum()
}

/// Whether the tools of the list take more than this many tokens. Counting stops there, so a
/// pool of any size takes the same time.
fn exceeds(listed: &[CatalogTool], limit: usize) -> bool {
    let mut left = limit;
    listed.iter().filter(|tool| !tool.deferred).any(|tool| {
        let rest = left.checked_sub(tokens(tool));
        left = rest.unwrap_or_default();
        rest.is_none()
    })
}

/// Where one of the host's own tools stands for a server, it gives way to a tool that is spelled
/// alike and is another server's.
fn give_way(catalog: &Catalog, own: &mut [(CatalogTool, Presence)]) {
    for (own, _) in own {
        if !own.key.server.is_built_in()
            && !own.key.is_lossless()
            && catalog.tools.iter().any(|tool| tool.name == own.name)
        {
            own.name = own.key.exposed_apart();
        }
    }
}

/// Takes the host's names from servers that show tools under them: such a tool goes by its full
/// name, or not at all.
fn free_names(catalog: &mut Catalog, own: &[(CatalogTool, Presence)]) {
    let taken = |name: &str| {
        RESERVED.contains(&name) || own.iter().any(|(own, _)| own.name.as_str() == name)
    };
    let warnings = &mut catalog.warnings;
    catalog.tools.retain_mut(|tool| {
        if !taken(&tool.name) {
            return true;
        }
        let full = tool.key.exposed_apart();
        let free = !taken(&full);
        let now = if free {
            format!("it is shown as `{full}`")
        } else {
            "it is hidden".to_owned()
        };
        warnings.push(CatalogWarning::new(
            &tool.key.server,
            format!("the name `{}` is the host's own; {now}", tool.name),
        ));
        tool.name = full;
        free
    });
}

/// How many tools of each server are deferred. Tools stand in the order of their servers.
fn deferred_servers(tools: &[CatalogTool]) -> Vec<(&ServerName, usize)> {
    let mut counts: Vec<(&ServerName, usize)> = Vec::new();
    for tool in tools.iter().filter(|tool| tool.deferred) {
        match counts.last_mut() {
            Some((server, count)) if *server == &tool.key.server => *count += 1,
            _ => counts.push((&tool.key.server, 1)),
        }
    }
    counts
}

fn name_servers(deferred: &[(&ServerName, usize)]) -> String {
    if deferred.is_empty() {
        return String::new();
    }
    let mut names: Vec<String> = deferred
        .iter()
        .take(MAX_NAMED)
        .map(|(server, count)| format!("{server} ({count})"))
        .collect();
    if let Some(more) = deferred
        .len()
        .checked_sub(MAX_NAMED)
        .filter(|more| *more > 0)
    {
        names.push(format!("and {more} more"));
    }
    format!("\n\nServers with tools to be found: {}.", names.join(", "))
}
