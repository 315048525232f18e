//! How one server's tools enter a catalogue.
//!
//! Owns the rules by which one enters and the name it enters with. A tool that does not enter
//! leaves a warning; it never takes the others with it. What becomes of the names of several
//! servers is `naming.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolway_config::permission::ToolHints;
use toolway_config::{Boundaries, CallSubject, Curation};
use toolway_types::name::normalize;
use toolway_types::{ServerName, ToolKey, Untrusted};
use toolway_wire::{headers, view};

use super::sanitize::{SchemaSide, UnfitJson};
use super::tools::{LeftOutTool, MAX_TOOLS, ServerTool};
use super::{CatalogWarning, sanitize};
use crate::call::KeptOutBy;
use crate::offering::Offering;
use crate::pool::Loading;

/// The most places of one schema that a warning names.
const MAX_PLACES: usize = 4;

/// `_meta` as far as the catalogue understands it; anything of another type counts as absent.
#[derive(Default)]
struct MetaHints {
    search_hint: Option<String>,
    always_load: bool,
    defer_loading: bool,
}

impl MetaHints {
    fn read(meta: Option<&RawValue>) -> Self {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow, rename = "anthropic/searchHint")]
            search_hint: Option<&'a RawValue>,
            #[serde(borrow, rename = "anthropic/alwaysLoad")]
            always_load: Option<&'a RawValue>,
            #[serde(borrow, rename = "anthropic/deferLoading")]
            defer_loading: Option<&'a RawValue>,
        }
        let Some(Ok(wire)) = meta.map(|meta| serde_json::from_str::<Wire<'_>>(meta.get())) else {
            return Self::default();
        };
        let is_true = |raw: Option<&RawValue>| raw.is_some_and(|raw| raw.get() == "true");
        Self {
            search_hint: wire
                .search_hint
                .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
                .map(|hint| sanitize::words(&hint))
                .filter(|hint| !hint.is_empty()),
            always_load: is_true(wire.always_load),
            defer_loading: is_true(wire.defer_loading),
        }
    }
}

/// How one server's tools enter: under which names, and which of them.
pub(super) struct Admission<'a> {
    pub(super) server: &'a ServerName,
    pub(super) curation: &'a Curation,
    pub(super) bare: bool,
    pub(super) loading: Loading,
    pub(super) boundaries: &'a Boundaries,
}

