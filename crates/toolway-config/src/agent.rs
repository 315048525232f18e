//! Agent files: which servers and tools an agent has, in Markdown files with front matter.
//!
//! Owns the typed form of such a file, and the plan of the servers that it brings. They are admitted
//! as every server is: by who wrote the file, by approval, by the organisation's lists. Finding files
//! is `agent/place.rs`, reading them `agent/read.rs`. Does not own what comes of it (`toolway`, the
//! command line).
//!
//! Invariant: a file only narrows what the person has. What it says of tools takes away; its own
//! servers need the word that any server of its author needs, given for its definition in this file.

mod front_matter;
mod place;
mod read;

use std::path::Path;
use std::sync::Arc;

use toolway_types::name::{as_word, shell_word};
use toolway_types::{Author, Diagnosis, Origin, Scope, ServerName, text};

pub use self::place::{AgentPlace, FoundAgent, agents, find_agent};
use crate::Environment;
use crate::admission::admit;
use crate::environment::path_key;
use crate::load::{Flags, Layer, LayerLocation, load_only};
use crate::merge::merge;
use crate::permission::{Confinement, RuleMiss, ToolPatterns, miss};
use crate::plan::{Plan, ServerVerdict};
use crate::raw::{FileSettings, RawServer};

/// What an agent file says.
#[derive(Debug, Clone)]
pub struct Agent {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Where it stands.
    pub origin: Origin,
    /// The configured servers that it has, by name; all of them when it says nothing of servers.
    pub servers: Option<Vec<ServerName>>,
    /// The only tools that it has; all when absent.
    pub tools: Option<ToolPatterns>,
    /// Tools that it does not have.
    pub disallowed: ToolPatterns,
    /// The servers without which it does not start.
    pub required: Vec<ServerName>,
    /// What is wrong with it. Faults of its own servers stand with those, in the plan.
    pub diagnoses: Vec<Diagnosis>,
    /// Who wrote it.
    pub author: Author,
    /// Where each of its configured servers is named.
    named_at: Vec<Origin>,
    own: Vec<RawServer>,
    place: AgentPlace,
}

/// How a server of the agent that is asked for by this word is approved.
pub fn approval_hint(server: &ServerName, word: &str) -> String {
    let (server, word) = (as_word(server.as_str()), shell_word(word));
    format!("see it with `toolway approve {server} --agent {word}`")
}

/// What is wrong with the agents that can be asked for by name.
pub fn agent_findings(environment: &Environment, flags: &Flags, plan: &Plan) -> Vec<Diagnosis> {
    let mut findings = Vec::new();
    let mut seen: Vec<FoundAgent> = Vec::new();
    for found in agents(environment) {
        let read = agent(environment, found.place.clone());
        let shown = found.place.path.to_string_lossy();
        let first = seen.iter().find(|first| first.name == found.name);
        match read {
            Ok(agent) => {
                if let Some(first) = first {
                    let message = format!(
                        "the agent `{}` is not found by its name: `{}` is",
                        text::clean_line(&found.name),
                        first.place.path.display()
                    );
                    let remark = Diagnosis::warning(message).at(agent.origin.clone());
                    let hint = format!("name it by its path: `{}`", shell_word(&shown));
                    findings.push(remark.hint(hint));
                }
                let own = agent.own_plan(environment, flags);
                let word = if first.is_some() {
                    &*shown
                } else {
                    &found.name
                };
                findings.extend(agent.findings(&own, plan, word));
            }
            // What lies in such a folder need not be an agent's: only what begins like one is.
            Err(fault) if fault.origin.as_ref().and_then(Origin::line) != Some(1) => {
                findings.push(fault);
            }
            Err(_) => {}
        }
        seen.push(found);
    }
    findings
}

/// Reads an agent file. An error means that nothing of it could be read.
pub fn agent(environment: &Environment, place: AgentPlace) -> Result<Agent, Diagnosis> {
    read::read(environment, place)
}

impl Agent {
    /// Its file.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// The names of the servers that it brings itself.
    pub fn own_names(&self) -> impl Iterator<Item = &ServerName> {
        self.own.iter().map(|server| &server.name)
    }

