//! `toolway get`: one server's entry as it counts, without connecting.

use std::fmt::Write as _;

use clap::Args;
use serde_json::Value;
use toolway::rows::entry_row;
use toolway_config::{PlannedServer, ServerVerdict, without_secrets};
use toolway_rows::LoginRow;
use toolway_types::TransportKind;
use toolway_types::text::spelled_out;

use super::auth::{self, login_in_words};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, login_words};

/// Show one server's configuration
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Its name
    name: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where the values begin.
const LABEL: usize = 13;

/// Runs the command.
pub(crate) fn run(context: &Context, args: &GetArgs) -> Outcome {
    let server = match context.server(&args.name) {
        Ok(server) => server,
        Err(report) => {
            context.say_unreadable(context.plan());
            return Err(report);
        }
    };
    let login = login(context, server);
    if args.json {
        context.output.json(&entry_row(server, login))?;
    } else {
        let text = as_text(server, login.as_ref());
        context.output.paragraphs(&text, Some(LABEL))?;
        if let (None, Some(account)) = (&login, server.account()) {
            let words = login_words(server.name.as_str(), Some(account));
            let hint = format!("hint: log in with `toolway login {words}`");
            context.say(context.reached(hint));
        }
        context.say_findings(&server.diagnoses);
    }
    Ok(Exit::Success)
}

/// The login that the server uses. A vault that cannot be read is told and hides nothing else.
fn login(context: &Context, server: &PlannedServer) -> Option<LoginRow> {
    let logs_in = server.transport.is_some_and(TransportKind::logs_in);
    if !logs_in || !matches!(server.verdict, ServerVerdict::Admitted(_)) {
        return None;
    }
    match auth::logins(context) {
        Ok(logins) => {
            let name = Some(server.name.as_str());
            let is_its = |login: &LoginRow| login.in_use && login.server.as_deref() == name;
            let login = logins.into_iter().find(is_its)?;
            Some(LoginRow {
                server: None,
                ..login
            })
        }
        Err(report) => {
            context.warn(&report.message);
            None
        }
    }
}

fn as_text(server: &PlannedServer, login: Option<&LoginRow>) -> String {
    let mut text = format!("{}\n", server.name);
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "{:<LABEL$}{value}", format!("  {label} "));
    };
    line("scope", server.scope.as_str());
    line("source", &server.origin.to_string());
    match server.verdict.reason() {
        Some(reason) => line("verdict", &format!("{}: {reason}", server.verdict.word())),
        None => line("verdict", server.verdict.word()),
    }
    match (login, server.account()) {
        (Some(login), _) => line("login", &login_in_words(login)),
        (None, Some(account)) => line("login", &format!("`{account}`: nobody is logged in")),
        (None, None) => {}
    }
    for (key, value) in without_secrets(&server.definition) {
        match &value {
            Value::String(word) => line(&spelled_out(&key), &spelled_out(word)),
            other => line(&spelled_out(&key), &spelled_out(&other.to_string())),
        }
    }
    text
}
