//! `toolway account`: the login whose connectors are servers too.
//!
//! Owns what a person does about the account (log in, log out, look), and what a listing says of
//! its connectors. The steps of a login, and where it is kept, are the library's.

use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use serde::Serialize;
use toolway::Host;
use toolway::account::{self, DirectoryState, refresh};
use toolway::journal::timestamp;
use toolway_auth::account::stored::AccountLoginError;
use toolway_auth::account::{AccountStatus, StoredAccount};
use toolway_auth::logins::Logins;
use toolway_config::account::directory::copy_file;
use toolway_config::{AccountProvider, ConnectorDirectory, Plan};
use toolway_types::{Scope, TransportKind};

use super::auth::{StatusArgs, not_read};
use super::login::{AtTerminal, WayArgs, until_given_up};
use crate::connect::{self, StorageArgs, connectors_of, http_client};
use crate::context::{Context, require_flags_only};
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// Log in to the provider of your connectors, or log out
///
/// The provider stands under `account` in your settings or your organisation's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway account login
  toolway account status
  toolway account logout")]
pub(crate) struct AccountArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Log in, and fetch the list of connectors
    Login(LoginArgs),
    /// Log out: the login ends here and at the provider, and the connectors go
    Logout,
    /// Who is logged in, until when, and how many connectors there are
    Status(StatusArgs),
}

#[derive(Debug, Args)]
struct LoginArgs {
    #[command(flatten)]
    way: WayArgs,

    #[command(flatten)]
    storage: StorageArgs,
}

impl AccountArgs {
    /// Whether the login is to lie there in plain text.
    pub(crate) fn insecure_storage(&self) -> bool {
        matches!(&self.what, What::Login(args) if args.storage.insecure_storage)
    }
}

/// What `status --json` prints. Absent values are null, never left out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    provider: String,
    issuer: String,
    source: String,
    logged_in: bool,
    logged_in_at: Option<String>,
    expires_at: Option<String>,
    renews: bool,
    scopes: Vec<String>,
    storage: &'static str,
    connectors: Count,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Count {
    switched_off: Option<String>,
    known: usize,
    fetched_at: Option<String>,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &AccountArgs) -> Outcome {
    let plan = context.plan();
    require_flags_only(plan)?;
    let Some(provider) = &plan.account else {
        context.say_unreadable(plan);
        return Err(none_configured());
    };
    connect::block_on(async {
        match &args.what {
            What::Login(args) => log_in(context, provider, args).await,
            What::Logout => log_out(context, provider).await,
            What::Status(args) => status(context, plan, provider, args.json).await,
        }
    })
}

fn none_configured() -> Report {
    Report::new(Exit::Configuration, "no account is configured").hint(
        "add the provider to your settings: `\"account\": {\"url\": \"https://connect.example.com\"}`",
    )
}

async fn log_in(context: &Context, provider: &AccountProvider, args: &LoginArgs) -> Outcome {
    let host = provider.host();
    let kept = kept(context, provider);
    let person = AtTerminal::new(context);
    let login = Box::pin(kept.log_in(args.way.way(), &person));
    let what = format!("the login at {host}");
    let outcome = until_given_up(context.output, &what, login).await?;
    outcome.map_err(not_logged_in)?;
    let text = format!("logged in at {host}\n");
    context.output.result(&text)?;
    let copy = copy_file(&context.environment);
    let plan = context.plan();
    if let Some(origin) = &plan.connectors_off {
        account::forget(&copy)?;
        let off = format!("connectors are switched off ({origin})");
        context.output.say(&off);
        return Ok(Exit::Success);
    }
    if let Some(connectors) = connectors_of(context)(plan) {
        let refreshed = refresh(&connectors).await;
        // The program ends soon, and the time for the directory may be over before a renewal is.
        connectors.account.settle(account::PATIENCE).await;
        if matches!(refreshed.state, DirectoryState::Fresh { .. }) {
            say(context, &refreshed.state);
            let names = kept_list(context, provider).connectors;
            let names: Vec<&str> = names.iter().map(|one| one.name.as_str()).collect();
            context.output.say(&match names.as_slice() {
                [] => "the account has no connectors".to_owned(),
                names => format!("connectors: {}", names.join(", ")),
            });
        } else {
            // The list of another person's login must not stay.
            account::forget(&copy)?;
            say(context, &without_copy(refreshed.state));
        }
    }
    Ok(Exit::Success)
}

async fn log_out(context: &Context, provider: &AccountProvider) -> Outcome {
    let host = provider.host();
    // First, so that whoever hears of the logout finds no connectors; and also when nobody is
    // logged in: what is left of an earlier login goes.
    connect::memory::forget(context, context.plan(), |planned| {
        planned.transport == Some(TransportKind::Connector)
    });
    account::forget(&copy_file(&context.environment))?;
    let out = kept(context, provider)
        .log_out()
        .await
        .map_err(|error| not_read(&error))?;
    match out {
        Some(out) => {
            context.output.result(&format!("logged out at {host}\n"))?;
            if let Some(error) = out.not_revoked {
                context.output.say(&format!("warning: {error}"));
            }
        }
        None => context
            .output
            .say(&format!("nobody is logged in at {host}")),
    }
    Ok(Exit::Success)
}

