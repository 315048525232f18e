//! A person's word on what a project's folder asks for.
//!
//! Owns: `approvals.json` in the config home, the digest a decision is bound to, and the question
//! whether a server of project or local scope may be looked at further. A decision holds for one
//! definition in one real directory: any change asks again and shows the difference (SEC-04, 05).
//! Does not own: what the organisation allows (`policy`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolway_types::{Author, Diagnosis, Origin, Scope};

use crate::edit::{EditError, Edited, edit};
use crate::env;
use crate::environment::{Environment, path_key};
use crate::load::read::read_text;
use crate::plan::PlannedServer;
use crate::raw::{self, Source};

mod began;
mod decide;
mod digest;
mod files;
mod given;
mod local;

pub(crate) use began::Began;
pub(crate) use decide::{Standing, Vouched, decide};
pub(crate) use digest::digest;
use digest::digest_of;
pub(crate) use files::Installed;
use files::{Files, Stand};
pub use files::{RepositoryFiles, Unbound};
pub(crate) use given::note as note_brought;
pub use given::{allow_brought, brought};
pub(crate) use local::trusts_local;
pub use local::{LocalTrust, local_settings_text, local_trust, trust_local};

/// What `approvals.json` holds.
#[derive(Debug, Clone)]
pub(crate) enum Approvals {
    Read(Store),
    /// It cannot be read, so even a rejection in it would be missed: nobody is approved.
    Unreadable,
}

/// Everything in it that counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    projects: BTreeMap<String, ProjectRecord>,
    /// The digest of the organisation's variables that were confirmed.
    managed_env: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ProjectRecord {
    pub(crate) servers: BTreeMap<String, Record>,
    pub(crate) local_settings: Option<String>,
    pub(crate) allowed: BTreeMap<String, given::Given>,
}

/// One decision.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) decision: Decided,
    pub(crate) digest: String,
    pub(crate) definition: Value,
    pub(crate) allow_env: Vec<String>,
    pub(crate) coverage: Coverage,
}

/// What a decision covers beside the definition.
#[derive(Debug, Clone)]
pub(crate) enum Coverage {
    /// The repository's files that it runs, as they were.
    Files(Files),
    /// A person typed the entry, and means whatever stands there.
    Typed,
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Record")
            .field("decision", &self.decision)
            .field("digest", &self.digest)
            .field("allow_env", &self.allow_env)
            .finish_non_exhaustive()
    }
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decided {
    Approved,
    Rejected,
}

