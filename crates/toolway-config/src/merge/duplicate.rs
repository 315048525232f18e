//! The same server under two names.
//!
//! Owns: the signature, and the rule that a server configured by hand replaces the same one of a
//! plugin or connector. Two configured by hand both stay.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Map, Value};
use toolway_types::Scope;
use url::Url;

use super::{DecisionContext, ServerCandidate, ShadowedBy, switched_off};
use crate::account::directory::stands_for;

/// What two definitions of one server have in common: for a process its command, arguments and
/// environment; for a remote server its URL. As written: no variable is expanded for it.
pub fn signature(definition: &Map<String, Value>) -> Option<String> {
    if let Some(url) = definition.get("url").and_then(Value::as_str) {
        return Some(format!("url {}", normalized(url)));
    }
    let command = definition.get("command").and_then(Value::as_str)?;
    let mut env: Vec<_> = definition
        .get("env")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .collect();
    env.sort_unstable_by_key(|(name, _)| *name);
    let none = Value::Array(Vec::new());
    let args = definition.get("args").unwrap_or(&none);
    serde_json::to_string(&(command, args, env)).ok()
}

/// The URL without what makes no difference: letter case of the host, a default port, a trailing
/// slash, a fragment.
fn normalized(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return text.to_owned();
    };
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    url.to_string()
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
    let mut first_of: HashMap<String, usize> = HashMap::new();
    for index in order {
        let signatures = signatures(&servers[index]);
        let first = signatures.iter().find_map(|one| first_of.get(one));
        match first {
            Some(first) if is_automatic(&servers[index]) => {
                let to = servers[*first].shadow();
                let reason = format!("duplicate of `{}`", servers[*first].raw.name);
                let shadow = servers[index].shadow();
                servers[index].lost = Some(ShadowedBy { to, reason });
                servers[*first].shadows.push(shadow);
            }
            None if stands(basis, &servers[index]) => {
                first_of.extend(signatures.into_iter().map(|signature| (signature, index)));
            }
            _ => {}
        }
    }
}

/// The signatures of a server. A connector is reached through a proxy, so it also has that of the
/// server its directory names; other entries cannot claim that.
fn signatures(candidate: &ServerCandidate) -> Vec<String> {
    let definition = &candidate.raw.definition;
    let mut signatures: Vec<String> = signature(definition).into_iter().collect();
    if let Some(url) = stands_for(candidate.scope, definition) {
        signatures.push(format!("url {}", normalized(url.as_str())));
    }
    signatures
}

/// Whether a server can replace another: one that is broken, switched off or not approved must not
/// remove a working one (a repository could use that).
fn stands(basis: &DecisionContext, candidate: &ServerCandidate) -> bool {
    candidate.raw.fault().is_none()
        && switched_off(basis, candidate).is_none()
        && candidate.is_approved()
}
