//! Planning again and again, for a host that runs while files change.
//!
//! Owns which files matter ([`watched_paths`]) and what is remembered between two plans: how the
//! repository stood at the first, because a word for all of it covers no more than that, and the
//! last good reading of each file. While a file cannot be read or parsed, for instance because an
//! editor is half-way through saving it, its servers stay as they were and the fault is diagnosed
//! as ever. Everything that says *no* is not remembered but read anew each time and fails closed,
//! as at the first start: the organisation's files, `approvals.json`, and the permission rules of
//! a settings file, whose calls are refused until the file can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use toolway_types::Scope;

use crate::Environment;
use crate::account::directory::copy_file;
use crate::approval::{Began, approved_files};
use crate::environment::{PROJECT_FILE, PROJECT_FOLDER};
use crate::ide::lock_files;
use crate::load::{self, Flags, plugin_files, system_files};
use crate::merge::merge;
use crate::plan::Plan;
use crate::policy::admit;
use crate::raw::RawFile;

/// Makes plans from the same environment and flags, and remembers the last good files.
#[derive(Debug)]
pub struct Planner {
    environment: Environment,
    flags: Flags,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    last_good: LastGood,
    /// Nothing before the first plan.
    began: Option<Began>,
}

/// How often, and after which pause, a file that cannot be read is read again before it counts as
/// broken: it may be in the middle of being written.
const READINGS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(30);

/// What each file said when it could last be read.
#[derive(Debug, Default)]
pub(crate) struct LastGood {
    files: BTreeMap<PathBuf, RawFile>,
    /// Whether an older reading had to stand for a file since this was last asked.
    recalled: bool,
}

impl LastGood {
    pub(crate) fn keep(&mut self, path: &Path, file: &RawFile) {
        self.files.insert(path.to_owned(), file.clone());
    }

    /// What it said, without what was wrong with it: that was said then.
    pub(crate) fn recall(&mut self, path: &Path) -> Option<RawFile> {
        let mut file = self.files.get(path)?.clone();
        self.recalled = true;
        file.diagnoses.clear();
        Some(file)
    }

    /// A file that is gone takes its servers with it.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.files.remove(path);
    }

    pub(crate) fn has_servers(&self, path: &Path) -> bool {
        let file = self.files.get(path);
        file.is_some_and(|file| !file.servers.is_empty())
    }
}

impl Planner {
    /// Remembers nothing yet.
    pub fn new(environment: Environment, flags: Flags) -> Self {
        Self {
            environment,
            flags,
            memory: Mutex::default(),
        }
    }

    /// Reads everything and decides everything, as [`plan`](crate::plan()) does. Takes a moment
    /// longer when a file cannot be read any more, in case it is being written.
    pub fn plan(&self) -> Plan {
        // A panic elsewhere leaves at worst an older reading.
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Memory { last_good, began } = &mut *memory;
        let mut readings = 1;
        loop {
            let mut layers = load::load_with(&self.environment, &self.flags, Some(last_good));
            if !std::mem::take(&mut last_good.recalled) || readings == READINGS {
                layers.began.clone_from(began);
                let config = merge(layers);
                began.get_or_insert_with(|| Began::with(&config.servers));
                return admit(config);
            }
            readings += 1;
            std::thread::sleep(PAUSE);
        }
    }

    /// The files whose change can change the plan, as of now.
    pub fn watched_paths(&self) -> Vec<PathBuf> {
        watched_paths(&self.environment, &self.flags)
    }
}

/// Every file and folder whose appearing, changing or vanishing can change the plan, whether it
/// exists or not. A symbolic link is named together with what it leads to.
pub fn watched_paths(environment: &Environment, flags: &Flags) -> Vec<PathBuf> {
    let mut paths = BTreeSet::new();
    let mut add = |path: PathBuf| {
        if let Ok(real) = path.canonicalize() {
            paths.insert(real);
        }
        paths.insert(path);
    };
    system_files(environment.system_dir()).for_each(&mut add);
    add(environment.config_home().join("settings.json"));
    add(environment.approvals_file());
    if let Some(local) = environment.settings_file(Scope::Local) {
        add(local);
        add(environment
            .project_root()
            .join(PROJECT_FOLDER)
            .join("settings.json"));
    }
    if !flags.strict {
        for directory in environment.project_directories() {
            add(directory.join(PROJECT_FILE));
        }
        plugin_files(environment.config_home()).for_each(&mut add);
        add(copy_file(environment));
    }
    approved_files(environment).for_each(&mut add);
    lock_files(environment).for_each(&mut add);
    for value in &flags.mcp_config {
        if !value.trim_start().starts_with('{') {
            add(environment.cwd().join(value));
        }
    }
    paths.into_iter().collect()
}
