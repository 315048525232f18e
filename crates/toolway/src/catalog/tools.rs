//! Tools in the catalogue: as their server offers them, and as a catalogue shows them.
//!
//! Owns the shape of both. [`ServerTool`] is cleaned, digested and compiled once and shared by all
//! catalogues; [`CatalogTool`] adds what depends on the other servers, which is little: the name.
//! By which rules a tool enters is `admission.rs`.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;
pub use toolway_config::permission::ToolHints;
use toolway_config::permission::{CallSubject, ToolSpellings};
use toolway_types::{ToolKey, limits};
use toolway_wire::view;

use crate::call::{CallError, CallFault, KeptOutBy};
use crate::catalog::BuiltinBackend;
use crate::json_schema::SchemaChecker;
use crate::offering::JudgedOffering;
use crate::pins::{Definition, PinPlace};

mod offered;

/// The most tools of one server.
pub const MAX_TOOLS: usize = limits::offers::TOOLS;

/// A tool as its server offers it, cleaned. It lives as long as the list it came with, whatever
/// becomes of other servers.
#[derive(Debug, Clone)]
pub struct ServerTool {
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
    /// Whether its entry or its server wants it always in the list.
    pub always_load: bool,
    /// Whether its entry or its server wants it out of the default list. Whether it is there says
    /// [`Catalog::is_deferred`](crate::Catalog::is_deferred).
    pub defer_loading: bool,
    /// The name it has while no other server is in its way.
    pub(super) usual_name: String,
    /// The key that names are made from in place of its own, where its entry gives it another name.
    pub(super) alias: Option<ToolKey>,
    /// As the server sent it; its schema may ask for headers.
    pub(super) received: view::Tool,
    /// What is made on first use.
    pub(super) made: Arc<MadeOnce>,
    /// Who answers it, when that is the host itself.
    pub(crate) own: Option<BuiltinBackend>,
    /// What it stands for, when it is no tool of the server's but something else that it offers.
    pub(super) offered: Option<Box<JudgedOffering>>,
}

/// What is made of a tool on first use, and kept as long as the tool.
#[derive(Debug, Default)]
pub(super) struct MadeOnce {
    /// Its own name, shared with the outcomes of its calls.
    own_name: OnceLock<Arc<str>>,
    /// What checks arguments.
    checker: OnceLock<SchemaChecker>,
    /// The same for what it gives.
    output_checker: OnceLock<SchemaChecker>,
    /// What is pinned of it.
    definition: OnceLock<Definition>,
    /// Its place among the pins, and the definition of its server that it was made for.
    place: OnceLock<(Option<Arc<str>>, PinPlace)>,
}

impl ServerTool {
    /// The tool as its server sent it, for the wire only: nothing in it is cleaned.
    pub fn received(&self) -> &view::Tool {
        &self.received
    }

    /// The key that its names are made from.
    pub(super) fn named_by(&self) -> &ToolKey {
        self.alias.as_ref().unwrap_or(&self.key)
    }

    /// The same tool, with more to say. What was made of it is shared.
    pub(super) fn saying_more(&self, more: &str) -> Self {
        let mut tool = self.clone();
        tool.description.push_str(more);
        tool
    }

    /// What is pinned of it.
    pub(crate) fn definition(&self) -> &Definition {
        self.made
            .definition
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
        let (of, place) = self.made.place.get_or_init(|| (server.cloned(), made()));
        // The catalogue can outlive a definition of its server; the next one brings its own.
        if of.as_ref() == server {
            Cow::Borrowed(place)
        } else {
            Cow::Owned(made())
        }
    }

    /// Its own name, to be kept.
    pub(crate) fn own_name(&self) -> Arc<str> {
        let name = &self.made.own_name;
        Arc::clone(name.get_or_init(|| self.key.tool.as_str().into()))
    }

    /// Whether the host itself answers it.
    pub fn is_built_in(&self) -> bool {
        self.own.is_some()
    }

    /// What checks arguments: the schema as its server sent it, for what is shown can say less.
    pub(crate) fn checker(&self) -> &SchemaChecker {
        self.made
            .checker
            .get_or_init(|| SchemaChecker::compile(&self.received.input_schema))
    }

    /// What checks structured content, where the server says what it gives.
    pub(crate) fn output_checker(&self) -> Option<&SchemaChecker> {
        // One that was refused is not used in any form.
        self.output_schema.as_ref()?;
        let schema = self.received.output_schema.as_deref()?;
        let checker = self
            .made
            .output_checker
            .get_or_init(|| SchemaChecker::compile(schema));
        Some(checker)
    }
}

/// A tool as people and models see it: what its server offers, under a name that no other tool of
/// the same catalogue has.
#[derive(Debug)]
pub struct CatalogTool {
    /// The exposed name: unique, at most 64 characters of `[A-Za-z0-9_-]`.
    pub name: String,
    /// Whether no other tool is spelled like it.
    pub(super) spelled_alone: bool,
    /// What rules are matched against, made on first use.
    spellings: OnceLock<ToolSpellings>,
    tool: Arc<ServerTool>,
}

impl Deref for CatalogTool {
    type Target = ServerTool;

    fn deref(&self) -> &ServerTool {
        &self.tool
    }
}

impl CatalogTool {
    /// A tool under this name.
    pub(super) fn new(name: String, tool: Arc<ServerTool>) -> Self {
        Self {
            name,
            spelled_alone: false,
            spellings: OnceLock::new(),
            tool,
        }
    }

    /// What its server offers.
    pub fn tool(&self) -> &Arc<ServerTool> {
        &self.tool
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
