//! Which tools are deferred, and which of the host's own are there.
//!
//! Owns the decision for one catalogue, made when somebody first asks: who only calls tools never
//! does. The setting of the host comes before what the tool or its entry says of it
//! (`admission.rs`), except that a tool which is always to be in the list is.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use toolway_config::{RunLimits, ToolSearch};
use toolway_types::ServerName;
use toolway_wire::view;

use super::builtin::{CatalogBuiltin, Presence};
use super::offer::ServerOffer;
use super::server_catalog::ServerCatalog;
use super::tools::{CatalogTool, LeftOutTool, ServerTool};
use super::{Catalog, CatalogWarning};

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
#[derive(Debug, Default)]
pub(crate) struct HostPart {
    /// The host's own tools, by the name they were offered under.
    pub(super) own: Vec<OwnTool>,
    /// Those that are kept out.
    pub(super) left_out: Arc<[LeftOutTool]>,
    /// What is to be said about them.
    pub(super) warnings: Vec<CatalogWarning>,
    /// When tools are deferred.
    deferral: Deferral,
}

/// One of the host's own tools.
#[derive(Debug)]
pub(super) struct OwnTool {
    /// The name models see, unless another server's tool has it.
    name: String,
    presence: Presence,
    tool: Arc<ServerTool>,
}

impl HostPart {
    /// These tools of the host's own, as a server would list them, and who answers each.
    pub(crate) fn new(
        listed: Vec<view::Tool>,
        own: Vec<CatalogBuiltin>,
        deferral: Deferral,
    ) -> Self {
        let mut known: HashMap<String, CatalogBuiltin> =
            own.into_iter().map(|own| (own.name.clone(), own)).collect();
        let (offered, tools) = ServerCatalog::without_tools(ServerOffer {
            tools: listed,
            ..ServerOffer::new(ServerName::built_in())
        });
        let own = tools.admitted.into_iter().filter_map(|mut tool| {
            let own = known.remove(tool.key.tool.as_str())?;
            tool.key = own.key;
            let presence = own.answers.presence;
            tool.own = Some(own.answers);
            Some(OwnTool {
                name: own.name,
                presence,
                tool: Arc::new(tool),
            })
        });
        Self {
            own: own.collect(),
            left_out: offered.nameable.left_out,
            warnings: offered.warnings,
            deferral,
        }
    }
}

/// Which tools of servers are deferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeferralRule {
    /// None.
    Nothing,
    /// Those that want to be.
    Wishes,
    /// All that do not object.
    Everything,
}

impl Catalog {
    /// Whether a tool stays out of the default list until someone searches for it.
    pub fn is_deferred(&self, tool: &CatalogTool) -> bool {
        let rule = self.deferral();
        match &tool.own {
            Some(own) => {
                rule == DeferralRule::Everything && own.presence == Presence::WithResources
            }
            None => match rule {
                DeferralRule::Nothing => false,
                DeferralRule::Wishes => tool.defer_loading,
                DeferralRule::Everything => !tool.always_load,
            },
        }
    }

    /// The host's own tools: they stand beside those of servers, and are called like them.
    pub fn built_in(&self) -> &[CatalogTool] {
        self.on_demand.built_in.get_or_init(|| self.own_tools())
    }

    fn deferral(&self) -> DeferralRule {
        *self.on_demand.deferral.get_or_init(|| {
            let Deferral {
                search,
                context_tokens,
            } = self.host.deferral;
            match search {
                ToolSearch::Off => DeferralRule::Nothing,
                ToolSearch::On => DeferralRule::Everything,
                ToolSearch::Auto { percent } => {
                    let limit = context_tokens / 100 * usize::from(percent);
                    if self.list_exceeds(limit) {
                        DeferralRule::Everything
                    } else {
                        DeferralRule::Wishes
                    }
                }
            }
        })
    }

    /// Whether the tools of the list take more than this many tokens. Counting stops there, so a
    /// pool of any size takes the same time.
    fn list_exceeds(&self, limit: usize) -> bool {
        let mut left = limit;
        self.servers.iter().any(|server| {
            let rest = left.checked_sub(server.names().listed_tokens());
            left = rest.unwrap_or_default();
            rest.is_none()
        })
    }

    /// How many tools of each server are deferred, of those that have any.
    fn deferred_servers(&self) -> Vec<(&ServerName, usize)> {
        let rule = self.deferral();
        let counts = self.servers.iter().map(|server| {
            let names = server.names();
            let count = match rule {
                DeferralRule::Nothing => 0,
                DeferralRule::Wishes => names.deferring,
                DeferralRule::Everything => names.deferrable,
            };
            (&server.catalog.server, count)
        });
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// The host's own tools that have something to do.
    fn own_tools(&self) -> Vec<CatalogTool> {
        let is_everything = self.deferral() == DeferralRule::Everything;
        let resources = self.servers.iter().any(|it| it.catalog.has_resources);
        let deferred = self.deferred_servers();
        let any_deferred = !deferred.is_empty() || (resources && is_everything);
        let present = self.host.own.iter().filter(|own| match own.presence {
            Presence::Always => true,
            Presence::WithResources => resources,
            Presence::WithDeferred => any_deferred,
        });
        let mut named = name_servers(&deferred);
        if is_everything && resources {
            named.push_str("\n\nTools for the resources of servers are to be found, too.");
        }
        let shown = present.map(|own| {
            let tool = match own.presence {
                Presence::WithDeferred => Arc::new(own.tool.saying_more(&named)),
                Presence::Always | Presence::WithResources => Arc::clone(&own.tool),
            };
            CatalogTool::new(self.name_of_own(own).into_owned(), tool)
        });
        shown.collect()
    }

    /// What one of the host's own tools is called. Where it stands for a server, it gives way to a
    /// tool that is spelled alike and is another server's.
    pub(super) fn name_of_own<'a>(&self, own: &'a OwnTool) -> Cow<'a, str> {
        let key = &own.tool.key;
        if !key.server.is_built_in() && !key.is_lossless() && self.place_of(&own.name).is_some() {
            Cow::Owned(key.exposed_apart())
        } else {
            Cow::Borrowed(&own.name)
        }
    }
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
