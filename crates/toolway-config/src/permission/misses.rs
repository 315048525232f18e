//! Rules and matchers that name no configured server, or may not mean what they say.
//!
//! Owns comparing names in rules and matchers with the configured servers, and the advice. Nothing
//! here decides a call.
//!
//! Slips are reported with every call: a rule that nearly names a server, or an allow rule that
//! names one in no form that allows. Remarks are reported on request, because they may be intended:
//! a rule for a server that is configured elsewhere, a restricting rule that is read in another
//! form, an allow rule that could mean two servers.

use toolway_types::text::{self, fold};
use toolway_types::{Diagnosis, Origin, ServerName, name, nearest};

use super::rule::PermissionRule;
use super::spelling::PREFIX;
use super::{HookEvent, Hooks, PermissionList, Permissions};

/// What is wrong with the server in a rule's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleMiss {
    /// It names a server in a form that rules do not have; in a rule it is written like this.
    Form(String),
    /// This was probably meant.
    Slip(String),
    /// No server like this is configured.
    Nobody(String),
}

/// The rules and matchers of these settings that miss these servers.
#[derive(Default)]
pub(crate) struct RuleMisses {
    /// Rules and matchers that nearly name a server, or name it in no form that is read.
    pub(crate) slips: Vec<Diagnosis>,
    /// Rules and matchers that may be intended.
    pub(crate) remarks: Vec<Diagnosis>,
}

/// How a name is read that names a server in another form.
#[derive(Clone, Copy, PartialEq)]
enum NameReading {
    /// As what it seems to say: restricting rules, and matchers of tools.
    Wide,
    /// Exactly: rules that allow.
    Exact,
}

/// Finds the rules and matchers that miss. `is_own` tells whether a name without a server is one of
/// the host's own tools, or could be the name of a tool that is shown without its server.
pub(crate) fn missed(
    permissions: &Permissions,
    hooks: &Hooks,
    servers: &[&ServerName],
    is_own: &dyn Fn(&str) -> bool,
) -> RuleMisses {
    let mut missed = RuleMisses::default();
    for (list, rule, _, origin) in permissions.rules() {
        let name = rule.split('(').next().unwrap_or_default().trim();
        let what = format!("the rule `{rule}` in `permissions.{}`", list.as_str());
        let reading = match list {
            PermissionList::Allow => NameReading::Exact,
            PermissionList::Ask | PermissionList::Deny => NameReading::Wide,
        };
        let miss = miss(name, servers);
        if miss.is_none() && !name.starts_with(PREFIX) && !name.contains('*') && !is_own(name) {
            missed.note_serverless(&what, name, reading, origin);
        }
        missed.note(&what, miss, reading, origin);
    }
    let own = permissions.rules.own(servers);
    for rule in &permissions.rules.allow {
        missed.note_unclear(rule, &own);
    }
    for hook in hooks.iter() {
        for name in hook.matcher_names() {
            let what = format!("the matcher `{name}` of a hook for {}", hook.event.as_str());
            let miss = match hook.event {
                HookEvent::PreToolUse | HookEvent::PostToolUse | HookEvent::PostToolUseFailure => {
                    miss(name, servers)
                }
                HookEvent::Elicitation | HookEvent::ElicitationResult => miss_server(name, servers),
            };
            // For tools, a server's name alone matches nothing.
            let reading = if name.contains(['.', '/', ':', ' ']) || name.contains("__") {
                NameReading::Wide
            } else {
                NameReading::Exact
            };
            missed.note(&what, miss, reading, &hook.origin);
        }
    }
    missed
}

impl RuleMisses {
    fn note(&mut self, what: &str, miss: Option<RuleMiss>, reading: NameReading, origin: &Origin) {
        let what = text::clean_line(what);
        match (miss, reading) {
            (None, _) => {}
            (Some(RuleMiss::Form(meant)), NameReading::Wide) => self.remarks.push(
                Diagnosis::warning(format!("{what} is read as `{}`", text::clean_line(&meant)))
                    .at(origin.clone())
                    .hint(format!("write `{}`", text::clean_line(&meant))),
            ),
            (Some(RuleMiss::Form(meant) | RuleMiss::Slip(meant)), _) => self.slips.push(
                Diagnosis::warning(format!("{what} names no tool of a configured server"))
                    .at(origin.clone())
                    .hint(format!("did you mean `{}`?", text::clean_line(&meant))),
            ),
            (Some(RuleMiss::Nobody(server)), _) => self.remarks.push(
                Diagnosis::warning(format!(
                    "{what} speaks of `{}`, and no such server is configured here",
                    text::clean_line(&server)
                ))
                .at(origin.clone())
                .hint("that is as it should be if the server is configured elsewhere"),
            ),
        }
    }

    /// A name without a server: in an allow rule it allows nothing; in a restricting one it means
    /// every tool of that name, unless a server was meant.
    fn note_serverless(&mut self, what: &str, name: &str, reading: NameReading, origin: &Origin) {
        let what = text::clean_line(what);
        let remark = match (reading, name.contains(['.', '/', ':', ' '])) {
            (NameReading::Exact, _) => format!("{what} names no server, and allows nothing"),
            (NameReading::Wide, true) => {
                format!(
                    "{what} names no server that is configured here, unless a tool is called so"
                )
            }
            (NameReading::Wide, false) => return,
        };
        let hint = "write `mcp__<server>__<tool>`";
        let remark = Diagnosis::warning(remark).at(origin.clone()).hint(hint);
        self.remarks.push(remark);
    }

