//! Names in the catalogue: which tool a name stands for, and what to do when it is unclear.
//!
//! Owns collisions, loose matching and near misses; who is asked together is `naming.rs` and
//! `neighbours.rs`. The encoding itself is
//! `toolway_types::name`; a tool's identity is its key, never a flattened string (SEC-31). An alias
//! is one more name, which never takes the place of a tool's own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;

use toolway_types::ToolKey;
use toolway_types::name::normalize;

use super::prompts::CatalogPrompt;
use super::tools::CatalogTool;
use super::{CatalogWarning, sanitize};
use crate::call::ToolTarget;

/// What every name with its server in it begins with.
pub(super) const PREFIX: &str = "mcp__";

/// How alike two names must be (Jaro-Winkler, 0 to 1) to suggest one for the other.
const NEAR: f64 = 0.8;
/// How alike names are at least that differ by one slip: in a short one it weighs too much.
const ONE_SLIP: f64 = 0.85;
/// The shortest name in which one slip is no other name.
const SLIPS_FROM: usize = 3;
/// The most names that are suggested.
const MAX_SUGGESTED: usize = 3;

/// Something with an exposed name.
pub(super) trait HasExposedName {
    fn name(&self) -> &str;
    fn rename(&mut self, name: String);
    fn key(&self) -> &ToolKey;
    /// The key that its name is made from: its own, or an alias in its place.
    fn named_by(&self) -> &ToolKey;
}

impl HasExposedName for CatalogTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: String) {
        self.name = name;
    }

    fn key(&self) -> &ToolKey {
        &self.key
    }

    fn named_by(&self) -> &ToolKey {
        (**self).named_by()
    }
}

impl HasExposedName for Arc<CatalogPrompt> {
    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: String) {
        Arc::make_mut(self).name = name;
    }

    fn key(&self) -> &ToolKey {
        &self.key
    }

    fn named_by(&self) -> &ToolKey {
        &self.key
    }
}

/// How many items have each name.
fn counted<T: HasExposedName>(items: &[T]) -> HashMap<&str, usize, RandomState> {
    let mut seen = HashMap::with_capacity_and_hasher(items.len(), RandomState::default());
    for item in items {
        *seen.entry(item.name()).or_default() += 1;
    }
    seen
}

/// Tells items apart whose plain spellings are alike: the one that is spelled so without loss keeps
/// the spelling, all others get a digest. So nothing that another server offers can rename it.
/// `kept_out` are names of tools that no list shows: no other tool gets them either.
pub(super) fn tell_apart<T: HasExposedName>(items: &mut [T], kept_out: &HashSet<String>) {
    let seen = counted(items);
    let apart = |item: &T| {
        let is_alone = seen.get(item.name()) == Some(&1) && !kept_out.contains(item.name());
        let key = item.named_by();
        let keeps = is_alone || key.is_lossless() || key.exposed() != item.name();
        (!keeps).then(|| key.exposed_apart())
    };
    let apart: Vec<(usize, String)> = (items.iter().enumerate())
        .filter_map(|(place, item)| Some((place, apart(item)?)))
        .collect();
    for (place, name) in apart {
        items[place].rename(name);
    }
}

/// Takes out every item whose exposed name another one has too, and says so. Keeping either
/// would let one server's tool be taken for another's. Gives what was taken out, and why.
pub(super) fn hide_collisions<T: HasExposedName>(
    items: &mut Vec<T>,
    warnings: &mut Vec<CatalogWarning>,
) -> Vec<(T, String)> {
    if counted(items).len() == items.len() {
        return Vec::new();
    }
    let mut owners: HashMap<String, Vec<ToolKey>, RandomState> = HashMap::default();
    for item in items.iter() {
        owners
            .entry(item.name().to_owned())
            .or_default()
            .push(item.key().clone());
    }
    owners.retain(|_, keys| keys.len() > 1);
    let reason = |item: &T| {
        let keys = owners.get(item.name())?;
        let others: Vec<String> = keys
            .iter()
            .filter(|key| *key != item.key())
            .map(describe)
            .collect();
        let others = others.join(" and ");
        Some(format!(
            "its name `{}` is also that of {others}",
            item.name()
        ))
    };
    let mut hidden = Vec::new();
    for item in std::mem::take(items) {
        let Some(reason) = reason(&item) else {
            items.push(item);
            continue;
        };
        warnings.push(CatalogWarning::new(
            &item.key().server,
            format!("{} is hidden: {reason}", describe(item.key())),
        ));
        hidden.push((item, reason));
    }
    hidden
}

