//! Servers given on the command line.
//!
//! Owns: `--mcp-config` and `--mcp-server`, and the splitting of a command line into words. No
//! shell is involved: nothing but quotes and backslashes has a meaning.

use serde_json::{Map, Value, json};
use toolway_types::{Diagnosis, Origin, Scope, TransportKind};

use super::{Flags, Loader, Place};
use crate::error::SplitError;
use crate::raw::{self, FileKind, Source};

const CONFIG: &str = "--mcp-config";
const SERVER: &str = "--mcp-server";

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
    }

    fn config_flag(&mut self, value: &str, order: u32) {
        if value.trim_start().starts_with('{') {
            match raw::read(value, &Source::Flag(CONFIG), FileKind::Flag) {
                Ok(file) => self.add(Scope::Dynamic, order, self.flag_place(CONFIG), file),
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
                    .at(Origin::Flag {
                        flag: CONFIG,
                        line: 1,
                    })
                    .hint("give a file's path, or JSON that starts with `{`"),
            );
            return;
        }
        if let Some(file) = self.file(&path, FileKind::Flag) {
            let mut place = self.flag_place(CONFIG);
            place.file = path.to_string_lossy().into_owned();
            self.add(Scope::Dynamic, order, place, file);
        }
    }

    fn server_flag(&mut self, value: &str, order: u32) {
        let usage = "write `--mcp-server name=command` or `--mcp-server name=https://…`";
        let typed = |message| {
            Diagnosis::error(message)
                .at(Origin::Flag {
                    flag: SERVER,
                    line: 1,
                })
                .hint(usage)
        };
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
                let file = raw::single(name.to_owned(), definition, &Source::Flag(SERVER));
                self.add(Scope::Dynamic, order, self.flag_place(SERVER), file);
            }
            Err(error) => {
                let message = format!("`{SERVER} {name}=…` cannot be split into words: {error}");
                self.diagnoses.push(typed(message));
            }
        }
    }

    fn flag_place(&self, flag: &str) -> Place {
        Place {
            directory: self.environment.cwd().to_path_buf(),
            file: flag.to_owned(),
            plugin_root: None,
        }
    }
}

fn definition(target: &str) -> Result<Map<String, Value>, SplitError> {
    let target = target.trim();
    let scheme = target.split_once("://").map(|(scheme, _)| scheme);
    let scheme = scheme.unwrap_or_default().to_ascii_lowercase();
    let value = if ["http", "https", "ws", "wss"].contains(&scheme.as_str()) {
        let kind = TransportKind::of_address(target).as_str();
        json!({"type": kind, "url": target})
    } else {
        let mut words = split_command(target)?.into_iter();
        let command = words.next().unwrap_or_default();
        json!({"command": command, "args": words.collect::<Vec<_>>()})
    };
    match value {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

/// Splits a command line into words: white space separates, `'…'` and `"…"` hold together, a
/// backslash takes the next character as it is (inside `"…"` only `"` and itself).
pub fn split_command(line: &str) -> Result<Vec<String>, SplitError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\\' => word
                .get_or_insert_default()
                .push(chars.next().ok_or(SplitError::Escape)?),
            quote @ ('"' | '\'') => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(SplitError::Quote)? {
                        c if c == quote => break,
                        '\\' if quote == '"' && matches!(chars.peek(), Some('"' | '\\')) => {
                            word.extend(chars.next());
                        }
                        c => word.push(c),
                    }
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_like_a_shell_would_and_nothing_else_happens() {
        let split = |line| split_command(line).unwrap();
        assert_eq!(split("npx -y  server"), ["npx", "-y", "server"]);
        assert_eq!(
            split(r#"a "b c" 'd e' f\ g """#),
            ["a", "b c", "d e", "f g", ""]
        );
        assert_eq!(split(r#""a\"b\\c\d" '\'"#), [r#"a"b\c\d"#, r"\"]);
        assert_eq!(
            split("a;b $(c) `d` | e # f"),
            ["a;b", "$(c)", "`d`", "|", "e", "#", "f"]
        );
        assert_eq!(split_command("a 'b"), Err(SplitError::Quote));
        assert_eq!(split_command("a\\"), Err(SplitError::Escape));
    }
}