    /// An allow rule that could mean several servers counts for the one with exactly that name, or
    /// for none.
    fn note_unclear(&mut self, rule: &PermissionRule, servers: &[&ServerName]) {
        let unclear = rule.unclear(servers);
        let Some(first) = unclear.first() else {
            return;
        };
        let named = |server: &&ServerName| format!("`{}`", text::clean_line(server.as_str()));
        let all: Vec<String> = unclear.iter().map(named).collect();
        let counts = match unclear.iter().find(|server| rule.is_exactly(server)) {
            Some(exact) => format!("it counts for {} alone", named(exact)),
            None => "it allows nothing".to_owned(),
        };
        let cited = rule.cited();
        self.remarks.push(
            Diagnosis::warning(format!(
                "the rule `{}` in `permissions.allow` can mean servers {}; {counts}",
                text::clean_line(&cited.rule),
                all.join(" and ")
            ))
            .at(cited.origin.clone())
            .hint(format!(
                "write the server's name as it is configured: `{PREFIX}{}`",
                text::clean_line(first.as_str())
            )),
        );
    }
}

/// What is wrong with the name of a rule, among these servers; `None` where it names one of them,
/// or no server at all.
pub fn miss(written: &str, servers: &[&ServerName]) -> Option<RuleMiss> {
    let folded = fold(written);
    let miss = match folded.strip_prefix(PREFIX) {
        Some(rest) => behind_prefix(rest, &folded, servers),
        None => bare(&folded, servers),
    };
    Some(match miss? {
        RuleMiss::Form(meant) => RuleMiss::Form(in_case(&meant, written)),
        RuleMiss::Slip(meant) => RuleMiss::Slip(in_case(&meant, written)),
        nobody @ RuleMiss::Nobody(_) => nobody,
    })
}

/// The suggestion, with its end in the letter case in which it was written.
fn in_case(meant: &str, written: &str) -> String {
    for (at, _) in written.char_indices() {
        if let Some(start) = meant.strip_suffix(&fold(&written[at..])) {
            return format!("{start}{}", &written[at..]);
        }
    }
    meant.to_owned()
}

/// The same for a name that stands for a server.
fn miss_server(written: &str, servers: &[&ServerName]) -> Option<RuleMiss> {
    let folded = fold(written);
    if folded.contains('*') {
        return None;
    }
    let own = folded.strip_prefix(PREFIX).unwrap_or(&folded);
    let is = |server: &&ServerName| forms(server).any(|form| form == own);
    if servers.iter().any(is) {
        return None;
    }
    let names = servers.iter().map(|server| server.as_str());
    Some(match nearest(own, names) {
        Some(near) => RuleMiss::Slip(near.to_owned()),
        None => RuleMiss::Nobody(own.to_owned()),
    })
}

/// A name with the prefix: does what follows begin with a server?
fn behind_prefix(rest: &str, whole: &str, servers: &[&ServerName]) -> Option<RuleMiss> {
    // A long name is cut and ends with a digest: not typed by hand.
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
        // `mcp__db:echo` is neither form.
        return Some(RuleMiss::Slip(format!("{PREFIX}{server}__{tool}")));
    }
    let (server, tool) = match rest.split_once("__") {
        Some((server, tool)) => (server, Some(tool)),
        None => (rest, None),
    };
    let names = servers.iter().map(|server| server.as_str());
    Some(match nearest(server, names) {
        Some(near) if !server.contains('*') => RuleMiss::Slip(match tool {
            Some(tool) => format!("{PREFIX}{near}__{tool}"),
            None => format!("{PREFIX}{near}"),
        }),
        _ => RuleMiss::Nobody(server.to_owned()),
    })
}

/// A name without the prefix is one of the host's own tools, or a tool's own name; or it begins
/// with a server.
fn bare(folded: &str, servers: &[&ServerName]) -> Option<RuleMiss> {
    let named = folded
        .strip_prefix("mcp")
        .map(|rest| rest.trim_start_matches(['_', '-']));
    let as_typed: fn(String) -> RuleMiss = RuleMiss::Form;
    for (rest, miss) in [(Some(folded), as_typed), (named, RuleMiss::Slip)] {
        let Some(rest) = rest else {
            continue;
        };
        if let Some((server, tool)) = parted(rest, servers) {
            return Some(miss(format!("{PREFIX}{server}__{tool}")));
        }
        let is = |server: &&&ServerName| forms(server).any(|form| form == rest);
        if let Some(server) = servers.iter().find(is) {
            return Some(miss(format!("{PREFIX}{server}")));
        }
    }
    typed(folded, servers)
}

/// A server and a tool in another form, where the server is nearly a configured one.
fn typed(folded: &str, servers: &[&ServerName]) -> Option<RuleMiss> {
    let (server, tool) = folded.split_once(['.', '/', ':', ' '])?;
    let near = nearest(server, servers.iter().map(|server| server.as_str()))?;
    Some(RuleMiss::Slip(format!(
        "{PREFIX}{near}__{}",
        tool.trim_start()
    )))
}

/// A server and what follows it, behind `__` or a separator that rules do not have.
fn parted<'a>(rest: &'a str, servers: &[&'a ServerName]) -> Option<(&'a str, &'a str)> {
    servers.iter().find_map(|server| {
        let tool = forms(server).find_map(|form| {
            let behind = rest.strip_prefix(&form)?;
            let tool = behind
                .strip_prefix("__")
                .or_else(|| behind.strip_prefix(['.', ':', '/', ' ']))?;
            let tool = tool.trim_start_matches(['_', ':', ' ']);
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
