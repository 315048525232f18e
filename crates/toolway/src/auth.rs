//! The credentials of servers, and what is known of servers that want a login.
//!
//! Owns the choice of a server's credentials (its headers helper, its login, or both), which
//! servers wait for a login, and bringing those back when one appears. Cross-app access is
//! `organisation.rs` and `federated_login.rs`.
//! Does not own: how a helper runs, how logins are kept and renewed (`toolway-auth`), or when a
//! refused request is sent again (`toolway-transport`).

pub mod access_token;
pub mod client_identity;
mod combined;
mod federated_login;
pub mod login;
mod oauth;
pub mod organisation;
pub mod step_up;
mod store;
pub mod stored_logins;
pub(crate) mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use tokio::sync::{Notify, broadcast};
use toolway_auth::helper::{HelperCredentials, HelperRunner, RedactHeaders};
use toolway_auth::logins::Logins;
use toolway_auth::needs_auth::NeedsAuthMemory;
use toolway_auth::references::ReferenceResolver;
use toolway_auth::refresh::RenewedLogins;
use toolway_auth::registration::ClientDocument;
use toolway_auth::scopes::LoginAttempts;
use toolway_auth::vault::Vault;
use toolway_config::IdentitySettings;
use toolway_transport::client::HttpClient;
use toolway_transport::{Credentials, OpenOptions};
use toolway_types::{Secret, ServerName, ServerSpec};
use tracing::info;

use self::combined::HelperAndLogin;
pub(crate) use self::login::InvitationRelay;
pub use self::login::{
    Invitation, LoggedIn, LoginHandle, LoginOptions, LoginProblem, NoFederatedLogin,
    NoFederatedLoginReason,
};
use self::oauth::LoginCredentials;
use self::organisation::CurrentOrganisation;
pub use self::organisation::{Organisation, OrganisationError, OrganisationUser};
use self::step_up::{StepUp, WidenedLogin};
use self::store::{LoginStore, RenewalsUnderWay};
pub use crate::auth::access_token::{
    AccessToken, AccessTokenError, AccessTokenSource, LoginTarget,
};
pub use crate::auth::client_identity::{ClientIdentities, WorkloadToken};
use crate::auth::federated_login::LoginObstacle;
pub use crate::auth::stored_logins::{RemovedLogin, StoredLogin, StoredLogins, used};
pub use crate::call::NotWidened;
use crate::event::{self, HostEvent, LoginChange};
use crate::journal::JournalWriter;
use crate::lock::lock;
use crate::server_source::ServerSource;
use crate::server_source::definition::{ServerIdentity, definition};
use crate::tasks::{self, Task};

/// What a host needs for logins.
#[derive(Debug, Clone, Default)]
pub struct AuthOptions {
    /// Where logins are kept; without one there are no logins.
    pub vault: Option<Vault>,
    /// A file that remembers which servers want a login, so that the next start need not ask;
    /// nothing is remembered without one.
    pub memory: Option<PathBuf>,
    /// The metadata document of the embedding program, which is its client id.
    pub document: Option<ClientDocument>,
    /// What logins can show that no person types.
    pub client_identities: ClientIdentities,
    /// Gives access tokens in place of the vault.
    pub access_tokens: Option<Arc<dyn AccessTokenSource>>,
}

/// What a host knows of logins.
#[derive(Debug)]
pub(crate) struct Auth {
    access_tokens: Arc<dyn AccessTokenSource>,
    store: Option<LoginStore>,
    memory: Option<NeedsAuthMemory>,
    document: Option<ClientDocument>,
    attempts: LoginAttempts,
    /// The servers that were connected to.
    known: Mutex<BTreeMap<ServerIdentity, KnownServer>>,
    /// The logins under way.
    running: Mutex<BTreeMap<ServerIdentity, login::RunningLogin>>,
    /// The servers that wait for a login, with the token that was refused last.
    waiting: Mutex<BTreeMap<ServerIdentity, WaitingServer>>,
    /// Notified when one more server waits: a login may have been made a moment before.
    more: Notify,
    /// The token that each server was shown last.
    shown: Mutex<BTreeMap<ServerIdentity, Secret>>,
    /// What each server said last to a login that did not reach far enough.
    short: Mutex<BTreeMap<ServerIdentity, String>>,
    /// The logins that are being widened in the middle of a request.
    step_ups: Mutex<BTreeMap<ServerIdentity, Weak<StepUp>>>,
    /// How far the last of them reached.
    reached: Mutex<BTreeMap<ServerIdentity, WidenedLogin>>,
    /// What kept servers from being logged in to by themselves.
    troubles: Mutex<BTreeMap<ServerIdentity, LoginObstacle>>,
    /// Where it is told that logins come and go.
    events: OnceLock<broadcast::Sender<HostEvent>>,
}

