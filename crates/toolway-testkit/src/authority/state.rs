//! What the authority remembers: switches, clients, codes, tokens and their families.
//!
//! Owns the locks and the clock. Every answer is made with one look at the memory, so that of two
//! requests with one refresh token exactly one is first.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::http::OpenSockets;
use super::jwt::TestKey;
use super::record::{AuthorityReport, RecordedRequest, RequestedParty};
use super::{AuthoritySettings, CANARY, Switch, jwt};

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AuthorityUrls {
    pub(super) issuer: String,
    pub(super) resource_origin: String,
    pub(super) resource: String,
    pub(super) attacker: String,
}

/// A client as a server knows it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AuthorityClient {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) secret_ends: Option<u64>,
    pub(super) method: Option<String>,
    pub(super) jwks: Option<Value>,
    pub(super) redirect_uris: Vec<String>,
}

/// What was granted, and to which client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IssuedGrant {
    pub(super) party: RequestedParty,
    pub(super) client: String,
    pub(super) subject: String,
    pub(super) scope: String,
    pub(super) resource: Option<String>,
    pub(super) nonce: Option<String>,
    /// The key it is bound to.
    pub(super) jkt: Option<String>,
    /// What falls together.
    pub(super) family: u64,
}

/// A code on its way to a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IssuedCode {
    pub(super) grant: IssuedGrant,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    pub(super) ends: u64,
    pub(super) used: bool,
}

/// An access token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AccessToken {
    pub(super) grant: IssuedGrant,
    pub(super) ends: u64,
}

/// A refresh token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefreshToken {
    pub(super) grant: IssuedGrant,
    pub(super) ends: u64,
    pub(super) used_at: Option<u64>,
}

/// What a user said about a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceDecision {
    Open,
    Allowed,
    Denied,
}

/// A device that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingDevice {
    pub(super) grant: IssuedGrant,
    pub(super) user_code: String,
    pub(super) ends: u64,
    pub(super) interval_ms: u64,
    pub(super) polls: u32,
    pub(super) last_poll: Option<u64>,
    pub(super) decision: DeviceDecision,
}

/// Everything between two requests.
#[derive(Default)]
pub(super) struct AuthorityMemory {
    pub(super) report: AuthorityReport,
    pub(super) seen: Vec<RecordedRequest>,
    pub(super) clients: HashMap<(RequestedParty, String), AuthorityClient>,
    pub(super) codes: HashMap<String, IssuedCode>,
    pub(super) access: HashMap<String, AccessToken>,
    pub(super) refresh: HashMap<String, RefreshToken>,
    pub(super) revoked: HashSet<u64>,
    pub(super) devices: HashMap<String, PendingDevice>,
    /// Names of assertions and proofs that were used.
    pub(super) used: HashSet<String>,
    pub(super) nonces: HashSet<String>,
    pub(super) scope_steps: u32,
    next: u64,
    ahead: Duration,
}

