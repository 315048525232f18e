//! The keys of a settings file beside its servers, and which file may say what.
//!
//! Owns: their shapes, and the rule that a file only counts for the keys its author may decide
//! (SEC-03). Does not own: what they lead to (`approval`, `policy`, `permission`).

use std::sync::Arc;

use serde_json::{Map, Value};
use toolway_types::url_rules::PatternReading;
use toolway_types::{Diagnosis, Origin, Scope};

use crate::account::{self, AccountProvider};
use crate::identity::{self, IdentitySettings};
use crate::json::{ValueLines, kind_of};
use crate::keys::POLICY_LISTS;
use crate::policy_rule::cross_app::CrossAppRequirement;
use crate::policy_rule::{PolicyRule, PolicyRuleList};
use crate::profile::{self, FileProfiles};
use crate::settings_object::ObjectReader;
use crate::source::{FileKind, TextSource};

/// What one file says beside its servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileSettings {
    pub(crate) enabled_project: Vec<LocatedName>,
    pub(crate) disabled_project: Vec<LocatedName>,
    pub(crate) enable_all_project: Option<Origin>,
    pub(crate) enabled: Vec<LocatedName>,
    pub(crate) disabled: Vec<LocatedName>,
    pub(crate) plugins_off: Vec<LocatedName>,
    pub(crate) project_variables: Vec<LocatedName>,
    /// Directories whose files count although they are another user's.
    pub(crate) safe_directories: Vec<LocatedName>,
    /// Whether the editor that has the working directory open is a server too.
    pub(crate) auto_connect_ide: bool,
    pub(crate) permissions: Option<LocatedValue>,
    pub(crate) hooks: Option<LocatedValue>,
    pub(crate) allowed: Option<PolicyRuleList>,
    pub(crate) denied: Option<PolicyRuleList>,
    pub(crate) instructions_allowed: Option<PolicyRuleList>,
    pub(crate) instructions_denied: Option<PolicyRuleList>,
    pub(crate) env: Vec<(LocatedName, Value)>,
    pub(crate) account: Option<ObjectSetting<AccountProvider>>,
    pub(crate) identity: Option<ObjectSetting<IdentitySettings>>,
    /// What clients of the gateway see, by name.
    pub(crate) profiles: Option<FileProfiles>,
    /// Which servers are logged in to by cross-app access alone.
    pub(crate) cross_app_only: Option<CrossAppRequirement>,
    /// Where connectors are switched off.
    pub(crate) connectors_off: Option<Origin>,
    /// Where secrets in plain text are forbidden.
    pub(crate) insecure_storage_off: Option<Origin>,
    /// A policy list that cannot be understood: nothing may connect.
    pub(crate) policy_fault: Option<Diagnosis>,
    /// The organisation's own file has lists and nothing else: it excludes only what they name.
    pub(crate) lists_only: bool,
    /// The keys that permit more, as written; what the approval of local settings covers.
    pub(crate) widening: Map<String, Value>,
    pub(crate) trust: FileTrust,
    /// Where the file cannot be read: what it forbids is not known.
    pub(crate) unreadable: Option<Origin>,
}

/// How far a file is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FileTrust {
    /// In everything.
    #[default]
    Full,
    /// Only where it restricts.
    Narrowing,
}

/// What a file says under a key that holds an object.
#[derive(Debug, Clone)]
pub(crate) enum ObjectSetting<T> {
    /// It cannot be used, and no file of lower precedence takes its place.
    Faulty,
    Read(Arc<T>),
}

impl<T> ObjectSetting<T> {
    fn of(read: Option<T>) -> Self {
        read.map_or(Self::Faulty, |read| Self::Read(Arc::new(read)))
    }

    /// The one in the file of the highest precedence that has any.
    pub(crate) fn highest<'a>(all: impl Iterator<Item = (Scope, &'a Self)>) -> Option<Arc<T>>
    where
        T: 'a,
    {
        match all.max_by_key(|(scope, _)| *scope)?.1 {
            Self::Read(read) => Some(Arc::clone(read)),
            Self::Faulty => None,
        }
    }
}

/// A name and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocatedName {
    pub(crate) name: String,
    pub(crate) origin: Origin,
}

/// A value that another module reads, and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct LocatedValue {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// Which files a key counts in.
fn counts(key: &str, kind: FileKind) -> bool {
    match key {
        key if POLICY_LISTS.contains(&key) => {
            matches!(kind, FileKind::Managed | FileKind::Enterprise)
        }
        "env" => kind == FileKind::Managed,
        // A repository must not name the variables it may read (SEC-40) or whose files count, cause
        // a connection to an editor, say where the user logs in and where the token goes, or what a
        // client may have.
        "projectVariables" | "safeDirectories" | "autoConnectIde" | "enabledPlugins"
        | "account" | "identityProvider" | "profiles" => {
            matches!(kind, FileKind::User | FileKind::Managed)
        }
        _ => matches!(kind, FileKind::User | FileKind::Local | FileKind::Managed),
    }
}

