//! What rules and matchers aim at: those that can hit nothing, said before they are missed.
//!
//! Owns the comparison of names in rules and matchers with the servers that are configured, and
//! the advice. Nothing here decides a call.
//!
//! A rule for a server that is configured elsewhere is no slip, so it is told only to whoever asks
//! for everything; one that nearly names a server that is here is told to everybody.

use toolway_types::text::{self, fold};
use toolway_types::{Diagnosis, Origin, ServerName, name};

use super::rule::PREFIX;
use super::{Hooks, Permissions};
use crate::raw::keys::nearest;

/// What is wrong with what a name aims at.
enum Miss {
    /// This was probably meant.
    Slip(String),
    /// No server like that is configured.
    Nobody(String),
}

/// What rules and matchers of these settings miss, among these servers.
pub(crate) struct Missed {
    /// Rules and matchers that nearly name a server, or name it in no form that is read.
    pub(crate) slips: Vec<Diagnosis>,
    /// Rules and matchers for servers that are not configured here.
    pub(crate) absent: Vec<Diagnosis>,
}

pub(crate) fn missed(permissions: &Permissions, hooks: &Hooks, servers: &[&ServerName]) -> Missed {
    let mut missed = Missed {
        slips: Vec::new(),
        absent: Vec::new(),
    };
    for (list, rule, _, origin) in permissions.rules() {
        let name = rule.split('(').next().unwrap_or_default().trim();
        let what = format!("the rule `{rule}` in `permissions.{list}`");
        missed.note(&what, name, servers, origin);
    }
    for hook in hooks.iter() {
        for name in hook.matcher_names() {
            let what = format!("the matcher `{name}` of a hook for {}", hook.event.as_str());
            missed.note(&what, name, servers, &hook.origin);
        }
    }
    missed
}

impl Missed {
    fn note(&mut self, what: &str, name: &str, servers: &[&ServerName], origin: &Origin) {
        let what = text::clean_line(what);
        match miss(name, servers) {
            None => {}
            Some(Miss::Slip(meant)) => self.slips.push(
                Diagnosis::warning(format!("{what} names no tool of a configured server"))
                    .at(origin.clone())
                    .hint(format!("did you mean `{}`?", text::clean_line(&meant))),
            ),
            Some(Miss::Nobody(server)) => self.absent.push(
                Diagnosis::warning(format!(
                    "{what} speaks of `{}`, and no such server is configured here",
                    text::clean_line(&server)
                ))
                .at(origin.clone())
                .hint("that is as it should be if the server is configured elsewhere"),
            ),
        }
    }
}

fn miss(written: &str, servers: &[&ServerName]) -> Option<Miss> {
    let folded = fold(written);
    match folded.strip_prefix(PREFIX) {
        Some(rest) => behind_prefix(rest, &folded, servers),
        None => bare(&folded, servers).map(Miss::Slip),
    }
}

/// A name with the prefix: does what follows begin with a server?
fn behind_prefix(rest: &str, whole: &str, servers: &[&ServerName]) -> Option<Miss> {
    // A long name is cut, and ends with a digest: nobody types such a one.
    let cut = whole.len() == name::MAX_EXPOSED_LEN && name::ends_like_suffix(whole);
    if rest.is_empty() || cut {
        return None;
    }
    let start = rest.split('*').next().unwrap_or_default();
    let starred = start.len() < rest.len();
    let hits = |form: &str| {
        let border = format!("{form}__");
        rest == form
            || rest.starts_with(&border)
            || (starred && (border.starts_with(start) || start.starts_with(&border)))
    };
    if servers
        .iter()
        .any(|server| forms(server).any(|form| hits(&form)))
    {
        return None;
    }
    if let Some((server, tool)) = parted(rest, servers) {
        return Some(Miss::Slip(format!("{PREFIX}{server}__{tool}")));
    }
    let (server, tool) = match rest.split_once("__") {
        Some((server, tool)) => (server, Some(tool)),
        None => (rest, None),
    };
    let names = servers.iter().map(|server| server.as_str());
    Some(match nearest(server, names) {
        Some(near) if !server.contains('*') => Miss::Slip(match tool {
            Some(tool) => format!("{PREFIX}{near}__{tool}"),
            None => format!("{PREFIX}{near}"),
        }),
        _ => Miss::Nobody(server.to_owned()),
    })
}

/// A name without the prefix is one of the host's own tools, or a tool's own name. It is a slip
/// where it begins with a server all the same.
fn bare(folded: &str, servers: &[&ServerName]) -> Option<String> {
    let named = folded
        .strip_prefix("mcp")
        .map(|rest| rest.trim_start_matches(['_', '-']));
    for rest in [Some(folded), named].into_iter().flatten() {
        if let Some((server, tool)) = parted(rest, servers) {
            return Some(format!("{PREFIX}{server}__{tool}"));
        }
        let is = |server: &&&ServerName| forms(server).any(|form| form == rest);
        if let Some(server) = servers.iter().find(is) {
            return Some(format!("{PREFIX}{server}"));
        }
    }
    None
}

/// A server, and what stands behind it and a mark that parts nothing in a rule, or the border
/// itself.
fn parted<'a>(rest: &'a str, servers: &[&'a ServerName]) -> Option<(&'a str, &'a str)> {
    servers.iter().find_map(|server| {
        let tool = forms(server).find_map(|form| {
            let behind = rest.strip_prefix(&form)?;
            let tool = behind
                .strip_prefix("__")
                .or_else(|| behind.strip_prefix(['.', ':', '/']))?;
            let tool = tool.trim_start_matches(['_', ':']);
            (!tool.is_empty()).then_some(tool)
        })?;
        Some((server.as_str(), tool))
    })
}

/// A server as it may be written, folded.
fn forms(server: &ServerName) -> impl Iterator<Item = String> {
    let shown = text::clean_line(server.as_str()).into_owned();
    [
        fold(server.as_str()),
        fold(&name::normalize(&shown)),
        fold(&name::normalize_connector(server.as_str())),
        fold(&shown),
    ]
    .into_iter()
}
