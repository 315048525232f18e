//! Who may connect, and whose instructions models get to see.
//!
//! Owns: the organisation's lists, and the plan that follows from them; the verdict on one server is
//! `policy/judge.rs`.
//! Does not own: whether a single call may run (`permission`).

use std::sync::Arc;

use serde_json::{Map, Value};
use toolway_types::{Origin, Scope, ServerSpec, TransportSpec};

use crate::Environment;
use crate::approval::note_brought;
use crate::curation::Curation;
use crate::managed::managed_variables;
use crate::merge::Config;
use crate::permission::HookPlace;
use crate::plan::{
    Limits, Plan, PlannedServer, account_settings, call_settings, identity_settings, managed_env,
    no_prefix,
};
use crate::raw::{Settings, Source};

pub(crate) mod cross_app;
mod judge;
pub(crate) mod line;
pub(crate) mod lists;
mod program;
pub(crate) mod rule;
pub(crate) mod steering;
mod weak;

use cross_app::Requirement;
use judge::Judge;
use lists::{Lists, Refusal};
use program::{Search, Started};
use rule::{Subject, Target};

/// The lists of every policy file.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    servers: Lists,
    instructions: Lists,
    /// Who is logged in to by cross-app access alone.
    cross_app: Vec<Requirement>,
    /// The file that excludes every other scope.
    pub(crate) exclusive: Option<Origin>,
    /// The file that could, and has lists alone.
    lists_only: Option<Origin>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            servers: Lists::new("allowedMcpServers", "deniedMcpServers"),
            instructions: Lists::new("allowedMcpInstructions", "deniedMcpInstructions"),
            cross_app: Vec::new(),
            exclusive: None,
            lists_only: None,
        }
    }
}

impl Policy {
    /// Adds the lists of one file.
    pub(crate) fn add(&mut self, settings: &Settings) {
        self.servers
            .add(settings.allowed.as_ref(), settings.denied.as_ref());
        self.instructions.add(
            settings.instructions_allowed.as_ref(),
            settings.instructions_denied.as_ref(),
        );
        self.cross_app.extend(settings.cross_app_only.clone());
    }

    fn of(config: &Config) -> Self {
        let mut policy = Self {
            exclusive: config.exclusive.clone(),
            ..Self::default()
        };
        for (scope, settings) in &config.basis.settings {
            policy.add(settings);
            if *scope == Scope::Enterprise && settings.lists_only {
                let lists = [
                    &settings.allowed,
                    &settings.denied,
                    &settings.instructions_allowed,
                    &settings.instructions_denied,
                ];
                let origin = lists.into_iter().flatten().next();
                policy.lists_only = origin.map(|list| list.origin.clone());
            }
        }
        policy
    }

    /// Whether a definition, expanded, may connect; the reason when not. `entry` is what it was
    /// made of. What was checked goes with it: which files are executed, and what the lists say
    /// about addresses that show later.
    pub(crate) fn clear(
        &self,
        environment: &Environment,
        spec: &mut ServerSpec,
        entry: &Map<String, Value>,
        scope: Scope,
    ) -> Result<(), String> {
        let search = Search {
            environment,
            wanted: self.servers.speak_of_commands(),
        };
        let started = started(&search, spec, entry);
        let beside = search.beside(spec);
        let asked = |target| Subject {
            name: spec.name.as_str(),
            target,
        };
        let subject = asked(target(spec, started.as_ref()));
        let of_programs = |ask: &dyn Fn(&Subject<'_>) -> Result<(), Refusal>| {
            beside.iter().try_for_each(|program| {
                ask(&asked(Target::Command(&program.started)))
                    .map_err(|refusal| refusal.of_program(&program.about))
            })
        };
        let refused = |refusal: Refusal| refusal.to_string();
        self.servers.denies(&subject).map_err(refused)?;
        of_programs(&|program| self.servers.denies_program(program)).map_err(refused)?;
        self.excludes(scope)?;
        // What the organisation itself adds for everyone needs no place in its own list.
        let is_managed = scope == Scope::Managed;
        if !is_managed {
            self.servers.leaves_out(&subject).map_err(refused)?;
            of_programs(&|program| self.servers.leaves_out_program(program)).map_err(refused)?;
        }
        let helper = beside
            .into_iter()
            .find(|program| program.started.line.is_none());
        let pinned = |started: Option<Started>| Some(started?.found?.real);
        match &mut spec.transport {
            TransportSpec::Stdio(stdio) => stdio.program = pinned(started),
            transport => {
                let Some(remote) = transport.remote_mut() else {
                    return Ok(());
                };
                remote.rules = Arc::new(if is_managed {
                    self.servers.denied_urls()
                } else {
                    self.servers.urls()
                });
                if let Some(found) = &mut remote.headers_helper {
                    found.process.program = pinned(helper.map(|helper| helper.started));
                }
            }
        }
        Ok(())
    }