/// A server, as far as a login has to know it.
#[derive(Debug, Clone)]
struct KnownServer {
    is_remote: bool,
    /// Absent where its entry leaves no room for one.
    login: Option<LoginTarget>,
}

#[derive(Debug, Clone)]
struct WaitingServer {
    target: LoginTarget,
    /// The epoch of the connection that waits.
    epoch: u64,
    refused: Option<Secret>,
    /// Whether a login at the organisation is what it waits for.
    lacks_identity: bool,
}

impl Auth {
    /// `None` where there is neither a vault nor a source of access tokens in its place.
    pub(crate) fn new(
        options: AuthOptions,
        client: &HttpClient,
        identity: Option<Arc<IdentitySettings>>,
        references: Option<&ReferenceResolver>,
    ) -> Option<Arc<Self>> {
        let store = options.vault.map(|vault| LoginStore {
            organisation: CurrentOrganisation::new(identity.map(|settings| {
                let (vault, client) = (vault.clone(), client.clone());
                Organisation::new(settings, vault, client, references.cloned())
            })),
            logins: RenewedLogins::new(Logins::new(vault)),
            client: client.clone(),
            client_identities: Arc::new(options.client_identities),
            references: references.cloned(),
            asked: RenewalsUnderWay::default(),
            tell: None,
        });
        let kept = store
            .clone()
            .map(|store| Arc::new(store) as Arc<dyn AccessTokenSource>);
        Some(Arc::new(Self {
            access_tokens: options.access_tokens.or(kept)?,
            store,
            memory: options.memory.map(NeedsAuthMemory::new),
            document: options.document,
            attempts: LoginAttempts::default(),
            known: Mutex::default(),
            running: Mutex::default(),
            waiting: Mutex::default(),
            more: Notify::new(),
            shown: Mutex::default(),
            short: Mutex::default(),
            step_ups: Mutex::default(),
            reached: Mutex::default(),
            troubles: Mutex::default(),
            events: OnceLock::new(),
        }))
    }

    /// From now on it is told when logins come and go.
    pub(crate) fn tell_of_logins(&self, events: &broadcast::Sender<HostEvent>) {
        // Set once: it belongs to one host.
        let _ = self.events.set(events.clone());
    }

    fn tell(&self, server: &ServerName, login: LoginChange) {
        if let Some(events) = self.events.get() {
            event::tell(events, || HostEvent::LoginChanged {
                server: server.clone(),
                login,
            });
        }
    }

    /// Whether a server said a moment ago, to any process, that it wants a login, and there was no
    /// login since.
    pub(crate) async fn remembers(&self, server: &ServerName, source: &ServerSource) -> bool {
        let (Some(memory), Some(target)) = (&self.memory, target(server, source)) else {
            return false;
        };
        let since = memory.since(server.as_str(), &target.definition).await;
        if since.is_none() {
            return false;
        }
        // A login that cannot be read or renewed is as good as none.
        !matches!(
            self.access_tokens.access_token(&target, None).await,
            Ok(Some(_))
        ) && !self.may_enter(&target).await
    }

    /// Every login that can be read.
    pub(crate) async fn logins(&self) -> Result<Vec<StoredLogin>, LoginProblem> {
        let store = self.store.as_ref().ok_or(LoginProblem::NoVault)?;
        Ok(store.kept().await?)
    }

    /// Gives up the logins of a server, of one account or of all.
    pub(crate) async fn log_out(
        &self,
        server: &str,
        account: Option<&str>,
    ) -> Result<Vec<RemovedLogin>, LoginProblem> {
        let store = self.store.as_ref().ok_or(LoginProblem::NoVault)?;
        Ok(store.log_out(Some(server), account).await?)
    }

