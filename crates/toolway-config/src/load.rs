//! Files, environment and flags, as written.
//!
//! Owns: which files are read, in which order they count, and that each is read once. A file that
//! cannot be read never stops the others; only a policy file does (SEC-14).
//! Does not own: which entry wins (`merge`) and what may connect (`admission`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use toolway_types::{Author, Diagnosis, Origin, Scope};

use crate::Environment;
use crate::account::ConnectorDirectory;
use crate::approval::{self, ApprovalsFile};
use crate::environment::{PROJECT_FILE, PROJECT_FOLDER, path_key};
use crate::file::{MAX_BYTES, open, read_opened};
use crate::ide::RunningEditors;
use crate::keys::listed;
use crate::managed;
use crate::raw::{self, FileSettings, RawFile, RawServer};
use crate::redaction::KeysOnly;
use crate::source::{FileKind, TextSource};

mod account;
mod editor;
mod flags;
mod last_good;
mod owner;
mod plugins;
mod system;

pub(crate) use account::account_settings;
pub(crate) use last_good::LastGoodFiles;
pub(crate) use owner::{read_in_project, strangers_place};
pub(crate) use plugins::plugin_files;
pub use system::with_managed_variables;
pub(crate) use system::{system_files, system_settings};

/// What the command line says about configuration. Its `Debug` shows no server that was typed.
#[derive(Default, Clone, PartialEq, Eq)]
pub struct Flags {
    /// `--mcp-config`: a file's path, or JSON when it starts with `{`. A later one wins.
    pub mcp_config: Vec<String>,
    /// `--mcp-server`: `name=command` or `name=URL`.
    pub mcp_server: Vec<String>,
    /// `--strict-mcp-config`: only servers given by the two flags above.
    pub strict: bool,
    /// `--approve-project-servers`: for this run, servers of the project need no record.
    pub approve_project_servers: bool,
    /// `--ide`: the editor that has the working directory open is a server too.
    pub ide: bool,
    /// Servers that a program or an agent brings itself, by name.
    pub brought: Vec<(String, Map<String, Value>)>,
    /// Hosted connectors of the account: the lowest scope.
    pub connectors: Vec<ConnectorEntry>,
}

impl fmt::Debug for Flags {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Flags")
            .field("mcp_config", &self.mcp_config.len())
            .field("mcp_server", &self.mcp_server.len())
            .field("strict", &self.strict)
            .field("approve_project_servers", &self.approve_project_servers)
            .field("ide", &self.ide)
            .field("brought", &self.brought.len())
            .field("connectors", &self.connectors)
            .finish()
    }
}

/// A hosted connector. Its `Debug` names the keys of the entry, and no value in it.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectorEntry {
    /// Its display name.
    pub name: String,
    /// Its entry, as a configuration file would have it.
    pub definition: Map<String, Value>,
}

impl fmt::Debug for ConnectorEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectorEntry")
            .field("name", &self.name)
            .field("definition", &KeysOnly(&self.definition))
            .finish()
    }
}

/// Everything that was written anywhere, before anything is decided.
#[derive(Debug)]
pub struct Layers {
    pub(crate) environment: Environment,
    pub(crate) consent: ProjectConsent,
    pub(crate) files: Vec<Layer>,
    pub(crate) approvals: ApprovalsFile,
    pub(crate) editors: RunningEditors,
    pub(crate) diagnoses: Vec<Diagnosis>,
    pub(crate) blocked: Option<Diagnosis>,
}

/// Whether the project's servers are approved for this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProjectConsent {
    Recorded,
    ThisRun,
}

/// What one file or flag configures.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) scope: Scope,
    /// Who wrote it, before any approval is considered.
    pub(crate) author: Author,
    /// The place within its scope; the higher wins.
    pub(crate) order: u32,
    pub(crate) place: Arc<LayerLocation>,
    pub(crate) servers: Vec<RawServer>,
    pub(crate) settings: FileSettings,
}

