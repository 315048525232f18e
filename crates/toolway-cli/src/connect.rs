//! Running the host for the length of one command.
//!
//! Owns the runtime, the live view while servers connect, and the orderly end: whatever happens —
//! success, error, Ctrl-C — the host is shut down before the program exits.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::signal::unix::SignalKind;
use toolway::auth::AuthOptions;
use toolway::keeper::Keeper;
use toolway::{
    Audit, Host, HostOptions, Journal, Prompter, Protected, Protection, Respondent, SettingsRules,
    Shield,
};
use toolway_auth::vault::{Storage, Vault, VaultOptions};
use toolway_config::{Flags, Plan, PlannedServer};
use toolway_tui::{Screen, Theme};
use toolway_types::name::shell_word;
use toolway_types::{ConnectionState, FailureKind, Scope, Secret, ServerName, TransportKind};

use crate::commands::account;
use crate::commands::add::is_url;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Report, network_hint};
use crate::signals::Signals;

/// Which servers a command needs.
pub(crate) enum Wanted {
    /// All that the plan admits.
    All,
    /// All that the plan admits, and what the account's provider says of its connectors now.
    Listing,
    /// One; nobody else is started.
    Only(ServerName),
    /// These; nobody else is started.
    Some(Vec<ServerName>),
}

/// Starts a host on a plan, runs `work` on it, and stops it.
pub(crate) fn with_host<T>(
    context: &Context,
    plan: Plan,
    wanted: Wanted,
    work: impl AsyncFnOnce(&Host) -> Result<T, Report>,
) -> Result<T, Report> {
    run_host(context, plan, wanted, Person::default(), work, || {
        Err(stopped())
    })
}

/// Who is asked where a person has to be.
#[derive(Default)]
pub(crate) struct Person {
    /// Whether a call may run.
    pub(crate) prompter: Option<Arc<dyn Prompter>>,
    /// What servers want to know.
    pub(crate) respondent: Option<Arc<dyn Respondent>>,
}

impl Person {
    /// The person at the terminal, for requests that nobody has to permit.
    pub(crate) fn answering(context: &Context) -> Self {
        Self {
            prompter: None,
            respondent: crate::elicit::person(context),
        }
    }
}

/// As [`with_host`], with a person to ask.
pub(crate) fn with_person<T>(
    context: &Context,
    plan: Plan,
    wanted: Wanted,
    person: Person,
    work: impl AsyncFnOnce(&Host) -> Result<T, Report>,
) -> Result<T, Report> {
    run_host(context, plan, wanted, person, work, || Err(stopped()))
}

/// As [`with_host`], for work without an end of its own: `told` says what it means to be told.
pub(crate) fn with_host_until<T>(
    context: &Context,
    plan: Plan,
    wanted: Wanted,
    work: impl AsyncFnOnce(&Host) -> Result<T, Report>,
    told: impl FnOnce() -> Result<T, Report>,
) -> Result<T, Report> {
    run_host(context, plan, wanted, Person::default(), work, told)
}

fn stopped() -> Report {
    interrupted("every server that was started has been stopped")
}