    /// The plan of the servers that it brings itself: none else is in it, and every setting, rule and
    /// policy that holds here is.
    pub fn own_plan(&self, environment: &Environment, flags: &Flags) -> Plan {
        let place = LayerLocation {
            directory: self.place.directory().to_owned(),
            file: path_key(&self.place.path),
            plugin_root: None,
            agent: Some(self.place.path.clone()),
        };
        let layer = Layer {
            scope: if self.author == Author::Repository {
                Scope::Project
            } else {
                Scope::Dynamic
            },
            author: self.author,
            order: 0,
            place: Arc::new(place),
            servers: self.own.clone(),
            settings: FileSettings::default(),
        };
        let mut plan = admit(merge(load_only(environment, flags, layer)));
        if self.author != Author::Repository {
            // What was allowed to a name was allowed to another definition. A repository's servers
            // have what was given for theirs.
            let named = plan.servers.iter();
            let named: Vec<_> = named.map(|it| (it.name.clone(), it.transport)).collect();
            plan.permissions.set_apart(named);
        }
        plan
    }

    /// What it is kept to, if it is.
    pub fn confinement(&self) -> Option<Confinement> {
        let is_kept = self.tools.is_some() || !self.disallowed.is_empty();
        is_kept.then(|| Confinement {
            tools: self.tools.clone(),
            without: self.disallowed.clone(),
            read_only: false,
            origin: self.origin.clone(),
        })
    }

    /// All that is to be said of it, its own servers included; `own` is their plan, `plan` what the
    /// person has, and `word` what it is asked for by.
    pub fn findings(&self, own: &Plan, plan: &Plan, word: &str) -> Vec<Diagnosis> {
        let mut findings = self.diagnoses.clone();
        findings.extend(self.remarks(plan));
        for server in &own.servers {
            findings.extend(server.diagnoses.iter().cloned());
            if let ServerVerdict::PendingApproval { reason, .. } = &server.verdict {
                let waits = Diagnosis::warning(reason).of(&server.name);
                let waits = waits.at(server.origin.clone());
                findings.push(waits.hint(approval_hint(&server.name, word)));
            }
        }
        findings
    }

    /// What it names that is not there: servers that nobody configured, and tools of such. `plan` is
    /// what the person has.
    pub fn remarks(&self, plan: &Plan) -> Vec<Diagnosis> {
        let mut remarks = Vec::new();
        let named = self.servers.iter().flatten();
        for (name, origin) in named.zip(&self.named_at) {
            if plan.winner(name.as_str()).is_some() {
                continue;
            }
            let shown = text::clean_line(name.as_str());
            let remark = Diagnosis::error(format!(
                "`mcpServers` names `{shown}`, which is not configured"
            ));
            let remark = remark.at(origin.clone());
            remarks.push(match plan.suggest(name.as_str()) {
                Some(meant) => remark.hint(format!("did you mean `{meant}`?")),
                None => remark.hint(format!(
                    "add it with `toolway add {shown} -- <command>`, or write its definition below its \
                     name"
                )),
            });
        }
        let planned = plan.servers.iter().map(|server| &server.name);
        let has = |name: &&ServerName| self.servers.as_ref().is_none_or(|it| it.contains(name));
        let all: Vec<&ServerName> = planned.filter(has).chain(self.own_names()).collect();
        let tools = self.tools.iter().flat_map(ToolPatterns::iter);
        let tools = tools.map(|(pattern, origin)| (pattern, "tools", origin));
        let others = self.disallowed.iter();
        let others = others.map(|(pattern, origin)| (pattern, "disallowedTools", origin));
        for (pattern, key, origin) in tools.chain(others) {
            let said = format!("`{}` in `{key}`", text::clean_line(pattern));
            if read::is_nearly_a_tool(pattern) {
                let remark = Diagnosis::warning(format!("{said} names no server's tool"));
                let hint = "write `mcp__server`, `mcp__server__*` or `mcp__server__tool`";
                remarks.push(remark.at(origin.clone()).hint(hint));
                continue;
            }
            let (message, hint) = match miss(pattern, &all) {
                None => continue,
                Some(RuleMiss::Form(meant) | RuleMiss::Slip(meant)) => (
                    format!("{said} names no tool of a server that the agent has"),
                    format!("did you mean `{}`?", text::clean_line(&meant)),
                ),
                Some(RuleMiss::Nobody(server)) => {
                    let server = text::clean_line(&server);
                    (
                        format!("{said} speaks of `{server}`, which the agent does not have"),
                        format!("add `- {server}` to `mcpServers`, or take it out here"),
                    )
                }
            };
            let remark = Diagnosis::warning(message).at(origin.clone());
            remarks.push(remark.hint(hint));
        }
        remarks
    }
}
