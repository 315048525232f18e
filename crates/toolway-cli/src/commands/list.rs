//! `toolway list`: every configured server and where it stands.
//!
//! Owns the table and what is said below it; the rows are `toolway_rows`'. What `--watch` shows is
//! `list/watch.rs`, `--cached` `list/kept.rs`; `list/why.rs` finds the words of a
//! server that say why it failed.

mod event;
mod hints;
mod kept;
mod watch;
mod why;

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use clap::Args;
use toolway::HostSnapshot;
use toolway::rows::{planned_row, settle_row};
use toolway_config::{Plan, PlannedServer, ServerVerdict};
use toolway_rows::{ServerListing, ServerRow};
use toolway_types::{Diagnosis, Severity};

use self::hints::{hint, login_command, say_hints, say_off, say_waiting};
use super::account;
use super::auth::{self, login_in_words};
use crate::connect::{self, Wanted};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::Outcome;

/// List the configured servers and connect to them
///
/// Every server that is mentioned anywhere is shown, also those that are refused, shadowed,
/// switched off or wait for approval, each with the reason.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Show the plan only: start nothing, connect to nothing
    #[arg(long)]
    no_connect: bool,

    /// Stay, and show every change of servers and of their configuration until Ctrl-C
    #[arg(short, long, conflicts_with = "no_connect")]
    watch: bool,

    /// Answer at once with what the servers offered before, and how long ago: start nothing, wait
    /// for nothing
    #[arg(long, conflicts_with_all = ["no_connect", "watch", "check"])]
    cached: bool,

    /// End with 4 when a server that may connect is not connected, with 5 when it only wants a
    /// login, with 3 when an entry is wrong
    #[arg(long, conflicts_with_all = ["no_connect", "watch"])]
    check: bool,

    /// Show what is there after this many seconds; servers that need longer are shown as pending
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with = "watch"
    )]
    timeout: Option<u64>,

    /// Print JSON; with `--watch` one object per line for each change
    #[arg(long)]
    json: bool,
}

impl ListArgs {
    /// Whether it goes on until it is ended.
    pub(crate) fn watches(&self) -> bool {
        self.watch
    }

    /// Whether it asks servers, rather than files alone.
    pub(crate) fn connects(&self) -> bool {
        !self.no_connect && !self.cached
    }
}

/// One server, and what is said of it beside its row.
pub(crate) struct Listed {
    row: ServerRow,
    /// What else there is to say of it.
    note: Option<String>,
    /// What to do about it.
    hint: Option<String>,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ListArgs) -> Outcome {
    if args.watch {
        return watch::run(context, args.json);
    }
    let mut plan = Cow::Borrowed(context.plan());
    context.require_flags(&plan)?;
    let mut rows: Vec<Listed> = plan.servers.iter().map(planned).collect();
    let mut stopped = None;
    if args.cached {
        kept::fill(context, &mut rows, &plan);
    } else if !args.no_connect && (plan.admitted().next().is_some() || plan.account.is_some()) {
        let known = plan.clone().into_owned();
        let limit = args.timeout.map(Duration::from_secs);
        let (fresh, snapshot, interrupted) = connect::with_host_until(
            context,
            known,
            Wanted::Listing,
            async |host| {
                connect::within(limit, connect::settle(context, host)).await;
                let fresh = account::freshened(context, host, &plan).await;
                Ok((fresh, host.snapshot(), None))
            },
            |host| {
                Ok((
                    None,
                    host.snapshot(),
                    Some(connect::stopped_showing(context)),
                ))
            },
        )?;
        if let Some(fresh) = fresh {
            rows = fresh.servers.iter().map(planned).collect();
            plan = Cow::Owned(fresh);
        }
        fill(context, &mut rows, &plan, &snapshot);
        note_late(&mut rows, &plan, limit);
        say_warnings(context, &snapshot);
        stopped = interrupted;
    }
    add_logins(context, &mut rows);
    let exit = exit(args, &plan, &rows);
    if args.json {
        let servers = only_rows(rows);
        context.output.json(&ServerListing { servers })?;
    } else if rows.is_empty() {
        context.say("no server is configured");
        context.hint("add one with `toolway add <name> <command or url>`");
    } else {
        table(context, &rows)?;
        say_waiting(context, &plan);
        say_hints(context, &rows);
        say_off(context, &plan);
    }
    match stopped {
        Some(stopped) => Err(stopped),
        None => Ok(exit),
    }
}

/// How the command ends: with what is wrong, the files first, and with `--check` the servers.
fn exit(args: &ListArgs, plan: &Plan, rows: &[Listed]) -> Exit {
    let is_error = |diagnosis: &Diagnosis| diagnosis.severity == Severity::Error;
    if plan.diagnoses.iter().any(is_error) {
        return Exit::Configuration;
    }
    if !args.check {
        return Exit::Success;
    }
    let mut exit = Exit::Success;
    for (listed, planned) in rows.iter().zip(&plan.servers) {
        match (&planned.verdict, &*listed.row.state) {
            (ServerVerdict::Invalid { .. }, _) => return Exit::Configuration,
            (ServerVerdict::Admitted(_), "failed" | "pending") => exit = Exit::Connection,
            (ServerVerdict::Admitted(_), "needs-auth") if exit == Exit::Success => {
                exit = Exit::NeedsLogin;
            }
            _ => {}
        }
    }
    exit
}

