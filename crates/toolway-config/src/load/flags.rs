//! Servers given on the command line, or by the program that runs the host.
//!
//! Owns: `--mcp-config`, `--mcp-server`, and definitions that a program brings.

use serde_json::{Map, Value, json};
use toolway_types::{Diagnosis, Scope, TransportKind};

use super::{Flags, Loader};
use crate::command_line::split_command;
use crate::error::SplitError;
use crate::raw;
use crate::source::{FileKind, TextSource};

const CONFIG: &str = "--mcp-config";
const SERVER: &str = "--mcp-server";
const BROUGHT: &str = "(program)";

impl Loader<'_> {
    pub(super) fn flags(&mut self, flags: &Flags) {
        // The editor that `--ide` brings comes before them all.
        let mut order = 1;
        for value in &flags.mcp_config {
            self.config_flag(value, order);
            order += 1;
        }
        for value in &flags.mcp_server {
            self.server_flag(value, order);
            order += 1;
        }
        for (name, definition) in &flags.brought {
            let file = raw::single(name.clone(), definition.clone(), &TextSource::Program);
            self.add(Scope::Dynamic, order, self.place_at_cwd(BROUGHT), file);
            order += 1;
        }
    }

    fn config_flag(&mut self, value: &str, order: u32) {
        if value.trim_start().starts_with('{') {
            match raw::read(value, &TextSource::Flag(CONFIG), FileKind::Flag) {
                Ok(file) => self.add(Scope::Dynamic, order, self.place_at_cwd(CONFIG), file),
                Err(mut diagnosis) => {
                    diagnosis.message = format!("the value of `{CONFIG}`: {}", diagnosis.message);
                    diagnosis.hint = Some(format!("mend the JSON given to `{CONFIG}`"));
                    self.diagnoses.push(diagnosis);
                }
            }
            return;
        }
        let path = self.environment.cwd().join(value);
        if !path.exists() {
            self.diagnoses.push(
                Diagnosis::error(format!("`{CONFIG}`: there is no file `{}`", path.display()))
                    .at(TextSource::Flag(CONFIG).origin(1))
                    .hint("give a file's path, or JSON that starts with `{`"),
            );
            return;
        }
        if let Some(file) = self.file(&path, FileKind::Flag) {
            let place = self.place_at_cwd(path.to_string_lossy());
            self.add(Scope::Dynamic, order, place, file);
        }
    }

    fn server_flag(&mut self, value: &str, order: u32) {
        let usage = "write `--mcp-server name=command` or `--mcp-server name=https://…`";
        let source = TextSource::Flag(SERVER);
        let typed = |message| Diagnosis::error(message).at(source.origin(1)).hint(usage);
        let Some((name, target)) = value
            .split_once('=')
            .filter(|(name, _)| !name.trim().is_empty())
        else {
            let message = format!("`{SERVER}` needs a name before `=`");
            self.diagnoses.push(typed(message));
            return;
        };
        match definition(target) {
            Ok(definition) => {
                let file = raw::single(name.to_owned(), definition, &source);
                self.add(Scope::Dynamic, order, self.place_at_cwd(SERVER), file);
            }
            Err(error) => {
                let message = format!("`{SERVER} {name}=…` cannot be split into words: {error}");
                self.diagnoses.push(typed(message));
            }
        }
    }
}

fn definition(target: &str) -> Result<Map<String, Value>, SplitError> {
    let target = target.trim();
    let scheme = target.split_once("://").map(|(scheme, _)| scheme);
    let value = if scheme.and_then(TransportKind::of_scheme).is_some() {
        let kind = TransportKind::of_address(target).as_str();
        json!({"type": kind, "url": target})
    } else {
        let mut words = split_command(target)?.into_iter();
        let command = words.next().unwrap_or_default();
        json!({"command": command, "args": words.collect::<Vec<_>>()})
    };
    Ok(value.as_object().cloned().unwrap_or_default())
}
