//! The names of servers' tools and prompts, found for several servers together.
//!
//! Owns what one server's tools are called in a catalogue, and the indices by which they are found
//! there. The rules of collisions are `names.rs`; which servers have to be looked at together is
//! `neighbours.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use toolway_types::{ServerName, ToolKey};

use super::CatalogWarning;
use super::names::{free_names, hide_collisions, prefix_collisions, tell_apart};
use super::prompts::CatalogPrompt;
use super::tools::{CatalogTool, LeftOutTool, ServerTool};
use crate::call::KeptOutBy;
use crate::tokens::estimate;

/// What of a server has a name.
#[derive(Debug, Default)]
pub(super) struct Nameable {
    /// The tools that lists show, by their own names.
    pub(super) tools: Vec<Arc<ServerTool>>,
    /// Its prompts, by their own names.
    pub(super) prompts: Vec<Arc<CatalogPrompt>>,
    /// The tools that are kept out of it, by their own names.
    pub(super) left_out: Arc<[LeftOutTool]>,
}

impl Nameable {
    /// Whether there is nothing that could be in the way of another name.
    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.prompts.is_empty() && self.left_out.is_empty()
    }
}

/// What a server's tools and prompts are called in a catalogue.
#[derive(Debug, Default)]
pub(super) struct NamedServer {
    /// Its tools, by their own names.
    pub(super) tools: Vec<CatalogTool>,
    /// Its prompts, by their own names.
    pub(super) prompts: Vec<Arc<CatalogPrompt>>,
    /// The tools that are kept out, for a name or for any other reason, by their own names.
    pub(super) left_out: Arc<[LeftOutTool]>,
    /// What was changed or left out for its name.
    pub(super) warnings: Vec<CatalogWarning>,
    /// The places in `tools` of exposed names.
    by_name: HashMap<String, u32, RandomState>,
    /// The places of tools that are spelled so, themselves or their aliases, and are called
    /// otherwise.
    by_spelling: HashMap<String, Vec<u32>, RandomState>,
    /// How many tools want to be out of the default list.
    pub(super) deferring: usize,
    /// How many do not mind.
    pub(super) deferrable: usize,
    listed_tokens: OnceLock<usize>,
}

/// About how many tokens of a context a tool takes: its name, its description and its schema.
pub(super) fn tokens(tool: &CatalogTool) -> usize {
    [
        tool.name.as_str(),
        tool.description.as_str(),
        tool.input_schema.get(),
    ]
    .map(estimate)
    .iter()
    .sum()
}

impl NamedServer {
    /// The tool of this exposed name.
    pub(super) fn named(&self, name: &str) -> Option<&CatalogTool> {
        self.tools.get(*self.by_name.get(name)? as usize)
    }

    /// The tool of this name of its own.
    pub(super) fn own(&self, name: &str) -> Option<&CatalogTool> {
        let found = self
            .tools
            .binary_search_by(|tool| tool.key.tool.as_str().cmp(name));
        found.ok().map(|place| &self.tools[place])
    }

    /// The tools that are spelled so, themselves or their aliases, in their order.
    pub(super) fn spelled<'a>(&'a self, spelled: &str) -> Vec<&'a CatalogTool> {
        let called = self.by_name.get(spelled).copied();
        let called = called.filter(|place| {
            let tool = &self.tools[*place as usize];
            spellings(tool).any(|own| own == spelled)
        });
        let others = self.by_spelling.get(spelled).into_iter().flatten();
        let mut places: Vec<u32> = others.copied().chain(called).collect();
        places.sort_unstable();
        let tools = places.iter();
        tools.map(|place| &self.tools[*place as usize]).collect()
    }

    /// How many tokens of a context the tools take that do not want to be out of the default list.
    pub(super) fn listed_tokens(&self) -> usize {
        *self.listed_tokens.get_or_init(|| {
            let listed = self.tools.iter().filter(|tool| !tool.defer_loading);
            listed.map(tokens).sum()
        })
    }

    fn index(&mut self) {
        self.by_name.reserve(self.tools.len());
        for (place, tool) in (0_u32..).zip(&self.tools) {
            for spelled in spellings(tool).filter(|spelled| *spelled != tool.name) {
                self.by_spelling.entry(spelled).or_default().push(place);
            }
            self.by_name.insert(tool.name.clone(), place);
            self.deferring += usize::from(tool.defer_loading);
            self.deferrable += usize::from(tool.defer_loading || !tool.always_load);
        }
    }
}

