//! The user's decisions about what a project's folder configures.
//!
//! Owns: `approvals.json` in the config home, the digest that a decision is bound to, and whether a
//! server of project or local scope may be used. A decision holds for one definition in one real
//! directory: any change asks again and shows the difference (SEC-04, 05).
//! Does not own: what the organisation allows (`policy`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolway_types::{Diagnosis, Origin, Scope};

use crate::edit::{EditError, Edited, edit};
use crate::environment::{Environment, path_key};
use crate::expansion;
use crate::file::read_text;
use crate::json;
use crate::source::TextSource;

mod allowed_rules;
mod digest;
mod files;
mod local;
mod state;

use allowed_rules::AllowedRules;
pub use allowed_rules::allow_for_repository_server;
pub(crate) use digest::digest;
use digest::digest_of;
pub(crate) use files::{
    EntryPlace, FileDigests, InstalledPackages, is_as_it_was, named as named_files,
};
pub use files::{RepositoryFiles, UnboundCode};
pub(crate) use local::trusts_local;
pub use local::{LocalTrust, local_settings_text, local_trust, trust_local};
pub(crate) use state::{ApprovalBasis, ApprovalState};

/// What `approvals.json` holds.
#[derive(Debug, Clone)]
pub(crate) enum ApprovalsFile {
    Read(ApprovalRecords),
    /// It cannot be read, so a rejection in it could be missed: nothing is approved.
    Unreadable,
}

/// The records in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApprovalRecords {
    projects: BTreeMap<String, ProjectApprovals>,
    /// The digest of the organisation's variables that were confirmed.
    managed_env: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ProjectApprovals {
    pub(crate) servers: BTreeMap<String, ApprovalRecord>,
    pub(crate) local_settings: Option<String>,
    pub(crate) allowed: BTreeMap<String, AllowedRules>,
}

/// One decision.
#[derive(Clone)]
pub(crate) struct ApprovalRecord {
    pub(crate) decision: ApprovalDecision,
    pub(crate) digest: String,
    pub(crate) definition: Value,
    pub(crate) allow_env: Vec<String>,
    pub(crate) coverage: ApprovalCoverage,
}

/// What a decision covers beside the definition.
#[derive(Debug, Clone)]
pub(crate) enum ApprovalCoverage {
    /// The repository's files that it runs, as they were.
    Files(FileDigests),
    /// The user typed the entry; files are not bound.
    Typed,
}

impl fmt::Debug for ApprovalRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ApprovalRecord")
            .field("decision", &self.decision)
            .field("digest", &self.digest)
            .field("allow_env", &self.allow_env)
            .finish_non_exhaustive()
    }
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalDecision {
    Approved,
    Rejected,
}

impl ApprovalsFile {
    /// Reads the file, with a diagnosis when it cannot be used.
    pub(crate) fn read(environment: &Environment) -> (Self, Option<Diagnosis>) {
        let path = environment.approvals_file();
        let source = TextSource::file(&path);
        let unreadable = |what: String, origin: Origin| {
            let message = format!(
                "no project server is approved, because `approvals.json` is unusable: {what}"
            );
            let hint = format!("mend or remove `{}`", path.display());
            (
                Self::Unreadable,
                Some(Diagnosis::error(message).at(origin).hint(hint)),
            )
        };
        let text = match read_text(&path) {
            Ok(None) => return (Self::Read(ApprovalRecords::default()), None),
            Ok(Some(text)) => text,
            Err(error) => return unreadable(format!("it {error}"), source.origin(error.line())),
        };
        match json::parse(&text, &source) {
            Ok(json::JsonRoot::Empty) => (Self::Read(ApprovalRecords::default()), None),
            Ok(json::JsonRoot::Object(members)) => match records(members) {
                Ok(store) => (Self::Read(store), None),
                // Guessing what it means could miss a rejection.
                Err((what, line)) => unreadable(what, source.origin(line)),
            },
            Err(fault) => {
                let origin = fault.origin.clone().unwrap_or_else(|| source.origin(1));
                unreadable(fault.message, origin)
            }
        }
    }

