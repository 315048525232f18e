//! Profiles, beside the servers of a plan.
//!
//! Owns finding one by its name, and what it names that is not there. That is said when a profile is
//! used, because it may be meant for another project.

use std::sync::Arc;

use toolway_types::{Diagnosis, ServerName, nearest, text};

use super::{NoProfile, Plan, Profile};
use crate::permission::{RuleMiss, ToolPatterns, miss};

impl Plan {
    /// The profile of this name.
    pub fn profile(&self, name: &str) -> Result<&Arc<Profile>, NoProfile> {
        if let Some(profile) = self.profiles.get(name) {
            return Ok(profile);
        }
        let name_of = |name: &str| name.to_owned();
        Err(match self.faulty_profiles.get(name) {
            Some(fault) => NoProfile::Faulty {
                name: name_of(name),
                fault: Box::new(fault.clone()),
            },
            None => NoProfile::Unknown {
                name: name_of(name),
                meant: nearest(name, self.profiles.keys().map(String::as_str)).map(name_of),
            },
        })
    }

    /// What of a profile speaks of servers that are not configured here, or that take no login.
    pub fn profile_remarks(&self, profile: &Profile) -> Vec<Diagnosis> {
        let mut servers: Vec<&ServerName> = self.servers.iter().map(|it| &it.name).collect();
        servers.dedup();
        let shown = profile.servers.iter().flatten();
        let named = shown.map(|name| (name, "servers"));
        let named = named.chain(profile.accounts.keys().map(|name| (name, "accounts")));
        let mut remarks = Vec::new();
        for (name, key) in named.filter(|(name, _)| !servers.contains(name)) {
            let shown = text::clean_line(name.as_str());
            let message =
                format!("`{key}` of the profile names `{shown}`, which is not configured");
            let remark = Diagnosis::warning(message).at(profile.origin.clone());
            remarks.push(match self.suggest(name.as_str()) {
                Some(meant) => remark.hint(format!("did you mean `{meant}`?")),
                None => remark,
            });
        }
        for name in profile.accounts.keys() {
            let open = self.admitted().find(|(server, _)| server.name == *name);
            if open.is_some_and(|(_, spec)| spec.transport.open_to_logins().is_none()) {
                let message =
                    format!("`accounts` of the profile names `{name}`, which takes no login");
                remarks.push(Diagnosis::warning(message).at(profile.origin.clone()));
            }
        }
        let patterns = profile.tools.iter().flat_map(ToolPatterns::iter);
        let patterns = patterns.map(|(pattern, origin)| (pattern, "tools", origin));
        let rules = profile.permissions.rules();
        let rules = rules.map(|(list, rule, _, origin)| (rule, list.as_str(), origin));
        for (rule, key, origin) in patterns.chain(rules) {
            let name = rule.split('(').next().unwrap_or_default().trim();
            let said = format!("`{}` in `{key}` of the profile", text::clean_line(rule));
            let (message, hint) = match miss(name, &servers) {
                None => continue,
                Some(RuleMiss::Form(meant) | RuleMiss::Slip(meant)) => (
                    format!("{said} names no tool of a configured server"),
                    Some(format!("did you mean `{}`?", text::clean_line(&meant))),
                ),
                Some(RuleMiss::Nobody(server)) => {
                    let server = text::clean_line(&server);
                    let message = format!("{said} speaks of `{server}`, which is not configured");
                    (message, None)
                }
            };
            let mut remark = Diagnosis::warning(message).at(origin.clone());
            remark.hint = hint;
            remarks.push(remark);
        }
        remarks
    }
}
