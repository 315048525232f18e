//! Every way a call's tool can be spelled.
//!
//! Owns the list that deny and ask rules and hooks match against (SEC-31): a rule that restricts
//! must catch a tool under any name a person may have seen it by. Allow rules do not come here;
//! they name one identity.

use toolway_types::text::{self, fold};
use toolway_types::{ToolKey, name};

use super::{Subject, Target};

/// The spellings of one tool, folded (NFC, lower case).
#[derive(Debug)]
pub(super) struct Spellings {
    /// Whole names: `mcp__<server>__<tool>` in all forms, the exposed name, bare names.
    pub(super) whole: Vec<String>,
    /// Names of the server alone, without `mcp__`.
    pub(super) server: Vec<String>,
}

impl Spellings {
    pub(super) fn of(subject: &Subject<'_>) -> Self {
        let mut spellings = match subject.target {
            Target::Builtin(name) => Self {
                whole: vec![fold(name)],
                server: Vec::new(),
            },
            Target::Tool(key) => Self::of_tool(key),
        };
        if let Some(shown) = subject.shown_as {
            add(&mut spellings.whole, fold(shown));
        }
        spellings
    }

    fn of_tool(key: &ToolKey) -> Self {
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
                add(&mut whole, format!("mcp__{server}__{tool}"));
            }
            // A server without prefix shows the bare name, so a rule may say just that.
            add(&mut whole, tool);
        }
        add(&mut whole, fold(&key.exposed()));
        Self { whole, server }
    }
}

/// The names, in their own case, that a hook's matcher is tried against.
pub(super) fn unfolded(key: &ToolKey) -> Vec<String> {
    let mut names = vec![key.exposed()];
    add(&mut names, key.spelled());
    for tool in [key.tool.as_str(), &text::clean_line(&key.tool)] {
        add(&mut names, format!("mcp__{}__{tool}", key.server));
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