/// Where a layer comes from, as far as its servers depend on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LayerLocation {
    /// What a relative `cwd` starts from; for a project also the key of its approvals.
    pub(crate) directory: PathBuf,
    /// The file, as it enters the approval digest.
    pub(crate) file: String,
    /// The plugin's directory.
    pub(crate) plugin_root: Option<String>,
    /// The agent's file, where it is one's: decisions about its servers are kept for it alone.
    pub(crate) agent: Option<PathBuf>,
}

impl LayerLocation {
    /// What decisions about its servers are kept under.
    pub(crate) fn decided_in(&self) -> &Path {
        self.agent.as_deref().unwrap_or(&self.directory)
    }
}

/// Reads everything.
pub fn load(environment: &Environment, flags: &Flags) -> Layers {
    load_with(environment, flags, None)
}

/// As [`load`]; servers of a file that cannot be read now are those it had when it could.
pub(crate) fn load_with(
    environment: &Environment,
    flags: &Flags,
    last_good: Option<&mut LastGoodFiles>,
) -> Layers {
    let consent = if flags.approve_project_servers {
        ProjectConsent::ThisRun
    } else {
        ProjectConsent::Recorded
    };
    let (approvals, fault) = ApprovalsFile::read(environment);
    let mut loader = Loader::new(environment);
    loader.strict = flags.strict;
    loader.last_good = last_good;
    loader.diagnoses.extend_from_slice(environment.diagnoses());
    loader.diagnoses.extend(fault);
    loader.system();
    loader.user();
    loader.local(&approvals);
    if !flags.strict {
        loader.projects();
        let off = loader.switched_off_plugins();
        loader.plugins(&off);
        loader.kept_connectors();
        loader.connectors(&flags.connectors);
    }
    loader.flags(flags);
    let editors = loader.editors(flags);
    let settings = loader.layers.iter().map(|layer| &layer.settings);
    let managed: Vec<_> = settings.flat_map(|settings| settings.env.clone()).collect();
    Layers {
        environment: managed::confirmed(environment, &managed, &approvals),
        consent,
        files: loader.layers,
        approvals,
        editors,
        diagnoses: loader.diagnoses,
        blocked: loader.blocked,
    }
}

/// As [`load`], with the servers of this layer and no others: all settings hold for them.
pub(crate) fn load_only(environment: &Environment, flags: &Flags, layer: Layer) -> Layers {
    let mut layers = load(environment, flags);
    for other in &mut layers.files {
        other.servers.clear();
    }
    layers.files.push(layer);
    layers
}

/// Who writes in a scope. Local settings that Toolway wrote for the user are recognised by their
/// approval (`merge`).
pub(crate) fn usual_author(scope: Scope) -> Author {
    match scope {
        Scope::Connector => Author::Provider,
        Scope::Plugin => Author::Plugin,
        Scope::User => Author::Person,
        Scope::Project | Scope::Local => Author::Repository,
        Scope::Dynamic => Author::Invocation,
        Scope::Managed | Scope::Enterprise => Author::Organisation,
    }
}

struct Loader<'a> {
    environment: &'a Environment,
    strict: bool,
    /// Only for a run that plans more than once.
    last_good: Option<&'a mut LastGoodFiles>,
    layers: Vec<Layer>,
    diagnoses: Vec<Diagnosis>,
    blocked: Option<Diagnosis>,
}

impl<'a> Loader<'a> {
    fn new(environment: &'a Environment) -> Self {
        Self {
            environment,
            strict: false,
            last_good: None,
            layers: Vec::new(),
            diagnoses: Vec::new(),
            blocked: None,
        }
    }

