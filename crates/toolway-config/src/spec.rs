//! A checked entry to a definition that can be connected to.
//!
//! Owns: expansion of an entry and the checks that only the expanded value allows. It runs only
//! for servers that a person or the organisation vouched for.
//! Does not own: the shape of an entry (`raw::entry`). No message here repeats an expanded value:
//! it may be a secret.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toolway_types::{
    Diagnosis, ProtocolMode, Scope, Secret, SecretReference, ServerName, ServerSpec, ShieldMode,
    StdioSpec, TransportKind, TransportSpec,
};

use crate::Environment;
use crate::env::Variables;
use crate::ide::Editors;
use crate::load::Place;
use crate::raw::Source;
use crate::raw::json::Spot;

mod reference;
mod remote;
mod workload;

/// What building a definition needs.
pub(crate) struct Builder<'a> {
    pub(crate) name: &'a ServerName,
    pub(crate) kind: TransportKind,
    pub(crate) definition: &'a Map<String, Value>,
    pub(crate) spot: &'a Spot,
    pub(crate) source: Source,
    pub(crate) place: &'a Place,
    pub(crate) environment: &'a Environment,
    pub(crate) inherited: &'a Arc<BTreeMap<String, Secret>>,
    pub(crate) editors: &'a Editors,
    pub(crate) scope: Scope,
}

impl Builder<'_> {
    /// Expands and types the entry, or says every reason why not.
    pub(crate) fn build(&self) -> Result<ServerSpec, Vec<Diagnosis>> {
        let mut work = Work {
            builder: self,
            variables: Variables {
                environment: self.environment,
                plugin_root: self.place.plugin_root.as_deref(),
            },
            missing: BTreeSet::new(),
            references: Vec::new(),
            faults: Vec::new(),
        };
        let mut transport = work.transport();
        work.report_missing();
        // What only a login needs is looked up when there is one.
        let (login, references) =
            (work.references.into_iter()).partition(SecretReference::is_for_login);
        if let Some(oauth) = transport.as_mut().and_then(TransportSpec::oauth_mut) {
            oauth.references = login;
        }
        match transport {
            Some(transport) if work.faults.is_empty() => Ok(ServerSpec {
                name: self.name.clone(),
                transport,
                timeout: self
                    .definition
                    .get("timeout")
                    .and_then(Value::as_u64)
                    .map(Duration::from_millis),
                protocol: self
                    .definition
                    .get("protocol")
                    .and_then(Value::as_str)
                    .and_then(ProtocolMode::parse)
                    .unwrap_or_default(),
                references,
            }),
            _ => Err(work.faults),
        }
    }
}

struct Work<'a> {
    builder: &'a Builder<'a>,
    variables: Variables<'a>,
    missing: BTreeSet<String>,
    references: Vec<SecretReference>,
    faults: Vec<Diagnosis>,
}

