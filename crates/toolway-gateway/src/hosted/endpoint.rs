//! One endpoint: a view of the host, and how it is shown.
//!
//! Owns which servers and names belong to an endpoint, its lists of this moment, and who is told when
//! they change. Conversations are `client.rs`'s.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use toolway::catalog::{CatalogPrompt, CatalogTool};
use toolway::config::{NameForm, Profile, ProfileMode, ResultForm};
use toolway::types::{ConnectionState, Era, ServerFacts, ServerName, ToolKey};
use toolway::view::skill;
use toolway::{Catalog, Consent, HostSnapshot, ServerSnapshot, ToolTarget, View};

use super::lists::ServedLists;
use super::names;
use super::own_tools::OwnTools;
use super::scope::EndpointScope;

/// How an endpoint is served.
#[derive(Debug, Clone, Default)]
pub struct EndpointOptions {
    /// How tools and prompts are called.
    pub names: NameForm,
    /// What becomes of results.
    pub results: ResultForm,
    /// Which tools a client sees at first.
    pub tools: ToolOffer,
    /// Which of the host's own tools there are.
    pub own_tools: OwnTools,
    /// What becomes of a call that no rule speaks of.
    pub mode: ProfileMode,
    /// How long the first lists wait for servers that are still connecting, counted from when the
    /// endpoint began; a quarter of a second when absent.
    pub wait: Option<Duration>,
}

impl EndpointOptions {
    /// As a profile says.
    pub fn of_profile(profile: &Profile) -> Self {
        Self {
            names: profile.names,
            results: profile.results,
            tools: if profile.tool_search {
                ToolOffer::Search
            } else {
                ToolOffer::All
            },
            own_tools: OwnTools::default(),
            mode: profile.mode,
            wait: None,
        }
    }

    /// Whether an endpoint that is served like this looks the same, whatever may be called there.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        let look = |it: &Self| (it.names, it.results, it.tools, it.own_tools);
        look(self) == look(other)
    }
}

/// Which tools a client sees at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolOffer {
    /// All of them.
    #[default]
    All,
    /// Few, and one to find the others.
    Search,
}

/// How long a client that asks for a list waits for servers that are still connecting for the first
/// time: late ones are announced.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a client of one server waits for it, and one that names what any server on its way may
/// have, for all of them.
const PATIENCE_FOR_ONE: Duration = Duration::from_secs(30);

/// A client, as its endpoint knows it.
pub(super) trait EndpointClient: Send + Sync {
    /// Lists of the endpoint may have changed.
    fn lists_changed(&self, lists: &ServedLists);

    /// Time has passed: what waits for too long ends.
    fn sweep(&self);

    /// How many of its calls are parked.
    fn parked(&self) -> usize;
}

/// An endpoint, shared by its clients.
pub(super) struct ServedEndpoint {
    pub(super) view: View,
    pub(super) scope: EndpointScope,
    pub(super) options: EndpointOptions,
    /// What becomes of a call that no rule speaks of, as it is now.
    mode: Mutex<ProfileMode>,
    lists: Mutex<Arc<ServedLists>>,
    clients: Mutex<Vec<Weak<dyn EndpointClient>>>,
    began: tokio::time::Instant,
}

impl ServedEndpoint {
    pub(super) fn new(view: View, scope: EndpointScope, options: EndpointOptions) -> Self {
        let lists = ServedLists::new(view.snapshot(), scope.clone(), options.own_tools);
        Self {
            view,
            scope,
            mode: Mutex::new(options.mode),
            options,
            lists: Mutex::new(Arc::new(lists)),
            clients: Mutex::default(),
            began: tokio::time::Instant::now(),
        }
    }

    /// Who says yes where no rule does.
    pub(super) fn consent(&self) -> Consent {
        let mode = *self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        mode.into()
    }