fn run_host<T>(
    context: &Context,
    mut plan: Plan,
    wanted: Wanted,
    person: Person,
    work: impl AsyncFnOnce(&Host) -> Result<T, Report>,
    told: impl FnOnce() -> Result<T, Report>,
) -> Result<T, Report> {
    let asks_provider = matches!(wanted, Wanted::Listing);
    let only = match wanted {
        Wanted::All | Wanted::Listing => None,
        Wanted::Only(name) => Some(vec![name]),
        Wanted::Some(names) => Some(names),
    };
    if let Some(names) = only {
        // The others have no part in this run, so the live view does not speak of them either.
        // A server whose tool is a hook has.
        let hooks: Vec<&str> = plan.hooks.servers().collect();
        plan.servers
            .retain(|server| names.contains(&server.name) || hooks.contains(&server.name.as_str()));
    }
    // The provider is no business of a run without connectors.
    let is_connector = |server: &PlannedServer| server.transport == Some(TransportKind::Connector);
    let has_connectors = plan.servers.iter().any(is_connector);
    let mut options = HostOptions {
        prompter: person.prompter,
        respondent: person.respondent,
        ..host_options(context)
    };
    if asks_provider || has_connectors {
        options.connectors = Some(account::connectors_of(context));
    }
    block_on(async {
        let mut signals = Signals::listen();
        let host = Host::start(plan, options);
        let outcome = {
            let mut work = std::pin::pin!(work(&host));
            loop {
                tokio::select! {
                    outcome = &mut work => break outcome,
                    signal = signals.next() => {
                        let is_ctrl_c = signal == SignalKind::interrupt();
                        if !(is_ctrl_c && context.desk.interrupted()) {
                            break told();
                        }
                        signals.forget_last();
                    }
                }
            }
        };
        for server in &host.snapshot().servers {
            let name = server.name.as_str();
            if let ConnectionState::NeedsAuth { .. } = server.state
                && let Some(advice) = host.login_advice(name)
            {
                context.note_advice(name, advice);
            }
        }
        end(host, &mut signals).await?;
        outcome
    })
}

/// Ends a host in an orderly way, or at once when a further signal asks for that: what runs of it
/// is then killed with the runtime.
pub(crate) async fn end(host: Host, signals: &mut Signals) -> Result<(), Report> {
    let mut shutdown = std::pin::pin!(host.shutdown());
    loop {
        tokio::select! {
            () = &mut shutdown => return Ok(()),
            // The first one asks for what is under way.
            _ = signals.next() => if signals.heard() > 1 {
                return Err(interrupted("every server that was started has been killed"));
            },
        }
    }
}

