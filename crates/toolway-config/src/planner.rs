//! Planning: load, merge and admit in one go, once or again while files change.
//!
//! Owns which files matter ([`watched_paths`]) and what is remembered between two plans: the state
//! of the repository at the first, because approval of all of it covers no more than that, and the
//! last good content of each file, whose servers stay while it cannot be read or parsed. Everything
//! that denies is read again each time and fails closed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use toolway_types::{Author, Diagnosis, Scope, ServerSpec, Severity};

use crate::Environment;
use crate::account::directory::copy_file;
use crate::admission::admit;
use crate::approval::{ApprovalBasis, approved_files};
use crate::environment::{PROJECT_FILE, PROJECT_FOLDER};
use crate::ide::{RunningEditors, lock_files};
use crate::load::{
    Flags, LastGoodFiles, LayerLocation, load, load_with, plugin_files, system_files,
};
use crate::merge::{RunStart, merge, merge_since};
use crate::plan::Plan;
use crate::policy::Policy;
use crate::raw;
use crate::source::TextSource;
use crate::spec::SpecBuilder;

/// Reads everything and decides everything.
pub fn plan(environment: &Environment, flags: &Flags) -> Plan {
    admit(merge(load(environment, flags)))
}

/// A server that the user typed on the command line: checked, expanded and held against the policy.
/// Typing it approves it.
pub fn adhoc(
    environment: &Environment,
    plan: &Plan,
    name: &str,
    definition: Map<String, Value>,
) -> Result<ServerSpec, Diagnosis> {
    if let Some(blocked) = &plan.blocked {
        return Err(blocked.clone());
    }
    let policy = Policy::read(environment)?;
    let file = raw::single(name.to_owned(), definition, &TextSource::Program);
    let Some(server) = file.servers.into_iter().next() else {
        return Err(Diagnosis::error(format!("`{name}` cannot name a server")));
    };
    let first_error = |found: Vec<Diagnosis>| {
        found
            .into_iter()
            .find(|diagnosis| diagnosis.severity == Severity::Error)
    };
    let Some(kind) = server.kind.filter(|_| server.fault().is_none()) else {
        let fault = first_error(server.diagnoses);
        return Err(fault.unwrap_or_else(|| Diagnosis::error("has no transport")));
    };
    let place = LayerLocation {
        directory: environment.cwd().to_path_buf(),
        ..LayerLocation::default()
    };
    let mut spec = SpecBuilder {
        name: &server.name,
        kind,
        definition: &server.definition,
        url: server.url.as_ref(),
        lines: &server.lines,
        source: TextSource::Program,
        place: &place,
        environment,
        inherited: &plan.inherited_env,
        inherited_by_all: &plan.inherited_env,
        editors: &RunningEditors::look(environment),
        scope: Scope::Dynamic,
        author: Author::Invocation,
        vouched: ApprovalBasis::Seen,
    }
    .build()
    .map_err(|faults| {
        first_error(faults).unwrap_or_else(|| Diagnosis::error("cannot be connected to"))
    })?;
    policy
        .clear(environment, &mut spec, &server.definition, Scope::Dynamic)
        .map_err(|reason| Diagnosis::error(reason).of(&server.name))?;
    policy.require_cross_app(&mut spec);
    Ok(spec)
}

/// Makes plans from the same environment and flags, and remembers the last good files.
#[derive(Debug)]
pub struct Planner {
    environment: Environment,
    flags: Flags,
    memory: Mutex<PlannerMemory>,
}

#[derive(Debug, Default)]
struct PlannerMemory {
    last_good: LastGoodFiles,
    /// Nothing before the first plan.
    began: Option<RunStart>,
}

/// How often, and after which pause, a file that cannot be read is read again before it counts as
/// broken: it may be in the middle of being written.
const READINGS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(30);

impl Planner {
    /// Remembers nothing yet.
    pub fn new(environment: Environment, flags: Flags) -> Self {
        Self {
            environment,
            flags,
            memory: Mutex::default(),
        }
    }

    /// Reads everything and decides everything, as [`plan`] does. Takes a moment
    /// longer when a file cannot be read any more, in case it is being written.
    pub fn plan(&self) -> Plan {
        // A panic elsewhere leaves at worst an older reading.
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let PlannerMemory { last_good, began } = &mut *memory;
        let mut readings = 1;
        loop {
            let layers = load_with(&self.environment, &self.flags, Some(last_good));
            if !last_good.take_recalled() || readings == READINGS {
                let config = merge_since(layers, began.clone());
                began.get_or_insert_with(|| RunStart::with(&config.servers));
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
