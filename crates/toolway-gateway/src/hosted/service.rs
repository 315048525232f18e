//! The service over a host: endpoints, and the clients that talk to them.
//!
//! Owns which endpoints there are, letting clients in, and the work that runs beside requests: news
//! for clients, the end of what waits too long. The protocol is `client.rs`'s.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolway::config::ProfileMode;
use toolway::types::{ServerName, limits};
use toolway::{AttachOptions, Attached, Caller, CallerKind, Host, Tracer, View, ViewSpec};

use super::client::{HostedClient, pool_for};
use super::core::ServiceCore;
use super::endpoint::{EndpointClient, EndpointOptions, ServedEndpoint};
use super::lists::ToldLists;
use super::party::ClientParty;
use super::program_side::ProgramSide;
use super::record::ClientRecord;
use super::scope::EndpointScope;
use crate::conversation::{Conversation, Endpoint, NoConversation, Peer, Service};
use crate::http::FrontObserver;
use crate::metrics::{GatewayGauges, Metrics};
use crate::outlet::Outlet;
use crate::seal::SealKeys;

/// How often what waits is looked at.
const SWEEP: Duration = Duration::from_secs(5);

/// How long changes of lists are gathered before clients hear of them.
const GATHERED: Duration = Duration::from_millis(50);

/// The most visitors that are known at a time; one more forgets the longest idle.
const MAX_VISITORS: usize = limits::gateway::VISITORS;

/// How long a visitor is known that does nothing: servers that it shares with nobody run for it.
const VISITOR_STAYS: Duration = Duration::from_mins(30);

/// What is served, and how.
pub struct HostServiceOptions {
    /// What clients of `/mcp` see; all that the owner sees when absent.
    pub view: Option<View>,
    /// How that is served, and `/mcp/<server>`.
    pub endpoint: EndpointOptions,
    /// What profiles show, by name.
    pub profiles: Vec<(Arc<str>, View, EndpointOptions)>,
    /// What values are sealed with.
    pub seal: SealKeys,
    /// What makes spans of requests, where they are wanted.
    pub tracer: Option<Tracer>,
}

/// A host as something that MCP clients can talk to. What must run beside it is its
/// [`ServiceDriver`].
pub struct HostService {
    core: Arc<ServiceCore>,
    /// By what clients ask for; those of single servers are made when they are asked for.
    endpoints: Mutex<HashMap<Endpoint, Arc<ServedEndpoint>>>,
    /// Endpoints of profiles that are served in another form by now, with clients that stayed.
    former: Mutex<Vec<(Arc<str>, Weak<ServedEndpoint>)>>,
    base: View,
    options: EndpointOptions,
    visitors: Mutex<HashMap<Peer, KnownVisitor>>,
    /// All that were let in and are still there, also at endpoints that are gone.
    clients: Mutex<Vec<Weak<HostedClient>>>,
}

/// A profile, as it is to be shown.
pub struct ShownProfile {
    /// What it is called.
    pub name: Arc<str>,
    /// What it shows.
    pub spec: ViewSpec,
    /// In which form.
    pub options: EndpointOptions,
}

/// A client of the modern era, which has no session.
struct KnownVisitor {
    client: Arc<HostedClient>,
    /// When it was last there, as a number that grows.
    last: u64,
    /// The same as a time.
    at: Instant,
}

/// The work beside a service: poll it as long as the service is used.
pub type ServiceDriver = BoxFuture<'static, ()>;

impl HostService {
    /// Serves a host.
    pub fn new(host: Arc<Host>, options: HostServiceOptions) -> (Arc<Self>, ServiceDriver) {
        Self::made(host, options, None)
    }

    /// Serves a host to one program, which talks more than MCP over its pipe.
    pub(crate) fn for_program(
        host: Arc<Host>,
        options: HostServiceOptions,
        program: ProgramSide,
    ) -> (Arc<Self>, ServiceDriver) {
        Self::made(host, options, Some(program))
    }

