//! `toolway list`: every configured server and where it stands.
//!
//! Owns the row that `list` shows, as a table and as JSON; the JSON shape is an interface. What
//! `--watch` shows is `list/watch.rs`, `--cached` `list/kept.rs`; `list/why.rs` finds the words of a
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
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use toolway::{HostSnapshot, ServerSnapshot};
use toolway_config::{Plan, PlannedServer, ServerVerdict};
use toolway_types::{ConnectionState, Diagnosis, Origin, Severity, TransportKind};

use self::hints::{hint, login_command, say_hints, say_off, say_waiting};
use super::account;
use super::auth::{self, Shown};
use crate::connect::{self, Wanted};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, UNNAMED_SCOPES, source};

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
    /// Whether it asks servers, rather than files alone.
    pub(crate) fn connects(&self) -> bool {
        !self.no_connect && !self.cached
    }
}

/// One server, as `list --json` prints it. Absent values are null, never left out.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) name: String,
    scope: &'static str,
    #[serde(serialize_with = "as_source")]
    source: Option<Origin>,
    transport: Option<&'static str>,
    state: &'static str,
    reason: Option<String>,
    error: Option<String>,
    era: Option<&'static str>,
    protocol_version: Option<String>,
    server_info: Option<Value>,
    tools: Option<usize>,
    resources: Option<usize>,
    prompts: Option<usize>,
    /// The account that its entry names; absent where it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// The command that logs in; absent where no login is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<String>,
    /// The last lines that it wrote to stderr; absent where it wrote none or did not fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stderr: Vec<String>,
    /// With `--cached`, how long ago it was asked what it offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_ago: Option<u64>,
    /// What else there is to say of it.
    #[serde(skip)]
    note: Option<String>,
    /// What to do about it.
    #[serde(skip)]
    hint: Option<String>,
    /// The logins there; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logins: Vec<Shown>,
}

