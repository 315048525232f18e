//! What the settings of all files come to, where it is not about one server.

use std::sync::Arc;

use toolway_types::{Diagnosis, Scope};

use crate::Environment;
use crate::identity::IdentitySettings;
use crate::permission::{Hooks, Permissions};
use crate::raw::FileSettings;
use crate::raw::settings::{FileTrust, ObjectSetting};

/// Reads `TOOLWAY_MCP_NO_PREFIX`, or what the other host calls it; ours wins.
pub(super) fn no_prefix(environment: &Environment, diagnoses: &mut Vec<Diagnosis>) -> bool {
    let set = ["TOOLWAY_MCP_NO_PREFIX", "CLAUDE_AGENT_SDK_MCP_NO_PREFIX"]
        .into_iter()
        .find_map(|name| Some((name, environment.var(name)?.trim())))
        .filter(|(_, word)| !word.is_empty());
    let Some((name, word)) = set else {
        return false;
    };
    match word.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => true,
        "0" | "false" | "no" | "off" => false,
        _ => {
            let message = format!("`{name}` is neither `1` nor `0`; names keep their prefix");
            diagnoses.push(Diagnosis::warning(message).hint("set it to `1`, or unset it"));
            false
        }
    }
}

/// The identity provider, by the file of the highest precedence that names one.
pub(super) fn identity_settings(
    settings: &[(Scope, FileSettings)],
) -> Option<Arc<IdentitySettings>> {
    let identity = settings
        .iter()
        .filter_map(|(scope, settings)| Some((*scope, settings.identity.as_ref()?)));
    ObjectSetting::highest(identity)
}

/// The rules and hooks of all files. A file that is not trusted can only restrict.
pub(super) fn call_settings(
    settings: &[(Scope, FileSettings)],
    diagnoses: &mut Vec<Diagnosis>,
) -> (Permissions, Hooks) {
    let (mut permissions, mut hooks) = (Vec::new(), Vec::new());
    for (scope, settings) in settings {
        if let Some(origin) = &settings.unreadable {
            permissions.push(Permissions::unreadable(origin.clone()));
        }
        if let Some(placed) = &settings.permissions {
            let (parsed, found) = Permissions::parse(&placed.value, &placed.origin, *scope);
            diagnoses.extend(found);
            permissions.push(match settings.trust {
                FileTrust::Full => parsed,
                FileTrust::Narrowing => parsed.narrowing_only(),
            });
        }
        if let Some(placed) = &settings.hooks {
            let (parsed, found) = Hooks::parse(&placed.value, &placed.origin, *scope);
            diagnoses.extend(found);
            hooks.push(parsed);
        }
    }
    (Permissions::merged(permissions), Hooks::merged(hooks))
}
