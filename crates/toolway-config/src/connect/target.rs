//! Which file of a client the entry goes to, and which table of it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolway_files::links::follow;

use super::ClientEntryError;
use crate::Environment;
use crate::edit::EditError;
use crate::edit::structured_text::{StructuredText, TextFormat};
use crate::entries::ignore_by_git;
use crate::import::{ClientLocations, ImportClient};
use crate::load::strangers_place;

/// Our folder in a project.
const FOLDER: &str = ".toolway";

/// What the name of a client's file ends with where we keep the old one.
const BACKUP: &str = ".toolway.bak";

/// Whose settings of a client are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientScope {
    /// Those of the user, everywhere.
    User,
    /// Those of the project, for everybody who works on it.
    Project,
}

/// One file of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTarget {
    /// The client.
    pub client: ImportClient,
    /// Whose settings it holds.
    pub scope: ClientScope,
    /// Where it is, or would be.
    pub path: PathBuf,
}

impl ClientTarget {
    /// The file of a client in a scope: the one that is there, else where the client is installed,
    /// else the usual one.
    pub fn find(
        environment: &Environment,
        client: ImportClient,
        scope: ClientScope,
    ) -> Result<Self, ClientEntryError> {
        let path = match scope {
            ClientScope::User => {
                let files = client.files(&ClientLocations::from(environment));
                user_file(files).ok_or(ClientEntryError::NoPlace {
                    client: client.title(),
                })?
            }
            ClientScope::Project => {
                let root = environment.project_root();
                let mut files = client.project_files().iter().map(|file| root.join(file));
                let usual = files.next().ok_or(ClientEntryError::NoProjectScope {
                    client: client.title(),
                })?;
                let there = files.find(|path| path.is_file() && !usual.is_file());
                there.unwrap_or(usual)
            }
        };
        Ok(Self {
            client,
            scope,
            path,
        })
    }

    /// Whether the client seems to be there: its file, or the folder of its own that holds it.
    pub fn is_found(&self, environment: &Environment) -> bool {
        let folder = self.path.parent();
        let is_own = |folder: &&Path| Some(*folder) != environment.home();
        self.path.is_file()
            || self.scope == ClientScope::User && folder.filter(is_own).is_some_and(Path::is_dir)
    }

    /// How the file is written.
    pub(super) fn format(&self) -> TextFormat {
        match self.client {
            ImportClient::Codex => TextFormat::Toml,
            ImportClient::Goose => TextFormat::Yaml,
            _ => TextFormat::Json,
        }
    }

    /// The keys on the way to the client's servers.
    pub(super) fn table(&self, document: &StructuredText) -> Vec<&'static str> {
        match self.client {
            ImportClient::VsCode => vec!["servers"],
            ImportClient::Codex => vec!["mcp_servers"],
            ImportClient::Zed => vec!["context_servers"],
            ImportClient::Goose => vec!["extensions"],
            // From its second version on one deeper; but a server may be called `servers`.
            ImportClient::Opencode => match document.get(&["mcp", "servers"]) {
                Some(Value::Object(servers)) if !servers.contains_key("type") => {
                    vec!["mcp", "servers"]
                }
                _ => vec!["mcp"],
            },
            ImportClient::ClaudeDesktop
            | ImportClient::ClaudeCode
            | ImportClient::Cursor
            | ImportClient::Gemini
            | ImportClient::Windsurf => vec!["mcpServers"],
        }
    }

    /// Refuses a place in a project that leads elsewhere or is another's.
    pub(super) fn require_own(&self, environment: &Environment) -> Result<(), EditError> {
        if self.scope == ClientScope::User {
            return Ok(());
        }
        let root = environment.project_root();
        let ours = root.join(FOLDER);
        let own = self.path.ancestors().take_while(|path| *path != root);
        if let Some(link) = own.chain([ours.as_path()]).find(|path| path.is_symlink()) {
            return Err(EditError::Refused(format!(
                "`{}` is a link, and what a project's link leads to is not written",
                link.display()
            )));
        }
        match strangers_place(environment, &self.path) {
            Some(owner) => Err(EditError::Refused(format!(
                "`{}`, or the directory that it lies in, belongs to another user (id {owner})",
                self.path.display()
            ))),
            None => Ok(()),
        }
    }

    /// Where the old content is kept: beside the file, under a name that is ours alone, for `.bak`
    /// may be the client's own (Goose keeps one) or the user's. What we keep in a repository must
    /// not end up in its history.
    pub(super) fn backup(&self, environment: &Environment) -> Result<Option<PathBuf>, EditError> {
        self.require_own(environment)?;
        if self.scope == ClientScope::User {
            let (mut backup, _) = follow(&self.path);
            let mut name = backup.file_name().unwrap_or_default().to_owned();
            name.push(BACKUP);
            backup.set_file_name(name);
            return Ok(Some(backup));
        }
        if !self.path.exists() {
            return Ok(None);
        }
        let ours = environment.project_root().join(FOLDER);
        ignore_by_git(&ours)?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Some(ours.join(format!("{}-{name}.bak", self.client.id()))))
    }
}

fn user_file(files: Vec<PathBuf>) -> Option<PathBuf> {
    // A profile of an editor has settings of its own; the usual ones are meant.
    let is_usual = |path: &PathBuf| !path.iter().any(|part| part == "profiles");
    let files: Vec<PathBuf> = files.into_iter().filter(is_usual).collect();
    let is_for_mac = |path: &&PathBuf| path.iter().any(|part| part == "Library");
    let is_installed = |path: &&PathBuf| path.parent().is_some_and(|it| fs::metadata(it).is_ok());
    let there = files.iter().find(|path| path.is_file());
    let installed = files.iter().find(is_installed);
    let usual = files
        .iter()
        .find(|path| is_for_mac(path) == cfg!(target_os = "macos"));
    there.or(installed).or(usual).or(files.first()).cloned()
}