impl Admission<'_> {
    /// Takes in one server's tools, ordered by name.
    pub(super) fn admit(
        &self,
        tools: Vec<view::Tool>,
        left_out: &mut Vec<LeftOutTool>,
        warnings: &mut Vec<CatalogWarning>,
    ) -> Vec<ServerTool> {
        let mut warn = |message: String| warnings.push(CatalogWarning::new(self.server, message));
        // Of a server whose list is empty or could not be read, everything would match nothing.
        if !tools.is_empty() {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            self.curation.idle(&names).into_iter().for_each(&mut warn);
        }
        // Before the cap: who asks for a few tools of a large server gets those.
        let tools = self.curated(tools, left_out);
        let mut tools = self.seen(tools, left_out);
        let offered = tools.len();
        let beyond = tools.split_off(offered.min(MAX_TOOLS));
        if !beyond.is_empty() {
            let reason = format!(
                "the server offers {offered} tools; only the first {MAX_TOOLS} it lists are used"
            );
            let beyond = beyond.iter().take(MAX_TOOLS);
            let beyond = beyond.filter(|tool| tool.name.len() <= sanitize::MAX_NAME);
            left_out.extend(beyond.map(|tool| self.left_out(tool, KeptOutBy::Cap, reason.clone())));
            warn(reason);
        }
        let mut seen = HashSet::new();
        let mut admitted = Vec::with_capacity(offered.min(MAX_TOOLS));
        for tool in tools {
            let shown = sanitize::line(&tool.name);
            if !seen.insert(tool.name.clone()) {
                warn(format!(
                    "tool `{shown}` is listed twice; the first one is used"
                ));
                continue;
            }
            if tool.name.is_empty() {
                warn("a tool without a name is skipped".to_owned());
                continue;
            }
            match self.admit_one(shown, tool, &mut warn) {
                Ok(tool) => admitted.push(tool),
                Err(flawed) => {
                    let LeftOutTool { shown, reason, .. } = &*flawed;
                    warn(format!("tool `{shown}` is skipped: {reason}"));
                    if flawed.key.tool.len() <= sanitize::MAX_NAME {
                        left_out.push(*flawed);
                    }
                }
            }
        }
        admitted.sort_by(|one, other| one.key.cmp(&other.key));
        admitted
    }

    /// The tools that could not even be read, by the names they have alone.
    pub(super) fn flawed(
        &self,
        faults: Vec<view::ItemFault>,
        tools: &[view::Tool],
    ) -> impl Iterator<Item = LeftOutTool> {
        let named = faults.into_iter().filter_map(|fault| {
            let name = fault.name.filter(|name| !name.is_empty())?;
            let is_short = name.len() <= sanitize::MAX_NAME;
            let is_alone = tools.iter().all(|tool| tool.name != name);
            (is_short && is_alone).then_some((name, fault.reason))
        });
        named.take(MAX_TOOLS).map(|(name, reason)| {
            let key = ToolKey::new(self.server.clone(), name);
            if !self.boundaries.have(&key) {
                return unseen(key);
            }
            LeftOutTool {
                shown: sanitize::line(&key.tool),
                key,
                description: String::new(),
                by: KeptOutBy::Flaw,
                reason: Untrusted::new(reason).line().into_owned(),
            }
        })
    }

    /// The tools that the entry does not keep out.
    fn curated(
        &self,
        mut tools: Vec<view::Tool>,
        left_out: &mut Vec<LeftOutTool>,
    ) -> Vec<view::Tool> {
        let mut kept_out = Vec::new();
        tools.retain(|tool| {
            // A name past its limit is refused below; no pattern needs to read it.
            if tool.name.len() > sanitize::MAX_NAME {
                return true;
            }
            let Err(reason) = self.curation.admits(&tool.name) else {
                return true;
            };
            if kept_out.len() < MAX_TOOLS {
                kept_out.push(self.left_out(tool, KeptOutBy::Entry, reason.to_string()));
            }
            false
        });
        left_out.append(&mut kept_out);
        tools
    }

    /// The tools that whoever sees the server has. The others keep their names, so that no tool has
    /// another one here than elsewhere, and nothing is said of them.
    fn seen(&self, mut tools: Vec<view::Tool>, left_out: &mut Vec<LeftOutTool>) -> Vec<view::Tool> {
        if self.boundaries.is_empty() {
            return tools;
        }
        let mut spelled = HashMap::<String, u32>::new();
        for tool in &tools {
            *spelled.entry(normalize(&tool.name)).or_default() += 1;
        }
        tools.retain(|tool| {
            let key = ToolKey::new(self.server.clone(), &tool.name);
            let mut subject = CallSubject::tool(&key).with_hints(hints(tool));
            if spelled.get(&normalize(&tool.name)) == Some(&1) {
                subject = subject.spelled_alone();
            }
            let is_seen = self.boundaries.have(subject);
            if !is_seen && tool.name.len() <= sanitize::MAX_NAME && left_out.len() < 2 * MAX_TOOLS {
                left_out.push(unseen(key));
            }
            is_seen
        });
        tools
    }

    fn left_out(&self, tool: &view::Tool, by: KeptOutBy, reason: String) -> LeftOutTool {
        LeftOutTool {
            key: ToolKey::new(self.server.clone(), &tool.name),
            shown: sanitize::line(&tool.name),
            description: sanitize::description(tool.description.as_deref().unwrap_or_default()),
            by,
            reason,
        }
    }

    /// The name models see, unless another tool is spelled alike.
    fn exposed(&self, named_by: &ToolKey) -> String {
        if self.bare {
            named_by.exposed_bare()
        } else {
            named_by.exposed()
        }
    }

    /// Whether a tool is always in the list, and whether it is out of the default one: a person's
    /// word about the server comes first, then what the tool says of itself.
    fn loading(&self, meta: &MetaHints) -> (bool, bool) {
        match self.loading {
            Loading::Always => (true, false),
            Loading::Deferred => (false, true),
            Loading::Usual => (meta.always_load, meta.defer_loading && !meta.always_load),
        }
    }

    fn admit_one(
        &self,
        shown: String,
        tool: view::Tool,
        warn: &mut impl FnMut(String),
    ) -> Result<ServerTool, Box<LeftOutTool>> {
        let flawed = |reason| Box::new(self.left_out(&tool, KeptOutBy::Flaw, reason));
        if tool.name.len() > sanitize::MAX_NAME {
            return Err(flawed(format!(
                "its name has {} bytes, over the limit of {}",
                tool.name.len(),
                sanitize::MAX_NAME
            )));
        }
        if Offering::named(&tool.name).is_some() && !self.server.is_built_in() {
            return Err(flawed(
                "its name stands for what servers offer beside tools".to_owned(),
            ));
        }
        let input_schema = sanitize::schema(&tool.input_schema, SchemaSide::Input)
            .map_err(|unfit| flawed(format!("its input schema {unfit}")))?;
        // The 2026-07-28 text leaves no choice: such a tool must not be offered (SEC-28).
        headers::header_params(&tool.input_schema).map_err(|fault| {
            let fault = Untrusted::new(fault.to_string());
            flawed(fault.line().into_owned())
        })?;
        let without = |what: &str, unfit: UnfitJson| {
            format!("tool `{shown}` is used without its {what}, which {unfit}")
        };
        let output_schema = tool.output_schema.as_deref().and_then(|raw| {
            sanitize::schema(raw, SchemaSide::Output)
                .map_err(|unfit| warn(without("output schema", unfit)))
                .ok()
        });
        let annotations = tool.annotations.raw.as_deref().and_then(|raw| {
            sanitize::json(raw)
                .map_err(|unfit| warn(without("annotations", unfit)))
                .ok()
        });
        let output = output_schema.as_ref();
        for (side, checked, schema) in [
            ("input", "arguments", Some(&input_schema)),
            ("output", "answers", output),
        ] {
            let left_out = schema.map_or(&[][..], |schema| schema.left_out.as_slice());
            if !left_out.is_empty() {
                warn(format!(
                    "tool `{shown}` is shown without {} of its {side} schema: as sent, they hold \
                     characters that are not shown; {checked} are still checked against them",
                    some_of(left_out)
                ));
            }
        }
        let meta = MetaHints::read(tool.meta.as_deref());
        let key = ToolKey::new(self.server.clone(), &tool.name);
        let description = match self.curation.description(&tool.name) {
            Some(own) => own.text.as_str(),
            None => tool.description.as_deref().unwrap_or_default(),
        };
        let alias = self.curation.alias(&tool.name);
        let alias = alias.map(|alias| ToolKey::new(self.server.clone(), &alias.text));
        let (always_load, defer_loading) = self.loading(&meta);
        Ok(ServerTool {
            usual_name: self.exposed(alias.as_ref().unwrap_or(&key)),
            alias,
            description: sanitize::description(description),
            key,
            title: tool
                .title
                .as_deref()
                .or(tool.annotations.title.as_deref())
                .map(sanitize::line)
                .filter(|title| !title.is_empty()),
            input_schema: input_schema.json,
            output_schema: output_schema.map(|shown| shown.json),
            annotations,
            hints: hints(&tool),
            search_hint: meta.search_hint,
            always_load,
            defer_loading,
            shown,
            received: tool,
            made: Arc::default(),
            own: None,
            offered: None,
        })
    }
}

fn hints(tool: &view::Tool) -> ToolHints {
    ToolHints {
        read_only: tool.annotations.read_only,
        destructive: tool.annotations.destructive,
        idempotent: tool.annotations.idempotent,
        open_world: tool.annotations.open_world,
    }
}

/// A tool that a view does not have.
fn unseen(key: ToolKey) -> LeftOutTool {
    LeftOutTool {
        shown: String::new(),
        key,
        description: String::new(),
        by: KeptOutBy::View,
        reason: String::new(),
    }
}

/// The first few of these, and how many more there are.
fn some_of(places: &[String]) -> String {
    let named = places.iter().take(MAX_PLACES).map(String::as_str);
    let text = named.collect::<Vec<_>>().join(", ");
    match places.len().saturating_sub(MAX_PLACES) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
