//! Where agent files are, and whose they are.
//!
//! Owns finding one by its path or its name, and who its author is: the person, where it lies in a
//! folder of theirs; the repository, wherever else it lies in a project; the invocation otherwise. A
//! person's own file is found before a repository's of the same name, because a name that somebody
//! types must not come to mean what a repository chose (SEC-55).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolway_types::{Author, Diagnosis, nearest};

use super::front_matter;
use super::front_matter::Node;
use crate::Environment;
use crate::environment::{AGENT_FOLDERS, agents_project};
use crate::error::FileReadError;
use crate::file::read_text;
use crate::keys::spelled_out;
use crate::load::read_in_project;
use crate::source::TextSource;

/// How an agent file ends.
const ENDING: &str = "md";

/// The most files of one folder that are looked at.
const MOST: usize = 256;

/// An agent file that can be read.
#[derive(Debug, Clone)]
pub struct AgentPlace {
    /// Where it is: the links of its folders resolved.
    pub path: PathBuf,
    /// Who wrote it.
    pub author: Author,
}

/// An agent that can be asked for by its name.
#[derive(Debug, Clone)]
pub struct FoundAgent {
    /// The name.
    pub name: String,
    /// Its file.
    pub place: AgentPlace,
}

impl AgentPlace {
    /// What its servers' relative paths start from: its project.
    pub(super) fn directory(&self) -> &Path {
        agents_project(&self.path)
    }

    /// What stands in it.
    pub(super) fn read(&self, environment: &Environment) -> Result<String, Diagnosis> {
        let source = TextSource::file(&self.path);
        let read = if self.author == Author::Repository {
            let (stranger, read) = read_in_project(environment, &self.path);
            if let Some(owner) = stranger {
                return Err(Diagnosis::error(format!(
                    "the agent file, or its directory, belongs to another user (id {owner}): nothing \
                     in it counts"
                ))
                .at(source.origin(1))
                .hint(format!(
                    "if you trust that user, add `{}` to `safeDirectories` in your settings",
                    spelled_out(&self.directory().to_string_lossy())
                )));
            }
            read
        } else {
            read_text(&self.path)
        };
        let unreadable = |error: &FileReadError| {
            Diagnosis::error(format!("the agent file {error}"))
                .at(source.origin(error.line()))
                .hint(format!("look at `{}`", self.path.display()))
        };
        let text = read.map_err(|error| unreadable(&error))?;
        text.ok_or_else(|| unreadable(&FileReadError::NotAFile))
    }
}

/// The agent file of this path or name.
pub fn find_agent(environment: &Environment, word: &str) -> Result<AgentPlace, Diagnosis> {
    let is_path = word.contains('/') || Path::new(word).extension().is_some_and(|it| it == ENDING);
    if is_path {
        let path = environment.cwd().join(word);
        return place_of(environment, &path).ok_or_else(|| {
            Diagnosis::error(format!("there is no agent file `{}`", path.display()))
                .hint("give a file's path, or the name of an agent in `.claude/agents` or `.toolway/agents`")
        });
    }
    let found = agents(environment);
    if let Some(agent) = found.iter().find(|agent| agent.name == word) {
        return Ok(agent.place.clone());
    }
    let names = || found.iter().map(|agent| agent.name.as_str());
    let said = Diagnosis::error(format!("no agent is called `{}`", spelled_out(word)));
    Err(match nearest(word, names()) {
        Some(meant) => said.hint(format!("did you mean `{meant}`?")),
        None if found.is_empty() => said.hint(
            "agents are Markdown files in `.claude/agents` or `.toolway/agents` of the project, or of \
             yours; or give a file's path",
        ),
        None => {
            let names: BTreeSet<&str> = names().collect();
            let names: Vec<&str> = names.into_iter().collect();
            said.hint(format!("there are: {}", names.join(", ")))
        }
    })
}

/// Every agent that has a name here; the first of a name is the one that counts.
pub fn agents(environment: &Environment) -> Vec<FoundAgent> {
    let mut found = Vec::new();
    for folder in own_folders(environment) {
        gather(environment, &folder, Author::Person, &mut found);
    }
    let root = environment.project_root();
    let inside = environment.cwd().ancestors();
    for directory in inside.take_while(|directory| directory.starts_with(root)) {
        for folder in AGENT_FOLDERS {
            let folder = directory.join(folder);
            if !own_folders(environment).any(|own| own == folder) {
                gather(environment, &folder, Author::Repository, &mut found);
            }
        }
    }
    found
}

/// The person's own folders of agents.
fn own_folders(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let of_claude = environment.home().map(|home| home.join(".claude/agents"));
    std::iter::once(environment.config_home().join("agents")).chain(of_claude)
}

fn gather(environment: &Environment, folder: &Path, author: Author, found: &mut Vec<FoundAgent>) {
    let entries = folder.read_dir().into_iter().flatten();
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|it| it == ENDING))
        .take(MOST)
        .collect();
    files.sort_unstable();
    for path in files {
        let Some(path) = with_real_folder(&path) else {
            continue;
        };
        let place = AgentPlace { path, author };
        let Some(name) = name_of(environment, &place) else {
            continue;
        };
        found.push(FoundAgent { name, place });
    }
}

/// The name in the file; else the file's own, so that one which cannot be read is named too.
fn name_of(environment: &Environment, place: &AgentPlace) -> Option<String> {
    let said = || {
        let text = place.read(environment).ok()?;
        let members = front_matter::read(&text, &TextSource::file(&place.path)).ok()?;
        let (_, value) = members.into_iter().find(|(key, _)| key == "name")?;
        match value.node {
            Node::Scalar(value) => value.as_str().map(str::to_owned),
            _ => None,
        }
    };
    said().or_else(|| Some(place.path.file_stem()?.to_str()?.to_owned()))
}

fn place_of(environment: &Environment, path: &Path) -> Option<AgentPlace> {
    if !path.is_file() {
        return None;
    }
    let named = path.parent()?;
    let path = with_real_folder(path)?;
    let is_own = own_folders(environment).any(|own| {
        own == named
            || own
                .canonicalize()
                .is_ok_and(|own| path.parent() == Some(&own))
    });
    let author = if is_own {
        Author::Person
    } else if is_in_project(environment, &path)
        || path
            .canonicalize()
            .is_ok_and(|real| is_in_project(environment, &real))
    {
        Author::Repository
    } else {
        Author::Invocation
    };
    Some(AgentPlace { path, author })
}

/// The path with the links of its folders resolved, but not its own: that is the folder's to say.
fn with_real_folder(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?.canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

/// Whether a file lies where a repository may have put it: below a project's mark, in a folder of
/// agents, or where the person stands.
fn is_in_project(environment: &Environment, path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    let root = environment.project_root();
    let stands_there = folder.starts_with(root) && environment.home() != Some(root);
    stands_there
        || AGENT_FOLDERS.iter().any(|agents| folder.ends_with(agents))
        || environment.has_project_above(folder)
}
