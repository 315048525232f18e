//! Servers as other clients have them configured, translated to our entries.
//!
//! Owns which clients are known, where their files are and what was found in them; who wrote them
//! is `writer.rs`. Reads only; `edit` writes the result, and the user chooses. One file per client
//! below this one has what is special about it; `translate.rs` has what they share. What has no
//! counterpart here is reported in `dropped`, what was guessed in `notes`.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toolway_types::{Diagnosis, Origin};

use crate::Environment;
use crate::environment::NOWHERE;
use crate::environment::projects::projects;
use crate::redaction::KeysOnly;
use variables::VariableSyntax;

mod claude_code;
mod claude_desktop;
mod client_json;
mod codex;
mod cursor;
mod gemini;
mod goose;
mod opencode;
#[cfg(test)]
mod tests;
mod translate;
mod variables;
mod vscode;
mod windsurf;
mod writer;
mod zed;

pub use writer::{FileWriter, StrangerReason};

/// A client whose configuration can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImportClient {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Windsurf.
    Windsurf,
    /// Zed.
    Zed,
    /// opencode.
    Opencode,
    /// Goose.
    Goose,
}

impl ImportClient {
    /// Every client, in the order they are offered.
    pub const ALL: [ImportClient; 10] = [
        ImportClient::ClaudeDesktop,
        ImportClient::ClaudeCode,
        ImportClient::Cursor,
        ImportClient::VsCode,
        ImportClient::Codex,
        ImportClient::Gemini,
        ImportClient::Windsurf,
        ImportClient::Zed,
        ImportClient::Opencode,
        ImportClient::Goose,
    ];

    /// The word a user types.
    pub fn id(&self) -> &'static str {
        self.names().0
    }

    /// The name as its makers write it.
    pub fn title(&self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            ImportClient::ClaudeDesktop => ("claude-desktop", "Claude Desktop"),
            ImportClient::ClaudeCode => ("claude-code", "Claude Code"),
            ImportClient::Cursor => ("cursor", "Cursor"),
            ImportClient::VsCode => ("vscode", "VS Code"),
            ImportClient::Codex => ("codex", "Codex"),
            ImportClient::Gemini => ("gemini", "Gemini CLI"),
            ImportClient::Windsurf => ("windsurf", "Windsurf"),
            ImportClient::Zed => ("zed", "Zed"),
            ImportClient::Opencode => ("opencode", "opencode"),
            ImportClient::Goose => ("goose", "Goose"),
        }
    }

    /// Reads the word a user types.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.id() == id)
    }

    /// Where the client keeps the user's own settings.
    pub(crate) fn files(self, places: &ClientLocations) -> Vec<PathBuf> {
        let only = match self {
            ImportClient::ClaudeDesktop => {
                return places.at_applications("Claude/claude_desktop_config.json");
            }
            ImportClient::VsCode => return vscode::files(places),
            ImportClient::Zed => return places.at_config("zed/settings.json"),
            ImportClient::Goose => return places.at_config("goose/config.yaml"),
            ImportClient::Opencode => {
                let names = ["opencode/opencode.json", "opencode/opencode.jsonc"];
                return names.map(|name| places.config_dir.join(name)).to_vec();
            }
            ImportClient::ClaudeCode => match &places.claude_config_dir {
                Some(directory) => Some(directory.join(".claude.json")),
                None => places.at_home(".claude.json"),
            },
            ImportClient::Codex => match &places.codex_home {
                Some(directory) => Some(directory.join("config.toml")),
                None => places.at_home(".codex/config.toml"),
            },
            ImportClient::Cursor => places.at_home(".cursor/mcp.json"),
            ImportClient::Gemini => places.at_home(".gemini/settings.json"),
            ImportClient::Windsurf => places.at_home(".codeium/windsurf/mcp_config.json"),
        };
        Vec::from_iter(only)
    }

    /// What the client reads in a project.
    pub(crate) fn project_files(self) -> &'static [&'static str] {
        match self {
            ImportClient::ClaudeCode => &[".mcp.json"],
            ImportClient::Cursor => &[".cursor/mcp.json"],
            ImportClient::VsCode => &[".vscode/mcp.json"],
            ImportClient::Codex => &[".codex/config.toml"],
            ImportClient::Gemini => &[".gemini/settings.json"],
            ImportClient::Zed => &[".zed/settings.json"],
            ImportClient::Opencode => &[
                "opencode.json",
                ".opencode/opencode.json",
                "opencode.jsonc",
                ".opencode/opencode.jsonc",
            ],
            ImportClient::ClaudeDesktop | ImportClient::Windsurf | ImportClient::Goose => &[],
        }
    }
}

