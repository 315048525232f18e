//! An authorization server and a protected MCP resource, well behaved until told otherwise.
//!
//! Owns starting, stopping and asking them. What they answer is below `authority/`: documents in
//! `metadata.rs`, clients in `client.rs`, logins in `authorize.rs` and `device.rs`, tokens in
//! `token.rs`, `answer.rs` and `exchange.rs`, the resource in `resource.rs`. Plain threads, as the
//! scripted server has them: a test needs no runtime, and an answer can be spoken wrongly.

mod answer;
mod authorize;
mod client;
mod control;
mod device;
mod dpop;
mod exchange;
mod form;
mod http;
mod jwt;
mod metadata;
mod process;
mod record;
mod resource;
mod route;
mod settings;
mod state;
mod switch;
mod tls;
mod token;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

pub use self::answer::IssuedTokens;
pub use self::control::run;
pub use self::jwt::TestKey;
pub use self::process::AuthorityProcess;
pub use self::record::{AuthorityReport, RecordedRequest, RequestedParty};
pub use self::settings::{
    AuthoritySettings, ConnectorAccount, ConsentMode, DpopMode, KnownClient, ResourceMetadataPlace,
    ServerMetadataPlace,
};
pub use self::switch::Switch;
pub use crate::browser::{BrowserPage, browse, fetch};
use crate::marked;

use self::state::{AuthorityState, AuthorityUrls, IssuedGrant};

/// Stands in every secret that is handed out: access and refresh tokens, codes, device codes and
/// client secrets. Signed tokens hold it too, but encoded.
pub const CANARY: &str = marked::MARK;

/// Whether a secret of a test, an authority's or another, stands in this text.
pub fn holds_secret(text: &str) -> bool {
    marked::find(text.as_bytes()).is_some()
}

/// No file below a folder holds a secret as it was handed out. What is sealed does not.
pub fn assert_no_secret_below(folder: &Path) {
    let mut places = vec![folder.to_owned()];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                places.push(path);
                continue;
            }
            let text = fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            assert!(!holds_secret(&text), "{}", path.display());
        }
    }
}

/// An authorization server, the MCP server that it protects, and an attacker, each at an origin of
/// its own on loopback. Stops when dropped.
///
/// Everything that a client may want is offered and enforced: resource and server metadata at
/// every standard place, PKCE with S256, `resource`, `state`, `iss`, registration, metadata
/// documents, refresh tokens that can be used once, devices, client credentials, id tokens and the
/// exchange of them, revocation, and on demand proof of possession, TLS or the connectors of an
/// account. [`Switch`]es spoil it, one rule at a time or several at once.
///
/// ```
/// use toolway_testkit::authority::{Authority, AuthoritySettings, Switch, browse};
///
/// let authority = Authority::start(AuthoritySettings::default());
/// // Configure the client under test with `authority.entry()`, and let it log in. Where it would
/// // open a browser, do what a person would: `browse(&address)` goes to the authorization
/// // endpoint, consents, and arrives at the client's callback.
/// let page = browse(&format!("{}/.well-known/oauth-authorization-server", authority.issuer()));
/// assert_eq!(page[0].status, 200);
///
/// // From some moment on, refresh answers are lost after the rotation.
/// authority.turn_on(Switch::RefreshLostOnce);
/// // Time passes for the authority alone.
/// authority.advance(std::time::Duration::from_hours(1));
///
/// let report = authority.report();
/// assert_eq!(report.token_requests("refresh_token"), 0);
/// assert_eq!(report.families_revoked, 0);
/// assert_eq!(report.attacker_requests, 0, "nothing ever goes there");
/// assert!(authority.seen().iter().all(|request| request.method == "GET"));
/// ```
#[derive(Debug)]
pub struct Authority {
    state: Arc<AuthorityState>,
    threads: Vec<(SocketAddr, JoinHandle<()>)>,
    certificate: Option<String>,
}

impl std::fmt::Debug for AuthorityState {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", self.places)
    }
}

impl Authority {
    /// Starts it on free ports.
    pub fn start(settings: AuthoritySettings) -> Self {
        let (tls, certificate) = if settings.tls {
            let (config, certificate) = tls::fresh();
            (Some(config), Some(certificate))
        } else {
            (None, None)
        };
        let scheme = if settings.tls { "https" } else { "http" };
        let bind = || {
            let listener =
                TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback");
            let address = listener.local_addr().expect("a listener has an address");
            (listener, address)
        };
        let [issuer, resource, attacker] = [bind(), bind(), bind()];
        let resource_origin = format!("{scheme}://{}", resource.1);
        let places = AuthorityUrls {
            issuer: format!("{scheme}://{}{}", issuer.1, settings.issuer_path),
            resource: format!("{resource_origin}{}", settings.resource_path),
            resource_origin,
            attacker: format!("{scheme}://{}", attacker.1),
        };
        let state = Arc::new(AuthorityState::new(settings, places, tls));
        let parties = [
            (issuer, RequestedParty::Issuer),
            (resource, RequestedParty::Resource),
            (attacker, RequestedParty::Attacker),
        ];
        let threads = parties
            .into_iter()
            .map(|((listener, address), party)| (address, http::listen(&state, listener, party)))
            .collect();
        Self {
            state,
            threads,
            certificate,
        }
    }

    /// The issuer's name, which is also the start of its endpoints.
    pub fn issuer(&self) -> &str {
        &self.state.places.issuer
    }

    /// The address of the protected MCP server.
    pub fn resource(&self) -> &str {
        &self.state.places.resource
    }