    fn add(&mut self, scope: Scope, order: u32, place: LayerLocation, file: RawFile) {
        self.diagnoses.extend(file.diagnoses);
        // A strict run still obeys every setting; only the servers of other scopes stay out.
        let left_out = self.strict && !matches!(scope, Scope::Dynamic | Scope::Enterprise);
        let servers = if left_out { Vec::new() } else { file.servers };
        let place = Arc::new(place);
        self.layers.push(Layer {
            scope,
            author: match file.stranger {
                Some(_) => Author::Stranger,
                None => usual_author(scope),
            },
            order,
            place,
            servers,
            settings: file.settings,
        });
    }

    /// Reads a file that may be absent. What cannot be read is diagnosed, and its last good content
    /// is used.
    fn file(&mut self, path: &Path, kind: FileKind) -> Option<RawFile> {
        let source = TextSource::file(path);
        let (opened, stranger) = if owner::is_projects(kind) {
            let opened = owner::open_in_project(path);
            let stranger = self.stranger(path, &opened);
            (opened.file, stranger)
        } else {
            (open(path), None)
        };
        let is_there = opened.is_ok();
        let text = read_opened(opened, MAX_BYTES);
        if let Some(owner) = stranger.filter(|_| is_there) {
            return self.strangers_file(text.ok().flatten(), &source, kind, owner);
        }
        let text = match text {
            Ok(Some(text)) => text,
            Ok(None) => {
                if let Some(last_good) = &mut self.last_good {
                    last_good.forget(path);
                }
                return None;
            }
            Err(error) => {
                let origin = source.origin(error.line());
                let diagnosis = Diagnosis::error(format!("the file {error}")).at(origin.clone());
                return self.fall_back(path, kind, diagnosis, origin);
            }
        };
        // Editors that save in place empty the file first.
        let emptied = text.trim().is_empty()
            && (self.last_good.as_ref()).is_some_and(|last_good| last_good.has_servers(path));
        if emptied {
            let diagnosis = Diagnosis::error("the file is empty").at(source.origin(1));
            return self.fall_back(path, kind, diagnosis, source.origin(1));
        }
        match raw::read(&text, &source, kind) {
            Ok(file) => {
                if let Some(last_good) = &mut self.last_good {
                    last_good.keep(path, &file);
                }
                Some(file)
            }
            Err(diagnosis) => {
                let line = diagnosis.origin.as_ref().and_then(Origin::line);
                let origin = source.origin(line.unwrap_or(1));
                self.fall_back(path, kind, diagnosis, origin)
            }
        }
    }

    /// The last good content in this run of a file that cannot be read now.
    fn fall_back(
        &mut self,
        path: &Path,
        kind: FileKind,
        mut diagnosis: Diagnosis,
        origin: Origin,
    ) -> Option<RawFile> {
        let last_good = self
            .last_good
            .as_mut()
            .and_then(|last_good| last_good.recall(path));
        if last_good.is_some() {
            diagnosis.hint = Some(
                "mend the file at that place; its servers stay as they were until then".to_owned(),
            );
        }
        self.diagnoses.push(diagnosis);
        self.unreadable(kind, origin);
        last_good
    }

    /// The other files still count, but the rules that stand in this one are not known.
    fn unreadable(&mut self, kind: FileKind, origin: Origin) {
        let scope = match kind {
            FileKind::User => Scope::User,
            FileKind::Local => Scope::Local,
            _ => return,
        };
        self.layers.push(Layer {
            scope,
            author: usual_author(scope),
            order: 0,
            place: Arc::default(),
            servers: Vec::new(),
            settings: FileSettings {
                unreadable: Some(origin),
                ..FileSettings::default()
            },
        });
    }

    fn user(&mut self) {
        let path = self.environment.config_home().join("settings.json");
        if let Some(file) = self.file(&path, FileKind::User) {
            let place = self.place_of(&path);
            self.add(Scope::User, 0, place, file);
        }
    }