impl AuthorityMemory {
    /// A number that was not used before.
    pub(super) fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Milliseconds since the epoch, as this authority's clock shows them.
    pub(super) fn now(&self) -> u64 {
        let since = UNIX_EPOCH.elapsed().unwrap_or_default() + self.ahead;
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Moves the clock.
    pub(super) fn advance(&mut self, by: Duration) {
        self.ahead += by;
    }

    /// Takes a whole family back because something was used twice.
    pub(super) fn revoke(&mut self, family: u64) {
        if self.revoked.insert(family) {
            self.report.families_revoked += 1;
        }
    }

    /// The grant of an access token that is good now.
    pub(super) fn good_access(&self, token: &str) -> Option<&IssuedGrant> {
        let access = self.access.get(token)?;
        let good = access.ends > self.now() && !self.revoked.contains(&access.grant.family);
        good.then_some(&access.grant)
    }

    /// Whether a refresh token would be taken.
    pub(super) fn good_refresh(&self, token: &str) -> bool {
        self.refresh.get(token).is_some_and(|refresh| {
            refresh.used_at.is_none()
                && refresh.ends > self.now()
                && !self.revoked.contains(&refresh.grant.family)
        })
    }
}

#[derive(Default)]
struct SwitchSet {
    on: BTreeSet<Switch>,
    fired: BTreeSet<Switch>,
}

/// An authority, shared by its threads.
pub(super) struct AuthorityState {
    pub(super) settings: AuthoritySettings,
    pub(super) places: AuthorityUrls,
    pub(super) key: TestKey,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    pub(super) sockets: OpenSockets,
    switches: Mutex<SwitchSet>,
    memory: Mutex<AuthorityMemory>,
    stopped: Mutex<bool>,
    stop: Condvar,
    /// Paths at which requests wait.
    held: Mutex<Vec<String>>,
    released: Condvar,
}

impl AuthorityState {
    pub(super) fn new(
        settings: AuthoritySettings,
        places: AuthorityUrls,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Self {
        let mut memory = AuthorityMemory::default();
        for known in &settings.clients {
            let client = AuthorityClient {
                id: known.id.clone(),
                secret: known.secret.clone(),
                secret_ends: None,
                method: known.method.clone(),
                jwks: known.jwks.clone(),
                redirect_uris: known.redirect_uris.clone(),
            };
            memory
                .clients
                .insert((RequestedParty::Issuer, known.id.clone()), client);
        }
        let state = Self {
            places,
            key: TestKey::new(),
            tls,
            sockets: OpenSockets::default(),
            switches: Mutex::default(),
            memory: Mutex::new(memory),
            stopped: Mutex::new(false),
            stop: Condvar::new(),
            held: Mutex::default(),
            released: Condvar::new(),
            settings,
        };
        state.set(&state.settings.switches);
        state
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, AuthorityMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn switches(&self) -> MutexGuard<'_, SwitchSet> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exactly these from now on; what happens once happens again.
    pub(super) fn set(&self, switches: &[Switch]) {
        *self.switches() = SwitchSet {
            on: switches.iter().copied().collect(),
            fired: BTreeSet::new(),
        };
    }

    /// One more, or one less.
    pub(super) fn turn(&self, switch: Switch, on: bool) {
        let mut switches = self.switches();
        switches.fired.remove(&switch);
        if on {
            switches.on.insert(switch);
        } else {
            switches.on.remove(&switch);
        }
    }

    pub(super) fn on(&self, switch: Switch) -> bool {
        self.switches().on.contains(&switch)
    }

    /// The first of these that is on.
    pub(super) fn first_on<T: Copy>(&self, choices: &[(Switch, T)]) -> Option<T> {
        let switches = self.switches();
        let mut choices = choices.iter();
        choices
            .find(|(switch, _)| switches.on.contains(switch))
            .map(|(_, chosen)| *chosen)
    }

    /// Whether it is on and did not happen yet.
    pub(super) fn once(&self, switch: Switch) -> bool {
        let mut switches = self.switches();
        switches.on.contains(&switch) && switches.fired.insert(switch)
    }

    pub(super) fn stopped(&self) -> bool {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn end(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.notify_all();
        self.held().clear();
        self.released.notify_all();
        self.sockets.close();
    }

    fn held(&self) -> MutexGuard<'_, Vec<String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on requests at a path that ends so wait.
    pub(super) fn hold(&self, path: &str) {
        self.held().push(path.to_owned());
    }

    /// They go on.
    pub(super) fn release(&self, path: &str) {
        self.held().retain(|held| held != path);
        self.released.notify_all();
    }

    /// Waits as long as requests at this path are to wait.
    pub(super) fn wait_until_released(&self, path: &str) {
        let waits = |held: &mut Vec<String>| held.iter().any(|held| path.ends_with(held.as_str()));
        drop(self.released.wait_while(self.held(), waits));
    }

    /// Waits a moment; whether the authority was stopped meanwhile.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .stop
            .wait_timeout_while(stopped, time, |stopped| !*stopped);
        let (stopped, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *stopped
    }

    pub(super) fn record(&self, seen: &RecordedRequest) {
        let mut memory = self.memory();
        match seen.party {
            RequestedParty::Attacker => memory.report.attacker_requests += 1,
            RequestedParty::Resource if seen.path == self.settings.resource_path => {
                memory.report.mcp_requests += 1;
            }
            _ => {}
        }
        if seen.path.contains("/.well-known/") {
            memory.report.metadata += 1;
        }
        memory.seen.push(seen.clone());
    }

    /// The issuer that this party is.
    pub(super) fn issuer(&self, party: RequestedParty) -> &str {
        match party {
            RequestedParty::Attacker => &self.places.attacker,
            RequestedParty::Issuer | RequestedParty::Resource => &self.places.issuer,
        }
    }

    /// Which of both servers the resource believes now.
    pub(super) fn believed(&self) -> RequestedParty {
        if self.on(Switch::Migrated) || self.on(Switch::MixUp) {
            RequestedParty::Attacker
        } else {
            RequestedParty::Issuer
        }
    }
}

/// A secret with the canary in it.
pub(super) fn secret(kind: &str) -> String {
    format!("{kind}-{CANARY}-{}", jwt::random(16))
}