/// Takes names that are the host's from tools that are shown under them: such a tool goes by its
/// full name, or not at all.
pub(super) fn free_names(
    tools: &mut Vec<CatalogTool>,
    taken: &HashSet<String>,
    warnings: &mut Vec<CatalogWarning>,
) {
    if taken.is_empty() {
        return;
    }
    tools.retain_mut(|tool| {
        if !taken.contains(&tool.name) {
            return true;
        }
        let full = tool.key.exposed_apart();
        let free = !taken.contains(&full);
        let now = if free {
            format!("it is shown as `{full}`")
        } else {
            "it is hidden".to_owned()
        };
        warnings.push(CatalogWarning::new(
            &tool.key.server,
            format!("the name `{}` is the host's own; {now}", tool.name),
        ));
        tool.name = full;
        free
    });
}

/// Gives the prefix back to tools without one whose names are not theirs alone. A name that another
/// has too says nothing; with its prefix it does.
pub(super) fn prefix_collisions(tools: &mut [CatalogTool], warnings: &mut Vec<CatalogWarning>) {
    /// How many have a name, and how many of them as their own.
    #[derive(Default)]
    struct NameOwners {
        all: usize,
        exact: usize,
    }
    let is_exact = |tool: &CatalogTool| tool.name == tool.key.tool;
    if tools.iter().all(|tool| tool.name.starts_with(PREFIX)) {
        return;
    }
    let mut owners: HashMap<String, NameOwners, RandomState> = HashMap::default();
    for tool in tools.iter() {
        let owners = owners.entry(tool.name.clone()).or_default();
        owners.all += 1;
        owners.exact += usize::from(is_exact(tool));
    }
    for tool in tools {
        let keeps = owners.get(&tool.name).is_none_or(|owners| {
            // What is spelled so without loss gives way to its like only.
            owners.all == 1 || (owners.exact == 1 && is_exact(tool))
        });
        if tool.name.starts_with(PREFIX) || keeps {
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
pub(super) fn closest<'a>(
    matching: &[&'a CatalogTool],
    target: &ToolTarget,
) -> Option<&'a CatalogTool> {
    if let [only] = matching {
        return Some(only);
    }
    let ToolTarget::Key(wanted) = target else {
        return None;
    };
    let mut of_server = matching
        .iter()
        .filter(|tool| tool.key.server == wanted.server);
    match (of_server.next(), of_server.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The nearest exposed names there are, if any are near: those that are equally near, but not
/// many.
pub(super) fn suggest<'a>(
    tools: impl Iterator<Item = &'a CatalogTool>,
    target: &ToolTarget,
) -> Vec<String> {
    let wanted = target.spelled().to_lowercase();
    let wanted_tool = match target {
        ToolTarget::Exposed(name) => name.rsplit("__").next().unwrap_or(name).to_lowercase(),
        ToolTarget::Key(key) => key.tool.to_lowercase(),
    };
    // The tool's part weighs in by itself: the long common start of all spellings makes any two of
    // one server look alike.
    let likeness = |spelled: &str, tool: &str| {
        let whole = alike(&wanted, &spelled.to_lowercase());
        whole.min(alike(&wanted_tool, &tool.to_lowercase()))
    };
    let mut best = NEAR;
    let mut nearest: Vec<&str> = Vec::new();
    for tool in tools {
        let own = if tool.key.server.is_built_in() {
            likeness(&tool.name, &tool.name)
        } else {
            likeness(&tool.key.spelled(), &tool.key.tool)
        };
        let alias = tool.alias.as_ref();
        let alias = alias.map_or(0.0, |alias| likeness(&alias.spelled(), &alias.tool));
        let near = own.max(alias);
        if near > best + f64::EPSILON {
            nearest.clear();
            best = near;
        }
        if near + f64::EPSILON >= best && nearest.len() < MAX_SUGGESTED {
            nearest.push(&tool.name);
        }
    }
    nearest.into_iter().map(str::to_owned).collect()
}

fn alike(one: &str, other: &str) -> f64 {
    let likeness = strsim::jaro_winkler(one, other);
    let is_slip = one.chars().count().min(other.chars().count()) >= SLIPS_FROM
        && strsim::osa_distance(one, other) <= 1;
    if is_slip {
        likeness.max(ONE_SLIP)
    } else {
        likeness
    }
}
