//! The words of an entry with their variables replaced, in every way that counts.
//!
//! Owns which ways those are. The values of the user's variables must not change which files of the
//! repository are bound by their defaults, and `${workspace}` is another directory each time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::Environment;
use crate::command_line::split_command;
use crate::expansion::{TextPiece, WORKSPACE, is_harmless, pieces};

/// Which values are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableValues {
    /// Those of harmless variables; for others their defaults.
    Harmless,
    /// Whatever is set, secrets too: only the repository may be looked into with them.
    AsSet,
}

/// An entry as its process will get it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExpandedEntry {
    pub(super) values: VariableValues,
    pub(super) start: PathBuf,
    pub(super) words: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    /// The program that prints headers. It starts beside the file that names it.
    pub(super) helper: Vec<String>,
}

/// The entry in every way in which its variables may be replaced.
pub(super) fn expanded(
    environment: &Environment,
    directory: &Path,
    definition: &Map<String, Value>,
) -> Vec<ExpandedEntry> {
    let mut all = Vec::new();
    for workspace in [directory, environment.project_root(), environment.cwd()] {
        for values in [VariableValues::Harmless, VariableValues::AsSet] {
            let scene = EntryExpansion {
                environment,
                workspace,
                values,
            };
            let one = scene.expanded(directory, definition);
            let is_known = all.iter().any(|known: &ExpandedEntry| {
                let known = (&known.start, &known.words, &known.env, &known.helper);
                known == (&one.start, &one.words, &one.env, &one.helper)
            });
            if !is_known {
                all.push(one);
            }
        }
    }
    all
}

struct EntryExpansion<'a> {
    environment: &'a Environment,
    workspace: &'a Path,
    values: VariableValues,
}

impl EntryExpansion<'_> {
    fn expanded(&self, directory: &Path, definition: &Map<String, Value>) -> ExpandedEntry {
        let text = |key: &str| definition.get(key).and_then(Value::as_str);
        let word = |word: &str| self.expand(word).unwrap_or_default();
        let args = definition.get("args").and_then(Value::as_array);
        let args = args.into_iter().flatten().filter_map(Value::as_str);
        let env = definition.get("env").and_then(Value::as_object);
        let helper = text("headersHelper").and_then(|line| split_command(line).ok());
        let cwd = text("cwd").and_then(|cwd| self.expand(cwd));
        ExpandedEntry {
            values: self.values,
            start: cwd.map_or_else(|| directory.to_owned(), |cwd| directory.join(cwd)),
            words: text("command").into_iter().chain(args).map(word).collect(),
            env: env
                .into_iter()
                .flatten()
                .filter_map(|(name, value)| Some((name.clone(), word(value.as_str()?))))
                .collect(),
            helper: helper.iter().flatten().map(|it| word(it)).collect(),
        }
    }

    /// A word with its variables replaced; nothing if one of them has no value, or is a secret's.
    fn expand(&self, word: &str) -> Option<String> {
        let mut expanded = String::new();
        for piece in pieces(word) {
            match piece {
                TextPiece::Text(text) => expanded.push_str(text),
                TextPiece::Variable { name, default } => {
                    let value = self.value(name).filter(|value| !value.is_empty());
                    expanded.push_str(value.or(default)?);
                }
                TextPiece::Reference { .. } => return None,
            }
        }
        Some(expanded)
    }

    fn value(&self, name: &str) -> Option<&str> {
        match name {
            "TOOLWAY_PROJECT_DIR" | "CLAUDE_PROJECT_DIR" => {
                self.environment.project_root().to_str()
            }
            WORKSPACE => self.workspace.to_str(),
            _ if is_harmless(name) || self.values == VariableValues::AsSet => {
                self.environment.var(name)
            }
            _ => None,
        }
    }
}