/// Where a key would count, in words for a hint.
fn home_of(key: &str) -> &'static str {
    match key {
        key if key == "env" || POLICY_LISTS.contains(&key) => {
            "it counts only in the system directory's `managed-settings.json`"
        }
        _ => "it counts only in your own settings (`settings.json` in the config home)",
    }
}

impl FileSettings {
    /// Takes one key.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, which hands over one parsed key"
    )]
    pub(crate) fn add(
        &mut self,
        source: &TextSource,
        kind: FileKind,
        key: &str,
        line: u32,
        value: Value,
        lines: &ValueLines,
        diagnoses: &mut Vec<Diagnosis>,
    ) {
        let origin = source.origin(line);
        if !counts(key, kind) {
            let from = match kind {
                FileKind::Project | FileKind::Repository => "a project's own file cannot set it",
                FileKind::Plugin | FileKind::PluginManifest => "a plugin cannot set it",
                _ => "it does not count in this file",
            };
            diagnoses.push(
                Diagnosis::warning(format!("`{key}` is ignored: {from}"))
                    .at(origin)
                    .hint(home_of(key)),
            );
            return;
        }
        let mut reader = SettingsReader {
            source,
            key,
            line,
            lines,
            diagnoses,
        };
        match key {
            "enabledMcpjsonServers" => self.enabled_project = reader.names(&value),
            "disabledMcpjsonServers" => self.disabled_project = reader.names(&value),
            "enabledMcpServers" => self.enabled = reader.names(&value),
            "disabledMcpServers" => self.disabled = reader.names(&value),
            "projectVariables" => self.project_variables = reader.names(&value),
            "safeDirectories" => self.safe_directories = reader.names(&value),
            "enableAllProjectMcpServers" => match value {
                Value::Bool(true) => self.enable_all_project = Some(origin),
                Value::Bool(false) => {}
                ref other => reader.wrong("`true` or `false`", other),
            },
            "autoConnectIde" => match value {
                Value::Bool(on) => self.auto_connect_ide = on,
                ref other => reader.wrong("`true` or `false`", other),
            },
            "enabledPlugins" => self.plugins_off = reader.switched_off(&value),
            "env" => self.env = reader.variables(&value),
            "account" => {
                let found = account::provider(reader.object(), &value, lines);
                self.account = Some(ObjectSetting::of(found));
            }
            "identityProvider" => {
                let found = identity::read(reader.object(), kind, &value, lines);
                self.identity = Some(ObjectSetting::of(found));
            }
            "profiles" => {
                let scope = match kind {
                    FileKind::Managed => Scope::Managed,
                    _ => Scope::User,
                };
                self.profiles = Some(profile::read(reader.object(), scope, &value, lines));
            }
            "requireCrossAppAccess" => {
                self.cross_app_only = match value {
                    Value::Bool(false) => None,
                    Value::Bool(true) => Some(CrossAppRequirement::everybody(origin)),
                    ref rules => self
                        .policy_list(reader.rules(rules))
                        .map(CrossAppRequirement::of_list),
                };
            }
            "connectors" => match value {
                Value::Bool(false) => self.connectors_off = Some(origin),
                Value::Bool(true) => {}
                ref other => {
                    reader.wrong("`true` or `false`", other);
                    reader.hint("how connectors are reached is said in `account.connectors`");
                }
            },
            "insecureStorage" => match value {
                Value::Bool(true) => {}
                Value::Bool(false) => self.insecure_storage_off = Some(origin),
                ref other => {
                    reader.wrong("`true` or `false`", other);
                    // The key shows that less is to be allowed.
                    self.insecure_storage_off = Some(origin);
                }
            },
            "permissions" => {
                let value = value.clone();
                self.permissions = Some(LocatedValue { value, origin });
            }
            "hooks" => {
                let value = value.clone();
                self.hooks = Some(LocatedValue { value, origin });
            }
            "allowedMcpServers" => self.allowed = self.policy_list(reader.rules(&value)),
            "deniedMcpServers" => self.denied = self.policy_list(reader.rules(&value)),
            "allowedMcpInstructions" => {
                self.instructions_allowed = self.policy_list(reader.rules(&value));
            }
            "deniedMcpInstructions" => {
                self.instructions_denied = self.policy_list(reader.rules(&value));
            }
            _ => {}
        }
        self.note_widening(key, value);
    }

    fn policy_list(&mut self, list: Result<PolicyRuleList, Diagnosis>) -> Option<PolicyRuleList> {
        list.map_err(|fault| self.policy_fault.get_or_insert(fault).clone())
            .ok()
    }

    fn note_widening(&mut self, key: &str, value: Value) {
        match (key, value) {
            (
                "enabledMcpjsonServers"
                | "enableAllProjectMcpServers"
                | "enabledMcpServers"
                | "hooks",
                value,
            ) => {
                self.widening.insert(key.to_owned(), value);
            }
            ("permissions", Value::Object(permissions)) => {
                for (name, value) in permissions {
                    // What restricts always counts and needs no approval.
                    let widens = match name.as_str() {
                        "allow" | "defaultMode" => true,
                        "pins" => value != "ask",
                        _ => false,
                    };
                    if widens {
                        self.widening.insert(format!("permissions.{name}"), value);
                    }
                }
            }
            _ => {}
        }
    }

    /// Drops everything that permits more: the rest may come from a file that is not approved.
    pub(crate) fn narrow(&mut self) {
        self.enabled_project.clear();
        self.enable_all_project = None;
        self.enabled.clear();
        self.hooks = None;
        self.trust = FileTrust::Narrowing;
    }
}