/// How a tool is spelled, and its alias where that is another spelling.
fn spellings(tool: &CatalogTool) -> impl Iterator<Item = String> {
    let own = tool.key.spelled();
    let alias = tool.alias.as_ref().map(ToolKey::spelled);
    let alias = alias.filter(|alias| *alias != own);
    [Some(own), alias].into_iter().flatten()
}

/// Finds the names of all that these servers offer, which come in their order. `taken` are names
/// of the host's own tools, which no server gets. Gives one answer for each server.
pub(super) fn name_together(
    servers: &[(&ServerName, &Nameable)],
    taken: &HashSet<String>,
) -> Vec<NamedServer> {
    let mut warnings = Vec::new();
    let offered = servers.iter().flat_map(|(_, offered)| &offered.tools);
    let named =
        |tool: &Arc<ServerTool>| CatalogTool::new(tool.usual_name.clone(), Arc::clone(tool));
    let mut tools: Vec<CatalogTool> = offered.map(named).collect();
    let prompts = servers.iter().flat_map(|(_, offered)| &offered.prompts);
    let mut prompts: Vec<Arc<CatalogPrompt>> = prompts.cloned().collect();
    let left_out = || servers.iter().flat_map(|(_, it)| it.left_out.iter());

    prefix_collisions(&mut tools, &mut warnings);
    let kept_out: HashSet<String> = left_out().map(|tool| tool.key.exposed()).collect();
    tell_apart(&mut tools, &kept_out);
    tell_apart(&mut prompts, &HashSet::new());
    let hidden = hide_collisions(&mut tools, &mut warnings);
    hide_collisions(&mut prompts, &mut warnings);
    free_names(&mut tools, taken, &mut warnings);
    let hidden: Vec<LeftOutTool> = hidden
        .into_iter()
        .map(|(tool, reason)| LeftOutTool {
            key: tool.key.clone(),
            shown: tool.shown.clone(),
            description: tool.description.clone(),
            by: KeptOutBy::Namesake,
            reason,
        })
        .collect();
    note_spelled_alone(&mut tools, left_out().chain(&hidden));
    part(servers, tools, prompts, &hidden, &warnings)
}

/// Notes of each tool whether another one, kept out or not, is spelled like it.
fn note_spelled_alone<'a>(
    tools: &mut [CatalogTool],
    left_out: impl Iterator<Item = &'a LeftOutTool>,
) {
    let kept_out: HashSet<String> = left_out.map(|tool| tool.key.spelled()).collect();
    let mut alike: HashMap<String, usize, RandomState> =
        HashMap::with_capacity_and_hasher(tools.len(), RandomState::default());
    for spelled in tools.iter().flat_map(spellings) {
        *alike.entry(spelled).or_default() += 1;
    }
    for tool in tools {
        let spelled = tool.key.spelled();
        tool.spelled_alone = alike.get(&spelled) == Some(&1) && !kept_out.contains(&spelled);
    }
}

/// Gives each server what is its own.
fn part(
    servers: &[(&ServerName, &Nameable)],
    tools: Vec<CatalogTool>,
    prompts: Vec<Arc<CatalogPrompt>>,
    hidden: &[LeftOutTool],
    warnings: &[CatalogWarning],
) -> Vec<NamedServer> {
    let (mut tools, mut prompts) = (tools.into_iter().peekable(), prompts.into_iter().peekable());
    let named = servers.iter().map(|(server, offered)| {
        let own = |it: &&LeftOutTool| it.key.server == **server;
        let hidden: Vec<&LeftOutTool> = hidden.iter().filter(own).collect();
        let left_out = if hidden.is_empty() {
            Arc::clone(&offered.left_out)
        } else {
            let mut all: Vec<LeftOutTool> = offered.left_out.to_vec();
            all.extend(hidden.into_iter().cloned());
            all.sort_by(|one, other| one.key.cmp(&other.key));
            all.into()
        };
        let warnings = warnings.iter().filter(|it| it.server == **server);
        let mut named = NamedServer {
            left_out,
            warnings: warnings.cloned().collect(),
            ..NamedServer::default()
        };
        while let Some(tool) = tools.next_if(|tool| tool.key.server == **server) {
            named.tools.push(tool);
        }
        while let Some(prompt) = prompts.next_if(|prompt| prompt.key.server == **server) {
            named.prompts.push(prompt);
        }
        named.index();
        named
    });
    named.collect()
}