fn interrupted(hint: &str) -> Report {
    Report::new(Exit::TimedOut, "interrupted").hint(hint)
}

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

    /// How tools were defined when they were first permitted.
    pub(crate) fn pins(&self) -> PathBuf {
        self.0.environment.state_home().join("pins.json")
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
        output_dir: context.environment.state_home().join("results"),
        era_memory: Some(State(context).eras()),
        pins: Some(State(context).pins()),
        rule_keeper: Some(Arc::new(SettingsRules::new(context.environment.clone()))),
        // No roots: a server that is told of one may drop the directories its own command line
        // names (server-filesystem does, whenever the answer happens to arrive). What a person
        // configured counts; `TOOLWAY_PROJECT_DIR` says where the project is.
        roots: Vec::new(),
        http: client_options(context),
        secrets: Some(vault(context)),
        shield: shield(context),
        keeper: Keeper::same_program(),
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

/// Where logins are kept: beside the settings, which no shielded server sees.
pub(crate) fn vault(context: &Context) -> Vault {
    let environment = &context.environment;
    let passphrase = environment.var("TOOLWAY_VAULT_KEY");
    let storage = match environment.var("TOOLWAY_VAULT") {
        None | Some("" | "any") => Storage::Any,
        Some("keychain") => Storage::Keychain,
        Some("file") => Storage::File,
        Some(other) => {
            context.output.say(&format!(
                "warning: `TOOLWAY_VAULT` is `{other}`, which is none of any, keychain and file"
            ));
            Storage::Any
        }
    };
    Vault::open(VaultOptions {
        storage,
        passphrase: passphrase.filter(|it| !it.is_empty()).map(Secret::from),
        insecure: context.insecure_storage,
        ..VaultOptions::new(environment.config_home().join("vault"))
    })
}

/// Whether secrets may be saved in plain text, as this run was told to.
pub(crate) fn require_insecure_storage(context: &Context) -> Result<(), Report> {
    let plan = context.plan();
    if let Some(origin) = &plan.insecure_storage_off {
        let message = format!("`--insecure-storage` is forbidden by `insecureStorage` ({origin})");
        return Err(Report::new(Exit::Refused, message)
            .hint("leave the flag out: secrets go to the keychain or an encrypted file"));
    }
    if let Some(blocked) = &plan.blocked {
        // What it forbids is not known.
        return Err(Report::from(blocked.clone()));
    }
    if context.environment.var("TOOLWAY_VAULT") == Some("keychain") {
        let message = "`--insecure-storage` contradicts `TOOLWAY_VAULT`, which is `keychain`";
        return Err(Report::new(Exit::Usage, message).hint("leave out one of them"));
    }
    Ok(())
}

/// Who this program is in the audit.
pub(crate) const CALLER: &str = "cli";

/// Where calls are written down, and how much of them, as `TOOLWAY_AUDIT` says.
fn audit(context: &Context) -> Option<Audit> {
    let audit = Audit::in_directory(State(context).audit());
    match context.environment.var("TOOLWAY_AUDIT") {
        None | Some("" | "calls") => Some(audit),
        Some("off") => None,
        Some("arguments") => Some(audit.with_arguments()),
        Some("results") => Some(audit.with_arguments().with_results()),
        Some(other) => {
            context.output.say(&format!(
                "warning: `TOOLWAY_AUDIT` is `{other}`, which is none of off, calls, arguments \
                 and results; calls are written down without either"
            ));
            Some(audit)
        }
    }
}

/// What no server may write: whatever the next start would believe.
pub(crate) fn shield(context: &Context) -> Shield {
    let environment = &context.environment;
    let entry = |path: &Path, protection| Protected {
        path: path.to_owned(),
        protection,
    };
    let mut protected = vec![
        entry(environment.config_home(), Protection::Private),
        entry(environment.system_dir(), Protection::Existing),
    ];
    if let Some(folder) = environment
        .settings_file(Scope::Local)
        .as_deref()
        .and_then(Path::parent)
    {
        protected.push(entry(folder, Protection::Existing));
    }
    Shield::new(protected)
}

/// Proxies and certificates as the environment names them, by the names other programs use too.
pub(crate) fn client_options(context: &Context) -> toolway::ClientOptions {
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
    toolway::ClientOptions {
        extra_ca,
        client_certificate: variable(["TOOLWAY_CLIENT_CERT", "CLAUDE_CODE_CLIENT_CERT"])
            .map(PathBuf::from),
        client_key: variable(["TOOLWAY_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY"]).map(PathBuf::from),
        http_proxy: variable(["HTTP_PROXY", "http_proxy"]),
        https_proxy: variable(["HTTPS_PROXY", "https_proxy"]),
        no_proxy: variable(["NO_PROXY", "no_proxy"]),
        ..toolway::ClientOptions::default()
    }
}

/// Waits until no server is pending any more, with a live view where there is a terminal.
pub(crate) async fn settle(context: &Context, host: &Host) {
    if context.output.can_animate() {
        // A terminal that cannot be drawn on is no reason to fail.
        let _ = toolway_tui::show(host.watch(), io::stderr(), view(context)).await;
    }
    host.settled().await;
}

/// How live views are drawn on stderr.
pub(crate) fn view(context: &Context) -> toolway_tui::Options {
    toolway_tui::Options {
        screen: Screen::of(io::stderr()),
        theme: theme(context),
    }
}

/// Whether live views are coloured.
pub(crate) fn theme(context: &Context) -> Theme {
    if context.output.colour() {
        Theme::Colour
    } else {
        Theme::Plain
    }
}

/// Runs a future on a runtime of its own. One thread: a command makes a handful of calls, and a
/// pool costs more to start than they do.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Report>>) -> Result<T, Report> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

/// A server typed in place of a configured one: its name, and flags that plan for it alone.
pub(crate) struct Typed {
    /// The name it goes by in this run.
    pub(crate) name: String,
    /// The URL or the command, as typed.
    what: What,
    /// Flags under which the plan holds nothing else.
    pub(crate) flags: Flags,
}

enum What {
    Url(String),
    Command(String),
}

impl Typed {
    /// What to do about a failure: there is no entry to look at, only what was typed.
    pub(crate) fn hint(&self, state: &ConnectionState) -> Option<String> {
        let ConnectionState::Failed(failure) = state else {
            return match (state, &self.what) {
                (ConnectionState::NeedsAuth { .. }, What::Url(url)) => Some(format!(
                    "add it, then log in: \
                     `toolway add <name> {url}`, `toolway login <name>`"
                )),
                (ConnectionState::Disabled { .. }, _) => {
                    Some("ask the administrator of this machine to allow it".to_owned())
                }
                _ => None,
            };
        };
        if let Some(hint) = network_hint(failure) {
            return Some(hint.to_owned());
        }
        let hint = match (&self.what, failure.kind) {
            (_, FailureKind::TimedOut | FailureKind::Certificate(_)) => return None,
            // A secret may stand in it.
            (What::Url(url), _) if url.contains(['@', '?']) => {
                "check that an MCP server answers at that address".to_owned()
            }
            (What::Url(url), FailureKind::Protocol) if !url.contains("/mcp") => {
                format!(
                    "check the address; many servers answer at `{}/mcp`",
                    url.trim_end_matches('/')
                )
            }
            (What::Url(url), _) => format!("check that an MCP server answers at `{url}`"),
            (What::Command(_), FailureKind::Spawn) => {
                "check the program's name, or write its full path".to_owned()
            }
            (What::Command(line), _) => format!("run it by hand to see what it does: `{line}`"),
        };
        Some(hint)
    }

    /// From a URL.
    pub(crate) fn url(context: &Context, url: &str) -> Self {
        let host = url
            .split("//")
            .nth(1)
            .and_then(|rest| rest.split(['/', '\\', '?', '#']).next())
            // Who logs in is not part of the name, and may be a token.
            .and_then(|authority| authority.rsplit('@').next())
            .and_then(|host| host.split(':').next());
        let name = host.filter(|host| !host.is_empty()).unwrap_or("url");
        let kind = if url.to_ascii_lowercase().starts_with("ws") {
            "ws"
        } else {
            "http"
        };
        Self::new(
            context,
            name,
            What::Url(url.to_owned()),
            &serde_json::json!({ "type": kind, "url": url }),
        )
    }

    /// From a command with its arguments.
    pub(crate) fn command(context: &Context, words: &[String]) -> Self {
        let program = words.first().map_or("command", String::as_str);
        let name = program
            .rsplit('/')
            .next()
            .filter(|name| !name.is_empty())
            .unwrap_or("command");
        let args = words.get(1..).unwrap_or_default();
        let line: Vec<_> = words.iter().map(|word| shell_word(word)).collect();
        Self::new(
            context,
            name,
            What::Command(line.join(" ")),
            &serde_json::json!({ "command": program, "args": args }),
        )
    }

    /// From whichever was typed, if one was.
    pub(crate) fn either(
        context: &Context,
        word: Option<&str>,
        command: &[String],
    ) -> Option<Self> {
        match word {
            _ if !command.is_empty() => Some(Self::command(context, command)),
            Some(word) if is_url(word) => Some(Self::url(context, word)),
            _ => None,
        }
    }

    fn new(context: &Context, name: &str, what: What, definition: &serde_json::Value) -> Self {
        // Other characters would give every tool a digest in its exposed name.
        let name: String = name
            .chars()
            .map(|character| match character {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
                _ => '-',
            })
            .collect();
        // A literal `$` in what was typed was already the shell's business.
        let file = serde_json::json!({ "mcpServers": { &name: definition } });
        Self {
            name,
            what,
            flags: Flags {
                mcp_config: vec![file.to_string()],
                mcp_server: Vec::new(),
                strict: true,
                ..context.flags.clone()
            },
        }
    }
}
