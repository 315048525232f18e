//! Every way a call's tool can be spelled.
//!
//! Owns the list that deny and ask rules and hooks match against (SEC-31): a rule that restricts
//! must catch a tool under any name a person may have seen it by. Allow rules do not come here;
//! they name one identity.

use std::sync::OnceLock;

use toolway_types::text::{self, fold};
use toolway_types::{ToolKey, name};

use super::concern::Concerned;
use super::{Subject, Target};

/// The spellings of one tool, folded (NFC, lower case). Making them costs more than judging by
/// them, so whoever judges many calls of one tool keeps them.
#[derive(Debug)]
pub struct Spellings {
    /// Whole names: `mcp__<server>__<tool>` in all forms, the exposed name, bare names.
    pub(super) whole: Vec<String>,
    /// Names of the server alone, without `mcp__`.
    pub(super) server: Vec<String>,
    whose: Whose,
    /// The name it is shown as.
    shown_as: Option<String>,
    /// The rules that speak of it, found by the first who judges by these.
    pub(super) concerned: OnceLock<Concerned>,
}

#[derive(Debug)]
enum Whose {
    Tool { key: ToolKey, exposed: String },
    Builtin(String),
}

impl Spellings {
    /// Of a server's tool that the catalogue shows under this name.
    pub fn of_tool(key: &ToolKey, shown_as: &str) -> Self {
        Self::of(&Subject::tool(key).shown_as(shown_as))
    }

    pub(super) fn of(subject: &Subject<'_>) -> Self {
        let mut spellings = match subject.target {
            Target::Builtin(name) => Self {
                whole: vec![fold(name)],
                server: Vec::new(),
                whose: Whose::Builtin(name.to_owned()),
                shown_as: None,
                concerned: OnceLock::new(),
            },
            Target::Tool(key) => Self::of_key(key),
        };
        if let Some(shown) = subject.shown_as {
            add(&mut spellings.whole, fold(shown));
            spellings.shown_as = Some(shown.to_owned());
        }
        spellings
    }

    /// A call of the tool whose they are, with nothing known about it yet.
    pub fn subject(&self) -> Subject<'_> {
        let target = match &self.whose {
            Whose::Tool { key, .. } => Target::Tool(key),
            Whose::Builtin(name) => Target::Builtin(name),
        };
        Subject {
            shown_as: self.shown_as.as_deref(),
            spellings: Some(self),
            ..Subject::of(target)
        }
    }

    /// The exposed name, of a server's tool.
    pub(super) fn exposed(&self) -> Option<&str> {
        match &self.whose {
            Whose::Tool { exposed, .. } => Some(exposed),
            Whose::Builtin(_) => None,
        }
    }

    fn of_key(key: &ToolKey) -> Self {
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
        let exposed = key.exposed();
        add(&mut whole, fold(&exposed));
        Self {
            whole,
            server,
            whose: Whose::Tool {
                key: key.clone(),
                exposed,
            },
            shown_as: None,
            concerned: OnceLock::new(),
        }
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
