//! `toolway auth`: who is logged in where, and until when. No secret is ever shown.

use std::time::SystemTime;

use clap::{Args, Subcommand};
use toolway::journal::timestamp;
use toolway::rows::login_rows;
use toolway_auth::logins::{DEFAULT_ACCOUNT, LoginsError};
use toolway_rows::{LoginListing, LoginRow};
use toolway_types::name::{AccountNameError, check_account};

use crate::connect;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report, login_words};

/// See who is logged in where
///
/// No secret is shown. Log in with `toolway login <server>`, log out with `toolway logout <server>`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway auth status
  toolway auth status --json")]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Debug, Subcommand)]
enum AuthCommand {
    /// List logins with their accounts and how long they last
    Status(StatusArgs),
}

/// The flag of `auth status`, `idp status` and `account status`.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Whose a login is and how long it lasts, in a few words.
pub(crate) fn login_in_words(login: &LoginRow) -> String {
    let idle = if login.in_use { "" } else { " (not used)" };
    format!("`{}` {}{idle}", login.account, lasting(login))
}

fn lasting(login: &LoginRow) -> String {
    match (&login.expires_at, login.renews) {
        (_, true) => "renews itself".to_owned(),
        (Some(at), false) if is_over(login) => format!("expired at {at}"),
        (Some(at), false) => format!("until {at}"),
        (None, false) => "until it is refused".to_owned(),
    }
}

fn is_over(login: &LoginRow) -> bool {
    login.is_over(&timestamp(SystemTime::now()))
}

/// Every login that is kept and can be read.
pub(crate) fn logins(context: &Context) -> Result<Vec<LoginRow>, Report> {
    Ok(every(context)?.0)
}

/// Every login that is kept, and what is wrong with those that cannot be read.
fn every(context: &Context) -> Result<(Vec<LoginRow>, Vec<LoginsError>), Report> {
    let vault = connect::vault(context);
    if vault.is_unused() {
        return Ok((Vec::new(), Vec::new()));
    }
    let (kept, unread) =
        connect::block_on(async { Ok(context.setup.logins().every_login().await?) })?;
    Ok((login_rows(context.plan(), kept), unread))
}

/// Checks a user's name for an account.
pub(super) fn account_word(word: &str) -> Result<String, AccountNameError> {
    check_account(word).map(|()| word.to_owned())
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &AuthArgs) -> Outcome {
    let AuthCommand::Status(args) = &args.command;
    let (logins, unread) = every(context)?;
    if args.json {
        let unreadable = unread.iter().map(ToString::to_string).collect();
        return context.json(&LoginListing { logins, unreadable });
    }
    for error in &unread {
        context.warn_of(&Report::from(error));
    }
    if logins.is_empty() {
        // Logins that cannot be read are logins all the same.
        if unread.is_empty() {
            context.say("nobody is logged in anywhere");
            context.hint("log in with `toolway login <server>`");
        }
        return Ok(Exit::Success);
    }
    let rows = logins.iter().map(|login| {
        vec![
            login.server.clone().unwrap_or_default(),
            login.account.clone(),
            login.issuer.clone(),
            lasting(login),
            login.kept_in.clone().into_owned(),
            if login.in_use { "yes" } else { "no" }.to_owned(),
        ]
    });
    let header = ["SERVER", "ACCOUNT", "ISSUER", "LASTS", "KEPT IN", "USED"];
    context.output.table(&header, rows)?;
    if let Some(over) = logins.iter().find(|login| is_over(login)) {
        let account = Some(over.account.as_str()).filter(|account| *account != DEFAULT_ACCOUNT);
        context.hint(format!(
            "log in anew with `toolway login {}`",
            login_words(over.server.as_deref().unwrap_or_default(), account)
        ));
    }
    Ok(Exit::Success)
}