    /// Another mode holds from now on, for those who are there too.
    pub(super) fn set_mode(&self, mode: ProfileMode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// The lists of this moment.
    pub(super) fn lists(&self) -> Arc<ServedLists> {
        let snapshot = self.view.snapshot();
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.snapshot.catalog.revision != snapshot.catalog.revision {
            *lists = Arc::new(ServedLists::new(
                snapshot,
                self.scope.clone(),
                self.options.own_tools,
            ));
        }
        Arc::clone(&lists)
    }

    /// Waits for servers that are on their way, but not for long: clients give up a server that
    /// does not greet them.
    pub(super) async fn greetable(&self) {
        self.settled_within(PATIENCE).await;
    }

    /// Waits for servers that are on their way, as long as lists may take.
    pub(super) async fn listable(&self) {
        let wait = self.options.wait.unwrap_or(PATIENCE);
        self.settled_within(wait).await;
    }

    /// Waits for all servers that are on their way: any of them may have what a client names. False
    /// if there are none.
    pub(super) async fn all_came(&self) -> bool {
        let snapshot = self.view.snapshot();
        let is_awaited = self.scope.is_merged() && !snapshot.is_settled();
        if is_awaited {
            let _ = tokio::time::timeout(PATIENCE_FOR_ONE, self.view.settled()).await;
        }
        is_awaited
    }

    async fn settled_within(&self, patience: Duration) {
        match &self.scope {
            EndpointScope::Merged(_) => {
                let until = self.began + patience;
                let _ = tokio::time::timeout_at(until, self.view.settled()).await;
            }
            EndpointScope::One(server) => {
                let ready = self.view.ready(server.as_str());
                let _ = tokio::time::timeout(PATIENCE_FOR_ONE, ready).await;
            }
        }
    }

    /// The tool that a client means.
    pub(super) fn tool<'a>(&self, catalog: &'a Catalog, name: &str) -> Option<&'a CatalogTool> {
        match &self.scope {
            EndpointScope::One(server) => {
                let key = ToolKey::new(server.clone(), name);
                catalog.find(&ToolTarget::Key(key)).ok()
            }
            EndpointScope::Merged(names) => {
                let cut = || self.lists().names().tool(name).cloned();
                let found = names::tool_named(catalog, *names, name, cut);
                // The whole of a name that was cut, or the one that rules know.
                found.or_else(|| {
                    catalog
                        .find(&ToolTarget::Exposed(names::exposed(name)))
                        .ok()
                })
            }
        }
    }

    /// What clients know a tool by; nothing where they do not see it.
    pub(super) fn shown_tool(&self, catalog: &Catalog, tool: &CatalogTool) -> Option<String> {
        match &self.scope {
            EndpointScope::One(server) => {
                let name = catalog.alias(&tool.key).unwrap_or(&tool.key.tool);
                (tool.key.server == *server).then(|| name.to_owned())
            }
            EndpointScope::Merged(names) => {
                Some(self.lists().names().of_tool(tool, *names).into_owned())
            }
        }
    }

    /// The prompt that a client means.
    pub(super) fn prompt<'a>(&self, catalog: &'a Catalog, name: &str) -> Option<&'a CatalogPrompt> {
        match &self.scope {
            EndpointScope::One(server) => catalog.prompt(server, name),
            EndpointScope::Merged(names) => names::prompt_named(catalog, *names, name, || {
                self.lists().names().prompt(name).cloned()
            }),
        }
    }

    /// The server that a client means by the address of a resource or a template, and what that
    /// server calls it.
    pub(super) fn resource<'a>(&self, address: &'a str) -> Option<(ServerName, &'a str)> {
        match &self.scope {
            EndpointScope::One(server) => Some((server.clone(), address)),
            EndpointScope::Merged(_) => {
                let lists = self.lists();
                let with_resources = connected(&lists.snapshot)
                    .filter(|(_, facts)| facts.capabilities["resources"].is_object())
                    .map(|(server, _)| server.clone());
                // One that is on its way may have any, and one that rests and was not asked yet.
                let is_unknown = |it: &&Arc<ServerSnapshot>| {
                    it.is_pending() || (it.is_resting() && it.facts().is_none())
                };
                let awaited = lists.snapshot.servers.iter().filter(is_unknown);
                let awaited = awaited.map(|server| server.name.clone());
                let servers: Vec<ServerName> = with_resources.chain(awaited).collect();
                let catalog = &lists.snapshot.catalog;
                names::resource_at(catalog, lists.addresses(), &servers, address)
                    .or_else(|| explicitly_failed(&lists.snapshot, address))
            }
        }
    }

    /// A client takes part.
    pub(super) fn enter(&self, client: Weak<dyn EndpointClient>) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(client);
    }

    /// Those who are there.
    pub(super) fn clients(&self) -> Vec<Arc<dyn EndpointClient>> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.iter().filter_map(Weak::upgrade).collect()
    }
}

/// The servers that are connected, or rest, and what is known of them.
pub(super) fn connected(
    snapshot: &HostSnapshot,
) -> impl Iterator<Item = (&ServerName, &ServerFacts)> {
    let servers = snapshot.servers.iter();
    servers.filter_map(|server| Some((&server.name, server.facts()?)))
}

/// The failed server that an address names: it may be tried again, and the client hears what is
/// wrong with it.
fn explicitly_failed<'a>(
    snapshot: &HostSnapshot,
    address: &'a str,
) -> Option<(ServerName, &'a str)> {
    let mut failed = Vec::new();
    for server in &snapshot.servers {
        if matches!(server.state, ConnectionState::Failed(_)) {
            failed.push(server.name.clone());
        }
    }
    let (server, own) = names::explicit(&failed, address)?;
    Some((server.clone(), own))
}

/// Whether a server has skills.
pub(super) fn has_skills(facts: &ServerFacts) -> bool {
    facts.capabilities["extensions"][skill::EXTENSION].is_object()
}

/// What is known of a server that is connected, or rests.
pub(super) fn facts<'a>(
    snapshot: &'a HostSnapshot,
    server: &ServerName,
) -> Option<&'a ServerFacts> {
    snapshot.server(server.as_str())?.facts()
}

/// The era of a server; legacy where it is not connected.
pub(super) fn era_of(snapshot: &HostSnapshot, server: &ServerName) -> Era {
    facts(snapshot, server).map_or(Era::Legacy, |facts| facts.era)
}
