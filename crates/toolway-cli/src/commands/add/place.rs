//! Words of a typed command that mean the directory it is typed in.
//!
//! Owns what `add` makes of them: a server is started somewhere else, so that no repository decides
//! what runs. A program's path is written out; for anything else the way is offered that starts the
//! server where the word means what it says.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};
use toolway_types::Scope;
use toolway_types::name::{as_word, shell_word};

use super::WritableScope;

/// The entry with its program's whole path, unless it says where it starts.
pub(super) fn write_out(entry: &mut Map<String, Value>, cwd: &Path, scope: WritableScope) {
    if !starts_elsewhere(entry, scope.scope()) {
        return;
    }
    let command = entry.get("command").and_then(Value::as_str);
    if let Some(command) = command.filter(|command| command.contains('/'))
        && !command.contains("${")
        && Path::new(command).is_relative()
    {
        let whole = straight(&cwd.join(command));
        entry.insert("command".to_owned(), json!(whole.to_string_lossy()));
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
    let args: Vec<&str> = args
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let word = args.iter().copied().find(|word| means_here(word, cwd))?;
    let mut line = vec![
        "toolway add".to_owned(),
        as_word(name).into_owned(),
        format!("--force -s {}", scope.scope()),
    ];
    let is_file = cwd.join(word).is_file();
    if !is_file {
        line.push("--cwd '${workspace}'".to_owned());
    }
    line.push("--".to_owned());
    let command = entry.get("command").and_then(Value::as_str);
    line.extend(command.map(|command| shell_word(command).into_owned()));
    for argument in args {
        let whole = straight(&cwd.join(argument));
        line.push(if is_file && argument == word {
            shell_word(&whole.to_string_lossy()).into_owned()
        } else {
            shell_word(argument).into_owned()
        });
    }
    let how = if is_file {
        "write its whole path"
    } else {
        "to start it in the directory where Toolway runs"
    };
    Some(format!(
        "warning: `{name}` is started in a directory of its own, where `{word}` is not what it is \
         here\nhint: {how}: `{}`",
        line.join(" ")
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
