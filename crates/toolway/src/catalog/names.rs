//! Names in the catalogue: which tool a name stands for, and what to do when it is unclear.
//!
//! Owns collisions, loose matching and near misses. The encoding itself is
//! `toolway_types::name`; a tool's identity is its key, never a flattened string (SEC-31).

use std::collections::HashMap;

use foldhash::fast::RandomState;

use toolway_types::ToolKey;
use toolway_types::name::normalize;

use super::{CatalogTool, CatalogWarning, sanitize};
use crate::call::ToolTarget;

/// What every name with its server in it begins with.
const PREFIX: &str = "mcp__";

/// How alike two names must be (Jaro-Winkler, 0 to 1) to suggest one for the other.
const NEAR: f64 = 0.8;

/// Something with an exposed name.
pub(super) trait Named {
    fn name(&self) -> &str;
    fn key(&self) -> &ToolKey;
}

/// Takes out every item whose exposed name another one has too, and says so. Keeping either
/// would let one server's tool be taken for another's.
pub(super) fn hide_collisions<T: Named>(items: &mut Vec<T>, warnings: &mut Vec<CatalogWarning>) {
    let mut owners: HashMap<String, Vec<ToolKey>, RandomState> =
        HashMap::with_capacity_and_hasher(items.len(), RandomState::default());
    for item in items.iter() {
        owners
            .entry(item.name().to_owned())
            .or_default()
            .push(item.key().clone());
    }
    owners.retain(|_, keys| keys.len() > 1);
    if owners.is_empty() {
        return;
    }
    items.retain(|item| {
        let Some(keys) = owners.get(item.name()) else {
            return true;
        };
        let others: Vec<String> = keys
            .iter()
            .filter(|key| *key != item.key())
            .map(describe)
            .collect();
        warnings.push(CatalogWarning::new(
            &item.key().server,
            format!(
                "{} is hidden: its name `{}` is also that of {}",
                describe(item.key()),
                item.name(),
                others.join(" and ")
            ),
        ));
        false
    });
}

/// Gives the prefix back to tools without one whose names are not theirs alone. A name that another
/// has too says nothing; with its prefix it does.
pub(super) fn prefix_collisions(tools: &mut [CatalogTool], warnings: &mut Vec<CatalogWarning>) {
    let mut count: HashMap<String, usize, RandomState> =
        HashMap::with_capacity_and_hasher(tools.len(), RandomState::default());
    for tool in tools.iter() {
        *count.entry(tool.name.clone()).or_default() += 1;
    }
    for tool in tools {
        if tool.name.starts_with(PREFIX) || count.get(&tool.name) == Some(&1) {
            continue;
        }
        let prefixed = tool.key.exposed();
        let message = format!(
            "{} keeps its prefix, as `{prefixed}`: another tool is called `{}` too",
            describe(&tool.key),
            tool.name
        );
        warnings.push(CatalogWarning::new(&tool.key.server, message));
        tool.name = prefixed;
    }
}

fn describe(key: &ToolKey) -> String {
    format!("`{}` of server `{}`", sanitize::line(&key.tool), key.server)
}

/// Whether a tool answers to what was asked for, once both are normalised.
pub(super) fn answers(key: &ToolKey, target: &ToolTarget) -> bool {
    match target {
        // The caller compared the spellings.
        ToolTarget::Exposed(_) => true,
        // Part by part: `a__b` + `c` and `a` + `b__c` have one spelling and are not alike.
        ToolTarget::Key(wanted) => {
            key.server.normalized() == wanted.server.normalized()
                && normalize(&key.tool) == normalize(&wanted.tool)
        }
    }
}

/// The one match that is meant without doubt: the only one, or the only one of the very server
/// that was named.
pub(super) fn closest(
    tools: &[CatalogTool],
    matching: &[usize],
    target: &ToolTarget,
) -> Option<usize> {
    if let [only] = matching {
        return Some(*only);
    }
    let ToolTarget::Key(wanted) = target else {
        return None;
    };
    let mut of_server = matching
        .iter()
        .copied()
        .filter(|index| tools[*index].key.server == wanted.server);
    match (of_server.next(), of_server.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The nearest exposed name there is, if any is near.
pub(super) fn suggest(tools: &[CatalogTool], target: &ToolTarget) -> Option<String> {
    let wanted = target.spelled().to_lowercase();
    let wanted_tool = match target {
        ToolTarget::Exposed(name) => name.rsplit("__").next().unwrap_or(name).to_lowercase(),
        ToolTarget::Key(key) => key.tool.to_lowercase(),
    };
    tools
        .iter()
        .map(|tool| {
            // The tool's part weighs in by itself: the long common start of all spellings makes
            // any two of one server look alike.
            let whole = strsim::jaro_winkler(&wanted, &tool.key.spelled().to_lowercase());
            let part = strsim::jaro_winkler(&wanted_tool, &tool.key.tool.to_lowercase());
            (whole.min(part), tool)
        })
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, tool)| tool.name.clone())
}
