//! Which servers of the project a list of names means.
//!
//! Owns how a name in `enabledMcpjsonServers` or `disabledMcpjsonServers` is compared: normalised
//! as in tool names, so `my server` is also `my_server`. A disabling name means every such server,
//! an enabling one only the one that it can mean (SEC-05).
//! Does not own: what follows (`decide`).

use std::collections::{BTreeMap, BTreeSet};

use toolway_types::Scope;
use toolway_types::name::normalize;

use super::{DecisionContext, ServerCandidate};
use crate::raw::FileSettings;
use crate::raw::settings::LocatedName;

/// The names of the project's servers, by their normalised form.
#[derive(Debug, Default)]
pub(crate) struct ProjectNames(BTreeMap<String, BTreeSet<String>>);

impl ProjectNames {
    /// None where no list approves by name.
    pub(crate) fn of(servers: &[ServerCandidate], settings: &[(Scope, FileSettings)]) -> Self {
        if (settings.iter()).all(|(_, settings)| settings.enabled_project.is_empty()) {
            return Self::default();
        }
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for server in servers.iter().filter(|it| it.scope == Scope::Project) {
            let name = server.raw.name.as_str();
            let alike = names.entry(normalize(name)).or_default();
            alike.insert(name.to_owned());
        }
        Self(names)
    }
}

/// Whether a list approves a server by its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NameApproval<'a> {
    Yes,
    No,
    /// It could mean this one, and another one as well.
    Doubtful(&'a LocatedName),
}

impl DecisionContext {
    /// What switches a server of the project off, in whichever spelling.
    pub(crate) fn disabled_in_project(&self, name: &str) -> Option<&LocatedName> {
        let mut listed = self.listed(|settings| &settings.disabled_project);
        listed.find(|said| normalize(&said.name) == normalize(name))
    }

    /// Whether a server of the project is approved by its name. Another spelling counts where it
    /// can mean no other server.
    pub(crate) fn enabled_in_project(&self, name: &str) -> NameApproval<'_> {
        let listed = || self.listed(|settings| &settings.enabled_project);
        if listed().any(|said| said.name == name) {
            return NameApproval::Yes;
        }
        let normal = normalize(name);
        let alike = self.project_names.0.get(&normal);
        let spells_another =
            |said: &&LocatedName| alike.is_some_and(|alike| alike.contains(&said.name));
        let mut meant = listed().filter(|said| normalize(&said.name) == normal);
        match meant.find(|said| !spells_another(said)) {
            None => NameApproval::No,
            Some(_) if alike.is_none_or(|alike| alike.len() == 1) => NameApproval::Yes,
            Some(said) => NameApproval::Doubtful(said),
        }
    }

    fn listed(
        &self,
        list: fn(&FileSettings) -> &Vec<LocatedName>,
    ) -> impl Iterator<Item = &LocatedName> {
        self.settings
            .iter()
            .flat_map(move |(_, settings)| list(settings))
    }
}