    /// Whether models may see what a server that connects says about itself; the reason when
    /// not. Unlike its servers, the words of the organisation's own servers need a place in the
    /// list: an empty one silences everybody.
    fn check_instructions(
        &self,
        environment: &Environment,
        spec: &ServerSpec,
        entry: &Map<String, Value>,
    ) -> Result<(), String> {
        let search = Search {
            environment,
            wanted: self.instructions.speak_of_commands(),
        };
        let started = started(&search, spec, entry);
        let subject = Subject {
            name: spec.name.as_str(),
            target: target(spec, started.as_ref()),
        };
        self.instructions
            .denies(&subject)
            .and_then(|()| self.instructions.leaves_out(&subject))
            .map_err(|refusal| refusal.to_string())
    }

    /// What the policy changes about a server that the embedding program brings and no file
    /// mentions.
    pub(crate) fn curation_of_object(&self, name: &str) -> Curation {
        let subject = Subject {
            name,
            target: Target::Nothing,
        };
        let objection = self
            .instructions
            .denies(&subject)
            .and_then(|()| self.instructions.leaves_out(&subject));
        let mut curation = Curation::default();
        curation.instructions_dropped = objection.err().map(|refusal| refusal.to_string());
        curation
    }

    fn excludes(&self, scope: Scope) -> Result<(), String> {
        match &self.exclusive {
            Some(origin) if scope != Scope::Enterprise => Err(format!(
                "`{}` excludes every server that it does not name itself",
                origin.path()
            )),
            _ => Ok(()),
        }
    }
}

/// The process that a server is, where it is one.
fn started(search: &Search<'_>, spec: &ServerSpec, entry: &Map<String, Value>) -> Option<Started> {
    match &spec.transport {
        TransportSpec::Stdio(stdio) => Some(search.process(stdio, Some(entry))),
        _ => None,
    }
}

/// What a server is reached by.
fn target<'a>(spec: &'a ServerSpec, started: Option<&'a Started>) -> Target<'a> {
    match (started, spec.transport.remote()) {
        (Some(started), _) => Target::Command(started),
        (None, Some(remote)) => Target::Remote(&remote.url),
        (None, None) => Target::Nothing,
    }
}

/// Gives every server its verdict.
pub fn admit(config: Config) -> Plan {
    let policy = Policy::of(&config);
    let Config {
        basis,
        servers,
        mut diagnoses,
        blocked,
        ..
    } = config;
    let managed_env = managed_variables(
        &basis.environment,
        &managed_env(&basis.settings),
        &basis.approvals,
    );
    let limits = Limits::read(&basis.environment, &managed_env, &mut diagnoses);
    let (mut permissions, hooks) = call_settings(&basis.settings, &mut diagnoses);
    let (account, connectors_off) = {
        let settings: Vec<_> = (basis.settings.iter())
            .map(|(scope, settings)| (*scope, settings))
            .collect();
        account_settings(&settings)
    };
    let identity = identity_settings(&basis.settings);
    let insecure_storage_off =
        (basis.settings.iter()).find_map(|(_, settings)| settings.insecure_storage_off.clone());
    let inherited_env = Arc::new(basis.environment.inherited());
    let inherited_with_network = Arc::new(basis.environment.inherited_with_network());
    let command_directory = basis.environment.command_directory();
    let hooks = hooks.placed(HookPlace {
        workspace: basis.environment.cwd().to_owned(),
        directory: command_directory.clone(),
        environment: Arc::clone(&inherited_env),
    });
    let judge = Judge {
        basis: &basis,
        policy: &policy,
        blocked: blocked.as_ref(),
        inherited: &inherited_env,
        inherited_with_network: &inherited_with_network,
    };
    let servers: Vec<PlannedServer> = servers
        .into_iter()
        .map(|candidate| judge.plan(candidate))
        .collect();
    let approvals_file = basis.environment.approvals_file();
    note_brought(
        &mut permissions,
        &servers,
        &basis.approvals,
        &approvals_file,
    );
    let names: Vec<_> = servers.iter().map(|server| &server.name).collect();
    diagnoses.extend(permissions.aim(&hooks, &names));
    Plan {
        no_prefix: no_prefix(&basis.environment, &mut diagnoses),
        servers,
        diagnoses,
        permissions,
        hooks,
        blocked,
        limits,
        managed_env,
        command_directory,
        inherited_env,
        policy: Arc::new(policy),
        identity,
        account,
        connectors_off,
        insecure_storage_off,
    }
}

fn source_of(origin: &Origin) -> Source {
    match origin {
        Origin::File { path, .. } => Source::File(path.clone()),
        Origin::Flag { flag, .. } => Source::Flag(flag),
        Origin::Program => Source::Program,
        Origin::Directory(host) => Source::Directory(Arc::clone(host)),
    }
}
