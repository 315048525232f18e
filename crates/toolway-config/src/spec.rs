//! A checked entry to a definition that can be connected to.
//!
//! Owns: expansion of an entry and the checks that need the expanded value. It runs only for
//! servers that are approved or need no approval.
//! Does not own: the shape of an entry (`raw::entry`). No message here repeats an expanded value:
//! it may be a secret.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolway_types::{
    Author, Diagnosis, ProtocolMode, Scope, Secret, SecretReference, ServerName, ServerShare,
    ServerSpec, ShieldMode, StdioSpec, TransportKind, TransportSpec, WorkingDirectory,
};
use url::Url;

use crate::Environment;
use crate::approval::ApprovalBasis;
use crate::expansion::ServerVariables;
use crate::ide::RunningEditors;
use crate::json::{EntryMembers as _, ValueLines};
use crate::keys::listed;
use crate::load::LayerLocation;
use crate::source::TextSource;

mod oauth;
mod reference;
mod remote;
mod share;

/// What building a definition needs.
pub(crate) struct SpecBuilder<'a> {
    pub(crate) name: &'a ServerName,
    pub(crate) kind: TransportKind,
    pub(crate) definition: &'a Map<String, Value>,
    /// Its `url`, where no variable completes it.
    pub(crate) url: Option<&'a Url>,
    pub(crate) lines: &'a ValueLines,
    pub(crate) source: TextSource,
    pub(crate) place: &'a LayerLocation,
    pub(crate) environment: &'a Environment,
    pub(crate) inherited: &'a Arc<BTreeMap<String, Secret>>,
    /// The same for a process that is no project's.
    pub(crate) inherited_by_all: &'a Arc<BTreeMap<String, Secret>>,
    pub(crate) editors: &'a RunningEditors,
    pub(crate) scope: Scope,
    pub(crate) author: Author,
    /// How the entry was approved.
    pub(crate) vouched: ApprovalBasis,
}

impl SpecBuilder<'_> {
    /// Expands and types the entry, or says every reason why not.
    pub(crate) fn build(&self) -> Result<ServerSpec, Vec<Diagnosis>> {
        let mut work = SpecBuild {
            builder: self,
            variables: ServerVariables {
                environment: self.environment,
                plugin_root: self.place.plugin_root.as_deref(),
            },
            missing: BTreeSet::new(),
            references: Vec::new(),
            faults: Vec::new(),
        };
        let mut transport = work.transport();
        let roots = work.roots();
        work.report_missing();
        // What only a login needs is looked up when there is one.
        let (login, references) =
            (work.references.into_iter()).partition(SecretReference::is_for_login);
        if let Some(oauth) = transport.as_mut().and_then(TransportSpec::oauth_mut) {
            oauth.references = login;
        }
        match transport {
            Some(mut transport) if work.faults.is_empty() => Ok(ServerSpec {
                share: self.shared(&mut transport, &references),
                name: self.name.clone(),
                transport,
                timeout: self.milliseconds("timeout"),
                request_timeout: self.milliseconds("requestTimeout"),
                protocol: self
                    .definition
                    .member("protocol")
                    .and_then(Value::as_str)
                    .and_then(ProtocolMode::parse)
                    .unwrap_or_default(),
                roots,
                references,
            }),
            _ => Err(work.faults),
        }
    }

    /// Who shares it. A process that serves every project is told of none: which one it would be is
    /// whoever's happened to come first.
    fn shared(&self, transport: &mut TransportSpec, references: &[SecretReference]) -> ServerShare {
        let share = self.share(transport, references);
        if let (ServerShare::User, TransportSpec::Stdio(process)) = (&share, transport) {
            process.inherited = Arc::clone(self.inherited_by_all);
        }
        share
    }

    fn milliseconds(&self, key: &str) -> Option<Duration> {
        let number = self.definition.member(key)?.as_u64()?;
        Some(Duration::from_millis(number))
    }
}

struct SpecBuild<'a> {
    builder: &'a SpecBuilder<'a>,
    variables: ServerVariables<'a>,
    missing: BTreeSet<String>,
    references: Vec<SecretReference>,
    faults: Vec<Diagnosis>,
}

