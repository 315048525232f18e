//! What to do about servers that are not connected.
//!
//! Owns the hints below the list and the next step of each row. What a row says of a server is
//! `list.rs`.

use toolway_config::{Plan, PlannedServer, ServerVerdict};
use toolway_rows::ServerRow;
use toolway_types::name::as_word;
use toolway_types::{ConnectionState, FailureKind, TransportKind};

use super::Listed;
use crate::context::Context;
use crate::report::{failure_hint, login_words};

/// Hints that are printed before the others are counted.
const HINTS_AT_ONCE: usize = 3;

/// What the user can do about servers that wait for approval.
pub(super) fn say_waiting(context: &Context, plan: &Plan) {
    let waiting: Vec<&PlannedServer> = plan
        .servers
        .iter()
        .filter(|server| matches!(server.verdict, ServerVerdict::PendingApproval { .. }))
        .collect();
    match waiting.as_slice() {
        [] => {}
        [one] => context.hint(format!(
            "look at `{}` with `toolway approve {}`",
            one.name,
            as_word(one.name.as_str())
        )),
        several => context.hint(format!(
            "{} servers wait for your word; look at each with `toolway approve --all`",
            several.len()
        )),
    }
}

/// What to do about servers that want a login or failed: those that a login mends first. What is
/// wrong with an entry was said before.
pub(super) fn say_hints(context: &Context, rows: &[Listed]) {
    let hints_of = |state: &'static str| {
        rows.iter()
            .filter(move |listed| listed.row.state == state)
            .filter_map(|listed| listed.hint.as_deref())
    };
    let mut hints: Vec<&str> = hints_of("needs-auth").collect();
    hints.dedup();
    // A login is one command: all are told at once.
    let mut commands: Vec<&str> = rows
        .iter()
        .filter_map(|listed| listed.row.login.as_deref())
        .collect();
    commands.dedup();
    if commands.len() > HINTS_AT_ONCE {
        let listed: Vec<String> = commands.iter().map(|it| format!("`{it}`")).collect();
        context.hint(format!(
            "{} logins are wanted: {}",
            commands.len(),
            listed.join(", ")
        ));
        let is_listed = |hint: &&str| commands.iter().any(|it| hint.ends_with(&format!("`{it}`")));
        hints.retain(|hint| !is_listed(hint));
    }
    let at_once = hints.len().max(HINTS_AT_ONCE);
    hints.extend(hints_of("failed"));
    hints.dedup();
    for hint in hints.iter().take(at_once) {
        context.hint(hint);
    }
    let more = hints.len().saturating_sub(at_once);
    if more > 0 {
        context.hint(format!(
            "see what to do about {more} more with `toolway tools <server>`"
        ));
    }
}

/// How to have back what the user switched off or rejected.
pub(super) fn say_off(context: &Context, plan: &Plan) {
    let is_off = |server: &&PlannedServer| {
        matches!(
            server.verdict,
            ServerVerdict::Disabled { .. } | ServerVerdict::Rejected { .. }
        )
    };
    let off: Vec<&PlannedServer> = plan.servers.iter().filter(is_off).collect();
    let hint = match off.as_slice() {
        [] => return,
        [one] => {
            let word = as_word(one.name.as_str());
            if let ServerVerdict::Rejected { .. } = one.verdict {
                format!(
                    "to change your mind about `{}`: `toolway approve {word}`",
                    one.name
                )
            } else {
                format!("switch `{}` on with `toolway enable {word}`", one.name)
            }
        }
        several => format!(
            "{} servers are switched off; how to switch one on says `toolway explain <server>`",
            several.len()
        ),
    };
    context.hint(&hint);
}

/// The next step for a server that is not connected.
pub(super) fn hint(context: &Context, row: &ServerRow, state: &ConnectionState) -> Option<String> {
    let name = row.name.as_str();
    match state {
        ConnectionState::Failed(failure) => {
            let was_started = matches!(failure.kind, FailureKind::TimedOut | FailureKind::Closed);
            let offline = was_started.then(|| context.offline_hint(name)).flatten();
            let hint = offline.unwrap_or_else(|| failure_hint(name, failure));
            Some(format!("`{name}`: {hint}"))
        }
        ConnectionState::NeedsAuth { unnamed_scopes, .. } => context.advice(name).or_else(|| {
            let what = if is_connector(row) {
                "your account".to_owned()
            } else {
                format!("`{name}`")
            };
            let which = if *unnamed_scopes {
                "; ask whoever runs it which scopes it takes"
            } else {
                ""
            };
            let login = row.login.as_ref()?;
            Some(format!("log in to {what} with `{login}`{which}"))
        }),
        ConnectionState::Disabled { .. }
        | ConnectionState::Pending { .. }
        | ConnectionState::Connected(_) => None,
    }
}

/// The command that logs in to a server which wants that, where one is enough.
pub(super) fn login_command(
    context: &Context,
    row: &ServerRow,
    state: &ConnectionState,
) -> Option<String> {
    let ConnectionState::NeedsAuth { unnamed_scopes, .. } = state else {
        return None;
    };
    if context.advice(row.name.as_str()).is_some() {
        return None;
    }
    Some(if is_connector(row) {
        "toolway account login".to_owned()
    } else {
        let words = login_words(row.name.as_str(), row.account.as_deref());
        // One like the last would be refused at once.
        let scopes = if *unnamed_scopes {
            " --scopes <scopes>"
        } else {
            ""
        };
        format!("toolway login {words}{scopes}")
    })
}

fn is_connector(row: &ServerRow) -> bool {
    let transport = row.transport.as_deref().and_then(TransportKind::parse);
    transport.is_some_and(TransportKind::is_connector)
}
