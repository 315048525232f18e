//! Who may connect, and whose instructions models get to see.
//!
//! Owns: the organisation's lists, and the verdict on every server. The order of the questions
//! matters: nothing of a project's definition is expanded before a person approved it.
//! Does not own: whether a single call may run (`permission`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolway_types::name::as_word;
use toolway_types::{Diagnosis, Origin, Scope, Secret, ServerSpec, StdioSpec, TransportSpec};

use crate::Environment;
use crate::account::directory::stands_for;
use crate::approval::{Standing, decide, note_brought};
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
pub(crate) mod lists;
pub(crate) mod pattern;
pub(crate) mod rule;
pub(crate) mod url;

use cross_app::Requirement;
use lists::Lists;
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

    /// Whether a definition, expanded, may connect; the reason when not.
    pub(crate) fn check(
        &self,
        environment: &Environment,
        spec: &ServerSpec,
        scope: Scope,
    ) -> Result<(), String> {
        let subject = subject(environment, spec, &self.servers);
        self.servers.denies(&subject)?;
        self.excludes(scope)?;
        // What the organisation itself adds for everyone needs no place in its own list.
        if scope == Scope::Managed {
            return Ok(());
        }
        self.servers.leaves_out(&subject)
    }

    /// Whether models may see what a server that connects says about itself; the reason when
    /// not. Unlike its servers, the words of the organisation's own servers need a place in the
    /// list: an empty one silences everybody.
    fn check_instructions(
        &self,
        environment: &Environment,
        spec: &ServerSpec,
    ) -> Result<(), String> {
        let subject = subject(environment, spec, &self.instructions);
        self.instructions.denies(&subject)?;
        self.instructions.leaves_out(&subject)
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
        curation.instructions_dropped = objection.err();
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

/// What the rules of some lists are asked about.
fn subject<'a>(environment: &Environment, spec: &'a ServerSpec, lists: &Lists) -> Subject<'a> {
    let target = match &spec.transport {
        TransportSpec::Stdio(stdio) => {
            let words = std::iter::once(&stdio.command)
                .chain(&stdio.args)
                .map(String::as_str);
            // Looking for the program costs time that nobody without rules should pay.
            let program = (!lists.is_empty())
                .then(|| find_program(environment, stdio))
                .flatten();
            Target::Command {
                words: words.collect(),
                program,
            }
        }
        TransportSpec::Http(remote)
        | TransportSpec::Sse(remote)
        | TransportSpec::Ws(remote)
        | TransportSpec::SseIde(remote)
        | TransportSpec::WsIde(remote)
        | TransportSpec::Connector(remote) => Target::Remote(&remote.url),
        TransportSpec::Sdk => Target::Nothing,
    };
    Subject {
        name: spec.name.as_str(),
        target,
    }
}

/// Where the program really lies, links followed: the one that the system would start, which
/// passes over what it cannot execute and takes relative directories from the child's own.
fn find_program(environment: &Environment, stdio: &StdioSpec) -> Option<PathBuf> {
    let command = Path::new(&stdio.command);
    let base = stdio.cwd.as_deref().unwrap_or(environment.cwd());
    if stdio.command.contains('/') {
        return base.join(command).canonicalize().ok();
    }
    let path = stdio
        .variable("PATH")
        .map_or("/bin:/usr/bin", Secret::expose);
    let candidates: Vec<_> = std::env::split_paths(path)
        .map(|directory| base.join(directory).join(command))
        .filter(|candidate| candidate.is_file())
        .collect();
    // What cannot be executed now may be by the time it is started.
    let found = candidates.iter().find(|candidate| is_executable(candidate));
    found
        .or(candidates.first())
        .and_then(|candidate| candidate.canonicalize().ok())
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
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
    let hooks = hooks.placed(HookPlace {
        directory: basis.environment.cwd().to_owned(),
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
        }
        let raw = &candidate.raw;
        let mut curation = Curation::read(&raw.definition, &raw.spot, &source_of(&raw.origin));
        if let Verdict::Admitted(spec) = &verdict
            && let Err(reason) = self
                .policy
                .check_instructions(&self.basis.environment, spec)
        {
            curation.instructions_dropped = Some(reason);
        }
        PlannedServer {
            curation: Arc::new(curation),
            name: candidate.raw.name,
            scope: candidate.scope,
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
        self.policy.servers.denies(&Subject {
            name: candidate.raw.name.as_str(),
            target: Target::Remote(&url),
        })
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
        let name = Subject {
            name: candidate.raw.name.as_str(),
            target: Target::Nothing,
        };
        if let Err(reason) = self
            .policy
            .servers
            .denies(&name)
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
        let allow_env = match decide(self.basis, candidate) {
            Standing::Approved { allow_env } => allow_env,
            Standing::Rejected { reason } => return Verdict::Rejected { reason },
            Standing::Pending { reason, changed } => {
                return Verdict::PendingApproval { reason, changed };
            }
        };
        if candidate.scope == Scope::Project
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
        self.policy
            .check(&self.basis.environment, &spec, candidate.scope)
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
        let mut spec = Builder {
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
        }
        .build()?;
        // Approved for one directory, it must not run what a folder below it, perhaps another
        // repository's, has under the same relative name.
        if let TransportSpec::Stdio(stdio) = &mut spec.transport
            && matches!(candidate.scope, Scope::Project | Scope::Local)
        {
            let directory = || candidate.place.directory.clone();
            stdio.cwd.get_or_insert_with(directory);
        }
        Ok(spec)
    }
}
