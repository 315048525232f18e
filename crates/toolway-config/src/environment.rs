//! What the process was started with: variables, directories, and where configuration files are.
//!
//! Owns: the only read of the process environment. It is read once, so that a run never sees two
//! answers to the same question.
//! Does not own: reading any of those files (`load`). No `.env` file is ever read (SEC-08).

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use toolway_types::{Diagnosis, Scope, Secret, ShieldMode, WorkingDirectory};

use crate::ownership::OwnUserIds;

pub(crate) mod inherited;
mod network;
pub(crate) mod projects;

use projects::{own_projects, projects};

/// The name of a project's committed file.
pub(crate) const PROJECT_FILE: &str = ".mcp.json";
/// The folder of a project that holds its private settings.
pub(crate) const PROJECT_FOLDER: &str = ".toolway";

/// The folders of a project that hold its agents.
pub(crate) const AGENT_FOLDERS: [&str; 2] = [".toolway/agents", ".claude/agents"];

/// The project that an agent file belongs to: what its folder of agents lies in, or its folder.
pub(crate) fn agents_project(file: &Path) -> &Path {
    let folder = file.parent().unwrap_or(file);
    let is_of_agents = AGENT_FOLDERS.iter().any(|agents| folder.ends_with(agents));
    let project = folder.parent().and_then(Path::parent);
    project.filter(|_| is_of_agents).unwrap_or(folder)
}

/// Everything read from the process, once. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Environment {
    facts: Arc<ProcessFacts>,
}

#[derive(Debug, Clone)]
struct ProcessFacts {
    // Secrets, because any variable may be one and `Debug` must not show it.
    vars: BTreeMap<String, Secret>,
    cwd: PathBuf,
    home: Option<PathBuf>,
    homes: HomeDirectories,
    project_root: PathBuf,
    system: SystemDirectory,
    shield: Option<ShieldMode>,
    umask: Option<u32>,
    diagnoses: Vec<Diagnosis>,
}

/// The system directory and who must own what lies in it.
#[derive(Debug, Clone)]
pub(crate) struct SystemDirectory {
    pub(crate) path: PathBuf,
    pub(crate) owner: u32,
}

/// The directories of ours.
#[derive(Debug, Clone)]
struct HomeDirectories {
    config: PathBuf,
    state: PathBuf,
    /// Both as they were named, before links were followed.
    named: [PathBuf; 2],
}

/// Stands for a directory that is not known: nothing lies below it.
pub(crate) const NOWHERE: &str = "/nonexistent";

