//! Logins that a call began: `mcp__<server>__authenticate` answers with a page, and the login that
//! it belongs to lives no longer than this program.
//!
//! Owns waiting for them. The login is the library's, and what is said about one `login`'s.

use std::time::{Duration, Instant};

use toolway::auth::{LoginHandle, LoginProblem};
use toolway_auth::callback::LOGIN_TIMEOUT;
use toolway_auth::login::LoginMethod;
use toolway_types::ServerName;
use toolway_types::name::as_word;

use crate::commands::login;
use crate::connect::CommandHost;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::Report;

/// The time limit of a run.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    pub(super) began: Instant,
    pub(super) after: Option<Duration>,
}

impl Limit {
    /// Does something in what is left of the time; nothing when that is over.
    async fn within<T>(self, work: impl Future<Output = T>) -> Option<T> {
        match self.after {
            None => Some(work.await),
            Some(after) => {
                let left = after.saturating_sub(self.began.elapsed());
                tokio::time::timeout(left, work).await.ok()
            }
        }
    }

    fn over(self, what: &str, command: &str) -> Report {
        let after = self.after.unwrap_or_default();
        Report::new(
            Exit::TimedOut,
            format!("nobody logged in to {what} within {after:?}"),
        )
        .hint(format!(
            "give it longer with `--timeout <seconds>`, or run `{command}`"
        ))
    }
}

/// Waits until every login that was begun is over. The first that fails is the error.
pub(super) async fn awaited(
    context: &Context,
    host: &CommandHost<'_>,
    limit: Limit,
) -> Result<(), Report> {
    let mut first = Ok(());
    for (server, login) in host.whole().unattended_logins() {
        let ended = one(context, &server, login, limit).await;
        first = first.and(ended);
    }
    if let Some(login) = host.whole().unattended_account_login() {
        say_waiting(context, "your account");
        let ended = match limit.within(login).await {
            Some(Ok(())) => {
                context.say("logged in to your account");
                Ok(())
            }
            Some(Err(why)) => Err(Report::new(Exit::NeedsLogin, why)
                .hint("log in in a terminal with `toolway account login`")),
            None => Err(limit.over("your account", "toolway account login")),
        };
        first = first.and(ended);
    }
    first
}

async fn one(
    context: &Context,
    server: &ServerName,
    login: LoginHandle,
    limit: Limit,
) -> Result<(), Report> {
    say_waiting(context, &format!("`{server}`"));
    match limit.within(login.outcome()).await {
        Some(Some(Ok(done))) => {
            context.say(login::told(&done));
            Ok(())
        }
        Some(Some(Err(problem))) => Err(login::report(server, &problem, LoginMethod::Browser)),
        Some(None) => Err(login::report(
            server,
            &LoginProblem::Ended,
            LoginMethod::Browser,
        )),
        None => {
            let command = format!("toolway login {}", as_word(server.as_str()));
            Err(limit.over(&format!("`{server}`"), &command))
        }
    }
}

fn say_waiting(context: &Context, what: &str) {
    context.say(format!(
        "waiting for the login to {what}, for {} minutes at most (Ctrl-C gives it up)",
        LOGIN_TIMEOUT.as_secs() / 60
    ));
}
