//! `toolway login`: a login to one server, in a browser, on another device, or for a program.
//!
//! Owns the choice of the server and of the way, and what the user at the terminal sees. The
//! steps of a login, and where it is kept, are the library's.

mod report;
mod terminal;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::time::timeout;
use toolway::HostSnapshot;
use toolway::auth::{LoggedIn, LoginOptions, LoginProblem};
use toolway::rows::shown_time;
use toolway_auth::jwt::SigningKey;
use toolway_auth::login::{AccountChoice, LoginFault, LoginMethod};
use toolway_config::{Plan, PlannedServer};
use toolway_types::name::as_word;
use toolway_types::{ConnectionState, Secret, ServerName, TransportKind};

pub(super) use self::report::report;
pub(super) use self::terminal::{AtTerminal, say_slow};
use super::admitted::require_admitted;
use super::auth::account_word;
use crate::connect::{self, CommandHost, StorageArgs, Wanted};
use crate::context::{Context, require_flags_only};
use crate::elicit;
use crate::exit::Exit;
use crate::output::Output;
use crate::report::{Outcome, Report};

/// The variable that holds the secret of a client, by the name other programs use too.
const CLIENT_SECRET: &str = "MCP_CLIENT_SECRET";

/// No private key is longer, in bytes.
const LONGEST_KEY: u64 = 64 * 1024;

/// Log in to a server
///
/// Opens the server's login page in a browser and waits for it to come back. The login is kept in
/// the system's keychain, or in an encrypted file where there is none, and renews itself; every
/// running Toolway process uses it at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway login github
  toolway login github --account work
  toolway login github --no-browser
  toolway login github --device
  MCP_CLIENT_SECRET=… toolway login ci --client-id bot --client-credentials
  toolway login ci --client-id bot --client-credentials --key bot.pem")]
pub(crate) struct LoginArgs {
    /// Its name; may be left out when one server wants a login
    server: Option<String>,

    /// Your word for the account, where you have several; that of the entry when left out
    #[arg(long, value_name = "NAME", value_parser = account_word)]
    account: Option<String>,

    #[command(flatten)]
    way: WayArgs,

    /// Log in as the client itself, without a person
    #[arg(long, conflicts_with_all = ["no_browser", "device"])]
    client_credentials: bool,

    /// What the login has to reach, beside what an earlier one reached, e.g. `read,write`.
    /// Repeatable
    #[arg(long, value_name = "SCOPES")]
    scopes: Vec<String>,

    /// A client that you registered yourself, in place of the entry's
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,

    /// Ask for the secret of that client; `MCP_CLIENT_SECRET` is used when it is set
    #[arg(long)]
    client_secret: bool,

    /// The private key of that client, in PEM, in place of a secret
    #[arg(long, value_name = "FILE", requires = "client_credentials")]
    #[arg(conflicts_with = "client_secret")]
    key: Option<PathBuf>,

    #[command(flatten)]
    storage: StorageArgs,
}

/// How a user logs in, wherever it is.
#[derive(Debug, Args)]
pub(super) struct WayArgs {
    /// Print the login page's address, and paste back the one where the browser ended
    #[arg(long)]
    no_browser: bool,

    /// Print a code to type on another device, where the server offers that
    #[arg(long, conflicts_with = "no_browser")]
    device: bool,
}

impl WayArgs {
    /// A browser where nothing else was asked for.
    pub(super) fn way(&self) -> LoginMethod {
        match self {
            Self { device: true, .. } => LoginMethod::Device,
            Self {
                no_browser: true, ..
            } => LoginMethod::Paste,
            _ => LoginMethod::Browser,
        }
    }
}

