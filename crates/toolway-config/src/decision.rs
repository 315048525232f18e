//! The user's decisions about a planned server: approving and rejecting it.
//!
//! Owns: turning a server of the plan into what `approvals.json` records about it.
//! Does not own: that file and what a record is bound to (`approval`).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use toolway_types::{Author, Origin, Scope};

use crate::Environment;
use crate::approval::{
    ApprovalsFile, EntryPlace, FileDigests, InstalledPackages, RepositoryFiles, named_files,
    write_record,
};
use crate::edit::{EditError, Edited};
use crate::environment::{PROJECT_FILE, agents_project};
use crate::permission::{Permissions, RepositoryServer};
use crate::plan::PlannedServer;

/// Records that the user approved a server, and which variables it may read beyond the harmless
/// ones; those that the same definition was allowed before stay allowed. `files` are the
/// repository's files that it runs, as they were when the user was asked: [`repository_files`].
pub fn approve(
    environment: &Environment,
    server: &PlannedServer,
    allow_env: &[String],
    files: &BTreeMap<String, String>,
) -> Result<Edited<()>, EditError> {
    // Only variables that it reads.
    let reads = |name: &&String| server.variables.contains(name);
    let allow_env: Vec<String> = allow_env.iter().filter(reads).cloned().collect();
    record(environment, server, "approved", &allow_env, files)
}

/// The repository's files that a server of the project runs, as they are now, and what of it an
/// approval cannot cover.
pub fn repository_files(environment: &Environment, server: &PlannedServer) -> RepositoryFiles {
    let place = EntryPlace {
        directory: directory_of(environment, server),
        scope: server.scope,
    };
    let installed = InstalledPackages::default();
    named_files(environment, place, &server.definition, &installed)
}

/// The directory that a server of the project belongs to.
fn directory_of<'a>(environment: &'a Environment, server: &'a PlannedServer) -> &'a Path {
    match (server.scope, &server.origin) {
        (Scope::Project, Origin::File { path, .. }) => agents_project(path),
        _ => environment.project_root(),
    }
}

/// What decisions about it are kept under: an agent's are its file's.
fn decided_in<'a>(environment: &'a Environment, server: &'a PlannedServer) -> &'a Path {
    match (server.scope, &server.origin) {
        (Scope::Project, Origin::File { path, .. }) if !path.ends_with(PROJECT_FILE) => path,
        _ => directory_of(environment, server),
    }
}

/// Records that the user rejected a server.
pub fn reject(environment: &Environment, server: &PlannedServer) -> Result<Edited<()>, EditError> {
    record(environment, server, "rejected", &[], &FileDigests::new())
}

fn record(
    environment: &Environment,
    server: &PlannedServer,
    decision: &str,
    allow_env: &[String],
    files: &FileDigests,
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
        decided_in(environment, server),
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

/// The server as one that a repository brought, if one did: then its name alone does not make a
/// rule count for it.
pub fn repository_server(server: &PlannedServer) -> Option<RepositoryServer> {
    let Origin::File { path, .. } = &server.origin else {
        return None;
    };
    // Local settings that were approved, not typed: the user gave no rules for them.
    let is_found = server.scope == Scope::Local && !server.is_typed;
    if server.author != Author::Repository && !is_found {
        return None;
    }
    let folder = path.parent().unwrap_or(path);
    Some(RepositoryServer {
        server: server.name.clone(),
        origin: server.origin.clone(),
        digest: server.digest.clone()?,
        directory: match server.scope {
            Scope::Project if !path.ends_with(PROJECT_FILE) => path,
            // The file is in a folder of the project.
            Scope::Local => folder.parent().unwrap_or(folder),
            _ => folder,
        }
        .to_owned(),
    })
}

/// Tells the rules which servers a repository brought, and what was allowed of each.
pub(crate) fn note_repository_servers(
    permissions: &mut Permissions,
    servers: &[PlannedServer],
    approvals: &ApprovalsFile,
    file: &Path,
) {
    let kept = Origin::file(file, 1);
    // The first of a name is the one that counts.
    let counting = servers
        .chunk_by(|a, b| a.name == b.name)
        .filter_map(<[PlannedServer]>::first);
    for server in counting.filter_map(repository_server) {
        let project = approvals.project(&server.directory);
        let given = project.and_then(|project| project.allowed.get(server.server.as_str()));
        let rules = given
            .filter(|given| given.digest == server.digest)
            .map(|given| given.rules.clone())
            .unwrap_or_default();
        permissions.add_repository_server(server, &rules, &kept);
    }
}
