//! `toolway account`: the login whose connectors are servers too.
//!
//! Owns what the user does about the account (log in, log out, look), and what a listing says of
//! its connectors. The steps of a login, and where it is kept, are the library's.

use clap::{Args, Subcommand};
use toolway::account::{self, DirectoryState, refresh};
use toolway::rows::shown_time;
use toolway_auth::account::StoredAccount;
use toolway_auth::account::stored::AccountLoginError;
use toolway_config::account::directory::copy_file;
use toolway_config::{AccountProvider, ConnectorDirectory, Plan};
use toolway_rows::{AccountRow, ConnectorsRow};
use toolway_types::{Scope, TransportKind};

use super::auth::StatusArgs;
use super::login::{AtTerminal, WayArgs, until_given_up};
use crate::connect::{self, CommandHost, StorageArgs};
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

/// Runs the command.
pub(crate) fn run(context: &Context, args: &AccountArgs) -> Outcome {
    let plan = context.plan();
    require_flags_only(plan)?;
    let Some(provider) = &plan.account else {
        context.say_unreadable(plan);
        return Err(Report::configuration("no account is configured").hint(
            "add the provider to your settings: `\"account\": {\"url\": \"https://connect.example.com\"}`",
        ));
    };
    connect::block_on(async {
        match &args.what {
            What::Login(args) => log_in(context, provider, args).await,
            What::Logout => log_out(context, provider).await,
            What::Status(args) => status(context, plan, provider, args.json).await,
        }
    })
}

async fn log_in(context: &Context, provider: &AccountProvider, args: &LoginArgs) -> Outcome {
    let host = provider.host();
    let kept = kept(context, provider);
    let terminal = AtTerminal::new(context);
    let login = Box::pin(kept.log_in(args.way.way(), &terminal));
    let what = format!("the login at {host}");
    let outcome = until_given_up(context, &what, login).await?;
    outcome.map_err(not_logged_in)?;
    let text = format!("logged in at {host}\n");
    context.output.result(&text)?;
    let copy = copy_file(context.environment());
    let plan = context.plan();
    if let Some(origin) = &plan.connectors_off {
        account::forget(&copy)?;
        let off = format!("connectors are switched off ({origin})");
        context.say(&off);
        return Ok(Exit::Success);
    }
    if let Some(connectors) = context.setup.connectors()(plan) {
        let refreshed = refresh(&connectors).await;
        // The program ends soon, and the time for the directory may be over before a renewal is.
        connectors.account.settle(account::PATIENCE).await;
        if matches!(refreshed.state, DirectoryState::Fresh { .. }) {
            say(context, &refreshed.state);
            let names = kept_list(context, provider).connectors;
            let names: Vec<&str> = names.iter().map(|one| one.name.as_str()).collect();
            context.say(&match names.as_slice() {
                [] => "the account has no connectors".to_owned(),
                names => format!("connectors: {}", names.join(", ")),
            });
        } else {
            // The list of another user's login must not stay.
            account::forget(&copy)?;
            say(context, &without_copy(refreshed.state));
        }
    }
    Ok(Exit::Success)
}

async fn log_out(context: &Context, provider: &AccountProvider) -> Outcome {
    let host = provider.host();
    // First, so that none are found once the logout is known; and also when nobody is logged in:
    // what is left of an earlier login goes.
    context.setup.forget_offers(context.plan(), |planned| {
        planned.transport.is_some_and(TransportKind::is_connector)
    });
    account::forget(&copy_file(context.environment()))?;
    match kept(context, provider).log_out().await? {
        Some(out) => {
            context.output.result(&format!("logged out at {host}\n"))?;
            if let Some(error) = out.not_revoked {
                context.warn(&error);
            }
        }
        None => context.say(format!("nobody is logged in at {host}")),
    }
    Ok(Exit::Success)
}

