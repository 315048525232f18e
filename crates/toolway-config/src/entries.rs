//! Writing servers' entries: what `add`, `remove`, `enable` and `disable` do to the files.
//!
//! Owns which key of which file holds what; permission rules are `rules.rs`. How a file is changed
//! safely is `edit`'s work; who may decide is `approval`'s.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolway_types::{Diagnosis, Origin, Scope, ServerName, Severity};

use crate::approval::{self, LocalTrust};
use crate::edit::{Document, EditError, Edited, edit, edit_with};
use crate::expansion::WORKSPACE;
use crate::load::strangers_place;
use crate::raw::validate;
use crate::{Environment, Flags, PlannedServer, ServerVerdict, plan};

mod switch;

pub use switch::{Switched, switch_servers};

/// What to do with an entry of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave it, and fail.
    Keep,
    /// Replace it.
    Replace,
}

/// Writes an entry that the user has just typed. Where its scope needs approval, this approves it,
/// and the variables it reads.
pub fn add_server(
    environment: &Environment,
    scope: Scope,
    name: &ServerName,
    definition: &Map<String, Value>,
    existing: Existing,
) -> Result<Edited<()>, EditError> {
    let edited = write_entry(environment, scope, name, definition, existing)?;
    if matches!(scope, Scope::Project | Scope::Local) {
        let path = file_of(environment, scope)?;
        approval::record_typed(environment, &path, scope, name.as_str(), definition)?;
    }
    Ok(edited)
}

/// Writes an entry of another author into the project's file, unless there is one of this name. It
/// is not approved: it waits for approval as if it had come with the project.
pub fn propose_server(
    environment: &Environment,
    name: &ServerName,
    definition: &Map<String, Value>,
) -> Result<Edited<()>, EditError> {
    let keep = Existing::Keep;
    write_entry(environment, Scope::Project, name, definition, keep)
}

fn write_entry(
    environment: &Environment,
    scope: Scope,
    name: &ServerName,
    definition: &Map<String, Value>,
    existing: Existing,
) -> Result<Edited<()>, EditError> {
    let path = file_of(environment, scope)?;
    edit_settings(environment, scope, &path, |document| {
        let key = ["mcpServers", name.as_str()];
        if existing == Existing::Keep && document.get(&key).is_some() {
            return Err(EditError::Exists {
                path: path.clone(),
                key: name.to_string(),
            });
        }
        document.set(&key, &Value::Object(definition.clone()))
    })
}

/// Takes an entry out of the file it stands in.
pub fn remove_server(
    environment: &Environment,
    server: &PlannedServer,
) -> Result<Edited<()>, EditError> {
    let Origin::File { path, .. } = &server.origin else {
        return Err(EditError::Refused(format!(
            "server `{}` stands in no file",
            server.name
        )));
    };
    edit_settings(environment, server.scope, path, |document| {
        document.remove(&["mcpServers", server.name.as_str()]);
        Ok(())
    })
}

/// Checks an entry before it is written, as far as that is possible: its shape, and the policy.
/// A variable that is not set yet is only a warning, for it may be by the time it is needed.
pub fn check_definition(
    environment: &Environment,
    name: &ServerName,
    definition: &Map<String, Value>,
    scope: Scope,
) -> Vec<Diagnosis> {
    let mut findings = validate(name, definition);
    if findings
        .iter()
        .any(|finding| finding.severity == Severity::Error)
    {
        return findings;
    }
    let mut tried = definition.clone();
    // The trial is no project's entry, which starts in its project.
    if scope == Scope::Project && tried.contains_key("command") {
        tried
            .entry("cwd")
            .or_insert_with(|| json!(format!("${{{WORKSPACE}}}")));
    }
    let file = json!({ "mcpServers": { name.as_str(): tried } }).to_string();
    let trial = plan(
        environment,
        &Flags {
            mcp_config: vec![file],
            strict: true,
            ..Flags::default()
        },
    );
    match trial.winner(name.as_str()).map(|server| &server.verdict) {
        Some(ServerVerdict::Refused { reason }) => {
            let mend = trial.blocked.as_ref().and_then(|it| it.hint.as_deref());
            let hint = mend.unwrap_or("ask the administrator of this machine to allow it");
            findings.push(Diagnosis::error(reason.clone()).hint(hint));
        }
        Some(ServerVerdict::Invalid { reason }) => {
            findings.push(Diagnosis::warning(reason.clone()));
        }
        _ => {}
    }
    findings
}

pub(crate) fn file_of(environment: &Environment, scope: Scope) -> Result<PathBuf, EditError> {
    environment.settings_file(scope).ok_or_else(|| {
        EditError::Refused(format!(
            "there is no {scope} scope to write to: the working directory is gone"
        ))
    })
}

/// Edits a settings file. Local settings that were approved before stay approved: what Toolway
/// writes for the user must not look like the repository's.
pub(crate) fn edit_settings<T>(
    environment: &Environment,
    scope: Scope,
    path: &Path,
    change: impl FnOnce(&mut Document) -> Result<T, EditError>,
) -> Result<Edited<T>, EditError> {
    if matches!(scope, Scope::Project | Scope::Local) {
        stays_in_project(path)?;
        // What is written there may be a secret, and would be another's to read and to change.
        if let Some(owner) = strangers_place(environment, path) {
            return Err(EditError::Refused(format!(
                "`{}`, or the directory that it lies in, belongs to another user (id {owner}); \
                 nothing was written",
                path.display()
            )));
        }
    }
    let edited = match (scope, path.parent()) {
        // What we keep beside a repository's files must not end up in its history.
        (Scope::Local, Some(directory)) => {
            ignore_by_git(directory)?;
            edit(path, change)?
        }
        (Scope::Project, Some(directory)) if path.exists() => {
            let ours = directory.join(".toolway");
            ignore_by_git(&ours)?;
            edit_with(path, Some(&ours.join("mcp.json.bak")), change)?
        }
        _ => edit(path, change)?,
    };
    // Judged by what was there under the lock, and recorded as it was written.
    if scope == Scope::Local
        && edited.changed
        && approval::local_trust(environment, edited.before.expose()) != LocalTrust::Untrusted
    {
        approval::trust_local(environment, edited.after.expose())?;
    }
    Ok(edited)
}

/// Refuses to write where a repository's link leads: it could be any file, also one of the user's
/// own settings.
fn stays_in_project(path: &Path) -> Result<(), EditError> {
    let ours = path.parent().filter(|folder| folder.ends_with(".toolway"));
    let beside = path.with_file_name(".toolway");
    let mut written = [path, ours.unwrap_or(&beside)].into_iter();
    match written.find(|path| path.is_symlink()) {
        Some(link) => Err(EditError::Refused(format!(
            "`{}` is a link, and what a project's link leads to is not written",
            link.display()
        ))),
        None => Ok(()),
    }
}

/// Makes a directory of ours that git does not see.
pub(crate) fn ignore_by_git(directory: &Path) -> Result<(), EditError> {
    let failed = |source| EditError::Io {
        path: directory.to_owned(),
        source,
    };
    fs::create_dir_all(directory).map_err(failed)?;
    let path = directory.join(".gitignore");
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .and_then(|mut file| {
            let text = b"# Private to the person who works here.\n*\n";
            file.write_all(text).inspect_err(|_| {
                // Half a file would be taken for a whole one the next time, and hide nothing.
                let _ = fs::remove_file(&path);
            })
        });
    match written {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    }
}
