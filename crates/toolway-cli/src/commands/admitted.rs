//! The server that a word names: the entry that counts for it, if it may connect.
//!
//! Owns why it may not, what helps, and what a word that names no server was meant for.

use toolway::builtin::RESERVED;
use toolway_config::{Plan, ServerVerdict};
use toolway_types::name::as_word;
use toolway_types::{Diagnosis, Origin, ServerName, nearest};

use crate::connect::Wanted;
use crate::context::{Context, unknown_server};
use crate::exit::Exit;
use crate::report::Report;
use crate::typed::is_url;

/// Refuses an address that is neither a URL we know nor a command: mostly a slip.
pub(super) fn require_known_scheme(word: &str) -> Result<(), Report> {
    match word.split_once(":/") {
        Some((scheme, rest))
            if !is_url(word)
                // One letter is a drive.
                && scheme.len() > 1
                && scheme
                    .chars()
                    .all(|character| character.is_ascii_alphanumeric()) =>
        {
            let rest = rest.trim_start_matches('/');
            // What stands behind it may hold a secret.
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or_default();
            Err(Report::usage(format!(
                "`{scheme}:/…` is not an address that Toolway can reach"
            ))
            .hint(format!("did you mean `https://{host}…`?")))
        }
        _ => Ok(()),
    }
}

/// The server by its name, if the plan lets it connect; otherwise why not.
pub(super) fn require_admitted(
    context: &Context,
    plan: &Plan,
    name: &str,
) -> Result<ServerName, Report> {
    let Some(server) = plan.winner(name) else {
        require_known_scheme(name)?;
        context.say_unreadable(plan);
        return Err(unknown_server(plan, name));
    };
    let word = as_word(name);
    let (exit, hint) = match &server.verdict {
        ServerVerdict::Admitted(_) => return Ok(server.name.clone()),
        ServerVerdict::PendingApproval { .. } => (
            Exit::Refused,
            format!("look at it with `toolway approve {word}`"),
        ),
        ServerVerdict::Rejected { .. } => (
            Exit::Refused,
            format!("to change your mind: `toolway approve {word}`"),
        ),
        ServerVerdict::Disabled { .. } => (
            Exit::Refused,
            format!("switch it on with `toolway enable {word}`"),
        ),
        ServerVerdict::Refused { .. } => (Exit::Refused, refused_hint(plan, server)),
        ServerVerdict::Invalid { .. } => (
            Exit::Configuration,
            "mend it there, then check with `toolway doctor`".to_owned(),
        ),
        ServerVerdict::Shadowed { by, .. } => (
            Exit::Configuration,
            format!("the entry that counts stands at {}", by.origin),
        ),
    };
    // The plan's own finding knows best how to mend it.
    let hint = server
        .diagnoses
        .iter()
        .find_map(|found| found.hint.clone())
        .unwrap_or(hint);
    let reason = server
        .verdict
        .reason()
        .unwrap_or_else(|| server.verdict.word());
    let report = Report::new(exit, format!("server `{name}` cannot be used: {reason}")).hint(hint);
    Err(match &server.verdict {
        // Where to mend it; other reasons name their own place.
        ServerVerdict::Invalid { .. } => report.details([format!("at {}", fault(server))]),
        _ => report,
    })
}

/// Where an entry is wrong: at the key that is, or where it begins.
fn fault(server: &toolway_config::PlannedServer) -> &Origin {
    server
        .diagnoses
        .iter()
        .find_map(|found| found.origin.as_ref())
        .unwrap_or(&server.origin)
}

fn refused_hint(plan: &Plan, server: &toolway_config::PlannedServer) -> String {
    match (&plan.blocked, &server.origin) {
        (
            Some(Diagnosis {
                hint: Some(hint), ..
            }),
            _,
        ) => hint.clone(),
        (_, Origin::Flag { .. }) => "ask the administrator of this machine to allow it".to_owned(),
        _ => format!(
            "see why with `toolway explain {}`",
            as_word(server.name.as_str())
        ),
    }
}

/// The server an exposed name belongs to: the one whose normalised name it carries. Where several
/// are spelled alike, all of them are wanted: their tools say whose it is.
pub(super) fn find_by_exposed(
    context: &Context,
    plan: &Plan,
    exposed: &str,
) -> Result<(ServerName, Wanted), Report> {
    let names = spelled_servers(plan, exposed);
    let Some(first) = names.first() else {
        context.say_unreadable(plan);
        let rest = exposed.strip_prefix("mcp__").unwrap_or(exposed);
        let name = rest.split("__").next().unwrap_or(rest);
        return Err(unknown(plan, name));
    };
    let admitted: Vec<ServerName> = names
        .iter()
        .filter(|name| plan.admitted().any(|(server, _)| server.name == ***name))
        .map(|name| ServerName::clone(name))
        .collect();
    match admitted.as_slice() {
        [] | [_] => {
            let name = admitted.first().unwrap_or(first);
            let server = require_admitted(context, plan, name.as_str())?;
            Ok((server.clone(), Wanted::Only(server)))
        }
        [first, ..] => Ok((first.clone(), Wanted::Some(admitted))),
    }
}

/// The servers with the longest normalised name that an exposed one begins with: `mcp__a__b__c` is
/// `a__b`'s before `a`'s. Several may be spelled alike; the one that needs no normalising is first.
pub(super) fn spelled_servers<'p>(plan: &'p Plan, exposed: &str) -> Vec<&'p ServerName> {
    let rest = exposed.strip_prefix("mcp__").unwrap_or(exposed);
    let mut names: Vec<(String, &ServerName)> = plan
        .servers
        .iter()
        .map(|server| (server.name.normalized(), &server.name))
        .filter(|(spelled, _)| {
            let behind = rest.strip_prefix(spelled.as_str());
            behind.is_some_and(|behind| behind.starts_with("__"))
        })
        .collect();
    let longest = names.iter().map(|(spelled, _)| spelled.len()).max();
    names.retain(|(spelled, _)| Some(spelled.len()) == longest);
    names.sort_by_key(|(spelled, name)| (spelled != name.as_str(), *name));
    names.dedup();
    names.into_iter().map(|(_, name)| name).collect()
}

/// A word that names no server, nor any of the host's own tools.
pub(super) fn unknown(plan: &Plan, word: &str) -> Report {
    let near = near_built_in(word).map(|name| format!("did you mean `{name}`?"));
    unknown_server(plan, word).better_hint(near)
}

/// The one of the host's own tools that was probably meant.
pub(super) fn near_built_in(word: &str) -> Option<&'static str> {
    nearest(word, RESERVED)
}
