//! Words of a typed command that mean the directory it is typed in.
//!
//! Owns what `add` makes of them, since a server starts elsewhere: paths of the program and of a
//! directory are made absolute; for other arguments the right words are offered.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};
use toolway_types::Scope;
use toolway_types::name::shell_word;

use super::WritableScope;

/// The entry with the whole paths of its program and of the directory that it says.
pub(super) fn write_out(entry: &mut Map<String, Value>, cwd: &Path, scope: WritableScope) {
    if scope == WritableScope::Project {
        return;
    }
    write_whole(entry, "cwd", cwd);
    let command = entry.get("command").and_then(Value::as_str);
    if command.is_some_and(|command| command.contains('/')) && !entry.contains_key("cwd") {
        write_whole(entry, "command", cwd);
    }
}

fn write_whole(entry: &mut Map<String, Value>, key: &str, cwd: &Path) {
    let word = entry.get(key).and_then(Value::as_str);
    let relative = word.filter(|word| !word.contains("${") && Path::new(word).is_relative());
    if let Some(word) = relative {
        let whole = straight(&cwd.join(word));
        entry.insert(key.to_owned(), json!(whole.to_string_lossy()));
    }
}

/// What to say about an argument that means the current directory, if there is one.
pub(super) fn advice(
    name: &str,
    entry: &Map<String, Value>,
    cwd: &Path,
    scope: WritableScope,
) -> Option<String> {
    if !starts_elsewhere(entry, scope.scope()) {
        return None;
    }
    let args = entry.get("args").and_then(Value::as_array);
    let mut args = args.into_iter().flatten().filter_map(Value::as_str);
    let word = args.find(|word| means_here(word, cwd))?;
    let here = straight(&cwd.join(word));
    let here = shell_word(&here.to_string_lossy()).into_owned();
    let hint = if cwd.join(word).is_file() {
        format!("write {here} in its place")
    } else {
        // Not `cwd`, which would let what lies there have a say in what runs.
        let rest = word.trim_start_matches("./");
        let anywhere = match rest {
            "." | "" => "${workspace}".to_owned(),
            rest => format!("${{workspace}}/{rest}"),
        };
        format!(
            "in its place write '{anywhere}' for the directory where Toolway runs, or {here} for \
             this one"
        )
    };
    Some(format!(
        "warning: `{name}` is started in a directory of its own, where `{word}` is not what it is \
         here\nhint: {hint}"
    ))
}

/// Whether a process of this entry starts neither where it says nor in the project.
fn starts_elsewhere(entry: &Map<String, Value>, scope: Scope) -> bool {
    entry.contains_key("command") && !entry.contains_key("cwd") && scope != Scope::Project
}

/// Whether an argument is the current directory, a path that begins there, or a file in it.
fn means_here(word: &str, cwd: &Path) -> bool {
    let path = Path::new(word);
    let begins_here = matches!(
        path.components().next(),
        Some(Component::CurDir | Component::ParentDir)
    );
    path.is_relative() && (begins_here || (!word.starts_with('-') && cwd.join(path).is_file()))
}

/// The path without detours that mean nothing.
fn straight(path: &Path) -> PathBuf {
    path.components()
        .filter(|component| *component != Component::CurDir)
        .collect()
}