/// Where to look. Taken from the environment once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientLocations {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`, or `.config` in the home directory.
    pub config_dir: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// `$CLAUDE_CONFIG_DIR`.
    pub claude_config_dir: Option<PathBuf>,
    /// `$CODEX_HOME`.
    pub codex_home: Option<PathBuf>,
    /// The working directory and the project it belongs to, unless the home directory is inside
    /// them: a variable that leads into them names no place of the user's own.
    pub working_trees: Vec<PathBuf>,
}

impl ClientLocations {
    /// A file below the home directory.
    fn at_home(&self, file: &str) -> Option<PathBuf> {
        Some(self.home.as_ref()?.join(file))
    }

    /// A file of the configuration directory, and of the usual one.
    fn at_config(&self, file: &str) -> Vec<PathBuf> {
        let usual = self.at_home(&format!(".config/{file}"));
        let named = self.config_dir.join(file);
        [named].into_iter().chain(usual).collect()
    }

    /// The same file in every directory where desktop programs keep their settings.
    fn at_applications(&self, file: &str) -> Vec<PathBuf> {
        let mac = self.at_home("Library/Application Support");
        [Some(self.config_dir.clone()), mac]
            .into_iter()
            .flatten()
            .map(|dir| dir.join(file))
            .collect()
    }

    /// A project's file: in the working directory or the nearest one above it that has the file,
    /// below the home directory (there it is the user's own file, not a project's).
    fn at_project(&self, file: &str) -> Option<PathBuf> {
        self.cwd
            .ancestors()
            .take_while(|directory| Some(*directory) != self.home.as_deref())
            .map(|directory| directory.join(file))
            .find(|path| path.is_file())
    }
}

impl From<&Environment> for ClientLocations {
    /// Where other clients keep their configuration, as this process would find it.
    fn from(environment: &Environment) -> Self {
        let cwd = environment.cwd();
        let directory = |variable| environment.var(variable).map(|path| cwd.join(path));
        let home = environment.home().map(Path::to_path_buf);
        let config_dir = environment.var("XDG_CONFIG_HOME").map(PathBuf::from);
        let config_dir = config_dir.filter(|path| path.is_absolute());
        let config_dir = config_dir.or_else(|| home.as_ref().map(|home| home.join(".config")));
        let outermost = projects(cwd, home.as_deref()).last();
        let trees = [Some(cwd), outermost].into_iter().flatten();
        // In the home directory, or above it, there is no other place.
        let trees = trees.filter(|tree| !home.as_ref().is_some_and(|home| home.starts_with(tree)));
        Self {
            working_trees: trees.map(Path::to_path_buf).collect(),
            config_dir: config_dir.unwrap_or_else(|| PathBuf::from(NOWHERE)),
            cwd: cwd.to_path_buf(),
            claude_config_dir: directory("CLAUDE_CONFIG_DIR"),
            codex_home: directory("CODEX_HOME"),
            home,
        }
    }
}