impl Environment {
    /// Reads the process: its variables, working directory and home.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the environment"
    )]
    pub fn capture() -> Environment {
        // A variable that is not UTF-8 cannot stand in a JSON file, so it is left out.
        let vars = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from(NOWHERE));
        Self::derive(vars, &cwd, std::env::home_dir())
    }

    /// Makes one from given values, for embedders and tests; the rules are those of
    /// [`Environment::capture`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "embedders hand over what they have no more use for"
    )]
    pub fn new(vars: BTreeMap<String, String>, cwd: PathBuf) -> Environment {
        let home = vars.get("HOME").map(PathBuf::from);
        Self::derive(vars, &cwd, home)
    }

    /// Moves the system directory; what lies there must then belong to the current user or root.
    #[must_use]
    pub fn with_system_dir(self, dir: PathBuf) -> Self {
        let mut facts = Arc::unwrap_or_clone(self.facts);
        facts.system = SystemDirectory {
            path: dir,
            owner: rustix::process::geteuid().as_raw(),
        };
        Self {
            facts: Arc::new(facts),
        }
    }

    /// Says what is taken from the mode of files, where that is another process's and not ours.
    #[must_use]
    pub fn with_umask(self, umask: u32) -> Self {
        let mut facts = Arc::unwrap_or_clone(self.facts);
        facts.umask = Some(umask);
        Self {
            facts: Arc::new(facts),
        }
    }

    /// What is taken from the mode of files that are made for it; nothing where that is this
    /// process's own.
    pub fn umask(&self) -> Option<u32> {
        self.facts.umask
    }

    fn derive(vars: BTreeMap<String, String>, cwd: &Path, home: Option<PathBuf>) -> Environment {
        let cwd = resolve(cwd, Path::new("/"));
        let named_home = home.filter(|home| home.is_absolute());
        let home = named_home.as_ref().map(|home| resolve(home, &cwd));
        let owners = OwnUserIds::of_process(vars.get("SUDO_UID").map(String::as_str));
        let own = own_projects(&cwd, home.as_deref(), owners);
        let project_root = own.first().copied().unwrap_or(&cwd);
        let project_root = project_root.to_path_buf();
        // A repository may mark a folder of its own as a project; it all belongs to the repository.
        let outermost = own.last().copied().unwrap_or(&cwd);
        let mut diagnoses = Vec::new();
        if home.is_none() && !vars.contains_key("TOOLWAY_HOME") {
            diagnoses.push(
                Diagnosis::warning("`HOME` is not set, so user settings are not read")
                    .hint("set `HOME` or `TOOLWAY_HOME`"),
            );
        }
        if cwd == Path::new(NOWHERE) {
            diagnoses.push(
                Diagnosis::error("the working directory is gone, so there is no project")
                    .hint("change to a directory that exists, e.g. `cd ~`"),
            );
        }
        let shield = shield_mode(&vars, &mut diagnoses);
        let workspace = Workspace {
            cwd: &cwd,
            root: outermost,
            home: home.as_deref(),
        };
        let homes = homes(&vars, &workspace, named_home.as_deref(), &mut diagnoses);
        let system = system_directory(&vars);
        let vars = vars
            .into_iter()
            .map(|(name, value)| (name, Secret::new(value)))
            .collect();
        let facts = ProcessFacts {
            vars,
            cwd,
            home,
            homes,
            project_root,
            system,
            shield,
            umask: None,
            diagnoses,
        };
        Self {
            facts: Arc::new(facts),
        }
    }

    /// A variable, when it is set and UTF-8.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.facts.vars.get(name).map(Secret::expose)
    }

    /// All of them, for another process of the same user that is to go by them.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let vars = self.facts.vars.iter();
        vars.map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect()
    }

    /// The working directory, with every link resolved.
    pub fn cwd(&self) -> &Path {
        &self.facts.cwd
    }

    /// The home directory, with every link resolved.
    pub fn home(&self) -> Option<&Path> {
        self.facts.home.as_deref()
    }

    /// Where the person's own settings lie.
    pub fn config_home(&self) -> &Path {
        &self.facts.homes.config
    }

    /// Where Toolway keeps what it has to remember.
    pub fn state_home(&self) -> &Path {
        &self.facts.homes.state
    }

    /// The config home and the state home by the paths that were named: links on the way lead to
    /// where both lie.
    pub fn named_homes(&self) -> &[PathBuf; 2] {
        &self.facts.homes.named
    }

    /// The project the working directory belongs to. Found by what the operating system says
    /// lies there, never by what a file of the project says (SEC-04).
    pub fn project_root(&self) -> &Path {
        &self.facts.project_root
    }

    /// A directory below the state home in which nothing but one kind of process is started. It is
    /// made when that happens.
    pub(crate) fn private_directory(&self, label: &str) -> WorkingDirectory {
        if self.state_home().starts_with(NOWHERE) {
            return WorkingDirectory::default();
        }
        WorkingDirectory::Private(self.private_folder().join(label))
    }

    /// Where hooks, and commands that print secrets, are started.
    pub(crate) fn command_directory(&self) -> WorkingDirectory {
        self.private_directory("commands")
    }

    /// Where those directories lie.
    pub fn private_folder(&self) -> PathBuf {
        self.state_home().join("private")
    }

    /// Whose files count as the person's.
    pub(crate) fn owners(&self) -> OwnUserIds {
        OwnUserIds::of_process(self.var("SUDO_UID"))
    }

    /// The outermost project that a directory lies in: what lies between two projects is a
    /// repository's too.
    pub(crate) fn repository_of<'a>(&'a self, directory: &'a Path) -> &'a Path {
        let projects = own_projects(directory, self.home(), self.owners());
        projects.last().copied().unwrap_or(directory)
    }

    /// The innermost repository that a directory lies in, by any owner's mark: which files around
    /// it an entry may read. Without a mark it is the directory itself.
    pub(crate) fn innermost_repository_of<'a>(&'a self, directory: &'a Path) -> &'a Path {
        let is_marked = |it: &&Path| it.join(".git").symlink_metadata().is_ok();
        projects(directory, self.home())
            .find(is_marked)
            .unwrap_or(directory)
    }

    /// Whether a directory lies in a project, by any owner's mark.
    pub(crate) fn has_project_above(&self, directory: &Path) -> bool {
        projects(directory, self.home()).next().is_some()
    }

    /// The file a person edits for a scope, where that scope has one.
    pub fn settings_file(&self, scope: Scope) -> Option<PathBuf> {
        let nowhere = self.project_root() == Path::new(NOWHERE);
        match scope {
            Scope::Project | Scope::Local if nowhere => None,
            Scope::User => Some(self.config_home().join("settings.json")),
            Scope::Project => Some(self.project_root().join(PROJECT_FILE)),
            Scope::Local => Some(
                self.project_root()
                    .join(PROJECT_FOLDER)
                    .join("settings.local.json"),
            ),
            Scope::Connector
            | Scope::Plugin
            | Scope::Dynamic
            | Scope::Managed
            | Scope::Enterprise => None,
        }
    }

    /// Where decisions about project servers are kept.
    pub fn approvals_file(&self) -> PathBuf {
        self.config_home().join("approvals.json")
    }

    /// Where plugins lie, each in a folder of its own.
    pub fn plugins_folder(&self) -> PathBuf {
        self.config_home().join("plugins")
    }

    /// Where the organisation's policy lies.
    pub fn system_dir(&self) -> &Path {
        &self.facts.system.path
    }

    /// `TOOLWAY_SHIELD`: whether servers may start without their shield, where it says so.
    pub fn shield_mode(&self) -> Option<ShieldMode> {
        self.facts.shield
    }

    /// What was wrong with the environment itself.
    pub fn diagnoses(&self) -> &[Diagnosis] {
        &self.facts.diagnoses
    }

    pub(crate) fn system(&self) -> &SystemDirectory {
        &self.facts.system
    }

    /// This environment with other values of some variables. Where files lie stays settled.
    pub(crate) fn with_variables(
        &self,
        variables: impl Iterator<Item = (String, Secret)>,
    ) -> Environment {
        let mut variables = variables.peekable();
        if variables.peek().is_none() {
            return self.clone();
        }
        let mut facts = ProcessFacts::clone(&self.facts);
        facts.vars.extend(variables);
        let word = facts.vars.get("TOOLWAY_SHIELD").map(Secret::expose);
        facts.shield = word.and_then(ShieldMode::parse).or(facts.shield);
        Self {
            facts: Arc::new(facts),
        }
    }

    /// The directories whose `.mcp.json` counts, nearest first.
    pub(crate) fn project_directories(&self) -> impl Iterator<Item = &Path> {
        let last = self.home().filter(|home| self.cwd().starts_with(home));
        let mut done = false;
        self.cwd().ancestors().take_while(move |directory| {
            let take = !done;
            done = done || Some(*directory) == last;
            take
        })
    }
}