    /// The organisation of federated logins.
    pub(crate) fn organisation(&self) -> Option<Organisation> {
        self.store.as_ref()?.organisation.get()
    }

    /// Sets the organisation of federated logins. Gives whether that is
    /// another than before.
    pub(crate) fn set_identity(
        &self,
        identity: Option<Arc<IdentitySettings>>,
        references: Option<&ReferenceResolver>,
    ) -> bool {
        let Some(store) = &self.store else {
            return false;
        };
        let before = store.organisation.get();
        let is_same = match (&before, &identity) {
            (Some(before), Some(identity)) => before.settings().is_alike(identity),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            store.organisation.replace(identity.map(|settings| {
                let (vault, client) = (store.logins.vault().clone(), store.client.clone());
                Organisation::new(settings, vault, client, references.cloned())
            }));
        }
        !is_same
    }

    /// Gives up the logins under way.
    pub(crate) fn end(&self) {
        lock(&self.running).clear();
    }

    /// Forgets that a server wants a login, before the next attempt.
    async fn forget(&self, target: &LoginTarget) {
        lock(&self.troubles).remove(&target.identity());
        if let Some(memory) = &self.memory {
            let server = target.server.as_str();
            memory.forget(server, &target.definition).await;
        }
    }

    /// The same for a server that was connected to.
    pub(crate) async fn forget_server(&self, server: &ServerIdentity) {
        let known = lock(&self.known).get(server).cloned();
        let target = known.and_then(|known| known.login);
        if let Some(target) = target {
            self.forget(&target).await;
        }
    }

    /// The account that a server's entry names.
    pub(crate) fn account_of(&self, server: &ServerIdentity) -> Option<String> {
        let known = lock(&self.known);
        known.get(server)?.login.as_ref()?.oauth.account.clone()
    }

    /// A server is about to be connected to.
    pub(crate) fn note_connecting(&self, server: &ServerName, source: &ServerSource) {
        // A server that is being connected does not wait for a login.
        lock(&self.waiting).remove(&ServerIdentity::of(server, source));
        self.note_known(server, source);
    }

    /// A server is connected to, perhaps by another host that shares the connection.
    pub(crate) fn note_known(&self, server: &ServerName, source: &ServerSource) {
        let is_remote = |spec: &ServerSpec| spec.transport.remote().is_some();
        let known = KnownServer {
            is_remote: source.spec().is_some_and(is_remote),
            login: target(server, source),
        };
        lock(&self.known).insert(ServerIdentity::of(server, source), known);
    }

    /// A server wants a login, or another one than it got.
    pub(crate) async fn wanted(&self, server: &ServerName, source: &ServerSource, epoch: u64) {
        let Some(target) = target(server, source) else {
            return;
        };
        if let Some(memory) = &self.memory
            && memory
                .since(server.as_str(), &target.definition)
                .await
                .is_none()
        {
            memory.remember(server.as_str(), &target.definition).await;
        }
        let server = target.identity();
        let refused = lock(&self.shown).get(&server).cloned();
        let lacks_identity = {
            let troubles = lock(&self.troubles);
            let trouble = troubles.get(&server);
            trouble.is_some_and(|trouble| trouble.lacks_identity)
        };
        let waiting = WaitingServer {
            target,
            epoch,
            refused,
            lacks_identity,
        };
        lock(&self.waiting).insert(server, waiting);
        self.more.notify_one();
    }

    /// What a server is shown from now on.
    fn note_sent_token(&self, server: &ServerIdentity, token: Option<&Secret>) {
        let mut shown = lock(&self.shown);
        match token {
            Some(token) => shown.insert(server.clone(), token.clone()),
            None => shown.remove(server),
        };
    }

    /// A login did not reach far enough for a request. The connection stands; the next login
    /// knows.
    fn note_missing_scopes(&self, server: &ServerIdentity, challenge: String) {
        lock(&self.short).insert(server.clone(), challenge);
    }

