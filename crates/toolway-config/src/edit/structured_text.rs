//! A text in one of the formats that clients' files have, and the same three operations on each.
//!
//! Owns which format a client's file has to be opened in. How each is changed is `document.rs`,
//! `toml_text.rs` and `yaml_text.rs`.

use std::path::Path;

use serde_json::Value;

use super::EditError;
use super::document::Document;
use super::spelled::EntryPath;
use super::toml_text::TomlText;
use super::yaml_text::YamlText;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// JSON, comments and trailing commas allowed.
    Json,
    Toml,
    Yaml,
}

/// The content of one file, open for change.
#[derive(Debug)]
pub(crate) enum StructuredText {
    Json(Document),
    Toml(TomlText),
    Yaml(YamlText),
}

impl StructuredText {
    /// Opens a text that came from `path`. An empty one holds nothing yet.
    pub(crate) fn parse(format: TextFormat, path: &Path, text: &str) -> Result<Self, EditError> {
        Ok(match format {
            TextFormat::Json => Self::Json(Document::parse(path, text)?),
            TextFormat::Toml => Self::Toml(TomlText::parse(path, text)?),
            TextFormat::Yaml => Self::Yaml(YamlText::parse(path, text)?),
        })
    }

    /// The text as it stands.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Json(document) => document.text(),
            Self::Toml(text) => text.text(),
            Self::Yaml(text) => text.text(),
        }
    }

    /// The whole document.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Json(document) => document.get(&[]).unwrap_or_default(),
            Self::Toml(text) => text.value().clone(),
            Self::Yaml(text) => text.value().clone(),
        }
    }

    /// The value at a path of keys.
    pub(crate) fn get(&self, path: &[&str]) -> Option<Value> {
        let whole = match self {
            Self::Json(document) => return document.get(path),
            Self::Toml(text) => text.value(),
            Self::Yaml(text) => text.value(),
        };
        let found = path.iter().try_fold(whole, |value, key| value.get(key));
        found.cloned()
    }

    /// Puts a value at a path. In TOML and YAML it must be an entry of a table at the top.
    pub(crate) fn set(&mut self, path: &[&str], value: &Value) -> Result<(), EditError> {
        match self {
            Self::Json(document) => document.set(path, value),
            Self::Toml(text) => text.set(entry(path)?, value),
            Self::Yaml(text) => text.set(entry(path)?, value),
        }
    }

    /// Takes the value at a path away. Says whether it was there.
    pub(crate) fn remove(&mut self, path: &[&str]) -> Result<bool, EditError> {
        match self {
            Self::Json(document) => Ok(document.remove(path)),
            Self::Toml(text) => text.remove(entry(path)?),
            Self::Yaml(text) => text.remove(entry(path)?),
        }
    }

    /// The line (from 1) of the entry at a path.
    pub(crate) fn line_of(&self, path: &[&str]) -> Option<u32> {
        match self {
            Self::Json(document) => document.line_of(path),
            Self::Toml(text) => text.line_of(entry(path).ok()?),
            Self::Yaml(text) => text.line_of(entry(path).ok()?),
        }
    }
}

fn entry<'a>(path: &[&'a str]) -> Result<EntryPath<'a>, EditError> {
    match path {
        [table, name] => Ok(EntryPath { table, name }),
        other => Err(EditError::Refused(format!(
            "`{}` is no entry of a table at the top",
            other.join(".")
        ))),
    }
}