impl Approvals {
    /// Reads the store, with the diagnosis when it cannot be.
    pub(crate) fn read(environment: &Environment) -> (Self, Option<Diagnosis>) {
        let path = environment.approvals_file();
        let source = Source::File(path.clone());
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
            Ok(None) => return (Self::Read(Store::default()), None),
            Ok(Some(text)) => text,
            Err(error) => return unreadable(format!("it {error}"), source.origin(error.line())),
        };
        match raw::json::parse(&text, &source) {
            Ok(raw::json::Root::Empty) => (Self::Read(Store::default()), None),
            Ok(raw::json::Root::Object(members)) => match records(members) {
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

    pub(crate) fn project(&self, directory: &Path) -> Option<&ProjectRecord> {
        match self {
            Approvals::Read(store) => store.projects.get(&path_key(directory)),
            Approvals::Unreadable => None,
        }
    }

    /// The organisation's variables that were confirmed, by their digest.
    pub(crate) fn managed_digest(&self) -> Option<&str> {
        match self {
            Approvals::Read(store) => store.managed_env.as_deref(),
            Approvals::Unreadable => None,
        }
    }
}

/// The records of a whole store; the reason and its line when they are not what we write.
fn records(members: Vec<raw::json::RootMember>) -> Result<Store, (String, u32)> {
    let (mut projects, mut managed_env) = (None, None);
    for member in members {
        let (key, line) = (member.key.clone(), member.line);
        let (value, _, doubled) = member.into_value();
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
    Ok(Store {
        projects: projects.unwrap_or_default(),
        managed_env,
    })
}

fn projects_of(value: &Value) -> Result<BTreeMap<String, ProjectRecord>, String> {
    let object = |value: &Value, what: &str| {
        let object = value.as_object().cloned();
        object.ok_or_else(|| format!("{what} must be an object"))
    };
    let mut projects = BTreeMap::new();
    for (directory, project) in object(value, "`projects`")? {
        let project = object(&project, &format!("`projects.{directory}`"))?;
        let mut record = ProjectRecord {
            local_settings: project
                .get("localSettings")
                .and_then(Value::as_str)
                .map(str::to_owned),
            allowed: given::read(&project),
            ..ProjectRecord::default()
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

fn record_of(server: &Value) -> Record {
    let text = |key: &str| {
        server
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let allow_env = server.get("allowEnv").and_then(Value::as_array);
    let files = server.get("files").and_then(Value::as_object);
    Record {
        // Whatever is not plainly a yes is a no.
        decision: if text("decision") == "approved" {
            Decided::Approved
        } else {
            Decided::Rejected
        },
        digest: text("digest"),
        definition: server.get("definition").cloned().unwrap_or_default(),
        allow_env: allow_env
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        // Only a record that says so is one that a person typed: without a word about files it
        // covers none.
        coverage: if server.get("typed") == Some(&Value::Bool(true)) {
            Coverage::Typed
        } else {
            let digests = files.into_iter().flatten();
            let digests = digests
                .filter_map(|(name, digest)| Some((name.clone(), digest.as_str()?.to_owned())));
            Coverage::Files(digests.collect())
        },
    }
}

/// The repository's files that approvals of this project's servers cover: a server must not start
/// again with another script than the one that was approved.
pub(crate) fn approved_files(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let approvals = Approvals::read(environment).0;
    let directories = environment.project_directories();
    let directories = directories.chain([environment.project_root()]);
    let projects: Vec<ProjectRecord> = directories
        .filter_map(|directory| approvals.project(directory).cloned())
        .collect();
    let records = projects.into_iter().flat_map(|project| project.servers);
    let files = records.filter_map(|(_, record)| match record.coverage {
        Coverage::Files(files) => Some(files),
        Coverage::Typed => None,
    });
    files.flat_map(|files| files.into_keys().map(PathBuf::from))
}

/// Records that a person approved a server, and which variables it may read beyond the harmless
/// ones; what it was allowed before, as this very definition, it stays allowed. `files` are the
/// repository's files that it runs, as they were when the person was asked: [`repository_files`].
pub fn approve(
    environment: &Environment,
    server: &PlannedServer,
    allow_env: &[String],
    files: &BTreeMap<String, String>,
) -> Result<Edited<()>, EditError> {
    // Nobody is given what they do not ask for.
    let reads = |name: &&String| server.variables.contains(name);
    let allow_env: Vec<String> = allow_env.iter().filter(reads).cloned().collect();
    record(environment, server, "approved", &allow_env, files)
}

/// The repository's files that a server of the project runs, as they are now, and what of it an
/// approval cannot cover.
pub fn repository_files(environment: &Environment, server: &PlannedServer) -> RepositoryFiles {
    let stand = Stand {
        directory: directory_of(environment, server),
        scope: server.scope,
    };
    let installed = Installed::default();
    files::named(environment, stand, &server.definition, &installed)
}

/// The directory that decisions about a server of the project belong to.
fn directory_of<'a>(environment: &'a Environment, server: &'a PlannedServer) -> &'a Path {
    match (server.scope, &server.origin) {
        (Scope::Project, Origin::File { path, .. }) => path.parent().unwrap_or(path),
        _ => environment.project_root(),
    }
}

/// Records that a person rejected a server.
pub fn reject(environment: &Environment, server: &PlannedServer) -> Result<Edited<()>, EditError> {
    record(environment, server, "rejected", &[], &Files::new())
}

fn record(
    environment: &Environment,
    server: &PlannedServer,
    decision: &str,
    allow_env: &[String],
    files: &Files,
) -> Result<Edited<()>, EditError> {
    let Some(digest) = &server.digest else {
        return Err(EditError::Refused(format!(
            "`{}` is of {} scope and needs no approval",
            server.name, server.scope
        )));
    };
    if server.author == Author::Stranger {
        return Err(EditError::Refused(format!(
            "`{}` stands in a file of another user ({}): nobody can approve it before its \
             directory is in `safeDirectories`",
            server.name, server.origin
        )));
    }
    write_record(
        environment,
        directory_of(environment, server),
        server.name.as_str(),
        &json!({
            "scope": server.scope.as_str(),
            "decision": decision,
            "digest": digest,
            "definition": server.definition,
            "allowEnv": allow_env,
            "files": files,
        }),
    )
}

/// Records that a person typed an entry, which was the approval of it. What is recorded is what
/// was written; the file is not read again, for somebody else may have changed it since (SEC-50).
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
            "allowEnv": env::variables_of(definition),
            "typed": true,
        }),
    )
}

fn write_record(
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

/// A yes with the variables that an earlier yes to the same definition allowed.
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

/// What a yes to the organisation's variables is bound to: the file, and every name and value.
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

/// Forgets every decision about this project: of its root, and of every directory whose
/// `.mcp.json` counts here. Gives how many servers were forgotten.
pub fn reset(environment: &Environment) -> Result<Edited<usize>, EditError> {
    let mut directories: Vec<_> = environment.project_directories().collect();
    if !directories.contains(&environment.project_root()) {
        directories.push(environment.project_root());
    }
    edit(&environment.approvals_file(), |document| {
        let mut forgotten = 0;
        for directory in directories {
            let directory = path_key(directory);
            forgotten += document.keys(&["projects", &directory, "servers"]).len();
            document.remove(&["projects", &directory]);
        }
        Ok(forgotten)
    })
}

#[cfg(test)]
mod tests;