    /// Connects waiting servers anew as soon as there is a login for them, made in any process.
    /// `reconnect` has the server's connection made anew, unless it was since that epoch.
    pub(crate) fn reconnect_after_logins(
        self: &Arc<Self>,
        reconnect: impl Fn(&ServerName, u64) + Send + Sync + 'static,
    ) -> Task<()> {
        let auth = Arc::clone(self);
        tasks::spawn("logins", async move {
            // Nothing is watched before a server waits.
            auth.more.notified().await;
            let mut changes = auth.access_tokens.changes();
            loop {
                for (server, epoch) in auth.ready().await {
                    info!(%server, "somebody logged in: connecting anew");
                    reconnect(&server.name, epoch);
                }
                tokio::select! {
                    heard = changes.changed() => if heard.is_err() {
                        return;
                    },
                    () = auth.more.notified() => {}
                }
            }
        })
    }

    /// The servers that waited for a login that is there now, and since which epoch.
    async fn ready(&self) -> Vec<(ServerIdentity, u64)> {
        let waiting = lock(&self.waiting).clone();
        let mut ready = Vec::new();
        for (server, waiting) in waiting {
            let token = self.access_tokens.access_token(&waiting.target, None).await;
            let has_token =
                matches!(token, Ok(Some(token)) if Some(&token.access) != waiting.refused.as_ref());
            // A login under way goes the same way by itself.
            let waits = waiting.lacks_identity && !self.is_logging_in(&server);
            if (has_token || (waits && self.may_enter(&waiting.target).await))
                && self.stops_waiting(&server, waiting.epoch)
            {
                self.forget(&waiting.target).await;
                ready.push((server, waiting.epoch));
            }
        }
        ready
    }

    /// Whether the server still waited as it did in that epoch: looking for its login took a
    /// while, in which it may have been connected, or refused something newer.
    fn stops_waiting(&self, server: &ServerIdentity, epoch: u64) -> bool {
        let mut waiting = lock(&self.waiting);
        let same = waiting.get(server).is_some_and(|it| it.epoch == epoch);
        if same {
            waiting.remove(server);
        }
        same
    }
}

/// Forgets that a server wants a login, so that the next start asks it.
pub async fn forget_need(memory: &Path, spec: &ServerSpec) {
    let source = ServerSource::Spec(Box::new(spec.clone()));
    let definition = definition(&spec.name, &source);
    NeedsAuthMemory::new(memory)
        .forget(spec.name.as_str(), &definition)
        .await;
}

/// The server that a login would be for; none where its entry leaves no room for one.
pub(crate) fn target(server: &ServerName, source: &ServerSource) -> Option<LoginTarget> {
    let spec = source.spec()?;
    let remote = spec.transport.open_to_logins()?;
    if written::written(spec).is_some() {
        return None;
    }
    Some(LoginTarget {
        server: server.clone(),
        definition: definition(server, source),
        url: remote.url.clone(),
        oauth: remote.oauth.as_deref().cloned().unwrap_or_default(),
        rules: Arc::clone(&remote.rules),
    })
}

/// The credentials for one connection to a server; none where there can be none. `filled` has the
/// secrets that `source` names: a helper is a part of the connection, and logins are for what is
/// written.
pub(crate) fn credentials(
    server: &ServerName,
    source: &ServerSource,
    filled: &ServerSource,
    open: &OpenOptions,
    journal: Option<&JournalWriter>,
    auth: Option<&Arc<Auth>>,
) -> Option<Arc<dyn Credentials>> {
    let remote = filled.spec()?.transport.remote()?;
    let keep_back = || -> RedactHeaders {
        let journal = journal.cloned();
        Box::new(move |headers| {
            if let Some(journal) = &journal {
                journal.keep_back(headers);
            }
        })
    };
    let helper = remote.headers_helper.clone().map(|definition| {
        let open = OpenOptions {
            credentials: None,
            ..open.clone()
        };
        let helper = HelperRunner::new(server.clone(), remote.url.clone(), *definition, open);
        HelperCredentials::new(helper, keep_back())
    });
    let login = auth.and_then(|auth| {
        let target = target(server, source)?;
        Some(LoginCredentials::new(target, Arc::clone(auth), keep_back()))
    });
    match (helper, login) {
        (Some(helper), Some(login)) => Some(Arc::new(HelperAndLogin { helper, login })),
        (Some(helper), None) => Some(Arc::new(helper)),
        (None, Some(login)) => Some(Arc::new(login)),
        (None, None) => None,
    }
}
