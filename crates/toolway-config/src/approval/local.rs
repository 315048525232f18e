//! Approval of what the project's local settings permit.
//!
//! Owns the digest that the approval is bound to. What is recorded is the text that the user has
//! read or that was written for them, never what the file holds by then (SEC-50). Which keys permit
//! something is decided in `raw/settings.rs`.

use serde_json::json;
use toolway_types::{Diagnosis, Scope};

use super::ApprovalsFile;
use super::digest::digest_of;
use crate::edit::{EditError, Edited, edit};
use crate::environment::{Environment, path_key};
use crate::file::read_text;
use crate::raw::{self, FileSettings};
use crate::source::{FileKind, TextSource};

/// Whether the project's local settings are the user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalTrust {
    /// There is no such file, or nothing in it that permits more.
    NothingToTrust,
    /// It was approved as it is now.
    Trusted,
    /// It was not.
    Untrusted,
}

/// Whether this text, which stands in the project's local settings, is trusted.
pub fn local_trust(environment: &Environment, text: &str) -> LocalTrust {
    let settings = settings_of(environment, text);
    if settings.widening.is_empty() {
        LocalTrust::NothingToTrust
    } else if trusts_local(environment, &ApprovalsFile::read(environment).0, &settings) {
        LocalTrust::Trusted
    } else {
        LocalTrust::Untrusted
    }
}

/// Approves what this text of the project's local settings permits: the text that the user has
/// read, or that was written for them. The file itself is not read, so a later change is not
/// approved (SEC-50).
pub fn trust_local(environment: &Environment, text: &str) -> Result<Edited<()>, EditError> {
    let settings = settings_of(environment, text);
    let directory = path_key(environment.project_root());
    edit(&environment.approvals_file(), |document| {
        let path = ["projects", &directory, "localSettings"];
        if settings.widening.is_empty() {
            document.remove(&path);
            return Ok(());
        }
        document.set(&["version"], &json!(1))?;
        document.set(&path, &json!(local_digest(environment, &settings)))
    })
}

/// The project's local settings as they are, for the user to decide about; `None` when there are
/// none. Never blocks, and reads a bounded size.
pub fn local_settings_text(environment: &Environment) -> Result<Option<String>, Diagnosis> {
    let Some(path) = environment.settings_file(Scope::Local) else {
        return Ok(None);
    };
    let source = TextSource::file(&path);
    let text = read_text(&path).map_err(|error| {
        Diagnosis::error(format!("`{}` {error}", path.display()))
            .at(source.origin(error.line()))
            .hint(format!("look at `{}`", path.display()))
    })?;
    if let Some(text) = &text {
        raw::read(text, &source, FileKind::Local)?;
    }
    Ok(text)
}

fn settings_of(environment: &Environment, text: &str) -> FileSettings {
    let path = environment.settings_file(Scope::Local).unwrap_or_default();
    let file = raw::read(text, &TextSource::file(path), FileKind::Local);
    file.map(|file| file.settings).unwrap_or_default()
}

pub(crate) fn trusts_local(
    environment: &Environment,
    approvals: &ApprovalsFile,
    settings: &FileSettings,
) -> bool {
    settings.widening.is_empty()
        || approvals
            .project(environment.project_root())
            .and_then(|project| project.local_settings.as_deref())
            .is_some_and(|digest| digest == local_digest(environment, settings))
}

fn local_digest(environment: &Environment, settings: &FileSettings) -> String {
    let path = path_key(environment.project_root());
    digest_of(&path, "local settings", &settings.widening)
}