async fn status(context: &Context, plan: &Plan, provider: &AccountProvider, json: bool) -> Outcome {
    let storage = connect::vault(context).backend().await.as_str();
    let login = kept(context, provider).status().await?;
    let login = login.as_ref();
    let directory = kept_list(context, provider);
    let fetched_at = (directory.fetched_at > 0).then(|| shown_time(directory.fetched_at));
    let expires_at = login.and_then(|login| login.expires_at).map(shown_time);
    let renews = login.is_some_and(|login| login.renews);
    if json {
        return context.json(&AccountRow {
            provider: provider.host().to_owned(),
            issuer: provider.issuer.clone(),
            source: provider.origin.to_string(),
            logged_in: login.is_some(),
            logged_in_at: login.map(|login| shown_time(login.logged_in_at)),
            expires_at,
            renews,
            scopes: login.map(|login| login.scopes.clone()).unwrap_or_default(),
            storage: storage.into(),
            connectors: ConnectorsRow {
                switched_off: plan.connectors_off.as_ref().map(ToString::to_string),
                known: directory.connectors.len(),
                fetched_at,
            },
        });
    }
    let state = match (login, renews, expires_at) {
        (None, ..) => "nobody is logged in".to_owned(),
        (Some(_), true, _) => "logged in, renews itself".to_owned(),
        (Some(_), false, Some(at)) => format!("logged in until {at}"),
        (Some(_), false, None) => "logged in".to_owned(),
    };
    let known = match (&plan.connectors_off, fetched_at) {
        (Some(origin), _) => format!("switched off ({origin})"),
        (None, Some(at)) => format!("{}, as of {at}", directory.connectors.len()),
        (None, None) => "not fetched yet".to_owned(),
    };
    context.output.result(&format!(
        "provider    {}\nissuer      {}\nsettings    {}\nlogin       {state}\nkept in     {storage}\nconnectors  {known}\n",
        provider.host(),
        provider.issuer,
        provider.origin
    ))?;
    if login.is_none() {
        context.hint("log in with `toolway account login`");
    }
    Ok(Exit::Success)
}

/// Waits for the provider's word on the connectors, and has the host follow it; the plan it then
/// follows, if that is another one.
pub(crate) async fn freshened(
    context: &Context,
    host: &CommandHost<'_>,
    plan: &Plan,
) -> Option<Plan> {
    let mut directory = host.whole().directory()?;
    let known = directory.wait_for(|state| *state != DirectoryState::Asking);
    let state = known.await.ok()?.clone();
    say(context, &state);
    let fresh = context.setup.plan();
    if listed(plan) == listed(&fresh) {
        return None;
    }
    host.whole().apply(fresh.clone()).await;
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
        DirectoryState::LoggedOut { why } => context.say(format!("connectors: {why}")),
        DirectoryState::Fresh { left_out } => {
            for what in left_out {
                let text = format!("warning: left out of the connectors: {what}");
                context.say(&text);
            }
        }
        DirectoryState::Kept { why, fetched_at } => {
            let which = match fetched_at {
                Some(at) => format!("they are shown as of {}", shown_time(*at)),
                None => "none are known yet".to_owned(),
            };
            let text = format!("warning: the list of connectors is not fresh: {why}; {which}");
            context.say(&text);
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
    context.say_once(context.setup.vault_finding());
    context.setup.account(provider)
}

fn kept_list(context: &Context, provider: &AccountProvider) -> ConnectorDirectory {
    ConnectorDirectory::kept(context.environment(), provider).unwrap_or_default()
}

fn not_logged_in(error: AccountLoginError) -> Report {
    let message = error.to_string();
    match error {
        AccountLoginError::NoMetadata { .. } | AccountLoginError::OtherIssuer { .. } => {
            Report::configuration(message)
                .hint("see what is configured with `toolway account status`")
        }
        AccountLoginError::Login(_) => Report::new(Exit::NeedsLogin, message)
            .hint("try another way: `toolway account login --no-browser`, or `--device`"),
        AccountLoginError::Kept(error) => Report::from(error),
    }
}