    fn local(&mut self, approvals: &ApprovalsFile) {
        let Some(path) = self.environment.settings_file(Scope::Local) else {
            return;
        };
        if let Some(mut file) = self.file(&path, FileKind::Local) {
            // Another user's file has no settings left to be trusted.
            if !approval::trusts_local(self.environment, approvals, &file.settings) {
                let keys = listed(file.settings.widening.keys());
                self.diagnoses.push(
                    Diagnosis::warning(format!(
                        "{keys} in the project's local settings do not count: nobody on this \
                         machine approved them"
                    ))
                    .at(TextSource::file(&path).origin(1))
                    .hint("run `toolway approve --local-settings` if you wrote them"),
                );
                file.settings.narrow();
            }
            let place = LayerLocation {
                directory: self.environment.project_root().to_path_buf(),
                file: path_key(&path),
                plugin_root: None,
                agent: None,
            };
            self.add(Scope::Local, 0, place, file);
        }
        self.repository_settings();
    }

    /// A repository may ship settings of its own; they are named, never used (SEC-03).
    fn repository_settings(&mut self) {
        let path = self
            .environment
            .project_root()
            .join(PROJECT_FOLDER)
            .join("settings.json");
        if path == self.environment.config_home().join("settings.json") {
            return; // The config home is `~/.toolway`, and the project is the home directory.
        }
        let Some(file) = self.file(&path, FileKind::Repository) else {
            return;
        };
        self.diagnoses.extend(file.diagnoses);
        if !file.servers.is_empty() && file.stranger.is_none() {
            self.diagnoses.push(
                Diagnosis::warning("servers in this file are not loaded")
                    .at(TextSource::file(path).origin(1))
                    .hint("a project's servers belong into `.mcp.json`"),
            );
        }
    }

    fn projects(&mut self) {
        let environment = self.environment;
        let directories: Vec<_> = environment.project_directories().collect();
        for (order, directory) in (0..).zip(directories.into_iter().rev()) {
            let path = directory.join(PROJECT_FILE);
            if let Some(file) = self.file(&path, FileKind::Project) {
                let place = self.place_of(&path);
                self.add(Scope::Project, order, place, file);
            }
        }
    }

    fn place_at_cwd(&self, file: impl Into<String>) -> LayerLocation {
        LayerLocation {
            directory: self.environment.cwd().to_path_buf(),
            file: file.into(),
            plugin_root: None,
            agent: None,
        }
    }

    fn place_of(&self, path: &Path) -> LayerLocation {
        LayerLocation {
            directory: path
                .parent()
                .unwrap_or(self.environment.cwd())
                .to_path_buf(),
            file: path_key(path),
            plugin_root: None,
            agent: None,
        }
    }

    /// The connectors that the account had when its provider was last asked.
    fn kept_connectors(&mut self) {
        let settings: Vec<_> = self
            .layers
            .iter()
            .map(|layer| (layer.scope, &layer.settings))
            .collect();
        let (Some(provider), None) = account_settings(&settings) else {
            return;
        };
        let Some(directory) = ConnectorDirectory::kept(self.environment, &provider) else {
            return;
        };
        let source = TextSource::Directory(provider.host().into());
        let entries = directory
            .connectors
            .into_iter()
            .map(|connector| (connector.name.clone(), connector.definition()));
        self.connector_layers(entries.collect(), &source);
    }

    fn connectors(&mut self, connectors: &[ConnectorEntry]) {
        let entries = connectors.iter().map(|connector| {
            let name = toolway_types::name::normalize_connector(&connector.name);
            (name, connector.definition.clone())
        });
        self.connector_layers(entries.collect(), &TextSource::Program);
    }

    fn connector_layers(
        &mut self,
        entries: Vec<(String, Map<String, Value>)>,
        source: &TextSource,
    ) {
        // The first wins, so it has the highest order.
        for (order, (name, definition)) in (0..).zip(entries.into_iter().rev()) {
            let file = raw::single(name, definition, source);
            let place = LayerLocation {
                file: "(connector)".to_owned(),
                ..LayerLocation::default()
            };
            self.add(Scope::Connector, order, place, file);
        }
    }
}
