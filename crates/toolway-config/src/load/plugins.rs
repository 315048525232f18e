//! Servers that installed plugins bring.
//!
//! Owns: where a plugin keeps them, and their names. Installing plugins is not ours.

use std::path::{Path, PathBuf};

use toolway_types::{Diagnosis, Scope, ServerName};

use super::{LayerLocation, Loader};
use crate::raw::RawFile;
use crate::source::FileKind;

/// Where a plugin may keep its servers; the first that has any counts.
const FILES: [(&str, FileKind); 4] = [
    (".mcp.json", FileKind::Plugin),
    (".toolway-plugin/plugin.json", FileKind::PluginManifest),
    (".claude-plugin/plugin.json", FileKind::PluginManifest),
    ("plugin.json", FileKind::PluginManifest),
];

/// The folder of plugins, and every file of a plugin that may hold servers.
pub(crate) fn plugin_files(config_home: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = config_home.join("plugins");
    let plugins: Vec<PathBuf> = folder
        .read_dir()
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    let files = plugins
        .into_iter()
        .flat_map(|root| FILES.map(|(name, _)| root.join(name)));
    std::iter::once(folder).chain(files)
}

impl Loader<'_> {
    /// The plugins that settings switch off.
    pub(super) fn switched_off_plugins(&self) -> Vec<String> {
        let off = self
            .layers
            .iter()
            .flat_map(|layer| &layer.settings.plugins_off);
        off.map(|named| named.name.clone()).collect()
    }

    pub(super) fn plugins(&mut self, off: &[String]) {
        let folder = self.environment.plugins_folder();
        let Ok(listing) = folder.read_dir() else {
            return;
        };
        let mut plugins: Vec<(String, PathBuf)> = listing
            .filter_map(Result::ok)
            .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
            .filter(|(name, path)| !name.starts_with('.') && path.is_dir())
            .collect();
        plugins.sort();
        let count = u32::try_from(plugins.len()).unwrap_or(u32::MAX);
        for (position, (name, root)) in (0..count).zip(plugins) {
            // The first loaded wins, so it has the highest order.
            let known = self.diagnoses.len();
            self.plugin(&name, root, count - position);
            // Its servers are still shown, but faults of what is switched off are not reported.
            if off.contains(&name) {
                self.diagnoses.truncate(known);
            }
        }
    }

    fn plugin(&mut self, plugin: &str, root: PathBuf, order: u32) {
        for (file_name, kind) in FILES {
            let path = root.join(file_name);
            let Some(mut file) = self.file(&path, kind) else {
                continue;
            };
            if file.servers.is_empty() {
                self.diagnoses.append(&mut file.diagnoses);
                continue;
            }
            prefix(&mut file, plugin);
            let place = LayerLocation {
                file: path.to_string_lossy().into_owned(),
                plugin_root: Some(root.to_string_lossy().into_owned()),
                agent: None,
                directory: root,
            };
            self.add(Scope::Plugin, order, place, file);
            return;
        }
    }
}

fn prefix(file: &mut RawFile, plugin: &str) {
    for server in &mut file.servers {
        match ServerName::new(format!("plugin:{plugin}:{}", server.name)) {
            Ok(name) => {
                for diagnosis in &mut server.diagnoses {
                    diagnosis.server = Some(name.clone());
                }
                server.name = name;
            }
            Err(error) => {
                let diagnosis = Diagnosis::error(format!("plugin `{plugin}`: {error}"));
                server.diagnoses.push(diagnosis.at(server.origin.clone()));
                server.name_stands = false;
            }
        }
    }
}
