//! Tools in the catalogue: from what a server lists to what people and models see.
//!
//! Owns the shape of a catalogue tool and the rules by which one enters. A tool that does not
//! enter leaves a warning; it never takes the others with it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::value::RawValue;
use toolway_config::Curation;
pub use toolway_config::permission::ToolHints;
use toolway_config::permission::{CallSubject, ToolSpellings};
use toolway_types::{ServerName, ToolKey, Untrusted, limits};
use toolway_wire::{headers, view};

use super::sanitize::{SchemaSide, UnfitJson};
use super::{CatalogWarning, sanitize};
use crate::call::{CallError, CallFault, KeptOutBy};
use crate::catalog::BuiltinBackend;
use crate::json_schema::SchemaChecker;
use crate::offering::{JudgedOffering, Offering};
use crate::pins::{Definition, PinPlace};

mod offered;

/// The most tools of one server.
pub const MAX_TOOLS: usize = limits::offers::TOOLS;
/// The most places of one schema that a warning names.
const MAX_PLACES: usize = 4;

/// A tool as people and models see it.
#[derive(Debug)]
pub struct CatalogTool {
    /// The exposed name: unique, at most 64 characters of `[A-Za-z0-9_-]`.
    pub name: String,
    /// Its identity: the server, and the name that server gave it, byte for byte.
    pub key: ToolKey,
    /// The tool's own name, cleaned for showing.
    pub shown: String,
    /// Its title, cleaned.
    pub title: Option<String>,
    /// Its description, cleaned and cut; empty when there is none.
    pub description: String,
    /// What it takes, for showing: the server's JSON Schema, cleaned, never converted, without
    /// what could not be sent as it would be shown.
    pub input_schema: Box<RawValue>,
    /// What it gives, for showing, where the server says so.
    pub output_schema: Option<Box<RawValue>>,
    /// Its annotations, cleaned.
    pub annotations: Option<Box<RawValue>>,
    /// The same, read. A server's word about itself: nothing is allowed because of it (SEC-34).
    pub hints: ToolHints,
    /// Words to find it by, from `_meta`.
    pub search_hint: Option<String>,
    /// Whether the server wants it always in the list.
    pub always_load: bool,
    /// Whether it stays out of the default list until someone searches for it.
    pub deferred: bool,
    /// Its own name, shared with the outcomes of its calls; made on first use.
    own_name: OnceLock<Arc<str>>,
    /// As the server sent it; its schema may ask for headers.
    received: view::Tool,
    /// Compiled on first use, and kept as long as this catalogue.
    checker: OnceLock<SchemaChecker>,
    /// The same for what it gives.
    output_checker: OnceLock<SchemaChecker>,
    /// Digested on first use.
    definition: OnceLock<Definition>,
    /// Its place among the pins, and the definition of its server that it was made for.
    place: OnceLock<(Option<Arc<str>>, PinPlace)>,
    /// Whether no other tool is spelled like it.
    pub(super) spelled_alone: bool,
    /// What rules are matched against, made on first use.
    spellings: OnceLock<ToolSpellings>,
    /// Who answers it, when that is the host itself.
    pub(crate) own: Option<BuiltinBackend>,
    /// What it stands for, when it is no tool of the server's but something else that it offers.
    offered: Option<Box<JudgedOffering>>,
}

impl CatalogTool {
    /// The tool as its server sent it, for the wire only: nothing in it is cleaned.
    pub fn received(&self) -> &view::Tool {
        &self.received
    }

    /// What is pinned of it.
    pub(crate) fn definition(&self) -> &Definition {
        self.definition
            .get_or_init(|| Definition::of(&self.received))
    }

