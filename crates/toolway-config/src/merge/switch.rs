//! Whether a server is switched off by its entry or by settings.

use std::path::Path;

use serde_json::Value;
use toolway_types::Scope;

use super::{DecisionContext, ServerCandidate};
use crate::json::EntryMembers as _;
use crate::raw::FileSettings;

/// A server's switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// It may connect.
    On,
    /// It may not.
    Off,
}

/// Why a server is switched off, when it is.
pub(crate) fn switched_off(basis: &DecisionContext, candidate: &ServerCandidate) -> Option<String> {
    let name = candidate.raw.name.as_str();
    let plugin = plugin_off(basis, candidate);
    if let Some((Scope::Managed, reason)) = plugin {
        return Some(reason);
    }
    // What the organisation adds, the user cannot remove.
    if !matches!(candidate.scope, Scope::Managed | Scope::Enterprise) {
        match switch_setting(basis, name) {
            Some(SwitchSetting {
                to: Switch::Off,
                reason,
                ..
            }) => return Some(reason),
            Some(_) => return None,
            None => {}
        }
    }
    if let Some((_, reason)) = plugin {
        return Some(reason);
    }
    let definition = &candidate.raw.definition;
    let origin = &candidate.raw.origin;
    let says = |key: &str, value: bool| {
        let is_said = definition.member(key) == Some(&Value::Bool(value));
        is_said.then(|| format!("its entry says `\"{key}\": {value}` ({origin})"))
    };
    says("disabled", true).or_else(|| says("enabled", false))
}

/// What a file's lists say about a server.
pub(crate) struct SwitchSetting {
    pub(crate) to: Switch,
    /// The scope of that file.
    pub(crate) scope: Scope,
    pub(crate) reason: String,
}

/// The setting about a server that counts: the organisation's, else that of the file nearest to the
/// project. Within one file, off beats on.
pub(crate) fn switch_setting(basis: &DecisionContext, name: &str) -> Option<SwitchSetting> {
    let speaks = |(_, settings): &&(Scope, FileSettings)| {
        !settings.disabled.is_empty() || !settings.enabled.is_empty()
    };
    let mut files = basis.settings.iter().rev().filter(speaks);
    files.find_map(|(scope, settings)| {
        let lists = [
            (Switch::Off, "disabledMcpServers", &settings.disabled),
            (Switch::On, "enabledMcpServers", &settings.enabled),
        ];
        lists.into_iter().find_map(|(to, key, list)| {
            let said = list.iter().find(|said| said.name == name)?;
            Some(SwitchSetting {
                to,
                scope: *scope,
                reason: format!("`{name}` is in `{key}` ({})", said.origin),
            })
        })
    })
}

/// Whether a server's whole plugin is switched off: by the highest scope, with the reason to show.
fn plugin_off(basis: &DecisionContext, candidate: &ServerCandidate) -> Option<(Scope, String)> {
    let plugin = Path::new(candidate.place.plugin_root.as_ref()?).file_name()?;
    basis.settings.iter().rev().find_map(|(scope, settings)| {
        let mut off = settings.plugins_off.iter();
        let said = off.find(|said| *said.name == *plugin)?;
        let reason = format!(
            "the plugin `{}` is switched off in `enabledPlugins` ({})",
            said.name, said.origin
        );
        Some((*scope, reason))
    })
}