/// What one file of a client holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientFile {
    /// The client.
    pub client: ImportClient,
    /// The file.
    pub path: PathBuf,
    /// Who wrote it.
    pub writer: FileWriter,
    /// Its servers, in the order written.
    pub servers: Vec<ImportedServer>,
    /// What could not be read.
    pub diagnoses: Vec<Diagnosis>,
}

impl ClientFile {
    /// A file that is not there yet.
    pub(crate) fn empty(places: &ClientLocations, client: ImportClient, path: &Path) -> Self {
        Self {
            client,
            path: path.to_owned(),
            writer: writer::of(places, client, path),
            servers: Vec::new(),
            diagnoses: Vec::new(),
        }
    }

    /// Says something about an entry, or about the file when the line is unknown.
    fn say(&mut self, line: Option<u32>, diagnosis: Diagnosis) {
        let origin = Origin::file(&self.path, line.unwrap_or(1));
        self.diagnoses.push(diagnosis.at(origin));
    }
}

/// One server, in our shape. Its `Debug` names the keys of the entry, and no value in it.
#[derive(Clone, PartialEq)]
pub struct ImportedServer {
    /// Its name, as written.
    pub name: String,
    /// The keys on the way to its entry in the file, its name last.
    pub place: Vec<String>,
    /// The line (from 1) of its entry, where the format tells.
    pub line: Option<u32>,
    /// The entry as our files have it. Never holds `disabled` or `enabled`: see the next field.
    pub definition: Map<String, Value>,
    /// Whether the client has it switched on.
    pub enabled: bool,
    /// What could not be carried over, one sentence each.
    pub dropped: Vec<String>,
    /// What was guessed or put differently, one sentence each.
    pub notes: Vec<String>,
}

impl fmt::Debug for ImportedServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ImportedServer")
            .field("name", &self.name)
            .field("place", &self.place)
            .field("line", &self.line)
            .field("definition", &KeysOnly(&self.definition))
            .field("enabled", &self.enabled)
            .field("dropped", &self.dropped)
            .field("notes", &self.notes)
            .finish()
    }
}

/// Reads every file of a client that exists, the user's own first. A broken one is a diagnosis
/// in its [`ClientFile`] and keeps nothing else from being read.
pub fn discover(places: &ClientLocations, client: ImportClient) -> Vec<ClientFile> {
    let mut files: Vec<PathBuf> = Vec::new();
    let of_project = client.project_files().iter();
    let of_project = of_project.filter_map(|file| places.at_project(file));
    for path in client.files(places).into_iter().chain(of_project) {
        if path.is_file() && !files.contains(&path) {
            files.push(path);
        }
    }
    files
        .iter()
        .map(|path| read_file(places, client, path))
        .collect()
}

/// Reads one file in a client's format.
pub fn read_file(places: &ClientLocations, client: ImportClient, path: &Path) -> ClientFile {
    let mut found = ClientFile::empty(places, client, path);
    let read = client_json::read(path).and_then(|text| match client {
        ImportClient::ClaudeDesktop => {
            let (syntax, entry) = (VariableSyntax::None, claude_desktop::entry);
            translate::plain(&mut found, &text, syntax, entry)
        }
        ImportClient::ClaudeCode => claude_code::read(&mut found, &text, places),
        ImportClient::Cursor => {
            translate::plain(&mut found, &text, VariableSyntax::Editor, cursor::entry)
        }
        ImportClient::VsCode => vscode::read(&mut found, &text),
        ImportClient::Codex => codex::read(&mut found, &text),
        ImportClient::Gemini => gemini::read(&mut found, &text),
        ImportClient::Windsurf => {
            translate::plain(&mut found, &text, VariableSyntax::Editor, windsurf::entry)
        }
        ImportClient::Zed => zed::read(&mut found, &text),
        ImportClient::Opencode => opencode::read(&mut found, &text),
        ImportClient::Goose => goose::read(&mut found, &text),
    });
    if let Err(diagnosis) = read {
        found.diagnoses.push(diagnosis);
    }
    found
}
