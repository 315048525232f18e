//! Who may connect, and whose instructions models get to see.
//!
//! Owns: the organisation's lists, and the verdict on every server. The order of the questions
//! matters: nothing of a project's definition is expanded before a person approved it.
//! Does not own: whether a single call may run (`permission`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolway_types::name::as_word;
use toolway_types::{
    Author, Diagnosis, Origin, Scope, Secret, ServerSpec, ShieldMode, TransportSpec,
};

use crate::Environment;
use crate::account::directory::stands_for;
use crate::approval::{Standing, note_brought};
use crate::curation::Curation;
use crate::env;
use crate::merge::{Basis, Candidate, Config, switched_off};
use crate::permission::HookPlace;
use crate::plan::{
    Limits, Plan, PlannedServer, Verdict, account_settings, call_settings, identity_settings,
    managed_env, no_prefix,
};
use crate::raw::{Settings, Source};
use crate::spec::Builder;

pub(crate) mod cross_app;
mod line;
pub(crate) mod lists;
mod program;
pub(crate) mod rule;
mod steering;
mod weak;

use cross_app::Requirement;
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
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            servers: Lists::new("allowedMcpServers", "deniedMcpServers"),
            instructions: Lists::new("allowedMcpInstructions", "deniedMcpInstructions"),
            cross_app: Vec::new(),
            exclusive: None,
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
        for (_, settings) in &config.basis.settings {
            policy.add(settings);
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
    let limits = Limits::read(
        &basis.environment,
        &managed_env(&basis.settings),
        &mut diagnoses,
    );
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
    diagnoses.extend(permissions.slips(&hooks, &names));
    Plan {
        no_prefix: no_prefix(&basis.environment, &mut diagnoses),
        servers,
        diagnoses,
        permissions,
        hooks,
        blocked,
        limits,
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

/// The remark that an entry's own word for its shield is too weak to count.
fn weakened(candidate: &Candidate, spec: &ServerSpec) -> Option<Diagnosis> {
    let TransportSpec::Stdio(stdio) = &spec.transport else {
        return None;
    };
    let raw = &candidate.raw;
    let asked = ShieldMode::parse(raw.definition.get("shield")?.as_str()?)?;
    (asked < stdio.shield).then(|| {
        let line = raw.spot.line_of(&raw.definition, "shield");
        Diagnosis::warning(format!(
            "`\"shield\": \"{}\"` does not count: an entry cannot ask for less than `{}` here",
            asked.as_str(),
            stdio.shield.as_str()
        ))
        .of(&raw.name)
        .at(source_of(&raw.origin).origin(line))
        .hint("take the key out; `TOOLWAY_SHIELD` is yours to set")
    })
}

/// Why a definition cannot be connected to.
enum Objection {
    Policy(String),
    Faults(Vec<Diagnosis>),
}

struct Judge<'a> {
    basis: &'a Basis,
    policy: &'a Policy,
    blocked: Option<&'a Diagnosis>,
    inherited: &'a Arc<BTreeMap<String, Secret>>,
}

impl Judge<'_> {
    fn plan(&self, mut candidate: Candidate) -> PlannedServer {
        let mut found = Vec::new();
        let verdict = self.verdict(&candidate, &mut found);
        candidate.raw.diagnoses.append(&mut found);
        if let Verdict::Admitted(spec) = &verdict {
            let ignored = cross_app::ignored(&candidate.raw, spec);
            candidate.raw.diagnoses.extend(ignored);
            candidate.raw.diagnoses.extend(weakened(&candidate, spec));
        }
        let raw = &candidate.raw;
        let mut curation = Curation::read(&raw.definition, &raw.spot, &source_of(&raw.origin));
        if let Verdict::Admitted(spec) = &verdict
            && let Err(reason) =
                self.policy
                    .check_instructions(&self.basis.environment, spec, &raw.definition)
        {
            curation.instructions_dropped = Some(reason);
        }
        PlannedServer {
            curation: Arc::new(curation),
            name: candidate.raw.name,
            scope: candidate.scope,
            author: candidate.author,
            origin: candidate.raw.origin,
            transport: candidate.raw.kind,
            definition: candidate.raw.definition,
            digest: candidate.digest,
            verdict,
            shadows: candidate.shadows,
            diagnoses: candidate.raw.diagnoses,
            variables: candidate.variables,
        }
    }

    /// What may not be connected to may not be reached through a provider's proxy either.
    fn denies_behind_proxy(&self, candidate: &Candidate) -> Result<(), String> {
        let Some(url) = stands_for(candidate.scope, &candidate.raw.definition) else {
            return Ok(());
        };
        let subject = Subject {
            name: candidate.raw.name.as_str(),
            target: Target::Remote(&url),
        };
        let denied = self.policy.servers.denies(&subject);
        denied.map_err(|refusal| refusal.to_string())
    }

    fn verdict(&self, candidate: &Candidate, found: &mut Vec<Diagnosis>) -> Verdict {
        let refused = |reason: String| Verdict::Refused { reason };
        if let Some(blocked) = self.blocked {
            return refused(blocked.message.clone());
        }
        if let Some(lost) = &candidate.lost {
            return Verdict::Shadowed {
                by: lost.to.clone(),
                reason: lost.reason.clone(),
            };
        }
        if let Some(fault) = candidate.raw.fault() {
            return Verdict::Invalid {
                reason: fault.message.clone(),
            };
        }
        if candidate.author == Author::Stranger {
            return refused(format!(
                "its file belongs to another user of this machine ({})",
                candidate.raw.origin
            ));
        }
        let name = Subject {
            name: candidate.raw.name.as_str(),
            target: Target::Nothing,
        };
        if let Err(reason) = self
            .policy
            .servers
            .denies(&name)
            .map_err(|refusal| refusal.to_string())
            .and_then(|()| self.policy.excludes(candidate.scope))
            .and_then(|()| self.denies_behind_proxy(candidate))
        {
            return refused(reason);
        }
        // Without variables the definition is final as written, so the policy can speak first. A
        // file that it names is not read before somebody said so.
        let mut early = None;
        let reads_file = candidate.raw.definition.contains_key("sessionTokenFile");
        if candidate.variables.is_empty() && !reads_file {
            match self.checked(candidate) {
                Ok(spec) => early = Some(spec),
                Err(Objection::Policy(reason)) => return refused(reason),
                Err(Objection::Faults(_)) => {}
            }
        }
        if let Some(reason) = switched_off(self.basis, candidate) {
            return Verdict::Disabled { reason };
        }
        let allow_env = match candidate.standing.clone() {
            Standing::Approved { allow_env, .. } => allow_env,
            Standing::Rejected { reason } => return Verdict::Rejected { reason },
            Standing::Pending { reason, changed } => {
                return Verdict::PendingApproval { reason, changed };
            }
        };
        if !candidate.author.reads_any_variable()
            && let Err(diagnosis) = self.readable(candidate, allow_env)
        {
            let reason = diagnosis.message.clone();
            found.push(diagnosis);
            return refused(reason);
        }
        match early.map_or_else(|| self.checked(candidate), Ok) {
            Ok(spec) => Verdict::Admitted(Box::new(spec)),
            Err(Objection::Policy(reason)) => refused(reason),
            Err(Objection::Faults(faults)) => {
                let reason = faults.first().map(|fault| fault.message.clone());
                found.extend(faults);
                Verdict::Invalid {
                    reason: reason.unwrap_or_default(),
                }
            }
        }
    }

    /// The definition, expanded and held against the policy.
    fn checked(&self, candidate: &Candidate) -> Result<ServerSpec, Objection> {
        let mut spec = self.build(candidate).map_err(Objection::Faults)?;
        let (environment, entry) = (&self.basis.environment, &candidate.raw.definition);
        self.policy
            .clear(environment, &mut spec, entry, candidate.scope)
            .map_err(Objection::Policy)?;
        self.policy.require_cross_app(&mut spec);
        Ok(spec)
    }

    /// Whether a project's server reads only what it may (SEC-40).
    fn readable(&self, candidate: &Candidate, mut allowed: Vec<String>) -> Result<(), Diagnosis> {
        let general = self
            .basis
            .settings
            .iter()
            .flat_map(|(_, s)| &s.project_variables);
        allowed.extend(general.map(|named| named.name.clone()));
        let forbidden = env::not_allowed(&candidate.variables, &allowed);
        if forbidden.is_empty() {
            return Ok(());
        }
        let names = forbidden
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ");
        let flags = forbidden.join(" --allow-env ");
        let server = &candidate.raw.name;
        Err(Diagnosis::error(format!(
            "a project's file may not read {names} from your environment without your word"
        ))
        .of(server)
        .at(candidate.raw.origin.clone())
        .hint(format!(
            "run `toolway approve {} --allow-env {flags}`",
            as_word(server.as_str())
        )))
    }

    fn build(&self, candidate: &Candidate) -> Result<ServerSpec, Vec<Diagnosis>> {
        let raw = &candidate.raw;
        let Some(kind) = raw.kind else {
            return Err(vec![
                Diagnosis::error("its transport is unknown").of(&raw.name),
            ]);
        };
        Builder {
            name: &raw.name,
            kind,
            definition: &raw.definition,
            spot: &raw.spot,
            source: source_of(&raw.origin),
            place: &candidate.place,
            environment: &self.basis.environment,
            inherited: self.inherited,
            editors: &self.basis.editors,
            scope: candidate.scope,
            author: candidate.author,
        }
        .build()
    }
}