    fn made(
        host: Arc<Host>,
        options: HostServiceOptions,
        program: Option<ProgramSide>,
    ) -> (Arc<Self>, ServiceDriver) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (seal, tracer) = (options.seal, options.tracer);
        let core = Arc::new(ServiceCore::new(host, seal, tracer, program, sender));
        let owner: &Attached = &core.host;
        let base = options.view.unwrap_or_else(|| owner.view().clone());
        let service = Arc::new(Self {
            core: Arc::clone(&core),
            endpoints: Mutex::default(),
            former: Mutex::default(),
            base,
            options: options.endpoint,
            visitors: Mutex::default(),
            clients: Mutex::default(),
        });
        service.endpoint(&Endpoint::All);
        for (name, view, options) in options.profiles {
            service.add_profile(name, view, options);
        }
        let driver = drive(Arc::clone(&service), receiver);
        (service, Box::pin(driver))
    }

    /// Has `/mcp` and `/mcp/<server>` show something else, to those who are there too. What the owner
    /// sees stays: this is for services that show less.
    pub async fn set_view(&self, spec: ViewSpec, mode: ProfileMode) {
        self.core.host.change_view(&self.base, spec).await;
        self.set_mode(mode);
    }

    /// What becomes from now on of calls at `/mcp` and `/mcp/<server>` that no rule speaks of.
    pub(crate) fn set_mode(&self, mode: ProfileMode) {
        for (endpoint, served) in &*self.endpoints() {
            if !matches!(endpoint, Endpoint::Profile(_)) {
                served.set_mode(mode);
            }
        }
    }

    /// Puts these profiles in the place of those before. Clients that are there see what theirs shows
    /// now, and nothing any more where it is gone; the form of names and results stays for them.
    pub async fn set_profiles(&self, profiles: Vec<ShownProfile>) {
        for (name, served) in self.shown_profiles() {
            let shown = profiles.iter().find(|it| it.name == name);
            let spec = shown.map_or_else(ViewSpec::nothing, |it| it.spec.clone());
            self.core.host.change_view(&served.view, spec).await;
            if let Some(shown) = shown {
                served.set_mode(shown.options.mode);
            }
        }
        let mut gone = Vec::new();
        self.endpoints().retain(|endpoint, served| {
            let Endpoint::Profile(name) = endpoint else {
                return true;
            };
            let same =
                |it: &ShownProfile| it.name == *name && served.options.looks_like(&it.options);
            let is_kept = profiles.iter().any(same);
            if !is_kept {
                gone.push((Arc::clone(name), Arc::downgrade(served)));
            }
            is_kept
        });
        {
            let mut former = self.former();
            former.retain(|(_, served)| served.strong_count() > 0);
            former.extend(gone);
        }
        for ShownProfile {
            name,
            spec,
            options,
        } in profiles
        {
            let is_there = (self.endpoints()).contains_key(&Endpoint::Profile(Arc::clone(&name)));
            if !is_there {
                let view = self.core.host.view(spec).await;
                self.add_profile(name, view, options);
            }
        }
        // Whoever comes for single exchanges is let in anew.
        let current: Vec<_> = self.endpoints().values().cloned().collect();
        let is_current = |client: &HostedClient| {
            let mut current = current.iter();
            current.any(|served| Arc::ptr_eq(served, &client.endpoint))
        };
        self.visitors()
            .retain(|_, visitor| is_current(&visitor.client));
    }

    /// Every endpoint of a profile that somebody has, the former ones too.
    fn shown_profiles(&self) -> Vec<(Arc<str>, Arc<ServedEndpoint>)> {
        let mut shown: Vec<_> = (self.endpoints().iter())
            .filter_map(|(endpoint, served)| match endpoint {
                Endpoint::Profile(name) => Some((Arc::clone(name), Arc::clone(served))),
                _ => None,
            })
            .collect();
        let former = self.former();
        shown.extend((former.iter()).filter_map(|(name, served)| {
            let served = served.upgrade()?;
            Some((Arc::clone(name), served))
        }));
        shown
    }

    fn add_profile(&self, name: Arc<str>, view: View, options: EndpointOptions) {
        let scope = EndpointScope::Merged(options.names);
        let endpoint = Arc::new(ServedEndpoint::new(view, scope, options));
        self.follow_lists(&endpoint);
        self.endpoints().insert(Endpoint::Profile(name), endpoint);
    }

    /// Ends what clients listen to, so that they can be told before they are cut off.
    pub fn end(&self) {
        self.core.end();
    }

    fn endpoints(&self) -> MutexGuard<'_, HashMap<Endpoint, Arc<ServedEndpoint>>> {
        self.endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn former(&self) -> MutexGuard<'_, Vec<(Arc<str>, Weak<ServedEndpoint>)>> {
        self.former.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn visitors(&self) -> MutexGuard<'_, HashMap<Peer, KnownVisitor>> {
        self.visitors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a client asks for, if there is such a thing.
    fn endpoint(&self, wanted: &Endpoint) -> Option<Arc<ServedEndpoint>> {
        let mut endpoints = self.endpoints();
        if let Some(endpoint) = endpoints.get(wanted) {
            return Some(Arc::clone(endpoint));
        }
        let scope = match wanted {
            Endpoint::All => EndpointScope::Merged(self.options.names),
            Endpoint::Server(name) => {
                let name = ServerName::new(name).ok()?;
                // Only configured ones, so that nobody can make any number of endpoints.
                self.base.snapshot().server(name.as_str())?;
                EndpointScope::One(name)
            }
            Endpoint::Profile(_) => return None,
        };
        let endpoint = ServedEndpoint::new(self.base.clone(), scope, self.options.clone());
        let endpoint = Arc::new(endpoint);
        self.follow_lists(&endpoint);
        endpoints.insert(wanted.clone(), Arc::clone(&endpoint));
        Some(endpoint)
    }

    fn follow_lists(&self, endpoint: &Arc<ServedEndpoint>) {
        self.core.beside(Box::pin(follow_lists(
            Arc::downgrade(endpoint),
            Arc::clone(&self.core.metrics),
        )));
    }

    fn let_in(
        &self,
        peer: &Peer,
        unasked: Option<Outlet>,
    ) -> Result<Arc<HostedClient>, NoConversation> {
        let wanted = match (&peer.profile, &peer.endpoint) {
            // A token that is bound to a profile opens nothing else.
            (Some(bound), Endpoint::All) => Endpoint::Profile(Arc::clone(bound)),
            (Some(bound), Endpoint::Profile(asked)) if bound != asked => {
                return Err(NoConversation::NoEndpoint);
            }
            (Some(_), Endpoint::Server(_)) => return Err(NoConversation::NoEndpoint),
            (_, endpoint) => endpoint.clone(),
        };
        let endpoint = self.endpoint(&wanted).ok_or(NoConversation::NoEndpoint)?;
        let caller = Caller {
            id: format!("{}#{}", peer.shown, self.core.next_number()).into(),
            kind: CallerKind::Client,
            principal: Arc::clone(&peer.principal),
            shown: Arc::clone(&peer.shown),
        };
        let pool = pool_for(endpoint.options.tools);
        let attached = self.core.host.attach(
            caller,
            AttachOptions {
                view: Some(endpoint.view.clone()),
                pool: pool.clone(),
                ..AttachOptions::default()
            },
        );
        let party = ClientParty {
            core: Arc::clone(&self.core),
            endpoint: Arc::clone(&endpoint),
            attached,
            sealed_for: sealed_for(peer),
            peer: peer.clone(),
            record: ClientRecord::new(),
            pool,
        };
        let client = Arc::new(HostedClient::new(party, unasked));
        {
            let mut clients = self.known_clients();
            // Looked through when it would have to grow: rarely, however many there are.
            if clients.len() == clients.capacity() {
                clients.retain(|client| client.strong_count() > 0);
            }
            clients.push(Arc::downgrade(&client));
        }
        let known = Arc::downgrade(&client);
        endpoint.enter(known as Weak<dyn EndpointClient>);
        Ok(client)
    }

    /// Who is there.
    pub(super) fn all_clients(&self) -> Vec<Arc<HostedClient>> {
        self.known_clients()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// What is served.
    pub(super) fn host(&self) -> &Host {
        &self.core.host
    }

    fn known_clients(&self) -> MutexGuard<'_, Vec<Weak<HostedClient>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sweep(&self) {
        self.visitors()
            .retain(|_, visitor| visitor.at.elapsed() < VISITOR_STAYS || !visitor.client.is_idle());
        for client in self.all_clients() {
            client.sweep();
        }
    }
}

