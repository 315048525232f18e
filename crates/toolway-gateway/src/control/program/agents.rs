//! Agents of a program: parts of what it has, with servers of their own, under rules that narrow.
//!
//! Owns what of a definition over the wire becomes of an agent, which agents there are, and that they
//! see no more than the program does. What an agent is allowed is the host's (`Host::agent`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use toolway::config::{Confinement, Permissions, ToolPatterns};
use toolway::types::{Origin, Scope, ServerName};
use toolway::{AgentSpec, AttachOptions, Attached, Caller, CallerKind, ToolPool, ViewSpec};

use super::super::asking::ProgramAsker;
use super::super::brought::BroughtServers;
use super::super::error::ControlError;
use super::super::messages::{AgentServer, StartAgent, StartedAgent};
use super::super::resident::Resident;
use super::super::rows::{Provenances, server_rows};
use super::{Program, shown_text};

/// The most agents of one program at a time.
const MOST: usize = 256;

/// The agents of a program.
#[derive(Default)]
pub(in crate::control) struct Agents {
    last: AtomicU64,
    running: Mutex<BTreeMap<String, Arc<RunningAgent>>>,
}

/// One of them.
pub(in crate::control) struct RunningAgent {
    pub(in crate::control) attached: Attached,
    pub(in crate::control) provenances: Provenances,
    part: AgentPart,
    brought: Mutex<Arc<BroughtServers>>,
}

/// What an agent has of its program.
struct AgentPart {
    /// The servers that it names; all when absent.
    shared: Option<Vec<String>>,
    own: Map<String, Value>,
    rules: Option<Permissions>,
    confinement: Option<Confinement>,
}

impl Agents {
    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Arc<RunningAgent>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent that a request names.
    pub(in crate::control) fn get(&self, id: &str) -> Result<Arc<RunningAgent>, ControlError> {
        let running = self.running().get(id).cloned();
        running.ok_or_else(|| ControlError::unknown_agent(id))
    }

    /// A server of this name that lives in the program for one of them.
    pub(in crate::control) fn resident(&self, name: &str) -> Option<Arc<Resident>> {
        let running = self.running();
        running
            .values()
            .find_map(|agent| agent.brought().resident(name))
    }

    /// Lets one in, once what it requires is there.
    pub(in crate::control) async fn start(
        &self,
        program: &Program,
        wanted: StartAgent,
    ) -> Result<StartedAgent, ControlError> {
        if self.running().len() >= MOST {
            let message = format!("a program has {MOST} agents at most at a time");
            return Err(ControlError::invalid(message));
        }
        let part = AgentPart::read(&wanted)?;
        for name in part.own.keys() {
            if is_resident(&part.own[name]) && program.resident(name).is_ok() {
                let message = format!("a server `{name}` lives in the program already");
                return Err(ControlError::invalid(message));
            }
        }
        let (brought, errors) = part.bring(program, &program.brought()).await;
        if let Some((name, why)) = errors.iter().find(|(name, _)| part.own.contains_key(*name)) {
            let message = format!("its server `{}` {why}", shown_text(name));
            return Err(ControlError::invalid(message));
        }
        let own = part
            .own
            .keys()
            .filter_map(|name| ServerName::new(name).ok());
        let provenances = Provenances {
            of_agent: own.collect(),
        };
        let required = wanted.required.iter().map(|name| {
            ServerName::new(name).map_err(|error| ControlError::invalid(error.to_string()))
        });
        let required: Vec<_> = required.collect::<Result<_, _>>()?;
        let shown: Arc<str> = shown_text(&wanted.name).into();
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("a{number}");
        let caller = Caller {
            id: format!("{shown}#{id}").into(),
            ..Caller::new(CallerKind::Agent, &shown)
        };
        let view = part.view(program, &brought);
        // Its questions are about what it sees, which is there once it has started.
        let asker = Arc::new(ProgramAsker {
            link: program.link.clone(),
            asks: wanted.asks.unwrap_or(program.asks),
            view: program.view.clone(),
            provenances: provenances.clone(),
            agent: Some(Arc::from(id.as_str())),
        });
        let spec = AgentSpec {
            view,
            required,
            attach: AttachOptions {
                prompter: asker.prompter(),
                client_handler: Some(asker),
                pool: Some(ToolPool::new()),
                ..AttachOptions::default()
            },
        };
        let attached = program.core.host.agent(caller, spec).await?;
        let snapshot = attached.view().snapshot();
        let named = part.shared.iter().flatten();
        let missing = named.filter(|name| snapshot.server(name).is_none());
        let started = StartedAgent {
            agent: id.clone(),
            servers: server_rows(&snapshot, &provenances, false),
            missing: missing.cloned().collect(),
        };
        let agent = RunningAgent {
            attached,
            provenances,
            part,
            brought: Mutex::new(Arc::new(brought)),
        };
        self.running().insert(id, Arc::new(agent));
        Ok(started)
    }