impl Work<'_> {
    /// A fault of a key, or of a member of what stands there: `headers.Accept`.
    fn fault(&mut self, place: &str, message: String) {
        let origin = self.builder.source.origin(self.line(place));
        self.faults
            .push(Diagnosis::error(message).of(self.builder.name).at(origin));
    }

    fn line(&self, place: &str) -> u32 {
        let (spot, definition) = (self.builder.spot, self.builder.definition);
        let member = place.split_once('.').and_then(|(key, name)| {
            let inside = definition.get(key)?.as_object()?;
            let name = name
                .split('.')
                .next()
                .filter(|_| key == "oauth")
                .unwrap_or(name);
            Some(spot.member(definition, key)?.member(inside, name)?.line)
        });
        let key = place.split('.').next().unwrap_or(place);
        member.unwrap_or_else(|| spot.line_of(definition, key))
    }

    fn report_missing(&mut self) {
        if self.missing.is_empty() {
            return;
        }
        let names: Vec<_> = self
            .missing
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let (what, first) = match names.as_slice() {
            [one] => (format!("the variable {one} is not set"), &names[0]),
            _ => (
                format!("the variables {} are not set", names.join(", ")),
                &names[0],
            ),
        };
        let first = first.trim_matches('`');
        let key = self.key_mentioning(first);
        let hint = format!("set it, or give it a default: `${{{first}:-value}}`");
        // What came of the empty places is no news.
        self.faults.clear();
        self.fault(&key, what);
        if let Some(diagnosis) = self.faults.last_mut() {
            diagnosis.hint = Some(hint);
        }
    }

    fn key_mentioning(&self, name: &str) -> String {
        let needle = format!("${{{name}");
        let found = self
            .builder
            .definition
            .iter()
            .find(|(_, value)| holds(value, &needle));
        found.map(|(key, _)| key.clone()).unwrap_or_default()
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let text = self.builder.definition.get(key).and_then(Value::as_str)?;
        let text = self.expand(key, text);
        self.without_nul(key, &text);
        Some(text)
    }

    fn without_nul(&mut self, key: &str, text: &str) {
        if text.contains('\0') {
            self.fault(
                key,
                format!("`{key}` has a NUL character once its variables are expanded"),
            );
        }
    }

    fn transport(&mut self) -> Option<TransportSpec> {
        let kind = self.builder.kind;
        match kind {
            TransportKind::Stdio => self.stdio().map(TransportSpec::Stdio),
            TransportKind::Sdk => Some(TransportSpec::Sdk),
            TransportKind::Http => self.remote().map(TransportSpec::Http),
            TransportKind::Sse => self.remote().map(TransportSpec::Sse),
            TransportKind::Ws => self.remote().map(TransportSpec::Ws),
            TransportKind::SseIde => self.remote().map(TransportSpec::SseIde),
            TransportKind::WsIde => self.remote().map(TransportSpec::WsIde),
            TransportKind::Connector => self.remote().map(TransportSpec::Connector),
        }
    }

    fn stdio(&mut self) -> Option<StdioSpec> {
        let definition = self.builder.definition;
        let command = self.text("command").unwrap_or_default();
        if command.trim().is_empty() && self.missing.is_empty() {
            self.fault(
                "command",
                "`command` is empty once its variables are expanded".to_owned(),
            );
            return None;
        }
        let mut args = Vec::new();
        for word in definition
            .get("args")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let word = self.expand("args", word.as_str().unwrap_or_default());
            self.without_nul("args", &word);
            args.push(word);
        }
        let env = self.declared();
        let cwd = self
            .text("cwd")
            .map(|cwd| self.builder.place.directory.join(PathBuf::from(cwd)));
        Some(StdioSpec {
            command,
            program: None,
            args,
            inherited: Arc::clone(self.builder.inherited),
            env,
            cwd,
            shield: self.shield(),
        })
    }

    /// The variables that the entry declares.
    fn declared(&mut self) -> BTreeMap<String, Secret> {
        let mut env = BTreeMap::new();
        let mut set = |name: &str, value: &str| env.insert(name.to_owned(), Secret::new(value));
        if let Some(root) = &self.builder.place.plugin_root {
            set("TOOLWAY_PLUGIN_ROOT", root);
            set("CLAUDE_PLUGIN_ROOT", root);
        }
        let definition = self.builder.definition;
        for (name, value) in definition
            .get("env")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let value = value.as_str().unwrap_or_default();
            let place = format!("env.{name}");
            let value = if name == "PATH" {
                self.expand(&place, value)
            } else {
                self.expand_secret(&place, value)
            };
            self.without_nul("env", &value);
            env.insert(name.clone(), Secret::new(value));
        }
        env
    }

    /// The entry's word, else the person's, else by where the entry came from: what a repository
    /// or a plugin brings is shielded, what a person configured is that person's own choice.
    /// Nobody weakens a person's `required`.
    fn shield(&self) -> ShieldMode {
        let person = self.builder.environment.shield_mode();
        if person == Some(ShieldMode::Required) {
            return ShieldMode::Required;
        }
        let entry = self
            .builder
            .definition
            .get("shield")
            .and_then(Value::as_str);
        entry
            .and_then(ShieldMode::parse)
            .or(person)
            .unwrap_or(match self.builder.scope {
                Scope::Project | Scope::Plugin => ShieldMode::BestEffort,
                _ => ShieldMode::Off,
            })
    }
}

fn holds(value: &Value, needle: &str) -> bool {
    match value {
        Value::String(text) => text.contains(needle),
        Value::Array(items) => items.iter().any(|item| holds(item, needle)),
        Value::Object(map) => map.values().any(|item| holds(item, needle)),
        _ => false,
    }
}
