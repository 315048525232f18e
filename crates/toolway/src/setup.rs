//! The same host for the same person, whichever front-end starts it.
//!
//! Owns which files runs share, what variables and settings mean for a host, where secrets and
//! logins are kept, and what is forgotten of a server. Prints nothing and asks nobody: what is
//! wrong is returned. Who decides, who answers servers and who starts processes is the front-end's
//! to add to the [`HostOptions`].

mod shield;
mod state_files;
mod variables;

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use toolway_auth::account::StoredAccount;
use toolway_auth::logins::Logins;
use toolway_auth::references::ReferenceResolver;
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_config::account::directory::copy_file;
use toolway_config::{
    AccountProvider, BroughtPlan, Environment, Flags, Hooks, Plan, PlannedServer, Planner,
};
use toolway_transport::Shield;
use toolway_transport::client::{HttpClient, HttpClientOptions};
use toolway_types::{Diagnosis, Origin, Secret, ServerName};
use toolway_wire::TraceContext;

pub use self::state_files::StateFiles;
use crate::account::{self, Connectors, ConnectorsOf};
use crate::auth::{AuthOptions, Organisation, StoredLogins, forget_need};
use crate::builtin::RESERVED;
use crate::catalog_memory::forget_catalog;
use crate::connection::forget_era;
use crate::dispatch::answers::SettingsRules;
use crate::host::HostOptions;
use crate::journal::Journal;
use crate::offering::Offering;
use crate::spans::{CallTrace, SpanExport};
use crate::supervisor::recall::{Recalled, recall_catalog};
use crate::tasks;
use crate::watch::{Watched, request_reconnect};

/// What one person's hosts are made of: the environment, the flags, and what both say.
#[derive(Debug)]
pub struct UserSetup {
    environment: Environment,
    flags: Flags,
    in_plain_text: bool,
    vault: OnceLock<Vault>,
}

/// Why secrets may not be saved in plain text.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PlainTextRefused {
    /// The organisation says so.
    #[error("secrets in plain text are forbidden by `insecureStorage` ({0})")]
    Forbidden(Origin),
    /// What the organisation forbids is not known.
    #[error("{}", .0.message)]
    Blocked(Box<Diagnosis>),
    /// `TOOLWAY_VAULT` names the keychain.
    #[error("secrets in plain text contradict `TOOLWAY_VAULT`, which is `keychain`")]
    KeychainOnly,
}

impl UserSetup {
    /// For the person that the environment belongs to.
    pub fn new(environment: Environment, flags: Flags) -> Self {
        Self {
            environment,
            flags,
            in_plain_text: false,
            vault: OnceLock::new(),
        }
    }

    /// What the process was started with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// What was said about configuration beside the files.
    pub fn flags(&self) -> &Flags {
        &self.flags
    }