    /// Ends one; its own servers are gone when this returns, unless a call of it still runs.
    pub(in crate::control) async fn end(&self, id: &str) -> Result<(), ControlError> {
        let agent = self.running().remove(id);
        let agent = agent.ok_or_else(|| ControlError::unknown_agent(id))?;
        if let Some(agent) = Arc::into_inner(agent) {
            agent.attached.detach().await;
        }
        Ok(())
    }

    /// Has all of them see what the program has now.
    pub(in crate::control) async fn follow(&self, program: &Program) {
        let running: Vec<_> = self.running().values().cloned().collect();
        for agent in running {
            let before = agent.brought();
            let (now, _) = agent.part.bring(program, &before).await;
            let spec = agent.part.view(program, &now);
            let view = agent.attached.view();
            program.core.host.change_view(view, spec).await;
            *agent.brought.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(now);
        }
    }
}

impl RunningAgent {
    fn brought(&self) -> Arc<BroughtServers> {
        let brought = self.brought.lock();
        Arc::clone(&brought.unwrap_or_else(PoisonError::into_inner))
    }
}

impl AgentPart {
    fn read(wanted: &StartAgent) -> Result<Self, ControlError> {
        let mut own = Map::new();
        let shared = wanted.servers.as_ref().map(|servers| {
            let mut shared = Vec::new();
            for server in servers {
                match server {
                    AgentServer::Shared(name) => shared.push(name.clone()),
                    AgentServer::Own(servers) => own.extend(servers.clone()),
                }
            }
            shared
        });
        let rules = (!wanted.disallowed_tools.is_empty()).then(|| {
            let rules = json!({ "deny": wanted.disallowed_tools });
            Permissions::parse(&rules, &Origin::Program, Scope::Dynamic)
        });
        if let Some((_, diagnoses)) = &rules
            && let Some(wrong) = diagnoses.first()
        {
            let message = format!("`disallowedTools`: {}", wrong.message);
            return Err(ControlError::invalid(message));
        }
        let confinement = wanted
            .tools
            .as_ref()
            .map(|wanted| -> Result<_, ControlError> {
                let mut tools = ToolPatterns::default();
                for pattern in wanted {
                    let added = tools.add(pattern, &Origin::Program);
                    added.map_err(|error| ControlError::invalid(format!("`tools`: {error}")))?;
                }
                Ok(Confinement {
                    tools: Some(tools),
                    without: ToolPatterns::default(),
                    read_only: false,
                    origin: Origin::Program,
                })
            });
        Ok(Self {
            shared,
            own,
            rules: rules.map(|(rules, _)| rules.narrowing_only()),
            confinement: confinement.transpose()?,
        })
    }

    /// What it brings, and what it has of what the program brought.
    async fn bring(
        &self,
        program: &Program,
        before: &BroughtServers,
    ) -> (BroughtServers, BTreeMap<String, String>) {
        let of_program = program.brought();
        let mut wanted = of_program.wanted().clone();
        if let Some(shared) = &self.shared {
            wanted.retain(|name, _| shared.contains(name));
        }
        wanted.extend(self.own.clone());
        let kept = before.with_residents_of(&of_program);
        let (now, set) = kept
            .replaced_by(wanted, &program.core.setup, &program.link)
            .await;
        (now, set.errors)
    }

    /// What it sees.
    fn view(&self, program: &Program, brought: &BroughtServers) -> ViewSpec {
        let named = self.shared.as_ref().map(|shared| {
            let names = shared.iter().filter_map(|name| ServerName::new(name).ok());
            names.collect()
        });
        brought.in_view(ViewSpec {
            // Nothing of files where the program sees nothing of them.
            servers: if program.is_strict {
                Some(Vec::new())
            } else {
                named
            },
            rules: self.rules.clone(),
            confinement: self.confinement.clone(),
            off: program.off(),
            ..ViewSpec::default()
        })
    }
}

fn is_resident(definition: &Value) -> bool {
    definition["type"] == "sdk"
}
