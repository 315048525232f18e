//! `toolway logout`: logins given up, here and at the authorization server.

use std::sync::Arc;

use clap::Args;
use toolway::auth::RemovedLogin;
use toolway::rows::served_rows;
use toolway_auth::logins::LoginsError;
use toolway_types::TransportKind;
use toolway_types::name::as_word;

use super::login::say_slow;
use crate::connect;
use crate::context::{Context, unknown_server};
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// Log out of a server
///
/// Forgets its logins, of every account unless one is named, and asks the authorization server to
/// end them as well.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway logout github
  toolway logout github --account work
  toolway logout --all")]
pub(crate) struct LogoutArgs {
    /// Its name; also of a server that is not configured any more
    #[arg(required_unless_present = "all")]
    server: Option<String>,

    /// Only this account
    #[arg(long, value_name = "NAME")]
    account: Option<String>,

    /// Every server
    #[arg(long, conflicts_with = "server")]
    all: bool,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &LogoutArgs) -> Outcome {
    let server = args.server.as_deref();
    let account = args.account.as_deref();
    let out = connect::block_on(async {
        let output = context.output.clone();
        let book =
            connect::logins(context).telling(Arc::new(move |place| say_slow(&output, place)));
        book.log_out(server, account)
            .await
            .map_err(|error| unread(server, &error))
    })?;
    if out.is_empty() {
        return nothing(context, server, account);
    }
    for login in &out {
        told(context, login)?;
    }
    Ok(Exit::Success)
}

/// A login that cannot be read cannot be given back either, but it can be forgotten.
fn unread(server: Option<&str>, error: &LoginsError) -> Report {
    let report = Report::from(error);
    let (Some(server), Some(hint)) = (server, &report.hint) else {
        return report;
    };
    let word = as_word(server);
    let hint = format!("{hint}; or only forget it: `toolway vault remove --server {word}`");
    report.hint(hint)
}

fn told(context: &Context, login: &RemovedLogin) -> Result<(), Report> {
    let (server, account) = (&login.server, &login.account);
    let text = format!("logged out of `{server}` as `{account}`\n");
    context.output.result(&text)?;
    if let Some(error) = &login.not_revoked {
        context.warn(error);
    } else if !login.can_revoke {
        context.warn(format!(
            "the authorization server {} cannot be told: the token stays good there until it expires",
            login.issuer
        ));
    }
    if is_vouched_for(context, server) {
        context.say(format!(
            "`{server}` has cross-app access: it is logged in to anew while somebody is logged in \
             at the identity provider\nhint: end that with `toolway idp logout`"
        ));
    }
    // What it offered to that account must not be shown to another.
    context
        .setup
        .forget_offers(context.plan(), |planned| planned.name.as_str() == server);
    connect::reconnect_elsewhere(context, server);
    Ok(())
}

/// Whether the organisation's word is enough for the next login.
fn is_vouched_for(context: &Context, server: &str) -> bool {
    let all = served_rows(context.plan());
    all.iter().any(|one| one.name == server)
}

fn nothing(context: &Context, server: Option<&str>, account: Option<&str>) -> Outcome {
    let Some(server) = server else {
        context.say("nobody is logged in anywhere");
        return Ok(Exit::Success);
    };
    let plan = context.plan();
    let Some(entry) = plan.winner(server) else {
        return Err(unknown_server(plan, server));
    };
    if entry.transport.is_some_and(TransportKind::is_connector) {
        let message = format!("`{server}` is a connector: its login is that of your account");
        return Err(Report::usage(message).hint("run `toolway account logout`"));
    }
    let what = match account {
        Some(account) => format!("nobody is logged in to `{server}` as `{account}`"),
        None => format!("nobody is logged in to `{server}`"),
    };
    context.say(&what);
    context.hint("see who is logged in where with `toolway auth status`");
    Ok(Exit::Success)
}