    pub(crate) fn project(&self, directory: &Path) -> Option<&ProjectApprovals> {
        match self {
            ApprovalsFile::Read(store) => store.projects.get(&path_key(directory)),
            ApprovalsFile::Unreadable => None,
        }
    }

    /// The organisation's variables that were confirmed, by their digest.
    pub(crate) fn managed_digest(&self) -> Option<&str> {
        match self {
            ApprovalsFile::Read(store) => store.managed_env.as_deref(),
            ApprovalsFile::Unreadable => None,
        }
    }
}

/// Reads all records; an error is the reason and its line.
fn records(members: Vec<json::RootMember>) -> Result<ApprovalRecords, (String, u32)> {
    let (mut projects, mut managed_env) = (None, None);
    for member in members {
        let line = member.line;
        let json::LocatedMember {
            key,
            value,
            doubled,
            ..
        } = member.whole();
        match key.as_str() {
            "version" if value != json!(1) => {
                return Err(("its `version` is not 1".to_owned(), line));
            }
            "projects" if projects.is_some() => {
                return Err(("`projects` stands twice".to_owned(), line));
            }
            "projects" => {
                if let Some(double) = doubled.first() {
                    return Err((format!("`{}` stands twice", double.key), double.second));
                }
                projects = Some(projects_of(&value).map_err(|what| (what, line))?);
            }
            "managedEnv" => managed_env = value.as_str().map(str::to_owned),
            _ => {}
        }
    }
    Ok(ApprovalRecords {
        projects: projects.unwrap_or_default(),
        managed_env,
    })
}

fn projects_of(value: &Value) -> Result<BTreeMap<String, ProjectApprovals>, String> {
    let object = |value: &Value, what: &str| {
        let object = value.as_object().cloned();
        object.ok_or_else(|| format!("{what} must be an object"))
    };
    let mut projects = BTreeMap::new();
    for (directory, project) in object(value, "`projects`")? {
        let project = object(&project, &format!("`projects.{directory}`"))?;
        let mut record = ProjectApprovals {
            local_settings: project
                .get("localSettings")
                .and_then(Value::as_str)
                .map(str::to_owned),
            allowed: allowed_rules::read(&project),
            ..ProjectApprovals::default()
        };
        if let Some(servers) = project.get("servers") {
            for (name, server) in object(servers, &format!("`projects.{directory}.servers`"))? {
                record.servers.insert(name, record_of(&server));
            }
        }
        projects.insert(directory, record);
    }
    Ok(projects)
}

