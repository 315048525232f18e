//! What every host of this program starts with: the files that runs share, and what variables say
//! of proxies, certificates and the audit. Where secrets are kept is `vault.rs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolway::account::{Connectors, ConnectorsOf};
use toolway::auth::AuthOptions;
use toolway::launcher::Launcher;
use toolway::{Audit, HostOptions, Journal, ProtectedPath, Protection, SettingsRules, Shield};
use toolway_auth::logins::Logins;
use toolway_config::account::directory::copy_file;
use toolway_transport::client::HttpClient;
use toolway_types::Scope;

use super::vault::{folder as vault_folder, vault};
use crate::context::Context;

/// Where the files that several runs share are kept.
pub(crate) struct State<'a>(pub(crate) &'a Context);

impl State<'_> {
    /// What servers logged and what was said to them.
    pub(crate) fn logs(&self) -> PathBuf {
        self.0.environment.state_home().join("logs")
    }

    /// Every call that was asked for.
    pub(crate) fn audit(&self) -> PathBuf {
        self.0.environment.state_home().join("audit")
    }

    /// Which era each server spoke last time.
    pub(crate) fn eras(&self) -> PathBuf {
        self.0.environment.state_home().join("eras.json")
    }

    /// What servers offered when they were last connected.
    pub(crate) fn catalogs(&self) -> PathBuf {
        self.0.environment.state_home().join("catalogue")
    }

    /// How tools were defined when they were first permitted.
    pub(crate) fn pins(&self) -> PathBuf {
        self.0.environment.state_home().join("pins.json")
    }

    /// Which tools were ever pinned. Beside the settings, so that it stays when the state is
    /// thrown away.
    pub(crate) fn pinned(&self) -> PathBuf {
        self.0.environment.config_home().join("pinned.json")
    }

    /// Files of results.
    pub(crate) fn results(&self) -> PathBuf {
        self.0.environment.state_home().join("results")
    }

    /// Which servers wanted a login a moment ago.
    pub(crate) fn needs(&self) -> PathBuf {
        self.0.environment.state_home().join("needs-auth.json")
    }

    /// Requests to running processes to connect anew.
    pub(crate) fn reconnects(&self) -> PathBuf {
        self.0.environment.state_home().join("reconnect")
    }
}

/// The options every host of this program starts with.
pub(crate) fn host_options(context: &Context) -> HostOptions {
    HostOptions {
        output_dir: State(context).results(),
        era_memory: Some(State(context).eras()),
        catalog_memory: Some(State(context).catalogs()),
        pins: Some(State(context).pins()),
        pinned: Some(State(context).pinned()),
        rule_keeper: Some(Arc::new(SettingsRules::new(context.environment.clone()))),
        // A server that is told of a root may drop the directories of its own command line, as
        // server-filesystem does. `roots` in an entry are sent.
        roots: Vec::new(),
        http: client_options(context),
        secrets: Some(vault(context)),
        shield: shield(context),
        launcher: Launcher::same_program(),
        auth: AuthOptions {
            vault: Some(vault(context)),
            memory: Some(State(context).needs()),
            ..AuthOptions::default()
        },
        journal: Some(Journal::in_directory(State(context).logs())),
        audit: audit(context),
        ..HostOptions::default()
    }
}

/// Where calls are written down, and how much of them, as `TOOLWAY_AUDIT` says.
fn audit(context: &Context) -> Option<Audit> {
    let audit = Audit::in_directory(State(context).audit());
    match context.environment.var("TOOLWAY_AUDIT") {
        None | Some("" | "calls") => Some(audit),
        Some("off") => None,
        Some("arguments") => Some(audit.with_arguments()),
        Some("results") => Some(audit.with_arguments().with_results()),
        Some(other) => {
            context.warn(format!(
                "`TOOLWAY_AUDIT` is `{other}`, which is none of off, calls, arguments \
                 and results; calls are written down without either"
            ));
            Some(audit)
        }
    }
}

/// What no server may write: all that the next start trusts. And what none may see: secrets, and the
/// state of others. Files of results are seen: their paths may be arguments of the next call.
pub(crate) fn shield(context: &Context) -> Shield {
    let environment = &context.environment;
    let entry = |path: &Path, protection| ProtectedPath {
        path: path.to_owned(),
        protection,
    };
    let mut protected = vec![
        entry(environment.config_home(), Protection::Private),
        entry(&vault_folder(context), Protection::Hidden),
        entry(environment.state_home(), Protection::Hidden),
        entry(&State(context).results(), Protection::Private),
        // Servers start there, and put nothing there for others.
        entry(&environment.private_folder(), Protection::Private),
        entry(environment.system_dir(), Protection::Existing),
    ];
    if let Some(folder) = environment
        .settings_file(Scope::Local)
        .as_deref()
        .and_then(Path::parent)
    {
        protected.push(entry(folder, Protection::Existing));
    }
    // Managers of dotfiles put links there, and where they lead is written as easily.
    let settings = environment.settings_file(Scope::User);
    for believed in settings.into_iter().chain([
        environment.approvals_file(),
        State(context).pinned(),
        environment.plugins_folder(),
    ]) {
        protected.push(entry(&believed, Protection::Believed));
    }
    for named in environment.named_homes() {
        protected.push(entry(named, Protection::Links));
    }
    Shield::new(protected)
}

/// Proxies and certificates as the environment names them, by the names other programs use too.
pub(crate) fn client_options(context: &Context) -> toolway::HttpClientOptions {
    let variable = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| context.environment.var(name))
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
    };
    let extra_ca = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"]
        .into_iter()
        .filter_map(|name| context.environment.var(name))
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .collect();
    toolway::HttpClientOptions {
        extra_ca,
        client_certificate: variable(["TOOLWAY_CLIENT_CERT", "CLAUDE_CODE_CLIENT_CERT"])
            .map(PathBuf::from),
        client_key: variable(["TOOLWAY_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY"]).map(PathBuf::from),
        http_proxy: variable(["HTTP_PROXY", "http_proxy"]),
        https_proxy: variable(["HTTPS_PROXY", "https_proxy"]),
        no_proxy: variable(["NO_PROXY", "no_proxy"]),
        ..toolway::HttpClientOptions::default()
    }
}

/// The client for requests that no server's connection makes.
pub(crate) fn http_client(context: &Context) -> HttpClient {
    HttpClient::new(client_options(context))
}

/// How a host has the connectors of a plan's account; nothing where there are none.
pub(crate) fn connectors_of(context: &Context) -> ConnectorsOf {
    let strict = context.flags.strict;
    let (vault, client) = (vault(context), http_client(context));
    let copy = copy_file(&context.environment);
    Arc::new(move |plan| {
        let is_off = plan.connectors_off.is_some() || plan.blocked.is_some() || strict;
        let provider = plan.account.clone().filter(|_| !is_off)?;
        let logins = Logins::new(vault.clone());
        let (client, copy) = (client.clone(), copy.clone());
        Some(Connectors::kept(provider, logins, client, copy))
    })
}