/// Says of those that have not answered how long they had.
fn note_late(rows: &mut [Listed], plan: &Plan, limit: Option<Duration>) {
    for (listed, planned) in rows.iter_mut().zip(&plan.servers) {
        if matches!(planned.verdict, ServerVerdict::Admitted(_)) && listed.row.state == "pending" {
            listed.note = Some(match limit {
                Some(limit) => format!("has not answered within {limit:?}"),
                None => "has not answered yet".to_owned(),
            });
        }
    }
}

/// The rows of a plan whose servers are connected.
pub(crate) fn rows(context: &Context, plan: &Plan, snapshot: &HostSnapshot) -> Vec<ServerRow> {
    only_rows(listed(context, plan, snapshot))
}

fn listed(context: &Context, plan: &Plan, snapshot: &HostSnapshot) -> Vec<Listed> {
    let mut rows: Vec<Listed> = plan.servers.iter().map(planned).collect();
    fill(context, &mut rows, plan, snapshot);
    rows
}

/// The table, or the JSON, of a plan whose servers are connected.
pub(crate) fn show(
    context: &Context,
    plan: &Plan,
    snapshot: &HostSnapshot,
    as_json: bool,
) -> io::Result<()> {
    let listed = listed(context, plan, snapshot);
    if as_json {
        let servers = only_rows(listed);
        return context.output.json(&ServerListing { servers });
    }
    table(context, &listed)
}

fn table(context: &Context, rows: &[Listed]) -> io::Result<()> {
    let head = ["NAME", "SCOPE", "TYPE", "STATE", "TOOLS", "DETAIL"];
    context.output.table(&head, rows.iter().map(cells))
}

/// What servers did wrong without failing.
pub(crate) fn say_warnings(context: &Context, snapshot: &HostSnapshot) {
    for server in &snapshot.servers {
        for warning in &server.warnings {
            context.warn(format!("server `{}`: {warning}", server.name));
        }
    }
}

/// A server as the plan knows it, before anything connects.
fn planned(server: &PlannedServer) -> Listed {
    Listed {
        row: planned_row(server),
        note: None,
        hint: None,
    }
}

/// The rows without what is said beside them.
fn only_rows(listed: Vec<Listed>) -> Vec<ServerRow> {
    listed.into_iter().map(|listed| listed.row).collect()
}

/// Adds who is logged in. A vault that cannot be read is told and hides nothing else.
fn add_logins(context: &Context, rows: &mut [Listed]) {
    let logins = match auth::logins(context) {
        Ok(logins) => logins,
        Err(report) => {
            context.warn(&report.message);
            return;
        }
    };
    for mut login in logins {
        let Some(server) = login.server.take() else {
            continue;
        };
        // The first of a name is the one that counts.
        let mut rows = rows.iter_mut().map(|listed| &mut listed.row);
        if let Some(row) = rows.find(|row| row.name.as_str() == server) {
            row.logins.push(login);
        }
    }
    for listed in rows {
        listed.row.logins.sort_by_key(|login| !login.in_use);
    }
}

/// Adds what connecting found out to the rows of admitted servers.
fn fill(context: &Context, rows: &mut [Listed], plan: &Plan, snapshot: &HostSnapshot) {
    for (listed, planned) in rows.iter_mut().zip(&plan.servers) {
        if !matches!(planned.verdict, ServerVerdict::Admitted(_)) {
            continue;
        }
        if let Some(server) = snapshot
            .servers
            .iter()
            .find(|server| server.name == planned.name)
        {
            let row = &mut listed.row;
            settle_row(row, server);
            row.login = login_command(context, row, &server.state);
            let hint = hint(context, row, &server.state);
            listed.hint = hint.map(|hint| context.reached(hint));
        }
    }
}

fn cells(listed: &Listed) -> Vec<Cow<'_, str>> {
    let row = &listed.row;
    let state = match &*row.state {
        "connected" => "✔ connected".into(),
        "failed" => "✘ failed".into(),
        "needs-auth" => "! needs-auth".into(),
        "disabled" => "⊘ disabled".into(),
        "pending" => "· pending".into(),
        other => format!("· {other}").into(),
    };
    let detail: Cow<'_, str> = match (&row.error, &row.reason, &row.protocol_version) {
        (Some(error), _, _) => {
            let error = error.lines().next().unwrap_or_default();
            // The server knows better than we do why it ended.
            match why::telling_line(&row.stderr) {
                Some(line) => format!("{line} ({error})").into(),
                None => error.into(),
            }
        }
        (None, Some(reason), _) => reason.into(),
        (None, None, Some(version)) => format!("protocol {version}").into(),
        (None, None, None) => listed.note.as_deref().unwrap_or_default().into(),
    };
    let logins: Vec<String> = row.logins.iter().map(login_in_words).collect();
    let detail = match (&*detail, logins.as_slice()) {
        (_, []) => detail,
        ("", logins) => format!("login {}", logins.join(", ")).into(),
        (detail, logins) => format!("{detail}; login {}", logins.join(", ")).into(),
    };
    vec![
        row.name.as_str().into(),
        row.scope.as_str().into(),
        row.transport.as_deref().unwrap_or("-").into(),
        state,
        row.tools
            .map_or("-".into(), |count| count.to_string().into()),
        detail,
    ]
}