    /// The origin that nothing secret must ever reach.
    pub fn attacker(&self) -> &str {
        &self.state.places.attacker
    }

    /// The address of a connector that the account hosts.
    pub fn connector(&self, name: &str) -> String {
        format!("{}/proxy/{name}/mcp", self.issuer())
    }

    /// The address of the account's directory of connectors.
    pub fn directory(&self) -> String {
        format!("{}/directory", self.issuer())
    }

    /// The entry of the protected server in a configuration file.
    pub fn entry(&self) -> Value {
        json!({ "type": "http", "url": self.resource() })
    }

    /// The certificate to trust, in PEM; none without TLS.
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_deref()
    }

    /// The keys that it signs with.
    pub fn jwks(&self) -> Value {
        self.state.key.jwks()
    }

    /// From now on it misbehaves in these ways and no other; what happens once happens again.
    pub fn set(&self, switches: &[Switch]) {
        self.state.set(switches);
    }

    /// One misbehaviour more.
    pub fn turn_on(&self, switch: Switch) {
        self.state.turn(switch, true);
    }

    /// One misbehaviour less.
    pub fn turn_off(&self, switch: Switch) {
        self.state.turn(switch, false);
    }

    /// Requests at a path that ends so wait from now on, after they were counted as seen, until
    /// what is returned is dropped. `/token` holds every refresh, `/mcp` every call.
    #[must_use = "dropping it lets the requests go on"]
    pub fn hold(&self, path: &str) -> RequestHold<'_> {
        self.state.hold(path);
        RequestHold {
            state: &self.state,
            path: path.to_owned(),
        }
    }

    /// What happened so far, in numbers.
    pub fn report(&self) -> AuthorityReport {
        self.state.memory().report.clone()
    }

    /// Every request so far, in order.
    pub fn seen(&self) -> Vec<RecordedRequest> {
        self.state.memory().seen.clone()
    }

    /// Every request to this party whose path ends so.
    pub fn seen_at(&self, party: RequestedParty, path: &str) -> Vec<RecordedRequest> {
        let memory = self.state.memory();
        let mut seen = memory.seen.clone();
        seen.retain(|seen| seen.party == party && seen.path.ends_with(path));
        seen
    }

    /// The first request to the attacker that held a secret, if there is one.
    pub fn stolen(&self) -> Option<RecordedRequest> {
        let memory = self.state.memory();
        let mut stolen = memory.seen.iter();
        stolen
            .find(|seen| seen.party == RequestedParty::Attacker && holds_secret(&seen.text()))
            .cloned()
    }

    /// The access tokens that are good now.
    pub fn valid_access_tokens(&self) -> Vec<String> {
        let memory = self.state.memory();
        let good = |token: &&String| memory.good_access(token).is_some();
        memory.access.keys().filter(good).cloned().collect()
    }

    /// The refresh tokens that would be taken now.
    pub fn valid_refresh_tokens(&self) -> Vec<String> {
        let memory = self.state.memory();
        let good = |token: &&String| memory.good_refresh(token);
        memory.refresh.keys().filter(good).cloned().collect()
    }

    /// Whether this access or refresh token is good now.
    pub fn is_valid(&self, token: &str) -> bool {
        let memory = self.state.memory();
        memory.good_access(token).is_some() || memory.good_refresh(token)
    }

    /// Moves the clock by which it judges its tokens. What `Date` says does not change.
    pub fn advance(&self, by: Duration) {
        self.state.memory().advance(by);
    }

    /// Every access token so far is bad from now on; refresh tokens stay.
    pub fn expire_access_tokens(&self) {
        for access in self.state.memory().access.values_mut() {
            access.ends = 0;
        }
    }

    /// Every token so far is bad from now on, as when a user takes the consent back.
    pub fn revoke_everything(&self) {
        let mut memory = self.state.memory();
        memory.access.clear();
        memory.refresh.clear();
    }

    /// Every client that registered is unknown from now on, as after a restart of a server that
    /// keeps nothing.
    pub fn forget_clients(&self) {
        self.state.memory().clients.clear();
    }

    /// Tokens for this client without a login.
    pub fn issue(&self, client: &str, scope: &str) -> IssuedTokens {
        let state = &self.state;
        let mut memory = state.memory();
        let meant = state.settings.account.is_none();
        let grant = IssuedGrant {
            party: RequestedParty::Issuer,
            client: client.to_owned(),
            subject: state.settings.subject.clone(),
            scope: scope.to_owned(),
            resource: meant.then(|| state.places.resource.clone()),
            nonce: None,
            jkt: None,
            family: memory.fresh(),
        };
        answer::make(state, &mut memory, &grant, true)
    }

    /// What a user says to the code that a device shows; whether there is such a code.
    pub fn decide_device(&self, user_code: &str, allow: bool) -> bool {
        device::decide(&self.state, user_code, allow)
    }
}

/// Requests wait as long as this lives.
#[derive(Debug)]
pub struct RequestHold<'a> {
    state: &'a AuthorityState,
    path: String,
}

impl Drop for RequestHold<'_> {
    fn drop(&mut self) {
        self.state.release(&self.path);
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.state.end();
        for (address, thread) in self.threads.drain(..) {
            // Wakes the thread that waits for a connection.
            drop(TcpStream::connect(address));
            drop(thread.join());
        }
    }
}

/// Escapes everything that is not unreserved, for a query or a form.
pub(crate) fn encode(text: &str) -> String {
    form::encode(text)
}
