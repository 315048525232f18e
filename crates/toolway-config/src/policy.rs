//! What the organisation allows: who may connect, and whose instructions models get to see.
//!
//! Owns: the lists of all policy files together, and asking them about one server.
//! Does not own: one rule (`policy_rule`), the verdict on a server (`admission`), or whether a
//! single call may run (`permission`).

use std::sync::Arc;

use serde_json::{Map, Value};
use toolway_types::{Diagnosis, Origin, Scope, ServerSpec, TransportSpec};

use crate::Environment;
use crate::curation::Curation;
use crate::load::system_settings;
use crate::policy_rule::cross_app::CrossAppRequirement;
use crate::policy_rule::program::{ProgramSearch, StartedProgram};
use crate::policy_rule::{PolicySubject, PolicyTarget};
use crate::raw::FileSettings;

pub(crate) mod cross_app;
mod lists;

pub(crate) use lists::PolicyLists;
use lists::PolicyRefusal;

/// The lists of every policy file.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) servers: PolicyLists,
    instructions: PolicyLists,
    /// Which servers are logged in to by cross-app access only.
    cross_app: Vec<CrossAppRequirement>,
    /// The file that excludes every other scope.
    pub(crate) exclusive: Option<Origin>,
    /// The organisation's own file, where it has lists only and so excludes nothing else.
    pub(crate) lists_only: Option<Origin>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            servers: PolicyLists::new("allowedMcpServers", "deniedMcpServers"),
            instructions: PolicyLists::new("allowedMcpInstructions", "deniedMcpInstructions"),
            cross_app: Vec::new(),
            exclusive: None,
            lists_only: None,
        }
    }
}

impl Policy {
    /// Adds the lists of one file.
    fn add(&mut self, settings: &FileSettings) {
        self.servers
            .add(settings.allowed.as_ref(), settings.denied.as_ref());
        self.instructions.add(
            settings.instructions_allowed.as_ref(),
            settings.instructions_denied.as_ref(),
        );
        self.cross_app.extend(settings.cross_app_only.clone());
    }

    /// The lists of these settings; `exclusive` is the file that excludes every other scope.
    pub(crate) fn of(settings: &[(Scope, FileSettings)], exclusive: Option<Origin>) -> Self {
        let mut policy = Self {
            exclusive,
            ..Self::default()
        };
        for (scope, settings) in settings {
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

    /// Reads only the policy files, for a server that is not part of the plan.
    pub(crate) fn read(environment: &Environment) -> Result<Self, Diagnosis> {
        let mut policy = Self::default();
        for (scope, source, settings) in system_settings(environment)? {
            if scope == Scope::Enterprise && !settings.lists_only {
                policy.exclusive = Some(source.origin(1));
            }
            policy.add(&settings);
        }
        Ok(policy)
    }

    /// Whether a definition, expanded, may connect; the reason when not. `entry` is what it was
    /// made of. The result of the check is stored in it: which files are executed, and the lists
    /// for addresses that are only known later.
    pub(crate) fn clear(
        &self,
        environment: &Environment,
        spec: &mut ServerSpec,
        entry: &Map<String, Value>,
        scope: Scope,
    ) -> Result<(), String> {
        let search = search(&self.servers, environment);
        let started = started(search.as_ref(), spec, entry);
        let beside = search.map_or_else(Vec::new, |search| search.beside(spec));
        let asked = |target| PolicySubject {
            name: spec.name.as_str(),
            target,
        };
        let subject = asked(target(spec, started.as_ref()));
        let of_programs = |ask: &dyn Fn(&PolicySubject<'_>) -> Result<(), PolicyRefusal>| {
            beside.iter().try_for_each(|program| {
                ask(&asked(PolicyTarget::Command(&program.started)))
                    .map_err(|refusal| refusal.of_program(&program.about))
            })
        };
        let refused = |refusal: PolicyRefusal| refusal.to_string();
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
        let pinned = |started: Option<StartedProgram>| Some(started?.found?.real);
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

    /// Whether models may see the instructions of a server that connects; the reason when not. The
    /// organisation's own servers need a place in this list, too: an empty one drops all
    /// instructions.
    pub(crate) fn check_instructions(
        &self,
        environment: &Environment,
        spec: &ServerSpec,
        entry: &Map<String, Value>,
    ) -> Result<(), String> {
        let search = search(&self.instructions, environment);
        let started = started(search.as_ref(), spec, entry);
        let subject = PolicySubject {
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
        let subject = PolicySubject {
            name,
            target: PolicyTarget::Nothing,
        };
        let objection = self
            .instructions
            .denies(&subject)
            .and_then(|()| self.instructions.leaves_out(&subject));
        let mut curation = Curation::default();
        curation.instructions_dropped = objection.err().map(|refusal| refusal.to_string());
        curation
    }

    pub(crate) fn excludes(&self, scope: Scope) -> Result<(), String> {
        match &self.exclusive {
            Some(origin) if scope != Scope::Enterprise => Err(format!(
                "`{}` excludes every server that it does not name itself",
                origin.path()
            )),
            _ => Ok(()),
        }
    }
}

/// Programs are looked for only where a rule is about them: looking costs time.
fn search<'a>(lists: &PolicyLists, environment: &'a Environment) -> Option<ProgramSearch<'a>> {
    lists
        .speak_of_commands()
        .then_some(ProgramSearch { environment })
}

/// The program that a server is, where it is a process and rules ask for it.
fn started(
    search: Option<&ProgramSearch<'_>>,
    spec: &ServerSpec,
    entry: &Map<String, Value>,
) -> Option<StartedProgram> {
    match &spec.transport {
        TransportSpec::Stdio(stdio) => {
            search?;
            Some(ProgramSearch::process(stdio, Some(entry)))
        }
        _ => None,
    }
}

/// What a server is reached by.
fn target<'a>(spec: &'a ServerSpec, started: Option<&'a StartedProgram>) -> PolicyTarget<'a> {
    match (started, spec.transport.remote()) {
        (Some(started), _) => PolicyTarget::Command(started),
        (None, Some(remote)) => PolicyTarget::Remote(&remote.url),
        (None, None) => PolicyTarget::Nothing,
    }
}
