//! The servers that a program brings, beside those of files.
//!
//! Owns what is there of them at a moment, what a new set changes, and the part of a view that they
//! are. What may connect is judged by the plan that is made of them (`UserSetup::brought`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolway::config::Plan;
use toolway::types::ServerName;
use toolway::{InProcessServer, UserSetup, ViewSpec};

use super::messages::ServersSet;
use super::resident::Resident;
use crate::client_questions::ClientQuestions;
use crate::outlet::Outlet;

/// The key of an entry that says beforehand what a server in the program answers at the start.
const MANIFEST: &str = "manifest";

/// What a program brought, or an agent.
#[derive(Default)]
pub(super) struct BroughtServers {
    /// As they were wanted, whether or not they are there.
    wanted: Map<String, Value>,
    plan: Arc<Plan>,
    residents: BTreeMap<ServerName, ResidentEntry>,
}

/// One that lives in the program.
#[derive(Clone)]
struct ResidentEntry {
    definition: Value,
    resident: Arc<Resident>,
    object: InProcessServer,
}

/// How servers in the program are reached.
#[derive(Clone)]
pub(super) struct ResidentLink {
    pub(super) questions: Arc<ClientQuestions>,
    pub(super) outlet: Outlet,
}

impl BroughtServers {
    /// Those of a new set, and what that changes. What is equal is the same as before.
    pub(super) async fn replaced_by(
        &self,
        wanted: Map<String, Value>,
        setup: &UserSetup,
        link: &ResidentLink,
    ) -> (Self, ServersSet) {
        let entries = wanted.iter();
        let entries = entries
            .map(|(name, it)| (name.clone(), entry(it)))
            .collect();
        let brought = setup.brought(entries).await;
        let mut residents = BTreeMap::new();
        for server in &brought.plan.servers {
            let Some(definition) = wanted.get(server.name.as_str()) else {
                continue;
            };
            if is_resident(definition) {
                let name = &server.name;
                let kept = self.residents.get(name);
                let kept = kept.filter(|kept| kept.definition == *definition).cloned();
                let entry = kept.unwrap_or_else(|| ResidentEntry::new(name, definition, link));
                residents.insert(name.clone(), entry);
            }
        }
        let now = Self {
            wanted,
            plan: Arc::new(brought.plan),
            residents,
        };
        let set = ServersSet {
            added: now.not_in(self),
            removed: self.not_in(&now),
            errors: brought.errors,
        };
        (now, set)
    }

    /// The set as it was wanted.
    pub(super) fn wanted(&self) -> &Map<String, Value> {
        &self.wanted
    }

    /// The plan of those that are there.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The same, with those that live in the program for another.
    pub(super) fn with_residents_of(&self, other: &Self) -> Self {
        let mut residents = other.residents.clone();
        residents.extend(self.residents.clone());
        Self {
            wanted: self.wanted.clone(),
            plan: Arc::clone(&self.plan),
            residents,
        }
    }

    /// The one of this name that lives in the program.
    pub(super) fn resident(&self, name: &str) -> Option<Arc<Resident>> {
        let mut residents = self.residents.iter();
        let found = residents.find(|(resident, _)| resident.as_str() == name);
        found.map(|(_, entry)| Arc::clone(&entry.resident))
    }

    /// A view with them in it.
    pub(super) fn in_view(&self, spec: ViewSpec) -> ViewSpec {
        let objects = self.residents.iter();
        let objects = objects.map(|(name, entry)| (name.clone(), Arc::clone(&entry.object)));
        ViewSpec {
            own: Some(Arc::clone(&self.plan)),
            objects: objects.collect(),
            ..spec
        }
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &ServerName> {
        self.plan.servers.iter().map(|server| &server.name)
    }

    /// Those that are not in another set, or are defined in another way there.
    fn not_in(&self, other: &Self) -> Vec<String> {
        let is_same = |name: &ServerName| {
            other.plan.winner(name.as_str()).is_some()
                && other.wanted.get(name.as_str()) == self.wanted.get(name.as_str())
        };
        let names = self.names().filter(|name| !is_same(name));
        names.map(ToString::to_string).collect()
    }
}

impl ResidentEntry {
    fn new(name: &ServerName, definition: &Value, link: &ResidentLink) -> Self {
        let questions = Arc::clone(&link.questions);
        let manifest = definition.get(MANIFEST);
        let resident = Resident::new(name.as_str(), manifest, questions, link.outlet.clone());
        Self {
            definition: definition.clone(),
            object: resident.object(),
            resident,
        }
    }
}

fn is_resident(definition: &Value) -> bool {
    definition["type"] == "sdk"
}

/// An entry as a file would have it.
fn entry(definition: &Value) -> Value {
    let mut entry = definition.clone();
    if is_resident(definition)
        && let Value::Object(members) = &mut entry
        && members.remove(MANIFEST).is_some()
    {
        // What is known beforehand is how it greets in the legacy era.
        let era = members.entry("protocol");
        era.or_insert_with(|| "legacy".into());
    }
    entry
}
