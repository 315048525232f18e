//! Switching servers on and off.
//!
//! Owns writing as few list items as possible: the file nearest to the project wins, so switching
//! for every project removes what this project's settings say, and switching on writes nothing
//! where nothing switches the server off. Which list wins is decided in `merge/switch.rs`.

use serde_json::{Value, json};
use toolway_types::{Scope, ServerName};

use super::{edit_settings, file_of};
use crate::edit::{Document, EditError, Edited};
use crate::load::load;
use crate::merge::{Switch, merge, switch_setting, switched_off};
use crate::{Environment, Flags};

/// What switching changed, and what it could not.
#[derive(Debug)]
pub struct Switched {
    /// What was done to the settings that were asked for.
    pub edited: Edited<()>,
    /// What was done to this project's settings, which would have won.
    pub nearer: Option<Edited<()>>,
    /// Servers that stay as they were, and what keeps them so.
    pub overruled: Vec<(ServerName, String)>,
}

/// Switches servers on or off in the settings of a scope. In those of the user it is about every
/// project, this one too.
pub fn switch_servers(
    environment: &Environment,
    scope: Scope,
    names: &[ServerName],
    to: Switch,
) -> Result<Switched, EditError> {
    let path = file_of(environment, scope)?;
    let (into, out_of) = match to {
        Switch::On => ("enabledMcpServers", "disabledMcpServers"),
        Switch::Off => ("disabledMcpServers", "enabledMcpServers"),
    };
    let mut edited = edit_settings(environment, scope, &path, |document| {
        take_out(document, out_of, names)?;
        match to {
            Switch::On => Ok(()),
            Switch::Off => put_in(document, into, names),
        }
    })?;
    let nearer = match environment.settings_file(Scope::Local) {
        Some(local) if scope == Scope::User && local.exists() => {
            let nearer = edit_settings(environment, Scope::Local, &local, |document| {
                take_out(document, out_of, names)
            })?;
            Some(nearer).filter(|nearer| nearer.changed)
        }
        _ => None,
    };
    if to == Switch::On {
        let off = kept_off(environment, scope, names);
        if !off.is_empty() {
            let before = edited;
            edited = edit_settings(environment, scope, &path, |document| {
                put_in(document, into, &off)
            })?;
            edited.changed |= before.changed;
        }
    }
    Ok(Switched {
        edited,
        nearer,
        overruled: overruled(environment, names, to),
    })
}

/// The servers that are switched off by something that these settings outrank.
fn kept_off(environment: &Environment, scope: Scope, names: &[ServerName]) -> Vec<ServerName> {
    let config = merge(load(environment, &Flags::default()));
    let is_off = |name: &&ServerName| {
        if let Some(word) = switch_setting(&config.basis, name.as_str()) {
            return word.to == Switch::Off && word.scope < scope;
        }
        let entries = config.servers.iter();
        let mut entries = entries.filter(|server| server.raw.name == **name);
        entries.any(|server| server.lost.is_none() && switched_off(&config.basis, server).is_some())
    };
    names.iter().filter(is_off).cloned().collect()
}

/// What still says the opposite.
fn overruled(
    environment: &Environment,
    names: &[ServerName],
    to: Switch,
) -> Vec<(ServerName, String)> {
    let config = merge(load(environment, &Flags::default()));
    let words = names.iter().filter_map(|name| {
        let word = switch_setting(&config.basis, name.as_str())?;
        (word.to != to).then(|| (name.clone(), word.reason))
    });
    words.collect()
}

fn put_in(document: &mut Document, key: &str, names: &[ServerName]) -> Result<(), EditError> {
    let mut listed = names_in(document, key);
    for name in names {
        if !listed.iter().any(|listed| listed == name.as_str()) {
            listed.push(name.to_string());
        }
    }
    document.set(&[key], &json!(listed))
}

fn take_out(document: &mut Document, key: &str, names: &[ServerName]) -> Result<(), EditError> {
    let mut listed = names_in(document, key);
    let had = listed.len();
    listed.retain(|listed| !names.iter().any(|name| name.as_str() == listed));
    if listed.len() == had {
        return Ok(());
    }
    if listed.is_empty() {
        document.remove(&[key]);
        return Ok(());
    }
    document.set(&[key], &json!(listed))
}

fn names_in(document: &Document, key: &str) -> Vec<String> {
    let Some(Value::Array(names)) = document.get(&[key]) else {
        return Vec::new();
    };
    names
        .iter()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}
