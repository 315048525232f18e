//! Entries that start Toolway itself.
//!
//! Owns how such an entry is known, in our files and in those of every client: behind itself
//! Toolway would start itself, and that one itself, without end.

use std::path::Path;

use serde_json::{Map, Value};

/// The program's name.
pub(crate) const PROGRAM: &str = "toolway";

/// The command that serves.
pub(crate) const SERVE: &str = "serve";

/// Whether an entry, of ours or of any client, starts Toolway as a server.
pub fn starts_toolway(entry: &Map<String, Value>) -> bool {
    let words = words(entry);
    let Some((program, args)) = words.split_first() else {
        return false;
    };
    Path::new(program)
        .file_name()
        .is_some_and(|name| name == PROGRAM)
        && args.contains(&SERVE)
}

/// The command of an entry, word by word.
fn words(entry: &Map<String, Value>) -> Vec<&str> {
    // Some versions of some clients keep everything one deeper.
    let folded = entry.get("config").and_then(Value::as_object);
    let own = folded.unwrap_or(entry);
    let command = own.get("command").or_else(|| own.get("cmd"));
    let inner = command.and_then(Value::as_object);
    let first = match inner {
        Some(inner) => inner.get("path"),
        None => command,
    };
    let args = inner.unwrap_or(own).get("args");
    let all: Vec<&Value> = [flat(first), flat(args)].concat();
    all.into_iter().filter_map(Value::as_str).collect()
}

/// A value that may be a list or stand alone.
fn flat(value: Option<&Value>) -> Vec<&Value> {
    match value {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(other) => vec![other],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn toolway_is_known_in_every_clients_words() {
        for (entry, expected) in [
            (json!({"command": "toolway", "args": ["serve"]}), true),
            (
                json!({"command": "/opt/toolway", "args": ["-v", "serve", "--profile", "x"]}),
                true,
            ),
            (json!({"command": ["toolway", "serve"]}), true),
            (json!({"cmd": "toolway", "args": ["serve"]}), true),
            (
                json!({"enabled": true, "config": {"cmd": "toolway", "args": ["serve"]}}),
                true,
            ),
            (
                json!({"command": {"path": "toolway", "args": ["serve"]}}),
                true,
            ),
            (
                json!({"command": "toolway", "args": ["demo-server"]}),
                false,
            ),
            (
                json!({"command": "toolway-serve", "args": ["serve"]}),
                false,
            ),
            (
                json!({"command": "npx", "args": ["toolway", "serve"]}),
                false,
            ),
            (json!({"url": "http://127.0.0.1/mcp"}), false),
            (json!({}), false),
        ] {
            assert_eq!(
                starts_toolway(entry.as_object().unwrap()),
                expected,
                "{entry}"
            );
        }
    }
}