/// What is seen of it from outside.
impl FrontObserver for HostService {
    fn readiness(&self) -> Result<(), String> {
        if self.base.snapshot().is_settled() {
            return Ok(());
        }
        Err("servers are still connecting".to_owned())
    }

    fn write_metrics(&self, out: &mut String) {
        let visitors = self.visitors().len();
        let clients = self.all_clients();
        let gauges = GatewayGauges {
            clients: clients.len(),
            legacy_sessions: clients.len() - visitors.min(clients.len()),
            modern_sessions: visitors,
            parked_calls: clients.iter().map(|client| client.parked()).sum(),
            open_questions: self.core.host.questions().len(),
            ended_questions: self.core.host.ended_questions(),
        };
        let metrics = &self.core.metrics;
        let spans = self.core.tracer.as_ref().map(Tracer::counts);
        out.push_str(&metrics.render(&self.base.snapshot(), gauges, spans));
    }
}

impl Service for HostService {
    fn open(&self, peer: &Peer, unasked: Outlet) -> Result<Arc<dyn Conversation>, NoConversation> {
        let client = self.let_in(peer, Some(unasked))?;
        Ok(client)
    }

    fn visit(&self, peer: &Peer) -> Result<Arc<dyn Conversation>, NoConversation> {
        let last = self.core.next_number();
        if let Some(visitor) = self.visitors().get_mut(peer) {
            visitor.last = last;
            visitor.at = Instant::now();
            return Ok(Arc::clone(&visitor.client) as _);
        }
        let client = self.let_in(peer, None)?;
        let mut visitors = self.visitors();
        if visitors.len() >= MAX_VISITORS {
            let idle = visitors
                .iter()
                .filter(|(_, visitor)| visitor.client.is_idle());
            let oldest = idle.min_by_key(|(_, visitor)| visitor.last);
            let Some(oldest) = oldest.map(|(peer, _)| peer.clone()) else {
                return Err(NoConversation::Crowded);
            };
            visitors.remove(&oldest);
        }
        // Another exchange of the same may have been quicker.
        let visitor = visitors
            .entry(peer.clone())
            .or_insert_with(|| KnownVisitor {
                client,
                last,
                at: Instant::now(),
            });
        Ok(Arc::clone(&visitor.client) as _)
    }
}