impl LoginArgs {
    /// Whether the login is to lie there in plain text.
    pub(crate) fn insecure_storage(&self) -> bool {
        self.storage.insecure_storage
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &LoginArgs) -> Outcome {
    let plan = context.plan().clone();
    require_flags_only(&plan)?;
    let server = match &args.server {
        Some(name) => require_admitted(context, &plan, name)?,
        None => only_one(context, &plan)?,
    };
    let entry = plan.winner(server.as_str());
    let of_entry = entry.and_then(PlannedServer::account).map(str::to_owned);
    if entry
        .and_then(|entry| entry.transport)
        .is_some_and(TransportKind::is_connector)
    {
        let message = format!("`{server}` is a connector: its login is that of your account");
        return Err(Report::usage(message).hint("run `toolway account login`"));
    }
    let options = LoginOptions {
        way: if args.client_credentials {
            LoginMethod::ClientCredentials
        } else {
            args.way.way()
        },
        account: args.account.clone(),
        whom: match (&args.account, &of_entry) {
            (None, None) => AccountChoice::BrowserSession,
            _ => AccountChoice::Ask,
        },
        scopes: args
            .scopes
            .iter()
            .flat_map(|scopes| scopes.split([' ', ',']))
            .filter(|scope| !scope.is_empty())
            .map(str::to_owned)
            .collect(),
        client_id: args.client_id.clone(),
        client_secret: secret(context, args)?,
        client_key: args.key.as_deref().map(key).transpose()?,
        person: Some(Arc::new(AtTerminal::new(context))),
    };
    let (logged_in, state) = connect::with_host_until(
        context,
        plan,
        Wanted::Only(server.clone()),
        async |host| log_in(&context.output, host, &server, options).await,
        |_| Err(given_up(&format!("the login to `{server}`"))),
    )?;
    context.output.result(&format!("{}\n", told(&logged_in)))?;
    if let Some(of_entry) = of_entry.filter(|account| *account != logged_in.account) {
        // The login is there, and this server does not use it, whatever its state.
        context.say(format!(
            "`{server}` goes on as `{of_entry}`, which its entry names\n\
             hint: to use this login, set `oauth.account` to `{}`",
            logged_in.account
        ));
        return Ok(Exit::Success);
    }
    match state {
        ConnectionState::Connected(_) => Ok(Exit::Success),
        ConnectionState::NeedsAuth { .. } => Err(not_taken(&server)),
        state => Err(Report::unavailable(server.as_str(), &state)),
    }
}

/// A login that came about, in words.
pub(super) fn told(login: &LoggedIn) -> String {
    let mut text = format!("logged in to `{}` as `{}`", login.server, login.account);
    match (login.renews, login.expires_at) {
        (true, _) => text.push_str(", renews itself"),
        (false, Some(at)) => text.extend([", until ", &shown_time(at)]),
        (false, None) => {}
    }
    text
}

/// A server that wants a login right after one: another one would end the same way.
fn not_taken(server: &ServerName) -> Report {
    let word = as_word(server.as_str());
    let message = format!("server `{server}` does not take the login that it was just given");
    Report::new(Exit::NeedsLogin, message).hint(format!(
        "see what it answered with `toolway logs {word} --protocol`; \
         it may want other scopes: `toolway login {word} --scopes …`"
    ))
}

/// How long a server may take to say what it wants before that is said.
const QUIET: Duration = Duration::from_secs(2);

async fn log_in(
    output: &Output,
    host: &CommandHost<'_>,
    server: &ServerName,
    options: LoginOptions,
) -> Result<(LoggedIn, ConnectionState), Report> {
    let way = options.way;
    let problem = |problem| report(server, &problem, way);
    let mut beginning = std::pin::pin!(host.whole().login(server.as_str(), options));
    let handle = if let Ok(begun) = timeout(QUIET, &mut beginning).await {
        begun
    } else {
        output.say(&format!("waiting for server `{server}` to answer"));
        beginning.await
    };
    let handle = handle.map_err(problem)?;
    let outcome = handle.outcome().await.unwrap_or(Err(LoginProblem::Ended));
    let logged_in = match outcome {
        Ok(logged_in) => logged_in,
        Err(error) => {
            return Err(no_server(host, server, &error)
                .await
                .unwrap_or_else(|| problem(error)));
        }
    };
    let state = host.whole().reconnect(server.as_str()).await;
    let state = state.map_err(|error| problem(error.into()))?;
    Ok((logged_in, state))
}

/// Why there is no login where that is because the server itself failed.
async fn no_server(
    host: &CommandHost<'_>,
    server: &ServerName,
    problem: &LoginProblem,
) -> Option<Report> {
    let LoginProblem::Failed(error) = problem else {
        return None;
    };
    let is_lost = matches!(
        error.fault,
        LoginFault::Discovery(_) | LoginFault::Registration(_) | LoginFault::Web(_)
    );
    if !is_lost {
        return None;
    }
    host.settled().await;
    let snapshot = host.snapshot();
    let mut servers = snapshot.servers.iter();
    let state = &servers.find(|found| found.name == *server)?.state;
    matches!(state, ConnectionState::Failed(_)).then(|| Report::unavailable(server.as_str(), state))
}

/// The one server that wants a login.
fn only_one(context: &Context, plan: &Plan) -> Result<ServerName, Report> {
    let snapshot = connect::with_host_until(
        context,
        plan.clone(),
        Wanted::All,
        async |host| {
            connect::settle(context, host).await;
            Ok(host.snapshot())
        },
        |_| Err(given_up("the login")),
    )?;
    let wanting = wanting(&snapshot);
    match wanting.as_slice() {
        [one] => Ok((*one).clone()),
        [] if plan.servers.is_empty() => Err(Report::usage("no server is configured")
            .hint("add one with `toolway add <name> <url>`")),
        [] => Err(Report::usage("no server wants a login")
            .hint("name the server to log in anew: `toolway login <server>`")),
        several => {
            let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
            let message = format!("several servers want a login: {}", names.join(", "));
            Err(Report::usage(message)
                .hint(format!("name one: `toolway login {}`", as_word(names[0]))))
        }
    }
}

fn wanting(snapshot: &HostSnapshot) -> Vec<&ServerName> {
    let servers = snapshot.servers.iter();
    servers
        .filter(|server| matches!(server.state, ConnectionState::NeedsAuth { .. }))
        .map(|server| &server.name)
        .collect()
}

/// The secret of a client: never an argument, which every user of the machine could read.
fn secret(context: &Context, args: &LoginArgs) -> Result<Option<Secret>, Report> {
    let variable = context.environment().var(CLIENT_SECRET);
    if let Some(value) = variable.filter(|value| !value.is_empty()) {
        return Ok(Some(Secret::new(value)));
    }
    if !args.client_secret {
        return Ok(None);
    }
    if !context.output.can_ask() {
        return Err(Report::usage("nobody is there to type the client's secret")
            .hint(format!("set the variable `{CLIENT_SECRET}`")));
    }
    let asking = elicit::hidden_line(&context.output, "client secret: ");
    match connect::block_on(until_given_up(context, "the login", asking))? {
        Some(text) => Ok(Some(Secret::new(text.trim()))),
        None => Err(Report::usage("no secret was typed")
            .hint(format!("type it, or set the variable `{CLIENT_SECRET}`"))),
    }
}

/// The key of a client, whose content is never shown.
fn key(path: &Path) -> Result<Secret, Report> {
    let faulty = |why: String| {
        let message = format!("`{}` cannot be used: {why}", path.display());
        Report::configuration(message)
            .hint("name a file with the client's private key, in PEM and not encrypted")
    };
    let read = File::open(path).and_then(|file| {
        let mut text = String::new();
        file.take(LONGEST_KEY).read_to_string(&mut text)?;
        Ok(text)
    });
    let pem = Secret::new(read.map_err(|error| faulty(error.to_string()))?);
    SigningKey::from_pem(&pem, None).map_err(|error| faulty(error.to_string()))?;
    Ok(pem)
}

/// Waits for what the user does, unless they give it up.
pub(super) async fn until_given_up<T>(
    context: &Context,
    what: &str,
    work: impl Future<Output = T>,
) -> Result<T, Report> {
    let mut signals = context.signals();
    tokio::select! {
        done = work => Ok(done),
        _ = signals.next() => {
            context.output.leave_line();
            Err(given_up(what))
        }
    }
}

/// The user gave it up: no advice is needed.
fn given_up(what: &str) -> Report {
    Report::new(Exit::Interrupted, format!("{what} was given up"))
}
