//! Every way a call's tool can be spelled.
//!
//! Owns the list that deny and ask rules and hooks match against (SEC-31): a restricting rule must
//! match a tool under any name it is known by. Allow rules name one identity and do not use it.

use toolway_types::text::{self, fold};
use toolway_types::{ServerName, ToolKey, name};

/// How the exposed names of servers' tools begin.
pub(super) const PREFIX: &str = "mcp__";

/// What separates a server and a tool where people type them.
pub(super) const BETWEEN: [&str; 5] = [".", " ", "/", ":", "__"];

/// The names of one tool, folded (NFC, lower case).
#[derive(Debug)]
pub(super) struct ToolNames {
    /// Whole names: `mcp__<server>__<tool>` in all forms, as people type it (`server.tool`), the
    /// exposed names, bare names.
    pub(super) whole: Vec<String>,
    /// Names of the server alone, without `mcp__`.
    pub(super) server: Vec<String>,
}

impl ToolNames {
    /// Of one of the host's own tools.
    pub(super) fn of_builtin(name: &str) -> Self {
        Self {
            whole: vec![fold(name)],
            server: Vec::new(),
        }
    }

    /// Of a server's tool; `apart` is the exposed name that tells it from all others.
    pub(super) fn of_key(key: &ToolKey, apart: &str) -> Self {
        let mut server = Vec::new();
        for form in forms(key.server.as_str()) {
            add(&mut server, fold(&form));
        }
        add(
            &mut server,
            fold(&name::normalize_connector(key.server.as_str())),
        );
        let mut whole = Vec::new();
        for tool in forms(&key.tool).map(|form| fold(&form)) {
            for server in &server {
                add(&mut whole, format!("{PREFIX}{server}__{tool}"));
                for between in BETWEEN {
                    add(&mut whole, format!("{server}{between}{tool}"));
                }
            }
            // A server without prefix shows the bare name, so a rule may say just that.
            add(&mut whole, tool);
        }
        add(&mut whole, fold(apart));
        add(&mut whole, fold(&key.exposed()));
        Self { whole, server }
    }

    /// Adds the name that the catalogue shows it under.
    pub(super) fn add_shown(&mut self, name: &str) {
        add(&mut self.whole, fold(name));
    }
}

/// What of a tool's name may be a spelling only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsureName {
    /// The tool's own name; its server is configured under the name given.
    Tool,
    /// The server's name as well.
    Both,
}

/// The names, in their own case, that a hook's matcher is tried against.
pub(super) fn unfolded(key: &ToolKey) -> Vec<String> {
    let mut names = vec![key.exposed()];
    add(&mut names, key.exposed_apart());
    let servers = [key.server.to_string(), key.server.normalized()];
    for tool in forms(&key.tool) {
        for server in &servers {
            add(&mut names, format!("{PREFIX}{server}__{tool}"));
            for between in BETWEEN {
                add(&mut names, format!("{server}{between}{tool}"));
            }
        }
    }
    names
}

/// The names of a server that a hook's matcher is tried against where the hook is about the server
/// itself: its own, as documented, and whatever means all of it elsewhere.
pub(super) fn of_server(server: &ServerName) -> Vec<String> {
    let mut names = Vec::new();
    for form in [server.to_string(), server.normalized()] {
        add(&mut names, form.clone());
        add(&mut names, format!("{PREFIX}{form}"));
        // For `mcp__server__*` and `mcp__server__.*`.
        add(&mut names, format!("{PREFIX}{form}__"));
    }
    names
}

/// As given, as shown after cleaning, and both normalised.
fn forms(name: &str) -> impl Iterator<Item = String> {
    let shown = text::clean_line(name).into_owned();
    [
        name.to_owned(),
        name::normalize(name),
        name::normalize(&shown),
        shown,
    ]
    .into_iter()
}

fn add(names: &mut Vec<String>, name: String) {
    if !names.contains(&name) {
        names.push(name);
    }
}