async fn status(context: &Context, plan: &Plan, provider: &AccountProvider, json: bool) -> Outcome {
    let vault = connect::vault(context);
    let storage = vault.backend().await.as_str();
    let found = kept(context, provider)
        .status()
        .await
        .map_err(|error| not_read(&error))?;
    let directory = kept_list(context, provider);
    let fetched_at = (directory.fetched_at > 0).then(|| shown_time(directory.fetched_at));
    let status = Status {
        provider: provider.host().to_owned(),
        issuer: provider.issuer.clone(),
        source: provider.origin.to_string(),
        logged_in: found.is_some(),
        logged_in_at: found.as_ref().map(|found| shown_time(found.logged_in_at)),
        expires_at: found
            .as_ref()
            .and_then(|found| found.expires_at)
            .map(shown_time),
        renews: found.as_ref().is_some_and(|found| found.renews),
        scopes: found
            .map(|found: AccountStatus| found.scopes)
            .unwrap_or_default(),
        storage,
        connectors: Count {
            switched_off: plan.connectors_off.as_ref().map(ToString::to_string),
            known: directory.connectors.len(),
            fetched_at,
        },
    };
    if json {
        context.output.json(&status)?;
        return Ok(Exit::Success);
    }
    context.output.result(&told(&status))?;
    if !status.logged_in {
        context
            .output
            .say("hint: log in with `toolway account login`");
    }
    Ok(Exit::Success)
}

/// The status for people.
fn told(status: &Status) -> String {
    let login = match (status.logged_in, status.renews, &status.expires_at) {
        (false, ..) => "nobody is logged in".to_owned(),
        (true, true, _) => "logged in, renews itself".to_owned(),
        (true, false, Some(at)) => format!("logged in until {at}"),
        (true, false, None) => "logged in".to_owned(),
    };
    let connectors = &status.connectors;
    let known = match (&connectors.switched_off, &connectors.fetched_at) {
        (Some(origin), _) => format!("switched off ({origin})"),
        (None, Some(at)) => format!("{}, as of {at}", connectors.known),
        (None, None) => "not fetched yet".to_owned(),
    };
    format!(
        "provider    {}\nissuer      {}\nsettings    {}\nlogin       {login}\nkept in     {}\nconnectors  {known}\n",
        status.provider, status.issuer, status.source, status.storage
    )
}

/// Waits for the provider's word on the connectors, and has the host follow it; the plan it then
/// follows, if that is another one.
pub(crate) async fn freshened(context: &Context, host: &Host, plan: &Plan) -> Option<Plan> {
    let mut directory = host.directory()?;
    let known = directory.wait_for(|state| *state != DirectoryState::Asking);
    let state = known.await.ok()?.clone();
    say(context, &state);
    let fresh = context.plan_with(&context.flags);
    if listed(plan) == listed(&fresh) {
        return None;
    }
    host.apply(fresh.clone()).await;
    connect::settle(context, host).await;
    Some(fresh)
}

fn listed(plan: &Plan) -> Vec<(&str, &serde_json::Map<String, serde_json::Value>)> {
    let servers = plan.servers.iter();
    servers
        .filter(|server| server.scope == Scope::Connector)
        .map(|server| (server.name.as_str(), &server.definition))
        .collect()
}

/// Says what is not as it should be with the list of connectors.
fn say(context: &Context, state: &DirectoryState) {
    match state {
        DirectoryState::Asking => {}
        DirectoryState::LoggedOut { why } => context.output.say(&format!("connectors: {why}")),
        DirectoryState::Fresh { left_out } => {
            for what in left_out {
                let text = format!("warning: left out of the connectors: {what}");
                context.output.say(&text);
            }
        }
        DirectoryState::Kept { why, fetched_at } => {
            let which = match fetched_at {
                Some(at) => format!("they are shown as of {}", shown_time(*at)),
                None => "none are known yet".to_owned(),
            };
            let text = format!("warning: the list of connectors is not fresh: {why}; {which}");
            context.output.say(&text);
        }
    }
}

/// The same after the copy was removed.
fn without_copy(state: DirectoryState) -> DirectoryState {
    match state {
        DirectoryState::Kept { why, .. } => DirectoryState::Kept {
            why,
            fetched_at: None,
        },
        other => other,
    }
}

fn kept(context: &Context, provider: &AccountProvider) -> StoredAccount {
    let logins = Logins::new(connect::vault(context));
    account::kept(provider, logins, http_client(context))
}

fn kept_list(context: &Context, provider: &AccountProvider) -> ConnectorDirectory {
    ConnectorDirectory::kept(&context.environment, provider).unwrap_or_default()
}

fn shown_time(seconds: u64) -> String {
    timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn not_logged_in(error: AccountLoginError) -> Report {
    let message = error.to_string();
    match error {
        AccountLoginError::NoMetadata { .. } | AccountLoginError::OtherIssuer { .. } => {
            Report::new(Exit::Configuration, message)
                .hint("see what is configured with `toolway account status`")
        }
        AccountLoginError::Login(_) => Report::new(Exit::NeedsLogin, message)
            .hint("try another way: `toolway account login --no-browser`, or `--device`"),
        AccountLoginError::Kept(error) => not_read(&error),
    }
}
