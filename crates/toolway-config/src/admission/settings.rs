//! What the settings of all files come to, where it is not about one server.

use std::sync::Arc;

use toolway_types::{Diagnosis, Scope};

use crate::Environment;
use crate::identity::IdentitySettings;
use crate::permission::{Hooks, Permissions};
use crate::profile::{self, ProfileMode, ReadProfiles};
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

/// The profiles of all files. `bypass` is no mode of one where it is forbidden.
pub(super) fn profiles(
    settings: &[(Scope, FileSettings)],
    permissions: &Permissions,
    diagnoses: &mut Vec<Diagnosis>,
) -> ReadProfiles {
    let files = settings
        .iter()
        .filter_map(|(scope, settings)| Some((*scope, settings.profiles.as_ref()?)));
    let mut profiles = profile::merged(files);
    let Some(forbidden) = permissions.bypass_forbidden_by() else {
        return profiles;
    };
    for (name, profile) in &mut profiles {
        let Ok(profile) = profile else { continue };
        if profile.mode != ProfileMode::Bypass {
            continue;
        }
        let message = format!("`profiles.{name}.mode` counts as `ask`: {forbidden} forbids bypass");
        diagnoses.push(
            Diagnosis::warning(message)
                .at(profile.origin.clone())
                .hint("write `client` or `ask`"),
        );
        Arc::make_mut(profile).mode = ProfileMode::Ask;
    }
    profiles
}