/// Whom values are sealed for. One principal may have tokens for several profiles, and what was given
/// out under one is of no use under another.
fn sealed_for(peer: &Peer) -> String {
    match &peer.profile {
        None => peer.principal.to_string(),
        // As JSON, no principal and profile together are like another principal.
        Some(profile) => serde_json::json!([&*peer.principal, &**profile]).to_string(),
    }
}

/// Runs what is to run beside requests, until the service is gone.
async fn drive(
    service: Arc<HostService>,
    mut incoming: mpsc::UnboundedReceiver<BoxFuture<'static, ()>>,
) {
    let mut running = FuturesUnordered::new();
    let mut sweep = tokio::time::interval(SWEEP);
    loop {
        tokio::select! {
            Some(work) = incoming.recv() => running.push(work),
            Some(()) = running.next() => {}
            _ = sweep.tick() => service.sweep(),
        }
    }
}

/// Tells the clients of an endpoint when its lists change, as long as there is such an endpoint.
async fn follow_lists(endpoint: Weak<ServedEndpoint>, metrics: Arc<Metrics>) {
    let begin = endpoint.upgrade().map(|it| (it.view.watch(), it.lists()));
    let Some((mut snapshots, mut told)) = begin else {
        return;
    };
    while snapshots.changed().await.is_ok() {
        tokio::time::sleep(GATHERED).await;
        snapshots.borrow_and_update();
        let Some(endpoint) = endpoint.upgrade() else {
            return;
        };
        let lists = endpoint.lists();
        if Arc::ptr_eq(&lists, &told) {
            continue;
        }
        let clients = endpoint.clients();
        // With nobody to tell, nothing needs to be written: whoever comes asks for the lists then.
        if !clients.is_empty() {
            for list in ToldLists::of(&told).update(&lists) {
                metrics.list_changed(list);
            }
        }
        for client in clients {
            client.lists_changed(&lists);
        }
        told = lists;
    }
}