struct Workspace<'a> {
    cwd: &'a Path,
    root: &'a Path,
    home: Option<&'a Path>,
}

impl Workspace<'_> {
    /// Whether a path lies where a repository could have put it.
    fn holds(&self, path: &Path) -> bool {
        [self.cwd, self.root].into_iter().any(|place| {
            // In the home directory, or above it, there is no other place.
            let above_home = self.home.is_some_and(|home| home.starts_with(place));
            path.starts_with(place) && !above_home
        })
    }
}

/// The directory of ours that a variable leads to, unless it may be a repository's doing (SEC-08).
fn chosen_home(
    vars: &BTreeMap<String, String>,
    (variable, folder): (&str, &str),
    workspace: &Workspace<'_>,
    diagnoses: &mut Vec<Diagnosis>,
) -> Option<PathBuf> {
    let value = vars.get(variable).filter(|value| !value.is_empty())?;
    // With our own folder: a repository may be called `toolway` itself.
    let path = resolve(&Path::new(value).join(folder), workspace.cwd);
    if workspace.holds(&path) {
        let message = format!(
            "`{variable}` is ignored: `{}` lies inside the project, whose files must not become \
             your own settings",
            path.display()
        );
        let hint = format!("set `{variable}` to a directory outside the project");
        diagnoses.push(Diagnosis::warning(message).hint(hint));
        return None;
    }
    if variable.starts_with("XDG_") && !Path::new(value).is_absolute() {
        let message = format!("`{variable}` is ignored: it must be an absolute path");
        diagnoses.push(Diagnosis::warning(message));
        return None;
    }
    Some(path)
}

