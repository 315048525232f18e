//! Every client's format on files as people have them.

mod claude;
mod editors;
mod places;
mod terminals;
mod variables;
mod writers;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolway_testkit::ScannedFolder;

use super::*;

/// A home directory with nothing in it but what a test puts there.
struct Home {
    directory: ScannedFolder,
}

impl Home {
    fn new() -> Self {
        Self {
            directory: ScannedFolder::new(),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        self.directory.write(file, text)
    }

    fn places(&self) -> ClientLocations {
        let cwd = self.path("work/project/src");
        fs::create_dir_all(&cwd).unwrap();
        ClientLocations {
            home: Some(self.directory.path().to_owned()),
            config_dir: self.path(".config"),
            cwd,
            claude_config_dir: None,
            codex_home: None,
            working_trees: vec![self.path("work/project")],
        }
    }

    /// What was found, as JSON, with the home directory written as `~`.
    fn show(&self, found: &[ClientFile]) -> String {
        let shown: Vec<Value> = found.iter().map(show).collect();
        let text = serde_json::to_string_pretty(&shown).unwrap();
        text.replace(&self.directory.path().display().to_string(), "~")
    }

    /// Writes one file and reads it as `--from` does.
    fn read(&self, client: ImportClient, file: &str, text: &str) -> String {
        let path = self.write(file, text);
        self.show(&[read_file(&self.places(), client, &path)])
    }
}

fn show(found: &ClientFile) -> Value {
    let diagnoses: Vec<String> = found
        .diagnoses
        .iter()
        .map(|diagnosis| {
            let place = diagnosis
                .origin
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            let column = diagnosis
                .column
                .map(|column| format!(":{column}"))
                .unwrap_or_default();
            format!(
                "{:?} {place}{column}: {}",
                diagnosis.severity, diagnosis.message
            )
        })
        .collect();
    let servers: Vec<Value> = found
        .servers
        .iter()
        .map(|server| {
            json!({
                "name": server.name,
                "line": server.line,
                "definition": server.definition,
                "enabled": server.enabled,
                "dropped": server.dropped,
                "notes": server.notes,
            })
        })
        .collect();
    json!({
        "client": found.client.id(),
        "path": found.path,
        "servers": servers,
        "diagnoses": diagnoses,
    })
}