    /// Where its pin is kept, while its server is defined like this.
    pub(crate) fn place(&self, server: Option<&Arc<str>>) -> Cow<'_, PinPlace> {
        let made = || {
            let server = server.map(AsRef::as_ref);
            match self.pinned_as() {
                Some(pin) => pin.place(&self.key.server, server),
                None => PinPlace::of(&self.key, server),
            }
        };
        let (of, place) = self.place.get_or_init(|| (server.cloned(), made()));
        // The catalogue can outlive a definition of its server; the next one brings its own.
        if of.as_ref() == server {
            Cow::Borrowed(place)
        } else {
            Cow::Owned(made())
        }
    }

    /// Its own name, to be kept.
    pub(crate) fn own_name(&self) -> Arc<str> {
        let name = self.own_name.get_or_init(|| self.key.tool.as_str().into());
        Arc::clone(name)
    }

    /// All its names, for rules.
    fn spellings(&self) -> &ToolSpellings {
        self.spellings.get_or_init(|| {
            let spellings = ToolSpellings::of_tool(&self.key, &self.name);
            if self.spelled_alone {
                spellings.spelled_alone()
            } else {
                spellings
            }
        })
    }

    /// The tool as rules look at it, before anything is known of a call's arguments.
    pub fn subject(&self) -> CallSubject<'_> {
        self.spellings().subject().with_hints(self.hints)
    }

    /// Whether no other tool of the catalogue is spelled like it.
    pub fn is_spelled_alone(&self) -> bool {
        self.spelled_alone
    }

    /// Whether the host itself answers it.
    pub fn is_built_in(&self) -> bool {
        self.own.is_some()
    }

    /// What checks arguments: the schema as its server sent it, for what is shown can say less.
    pub(crate) fn checker(&self) -> &SchemaChecker {
        self.checker
            .get_or_init(|| SchemaChecker::compile(&self.received.input_schema))
    }

    /// What checks structured content, where the server says what it gives.
    pub(crate) fn output_checker(&self) -> Option<&SchemaChecker> {
        // One that was refused is not used in any form.
        self.output_schema.as_ref()?;
        let schema = self.received.output_schema.as_deref()?;
        let checker = self
            .output_checker
            .get_or_init(|| SchemaChecker::compile(schema));
        Some(checker)
    }
}

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

/// A tool that is kept out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutTool {
    /// Its identity.
    pub key: ToolKey,
    /// The tool's own name, cleaned for showing.
    pub shown: String,
    /// Its description, cleaned and cut; empty when there is none.
    pub description: String,
    /// Who keeps it out.
    pub by: KeptOutBy,
    /// Why; with file and line where that is the entry.
    pub reason: String,
}

impl LeftOutTool {
    /// What a call of it gets.
    pub(super) fn error(&self) -> CallError {
        let (by, reason) = (self.by, self.reason.clone());
        CallError::Failed(self.key.clone(), CallFault::LeftOut { by, reason })
    }
}

/// How one server's tools enter: under which names, and which of them.
pub(super) struct Naming<'a> {
    pub(super) server: &'a ServerName,
    pub(super) curation: &'a Curation,
    pub(super) bare: bool,
}

impl Naming<'_> {
    /// Takes in one server's tools, ordered by name.
    pub(super) fn admit(
        &self,
        tools: Vec<view::Tool>,
        left_out: &mut Vec<LeftOutTool>,
        warnings: &mut Vec<CatalogWarning>,
    ) -> Vec<CatalogTool> {
        let mut warn = |message: String| warnings.push(CatalogWarning::new(self.server, message));
        // Of a server whose list is empty or could not be read, everything would match nothing.
        if !tools.is_empty() {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            self.curation.idle(&names).into_iter().for_each(&mut warn);
        }
        // Before the cap: who asks for a few tools of a large server gets those.
        let mut tools = self.curated(tools, left_out);
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
        named.take(MAX_TOOLS).map(|(name, reason)| LeftOutTool {
            shown: sanitize::line(&name),
            key: ToolKey::new(self.server.clone(), name),
            description: String::new(),
            by: KeptOutBy::Flaw,
            reason: Untrusted::new(reason).line().into_owned(),
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

    fn left_out(&self, tool: &view::Tool, by: KeptOutBy, reason: String) -> LeftOutTool {
        LeftOutTool {
            key: ToolKey::new(self.server.clone(), &tool.name),
            shown: sanitize::line(&tool.name),
            description: sanitize::description(tool.description.as_deref().unwrap_or_default()),
            by,
            reason,
        }
    }

    /// The name models see, unless another tool is spelled alike. It comes from the tool's key, or
    /// from the alias in its place.
    fn exposed(&self, key: &ToolKey) -> String {
        let alias = self.curation.alias(&key.tool);
        let key = match alias {
            Some(alias) => &ToolKey::new(key.server.clone(), &alias.text),
            None => key,
        };
        if self.bare {
            key.exposed_bare()
        } else {
            key.exposed()
        }
    }

    fn admit_one(
        &self,
        shown: String,
        tool: view::Tool,
        warn: &mut impl FnMut(String),
    ) -> Result<CatalogTool, Box<LeftOutTool>> {
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
        Ok(CatalogTool {
            name: self.exposed(&key),
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
            hints: ToolHints {
                read_only: tool.annotations.read_only,
                destructive: tool.annotations.destructive,
                idempotent: tool.annotations.idempotent,
                open_world: tool.annotations.open_world,
            },
            search_hint: meta.search_hint,
            always_load: meta.always_load,
            deferred: meta.defer_loading && !meta.always_load,
            shown,
            received: tool,
            checker: OnceLock::new(),
            output_checker: OnceLock::new(),
            definition: OnceLock::new(),
            place: OnceLock::new(),
            own_name: OnceLock::new(),
            spelled_alone: false,
            spellings: OnceLock::new(),
            own: None,
            offered: None,
        })
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