fn record_of(server: &Value) -> ApprovalRecord {
    let text = |key: &str| {
        server
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let allow_env = server.get("allowEnv").and_then(Value::as_array);
    let files = server.get("files").and_then(Value::as_object);
    ApprovalRecord {
        // Anything but `approved` is a rejection.
        decision: if text("decision") == "approved" {
            ApprovalDecision::Approved
        } else {
            ApprovalDecision::Rejected
        },
        digest: text("digest"),
        definition: server.get("definition").cloned().unwrap_or_default(),
        allow_env: allow_env
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        // Without `"typed": true` and without `files`, a record covers no file.
        coverage: if server.get("typed") == Some(&Value::Bool(true)) {
            ApprovalCoverage::Typed
        } else {
            let digests = files.into_iter().flatten();
            let digests = digests
                .filter_map(|(name, digest)| Some((name.clone(), digest.as_str()?.to_owned())));
            ApprovalCoverage::Files(digests.collect())
        },
    }
}

/// The repository's files that approvals of this project's servers cover: a server must not start
/// again with another script than the one that was approved.
pub(crate) fn approved_files(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let approvals = ApprovalsFile::read(environment).0;
    let directories = environment.project_directories();
    let directories = directories.chain([environment.project_root()]);
    let projects: Vec<ProjectApprovals> = directories
        .filter_map(|directory| approvals.project(directory).cloned())
        .collect();
    let records = projects.into_iter().flat_map(|project| project.servers);
    let files = records.filter_map(|(_, record)| match record.coverage {
        ApprovalCoverage::Files(files) => Some(files),
        ApprovalCoverage::Typed => None,
    });
    files.flat_map(|files| files.into_keys().map(PathBuf::from))
}

/// Records that the user typed an entry, which approves it. Records what was written; the file is
/// not read again, because it may have changed since (SEC-50).
pub(crate) fn record_typed(
    environment: &Environment,
    path: &Path,
    scope: Scope,
    name: &str,
    definition: &Map<String, Value>,
) -> Result<Edited<()>, EditError> {
    let directory = match scope {
        Scope::Project => path.parent().unwrap_or(path),
        _ => environment.project_root(),
    };
    write_record(
        environment,
        directory,
        name,
        &json!({
            "scope": scope.as_str(),
            "decision": "approved",
            "digest": digest(&path_key(path), scope, definition),
            "definition": definition,
            "allowEnv": expansion::variables_of(definition),
            "typed": true,
        }),
    )
}

pub(crate) fn write_record(
    environment: &Environment,
    directory: &Path,
    name: &str,
    record: &Value,
) -> Result<Edited<()>, EditError> {
    let directory = path_key(directory);
    edit(&environment.approvals_file(), |document| {
        document.set(&["version"], &json!(1))?;
        let path = ["projects", &directory, "servers", name];
        let before = document.get(&path).unwrap_or_default();
        document.set(&path, &with_allowed_before(record.clone(), &before))
    })
}

/// An approval, with the variables that an earlier approval of the same definition allowed.
fn with_allowed_before(mut record: Value, before: &Value) -> Value {
    let is_same = |key: &str| record.get(key) == before.get(key);
    if !is_same("decision") || !is_same("digest") {
        return record;
    }
    let before = before.get("allowEnv").and_then(Value::as_array);
    if let Some(Value::Array(names)) = record.get_mut("allowEnv") {
        for name in before.into_iter().flatten() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    record
}

/// What the approval of the organisation's variables is bound to: the file, and every name and
/// value.
pub(crate) fn managed_digest(environment: &Environment, asked: &Map<String, Value>) -> String {
    digest_of(&path_key(environment.system_dir()), "managed env", asked)
}

/// Records that a person confirmed these variables of the organisation.
pub(crate) fn confirm_managed(
    environment: &Environment,
    asked: &Map<String, Value>,
) -> Result<Edited<()>, EditError> {
    edit(&environment.approvals_file(), |document| {
        document.set(&["version"], &json!(1))?;
        let digest = managed_digest(environment, asked);
        document.set(&["managedEnv"], &json!(digest))
    })
}

/// Forgets every decision about this project: of its root, and of every directory whose `.mcp.json`
/// counts here. Returns how many servers were forgotten.
pub fn reset(environment: &Environment) -> Result<Edited<usize>, EditError> {
    let mut directories: Vec<_> = environment.project_directories().collect();
    if !directories.contains(&environment.project_root()) {
        directories.push(environment.project_root());
    }
    let root = environment.project_root();
    edit(&environment.approvals_file(), |document| {
        let mut forgotten = 0;
        let mut places: Vec<String> = directories.into_iter().map(path_key).collect();
        // Decisions about an agent's servers stand under its file.
        let is_agents = |place: &String| {
            let place = Path::new(place);
            place.starts_with(root) && place.extension().is_some_and(|it| it == "md")
        };
        places.extend(document.keys(&["projects"]).into_iter().filter(is_agents));
        for directory in places {
            forgotten += document.keys(&["projects", &directory, "servers"]).len();
            document.remove(&["projects", &directory]);
        }
        Ok(forgotten)
    })
}

#[cfg(test)]
mod tests;