    /// The files that runs share.
    pub fn files(&self) -> StateFiles<'_> {
        StateFiles(&self.environment)
    }

    /// Which servers there are, and which may connect.
    pub fn plan(&self) -> Plan {
        toolway_config::plan(&self.environment, &self.flags)
    }

    /// Judges servers that a program or an agent brings itself, by name. Their plan is for a view of
    /// a host ([`ViewSpec::own`](crate::ViewSpec::own)); it does not follow files.
    pub async fn brought(&self, definitions: Map<String, Value>) -> BroughtPlan {
        let environment = self.environment.clone();
        let names: Vec<String> = definitions.keys().cloned().collect();
        let judge = move || toolway_config::brought(&environment, &definitions);
        match tasks::blocking("brought servers", judge).await {
            Ok(brought) => brought,
            Err(failure) => {
                tracing::error!(%failure, "servers were not judged, so they are not there");
                let why = "it could not be judged";
                BroughtPlan {
                    errors: names.into_iter().map(|it| (it, why.to_owned())).collect(),
                    ..BroughtPlan::default()
                }
            }
        }
    }

    /// The same as [`UserSetup::plan`], off the runtime's threads; none where that failed.
    pub async fn fresh_plan(&self) -> Option<Plan> {
        let (environment, flags) = (self.environment.clone(), self.flags.clone());
        off_runtime("plan", move || toolway_config::plan(&environment, &flags)).await
    }

    /// Plans again while files change.
    pub fn planner(&self) -> Arc<Planner> {
        Arc::new(Planner::new(self.environment.clone(), self.flags.clone()))
    }

    /// What a host follows that runs for long: its files, and requests to connect anew.
    pub fn watched(&self, planner: &Arc<Planner>) -> Watched {
        let planner = Arc::clone(planner);
        Watched {
            paths: Arc::new(move || planner.watched_paths()),
            ..self.watched_requests()
        }
    }

    /// The same for a host whose plan stays as it is.
    pub fn watched_requests(&self) -> Watched {
        Watched {
            paths: Arc::new(Vec::new),
            reconnects: Some(self.files().reconnects()),
        }
    }

    /// The options every host of this person starts with, and what is wrong with the variables
    /// that they come from.
    pub fn host_options(&self) -> (HostOptions, Vec<Diagnosis>) {
        let files = self.files();
        let (audit, finding) = variables::audit(&self.environment);
        let options = HostOptions {
            output_dir: files.results(),
            era_memory: Some(files.eras()),
            catalog_memory: Some(files.catalogs()),
            pins: Some(files.pins()),
            pinned: Some(files.pinned()),
            rule_keeper: Some(Arc::new(SettingsRules::new(self.environment.clone()))),
            // A server that is told of a root may drop the directories of its own command line, as
            // server-filesystem does. `roots` in an entry are sent.
            roots: Vec::new(),
            http: self.http_options(),
            secrets: Some(self.vault()),
            shield: self.shield(),
            auth: AuthOptions {
                vault: Some(self.vault()),
                memory: Some(files.needs()),
                ..AuthOptions::default()
            },
            connectors: Some(self.connectors()),
            journal: Some(Journal::in_directory(files.logs())),
            audit,
            ..HostOptions::default()
        };
        let findings = self.vault_finding().into_iter().chain(finding);
        (options, findings.collect())
    }

    /// What is wrong with the variables that a host's options come from.
    pub fn findings(&self) -> Vec<Diagnosis> {
        let audit = variables::audit(&self.environment).1;
        self.vault_finding().into_iter().chain(audit).collect()
    }

    /// Sends spans to a collector, where variables name one, and says what is wrong with them. Must
    /// be called inside a runtime.
    pub fn start_spans(&self) -> (Option<SpanExport>, Vec<Diagnosis>) {
        let (settings, mut findings) = toolway_config::trace_settings(&self.environment);
        let started = settings.map(|settings| SpanExport::start(settings, self.http_client()));
        let started = started.transpose().unwrap_or_else(|error| {
            findings.push(Diagnosis::warning(format!("{error}, so no spans are sent")));
            None
        });
        (started, findings)
    }

    /// The trace that the process was started in, where its variables name one.
    pub fn given_trace(&self) -> Option<Arc<CallTrace>> {
        let [parent, state, baggage] = toolway_config::given_trace(&self.environment);
        let context = TraceContext::of_texts(parent, state, baggage);
        (!context.is_empty()).then(|| Arc::new(CallTrace::passing(context)))
    }

    /// What no server may write or see.
    pub fn shield(&self) -> Shield {
        shield::shield(&self.environment)
    }

    /// Proxies and certificates.
    pub fn http_options(&self) -> HttpClientOptions {
        variables::http_options(&self.environment)
    }

    /// The client for requests that no server's connection makes.
    pub fn http_client(&self) -> HttpClient {
        HttpClient::new(self.http_options())
    }

    /// Where secrets are kept. Opened on first use and once: all of a process ask the same vault.
    pub fn vault(&self) -> Vault {
        let open = || {
            let passphrase = self.environment.var("TOOLWAY_VAULT_KEY");
            Vault::open(VaultOptions {
                storage: variables::storage(&self.environment).0,
                passphrase: passphrase.filter(|it| !it.is_empty()).map(Secret::from),
                insecure: self.in_plain_text,
                ..VaultOptions::new(self.files().vault())
            })
        };
        self.vault.get_or_init(open).clone()
    }

    /// What is wrong with the variable that says where secrets are kept.
    pub fn vault_finding(&self) -> Option<Diagnosis> {
        variables::storage(&self.environment).1
    }

    /// Has secrets saved in plain text from now on, unless that is forbidden.
    pub fn keep_in_plain_text(&mut self, plan: &Plan) -> Result<(), PlainTextRefused> {
        if let Some(origin) = &plan.insecure_storage_off {
            return Err(PlainTextRefused::Forbidden(origin.clone()));
        }
        if let Some(blocked) = &plan.blocked {
            return Err(PlainTextRefused::Blocked(Box::new(blocked.clone())));
        }
        if variables::storage(&self.environment).0 == StorageChoice::Keychain {
            return Err(PlainTextRefused::KeychainOnly);
        }
        self.in_plain_text = true;
        self.vault = OnceLock::new();
        Ok(())
    }

    /// Whether secrets may be saved in plain text.
    pub fn keeps_in_plain_text(&self) -> bool {
        self.in_plain_text
    }

    /// How a host has the connectors of a plan's account; nothing where there are none.
    pub fn connectors(&self) -> ConnectorsOf {
        let strict = self.flags.strict;
        let (vault, client) = (self.vault(), self.http_client());
        let copy = copy_file(&self.environment);
        Arc::new(move |plan| {
            let is_off = plan.connectors_off.is_some() || plan.blocked.is_some() || strict;
            let provider = plan.account.clone().filter(|_| !is_off)?;
            let logins = Logins::new(vault.clone());
            let (client, copy) = (client.clone(), copy.clone());
            Some(Connectors::kept(provider, logins, client, copy))
        })
    }

    /// The login at the provider of connectors.
    pub fn account(&self, provider: &AccountProvider) -> StoredAccount {
        account::kept(provider, Logins::new(self.vault()), self.http_client())
    }

    /// The login at the organisation's identity provider, where a plan names one.
    pub fn organisation(&self, plan: &Plan) -> Option<Organisation> {
        let settings = Arc::clone(plan.identity.as_ref()?);
        let vault = self.vault();
        let references = ReferenceResolver {
            vault: vault.clone(),
            inherited: Arc::clone(&plan.inherited_env),
            cwd: plan.command_directory.clone(),
        };
        let client = self.http_client();
        Some(Organisation::new(settings, vault, client, Some(references)))
    }

    /// The logins to servers.
    pub fn logins(&self) -> StoredLogins {
        StoredLogins::new(self.vault(), self.http_options())
    }

    /// What the admitted servers of a plan offered before.
    pub fn recall(&self, plan: &Plan) -> Recalled {
        recall_catalog(&self.files().catalogs(), plan)
    }

    /// Forgets what these servers offered.
    pub fn forget_offers(&self, plan: &Plan, which: impl Fn(&PlannedServer) -> bool) {
        let folder = self.files().catalogs();
        for (_, spec) in plan.admitted().filter(|(planned, _)| which(planned)) {
            forget_catalog(&folder, spec);
        }
    }

    /// Forgets what is remembered about a server, and has running processes connect to it anew.
    pub async fn start_afresh(&self, plan: &Plan, server: &ServerName) -> Vec<Diagnosis> {
        let files = self.files();
        let mut findings = Vec::new();
        let mut admitted = plan.admitted();
        if let Some((_, spec)) = admitted.find(|(planned, _)| planned.name == *server) {
            forget_catalog(&files.catalogs(), spec);
            forget_need(&files.needs(), spec).await;
            if let Err(error) = forget_era(&files.eras(), spec) {
                let message = format!("which era it speaks could not be forgotten: {error}");
                findings.push(Diagnosis::warning(message).of(server));
            }
        }
        findings.extend(self.reconnect_elsewhere(server));
        findings
    }

    /// Has running processes connect to a server anew. They notice a refusal by themselves; this
    /// is only sooner, and not worth failing for.
    pub fn reconnect_elsewhere(&self, server: &ServerName) -> Option<Diagnosis> {
        let error = request_reconnect(&self.files().reconnects(), server).err()?;
        let message = format!("running processes could not be told: {error}");
        Some(Diagnosis::warning(message).of(server))
    }
}

/// Runs work that may block, such as reading files, away from the threads that serve; none where it
/// failed.
pub async fn off_runtime<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match tasks::blocking(name, work).await {
        Ok(done) => Some(done),
        Err(failure) => {
            tracing::error!(%failure, "nothing came of it");
            None
        }
    }
}

/// The rules of a plan, and the matchers of these hooks, that miss or are not what they seem.
pub fn rule_remarks(plan: &Plan, hooks: &Hooks) -> Vec<Diagnosis> {
    let servers: Vec<_> = plan.servers.iter().map(|server| &server.name).collect();
    let is_own =
        |name: &str| plan.no_prefix || RESERVED.contains(&name) || Offering::named(name).is_some();
    plan.permissions.remarks(hooks, &servers, &is_own)
}

#[cfg(test)]
mod tests;
