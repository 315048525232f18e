//! `toolway auth`: who is logged in where, and until when. No secret is ever shown.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;
use toolway::auth::{StoredLogin, used};
use toolway::journal::timestamp;
use toolway_auth::logins::{DEFAULT_ACCOUNT, LoginsError};
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

/// A login as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown {
    #[serde(skip)]
    server: String,
    account: String,
    issuer: String,
    scopes: Vec<String>,
    expires_at: Option<String>,
    renews: bool,
    how: &'static str,
    kept_in: &'static str,
    /// Whether the server of that name uses it.
    in_use: bool,
    #[serde(skip)]
    is_over: bool,
}

impl Shown {
    fn of(login: StoredLogin, in_use: bool, now: SystemTime) -> Self {
        let end = login.expires_at.map(instant);
        Self {
            is_over: !login.renews && end.is_some_and(|end| end <= now),
            server: login.server,
            account: login.account,
            issuer: login.issuer,
            scopes: login.scopes,
            expires_at: end.map(timestamp),
            renews: login.renews,
            how: login.how.as_str(),
            kept_in: login.backend.as_str(),
            in_use,
        }
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Whether the server of that name uses it.
    pub(crate) fn in_use(&self) -> bool {
        self.in_use
    }

    /// Whose it is and how long it lasts, in a few words.
    pub(crate) fn words(&self) -> String {
        let idle = if self.in_use { "" } else { " (not used)" };
        format!("`{}` {}{idle}", self.account, self.lasting())
    }

    fn lasting(&self) -> String {
        match (&self.expires_at, self.renews, self.is_over) {
            (_, true, _) => "renews itself".to_owned(),
            (Some(at), false, true) => format!("expired at {at}"),
            (Some(at), false, false) => format!("until {at}"),
            (None, false, _) => "until it is refused".to_owned(),
        }
    }
}

/// A moment in seconds since 1970, for people.
pub(super) fn shown_time(seconds: u64) -> String {
    timestamp(instant(seconds))
}

fn instant(seconds: u64) -> SystemTime {
    // A token for ever ends with the largest time that can be shown.
    const YEAR_9999: u64 = 253_402_300_799;
    UNIX_EPOCH + Duration::from_secs(seconds.min(YEAR_9999))
}

/// Every login that is kept and can be read.
pub(crate) fn logins(context: &Context) -> Result<Vec<Shown>, Report> {
    Ok(every(context)?.0)
}

/// Every login that is kept, and what is wrong with those that cannot be read.
fn every(context: &Context) -> Result<(Vec<Shown>, Vec<LoginsError>), Report> {
    let vault = connect::vault(context);
    if vault.is_unused() {
        return Ok((Vec::new(), Vec::new()));
    }
    let (kept, unread) =
        connect::block_on(async { Ok(context.setup.logins().every_login().await?) })?;
    let now = SystemTime::now();
    let specs = context.plan().admitted().map(|(_, spec)| spec);
    let used: Vec<StoredLogin> = specs
        .filter_map(|spec| used(&kept, spec).cloned())
        .collect();
    let kept = kept.into_iter().map(|login| {
        let in_use = used.contains(&login);
        Shown::of(login, in_use, now)
    });
    Ok((kept.collect(), unread))
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
        let logins: Vec<_> = logins
            .iter()
            .map(|login| {
                let mut shown = json!(login);
                shown["server"] = json!(login.server);
                shown
            })
            .collect();
        let unread: Vec<String> = unread.iter().map(ToString::to_string).collect();
        return context.json(&json!({ "logins": logins, "unreadable": unread }));
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
            login.server.clone(),
            login.account.clone(),
            login.issuer.clone(),
            login.lasting(),
            login.kept_in.to_owned(),
            if login.in_use { "yes" } else { "no" }.to_owned(),
        ]
    });
    let header = ["SERVER", "ACCOUNT", "ISSUER", "LASTS", "KEPT IN", "USED"];
    context.output.table(&header, rows)?;
    if let Some(over) = logins.iter().find(|login| login.is_over) {
        let account = Some(over.account.as_str()).filter(|account| *account != DEFAULT_ACCOUNT);
        context.hint(format!(
            "log in anew with `toolway login {}`",
            login_words(&over.server, account)
        ));
    }
    Ok(Exit::Success)
}
