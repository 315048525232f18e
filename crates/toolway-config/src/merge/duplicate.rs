//! The same server under two names.
//!
//! Owns: what identifies a server, and the rule that a server configured by hand replaces the same one of a
//! plugin or connector. Two configured by hand both stay.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};
use toolway_types::Scope;
use url::Url;

use super::{DecisionContext, ServerCandidate, ShadowedBy, switched_off};
use crate::account::directory::stands_for;
use crate::json::EntryMembers as _;

/// What two definitions of one server have in common, as written: no variable is expanded for it.
#[derive(PartialEq, Eq, Hash, Serialize)]
enum ServerIdentity<'a> {
    /// The address of a remote server.
    Url(Cow<'a, str>),
    /// The command of a process, its arguments, and its environment in order of name.
    Process(&'a str, Option<&'a Value>, Vec<(&'a String, &'a Value)>),
}

/// What two definitions of one server have in common, as text.
pub fn signature(definition: &Map<String, Value>) -> Option<String> {
    serde_json::to_string(&identity(definition, None)?).ok()
}

/// `url` is that of the definition, where it is known already.
fn identity<'a>(
    definition: &'a Map<String, Value>,
    url: Option<&'a Url>,
) -> Option<ServerIdentity<'a>> {
    if let Some(text) = definition.member("url").and_then(Value::as_str) {
        let parsed = || Url::parse(text).map(|url| normalized(&url).into_owned().into());
        let address = url.map_or_else(|| parsed().unwrap_or(text.into()), normalized);
        return Some(ServerIdentity::Url(address));
    }
    let command = definition.member("command").and_then(Value::as_str)?;
    let args = definition.member("args");
    let env = definition.member("env").and_then(Value::as_object);
    let mut env: Vec<_> = env.into_iter().flatten().collect();
    env.sort_unstable_by_key(|(name, _)| *name);
    let has_any = |args: &&Value| args.as_array().is_none_or(|args| !args.is_empty());
    let args = args.filter(has_any);
    Some(ServerIdentity::Process(command, args, env))
}

/// The URL without what makes no difference: letter case of the host, a default port, a trailing
/// slash, a fragment.
fn normalized(url: &Url) -> Cow<'_, str> {
    let path = url.path().trim_end_matches('/');
    if url.fragment().is_none() && path == url.path() {
        return url.as_str().into();
    }
    let mut bare = url.clone();
    bare.set_fragment(None);
    bare.set_path(path);
    String::from(bare).into()
}

/// Marks plugin and connector servers that another one already stands for.
pub(super) fn shadow(basis: &DecisionContext, servers: &mut [ServerCandidate]) {
    let is_automatic =
        |candidate: &ServerCandidate| matches!(candidate.scope, Scope::Plugin | Scope::Connector);
    if !servers.iter().any(is_automatic) {
        return;
    }
    let mut order: Vec<usize> = (0..servers.len())
        .filter(|index| servers[*index].lost.is_none())
        .collect();
    // Configured by hand first, then plugins as loaded, then connectors.
    order.sort_by_key(|index| {
        let candidate = &servers[*index];
        (
            Reverse(candidate.scope),
            Reverse(candidate.order),
            candidate.position,
        )
    });
    let mut first_of = HashMap::with_capacity(order.len());
    let mut duplicates = Vec::new();
    for index in order {
        let candidate = &servers[index];
        let (is_automatic, stands) = (is_automatic(candidate), stands(basis, candidate));
        if !is_automatic && !stands {
            continue;
        }
        let identities = identities(candidate);
        match identities.iter().find_map(|one| first_of.get(one)) {
            Some(first) if is_automatic => duplicates.push((index, *first)),
            None if stands => {
                first_of.extend(identities.into_iter().map(|identity| (identity, index)));
            }
            _ => {}
        }
    }
    for (index, first) in duplicates {
        let to = servers[first].shadow();
        let reason = format!("duplicate of `{}`", servers[first].raw.name);
        let shadow = servers[index].shadow();
        servers[index].lost = Some(ShadowedBy { to, reason });
        servers[first].shadows.push(shadow);
    }
}

/// What identifies a server. A connector is reached through a proxy, so it is also the server that
/// its directory names; other entries cannot claim that.
fn identities(candidate: &ServerCandidate) -> Vec<ServerIdentity<'_>> {
    let raw = &candidate.raw;
    let mut identities: Vec<_> = identity(&raw.definition, raw.url.as_ref())
        .into_iter()
        .collect();
    if let Some(url) = stands_for(candidate.scope, &raw.definition) {
        identities.push(ServerIdentity::Url(normalized(&url).into_owned().into()));
    }
    identities
}

/// Whether a server can replace another: one that is broken, switched off or not approved must not
/// remove a working one (a repository could use that).
fn stands(basis: &DecisionContext, candidate: &ServerCandidate) -> bool {
    candidate.is_approved()
        && candidate.raw.fault().is_none()
        && switched_off(basis, candidate).is_none()
}