impl SpecBuild<'_> {
    /// A fault of a key, or of a member of what stands there: `headers.Accept`.
    fn fault(&mut self, place: &str, message: String) {
        let origin = self.builder.source.origin(self.line(place));
        self.faults
            .push(Diagnosis::error(message).of(self.builder.name).at(origin));
    }

    fn line(&self, place: &str) -> u32 {
        let (lines, definition) = (self.builder.lines, self.builder.definition);
        let member = place.split_once('.').and_then(|(key, name)| {
            let inside = definition.get(key)?.as_object()?;
            let name = name
                .split('.')
                .next()
                .filter(|_| key == "oauth")
                .unwrap_or(name);
            Some(lines.member(definition, key)?.member(inside, name)?.line)
        });
        let key = place.split('.').next().unwrap_or(place);
        member.unwrap_or_else(|| lines.line_of(definition, key))
    }

    fn report_missing(&mut self) {
        if self.missing.is_empty() {
            return;
        }
        let first = self.missing.first().map_or("", String::as_str);
        let key = self.key_mentioning(first);
        let default = format!("`${{{first}:-value}}`");
        let names = listed(&self.missing);
        let (what, hint) = if self.missing.len() == 1 {
            (
                format!("the variable {names} is not set"),
                format!("set it, or give it a default: {default}"),
            )
        } else {
            (
                format!("the variables {names} are not set"),
                format!("set them, or give each a default: {default}"),
            )
        };
        // Faults of empty values were reported before.
        self.faults.clear();
        self.refuse(&key, what, &hint);
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
        let text = self
            .builder
            .definition
            .member(key)
            .and_then(Value::as_str)?;
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
        match self.builder.kind {
            TransportKind::Stdio => self.stdio().map(TransportSpec::Stdio),
            TransportKind::Sdk => Some(TransportSpec::Sdk),
            TransportKind::Remote(kind) => {
                let remote = self.remote(kind)?;
                Some(TransportSpec::Remote(kind, remote))
            }
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
            .member("args")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let word = self.expand("args", word.as_str().unwrap_or_default());
            self.without_nul("args", &word);
            args.push(word);
        }
        let env = self.declared();
        let cwd = self.directory();
        self.require_place(&command);
        Some(StdioSpec {
            command,
            program: None,
            args,
            inherited: Arc::clone(self.builder.inherited),
            env,
            cwd,
            shield: self.shield(),
            umask: self.builder.environment.umask(),
        })
    }

    /// Where the process is started: where the entry says, in the directory that the entry came
    /// with, or in a private one. Never in the working directory: `python3 -m x` or `npx x` would
    /// run what a repository has under that name (SEC-48).
    fn directory(&mut self) -> WorkingDirectory {
        if let Some(cwd) = self.text("cwd") {
            return WorkingDirectory::At(self.builder.place.directory.join(cwd));
        }
        self.usual_directory()
    }

    fn usual_directory(&self) -> WorkingDirectory {
        let builder = self.builder;
        match builder.scope {
            // Approved for one directory, it must not run what a folder below it, perhaps another
            // repository's, has under the same relative name.
            Scope::Project | Scope::Plugin => builder.place.directory.clone().into(),
            scope => {
                let project = builder.environment.project_root();
                let label = label(scope, builder.name, project);
                builder.environment.private_directory(&label)
            }
        }
    }

    /// The directories that the server is told of.
    fn roots(&mut self) -> Vec<PathBuf> {
        let written = self.builder.definition.member("roots");
        let written = written.and_then(Value::as_array).into_iter().flatten();
        let mut roots = Vec::new();
        for word in written.filter_map(Value::as_str) {
            let word = self.expand("roots", word);
            self.without_nul("roots", &word);
            roots.push(self.builder.place.directory.join(word));
        }
        roots
    }

    /// A program named by a relative path must have a directory that it is relative to.
    fn require_place(&mut self, command: &str) {
        let builder = self.builder;
        let has_place = builder.definition.member("cwd").is_some()
            || matches!(builder.scope, Scope::Project | Scope::Plugin);
        if has_place || !command.contains('/') || Path::new(command).is_absolute() {
            return;
        }
        let message = "`command` is a relative path, and the entry does not say from where";
        let hint = "write the whole path, or say where it starts: `\"cwd\": \"${workspace}\"` is \
                    the directory in which Toolway runs";
        self.refuse("command", message.to_owned(), hint);
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
            .member("env")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let value = value.as_str().unwrap_or_default();
            let value = if name == "PATH" {
                self.expand("env.PATH", value)
            } else {
                self.expand_secret(format_args!("env.{name}"), value)
            };
            self.without_nul("env", &value);
            env.insert(name.clone(), Secret::new(value));
        }
        env
    }

    fn shield(&self) -> ShieldMode {
        let definition = self.builder.definition;
        let entry = definition.member("shield").and_then(Value::as_str);
        let entry = entry.and_then(ShieldMode::parse);
        let person = self.builder.environment.shield_mode();
        self.builder.author.shield(entry, person)
    }
}

/// What the private directory of a server is called: by its scope too, and by its project where it
/// belongs to one, because two servers of one name must not find each other's files.
fn label(scope: Scope, name: &ServerName, project: &Path) -> String {
    let digits = |text: &[u8]| hex::encode(&Sha256::digest(text)[..8]);
    let own = plain_label(name, digits);
    match scope {
        Scope::Local | Scope::Dynamic => {
            format!(
                "{scope}-{own}.{}",
                digits(project.as_os_str().as_encoded_bytes())
            )
        }
        _ => format!("{scope}-{own}"),
    }
}

fn plain_label(name: &ServerName, digits: impl Fn(&[u8]) -> String) -> String {
    /// The longest name that is a part of a file's name as it is.
    const LONGEST: usize = 48;
    let name = name.as_str();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.len() <= LONGEST && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let plain: String = name.chars().filter(|c| is_plain(*c)).take(24).collect();
    // A plain name has no dot, so the two forms never meet.
    format!("{plain}.{}", digits(name.as_bytes()))
}

fn holds(value: &Value, needle: &str) -> bool {
    match value {
        Value::String(text) => text.contains(needle),
        Value::Array(items) => items.iter().any(|item| holds(item, needle)),
        Value::Object(map) => map.values().any(|item| holds(item, needle)),
        _ => false,
    }
}