#[expect(clippy::ref_option, reason = "what serde hands over")]
fn as_source<S: Serializer>(origin: &Option<Origin>, serializer: S) -> Result<S::Ok, S::Error> {
    origin.as_ref().map(source).serialize(serializer)
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ListArgs) -> Outcome {
    if args.watch {
        return watch::run(context, args.json);
    }
    let mut plan = Cow::Borrowed(context.plan());
    context.require_flags(&plan)?;
    let mut rows: Vec<Row> = plan.servers.iter().map(planned).collect();
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
            |host| Ok((None, host.snapshot(), Some(connect::stopped_showing()))),
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
        context.output.json(&json!({ "servers": rows }))?;
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
fn exit(args: &ListArgs, plan: &Plan, rows: &[Row]) -> Exit {
    let is_error = |diagnosis: &Diagnosis| diagnosis.severity == Severity::Error;
    if plan.diagnoses.iter().any(is_error) {
        return Exit::Configuration;
    }
    if !args.check {
        return Exit::Success;
    }
    let mut exit = Exit::Success;
    for (row, planned) in rows.iter().zip(&plan.servers) {
        match (&planned.verdict, row.state) {
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
fn note_late(rows: &mut [Row], plan: &Plan, limit: Option<Duration>) {
    for (row, planned) in rows.iter_mut().zip(&plan.servers) {
        if matches!(planned.verdict, ServerVerdict::Admitted(_)) && row.state == "pending" {
            row.note = Some(match limit {
                Some(limit) => format!("has not answered within {limit:?}"),
                None => "has not answered yet".to_owned(),
            });
        }
    }
}

/// The rows of a plan whose servers are connected.
pub(crate) fn rows(context: &Context, plan: &Plan, snapshot: &HostSnapshot) -> Vec<Row> {
    let mut rows: Vec<Row> = plan.servers.iter().map(planned).collect();
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
    let rows = rows(context, plan, snapshot);
    if as_json {
        return context.output.json(&json!({ "servers": rows }));
    }
    table(context, &rows)
}

fn table(context: &Context, rows: &[Row]) -> io::Result<()> {
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

/// A row as the plan knows it, before anything connects.
fn planned(server: &PlannedServer) -> Row {
    let (state, reason, error) = match &server.verdict {
        ServerVerdict::Admitted(_) => ("pending", None, None),
        ServerVerdict::Invalid { reason } => ("failed", None, Some(reason.clone())),
        ServerVerdict::Shadowed { by, reason } => {
            let reason = format!("shadowed {reason}: {} ({} scope)", by.origin, by.scope);
            ("disabled", Some(reason), None)
        }
        other => {
            let reason = other.reason().unwrap_or_else(|| other.word());
            ("disabled", Some(reason.to_owned()), None)
        }
    };
    Row {
        name: server.name.to_string(),
        scope: server.scope.as_str(),
        source: Some(server.origin.clone()),
        transport: server.transport.map(TransportKind::as_str),
        state,
        reason,
        error,
        account: server.account().map(str::to_owned),
        ..Row::default()
    }
}

/// Adds who is logged in. A vault that cannot be read is told and hides nothing else.
fn add_logins(context: &Context, rows: &mut [Row]) {
    let logins = match auth::logins(context) {
        Ok(logins) => logins,
        Err(report) => {
            context.warn(&report.message);
            return;
        }
    };
    for login in logins {
        // The first of a name is the one that counts.
        if let Some(row) = rows.iter_mut().find(|row| row.name == login.server()) {
            row.logins.push(login);
        }
    }
    for row in rows {
        row.logins.sort_by_key(|login| !login.in_use());
    }
}

/// Adds what connecting found out to the rows of admitted servers.
fn fill(context: &Context, rows: &mut [Row], plan: &Plan, snapshot: &HostSnapshot) {
    for (row, planned) in rows.iter_mut().zip(&plan.servers) {
        if !matches!(planned.verdict, ServerVerdict::Admitted(_)) {
            continue;
        }
        if let Some(server) = snapshot
            .servers
            .iter()
            .find(|server| server.name == planned.name)
        {
            fill_row(row, server);
            row.login = login_command(context, row, &server.state);
            let hint = hint(context, row, &server.state);
            row.hint = hint.map(|hint| context.reached(hint));
        }
    }
}

fn fill_row(row: &mut Row, server: &ServerSnapshot) {
    row.state = server.state.as_str();
    match &server.state {
        ConnectionState::Connected(facts) => {
            row.era = Some(facts.era.as_str());
            row.protocol_version = Some(facts.protocol_version.clone());
            row.server_info = Some(facts.server_info.clone());
        }
        ConnectionState::Failed(failure) => {
            row.error = Some(failure.message.clone());
            row.stderr = failure
                .stderr
                .iter()
                .map(|line| line.line().to_string())
                .collect();
        }
        ConnectionState::NeedsAuth { unnamed_scopes, .. } => {
            row.error = Some(match &row.account {
                _ if *unnamed_scopes => UNNAMED_SCOPES.to_owned(),
                Some(account) => format!("wants a login as `{account}` first"),
                None => "wants a login first".to_owned(),
            });
        }
        ConnectionState::Disabled { reason } => row.reason = Some(reason.clone()),
        ConnectionState::Pending { .. } => {}
    }
    if let Some(counts) = &server.counts {
        row.tools = Some(counts.tools);
        row.resources = Some(counts.resources);
        row.prompts = Some(counts.prompts);
    }
}

fn cells(row: &Row) -> Vec<Cow<'_, str>> {
    let state = match row.state {
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
        (None, None, None) => row.note.as_deref().unwrap_or_default().into(),
    };
    let logins: Vec<String> = row.logins.iter().map(Shown::words).collect();
    let detail = match (&*detail, logins.as_slice()) {
        (_, []) => detail,
        ("", logins) => format!("login {}", logins.join(", ")).into(),
        (detail, logins) => format!("{detail}; login {}", logins.join(", ")).into(),
    };
    vec![
        row.name.as_str().into(),
        row.scope.into(),
        row.transport.unwrap_or("-").into(),
        state,
        row.tools
            .map_or("-".into(), |count| count.to_string().into()),
        detail,
    ]
}