/// The config home and the state home.
fn homes(
    vars: &BTreeMap<String, String>,
    workspace: &Workspace<'_>,
    named_home: Option<&Path>,
    diagnoses: &mut Vec<Diagnosis>,
) -> HomeDirectories {
    let mut chosen = |(variable, folder): (&str, &str)| {
        let path = chosen_home(vars, (variable, folder), workspace, diagnoses)?;
        let named = vars.get(variable).map_or("", String::as_str);
        Some((path, workspace.cwd.join(named).join(folder)))
    };
    if let Some((config, named)) = chosen(("TOOLWAY_HOME", "")) {
        return HomeDirectories {
            state: config.join("state"),
            config,
            named: [named.clone(), named.join("state")],
        };
    }
    // Without a home directory there is no private place; nothing can exist below this path.
    let nowhere = Path::new(NOWHERE);
    let standard = |folder| {
        let named = named_home.unwrap_or(nowhere).join(folder);
        (workspace.home.unwrap_or(nowhere).join(folder), named)
    };
    let config = chosen(("XDG_CONFIG_HOME", "toolway"));
    let state = chosen(("XDG_STATE_HOME", "toolway"));
    let (config, named_config) = config.unwrap_or_else(|| standard(".config/toolway"));
    let (state, named_state) = state.unwrap_or_else(|| standard(".local/state/toolway"));
    HomeDirectories {
        config,
        state,
        named: [named_config, named_state],
    }
}

fn shield_mode(
    vars: &BTreeMap<String, String>,
    diagnoses: &mut Vec<Diagnosis>,
) -> Option<ShieldMode> {
    let word = vars.get("TOOLWAY_SHIELD").filter(|word| !word.is_empty())?;
    let mode = ShieldMode::parse(word);
    if mode.is_none() {
        let words = ShieldMode::ALL.map(ShieldMode::as_str).join("`, `");
        diagnoses.push(
            Diagnosis::warning(format!(
                "`TOOLWAY_SHIELD` is ignored: `{word}` is none of `{words}`"
            ))
            .hint("set it to one of these, or unset it"),
        );
    }
    mode
}

fn system_directory(vars: &BTreeMap<String, String>) -> SystemDirectory {
    // Release builds must not let a variable move the policy away.
    if cfg!(debug_assertions)
        && let Some(path) = vars.get("TOOLWAY_TEST_SYSTEM_DIR")
    {
        return SystemDirectory {
            path: PathBuf::from(path),
            owner: rustix::process::geteuid().as_raw(),
        };
    }
    let path = if cfg!(target_os = "macos") {
        "/Library/Application Support/Toolway"
    } else {
        "/etc/toolway"
    };
    SystemDirectory {
        path: PathBuf::from(path),
        owner: 0,
    }
}

/// A path as text that no other path has: one that is not UTF-8 is written in hexadecimal digits,
/// so that trust in one directory never applies to another.
pub(crate) fn path_key(path: &Path) -> String {
    path.to_str().map_or_else(
        || format!("hex:{}", hex::encode(path.as_os_str().as_encoded_bytes())),
        str::to_owned,
    )
}

/// The path with every link resolved, as far as it exists; the rest is cleaned by its letters.
fn resolve(path: &Path, base: &Path) -> PathBuf {
    let path = base.join(path);
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            other => {
                resolved.push(other);
                if let Ok(real) = resolved.canonicalize() {
                    resolved = real;
                }
            }
        }
    }
    resolved
}

#[cfg(test)]
mod tests;