struct SettingsReader<'a> {
    source: &'a TextSource,
    key: &'a str,
    line: u32,
    lines: &'a ValueLines,
    diagnoses: &'a mut Vec<Diagnosis>,
}

impl SettingsReader<'_> {
    fn object(&mut self) -> ObjectReader<'_> {
        ObjectReader {
            source: self.source,
            line: self.line,
            diagnoses: self.diagnoses,
        }
    }

    /// Says how to mend what was last found.
    fn hint(&mut self, hint: &str) {
        if let Some(last) = self.diagnoses.last_mut() {
            last.hint = Some(hint.to_owned());
        }
    }

    fn wrong(&mut self, expected: &str, found: &Value) {
        let origin = self.source.origin(self.line);
        self.wrong_member("", expected, found, origin);
    }

    /// `member` is how it is reached from the key.
    fn wrong_member(&mut self, member: &str, expected: &str, found: &Value, origin: Origin) {
        let (key, found) = (self.key, kind_of(found));
        let message = format!("`{key}{member}` must be {expected}, not {found}");
        self.diagnoses.push(Diagnosis::error(message).at(origin));
    }

    fn names(&mut self, value: &Value) -> Vec<LocatedName> {
        let Value::Array(items) = value else {
            self.wrong("an array of strings", value);
            return Vec::new();
        };
        let mut names = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let origin = self.source.origin(self.lines.line_at(index));
            if let Value::String(name) = item {
                let name = name.clone();
                names.push(LocatedName { name, origin });
            } else {
                self.wrong_member(&format!("[{index}]"), "a string", item, origin);
            }
        }
        names
    }

    fn switched_off(&mut self, value: &Value) -> Vec<LocatedName> {
        let Value::Object(map) = value else {
            self.wrong("an object of plugin names with `true` or `false`", value);
            return Vec::new();
        };
        let mut off = Vec::new();
        for (name, switch) in map {
            let origin = self.source.origin(self.lines.line_of(map, name));
            match switch {
                Value::Bool(false) => {
                    let name = name.clone();
                    off.push(LocatedName { name, origin });
                }
                Value::Bool(true) => {}
                other => {
                    let member = format!(".{name}");
                    self.wrong_member(&member, "`true` or `false`", other, origin);
                }
            }
        }
        off
    }

    fn variables(&mut self, value: &Value) -> Vec<(LocatedName, Value)> {
        let Value::Object(map) = value else {
            self.wrong("an object with string values", value);
            return Vec::new();
        };
        let mut variables = Vec::new();
        for (name, value) in map {
            let origin = self.source.origin(self.lines.line_of(map, name));
            if matches!(value, Value::String(_) | Value::Number(_)) {
                let name = name.clone();
                variables.push((LocatedName { name, origin }, value.clone()));
            } else {
                self.wrong_member(&format!(".{name}"), "a string", value, origin);
            }
        }
        variables
    }

    fn rules(&mut self, value: &Value) -> Result<PolicyRuleList, Diagnosis> {
        let origin = self.source.origin(self.line);
        let Value::Array(items) = value else {
            let message = format!(
                "`{}` must be an array of rules, not {}",
                self.key,
                kind_of(value)
            );
            return Err(Diagnosis::error(message).at(origin));
        };
        // Only a permission is read narrowly.
        let reading = if self.key.starts_with("allowed") {
            PatternReading::Narrow
        } else {
            PatternReading::Wide
        };
        let mut rules = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let origin = self.source.origin(self.lines.line_at(index));
            let rule = PolicyRule::parse(item, origin.clone(), reading).map_err(|why| {
                Diagnosis::error(format!("`{}[{index}]` {why}", self.key)).at(origin).hint(
                    "a rule is one of `{\"serverName\": \"…\"}`, `{\"serverUrl\": \"https://…\"}` \
                     and `{\"serverCommand\": [\"…\"]}`",
                )
            })?;
            rules.push(rule);
        }
        Ok(PolicyRuleList { origin, rules })
    }
}
