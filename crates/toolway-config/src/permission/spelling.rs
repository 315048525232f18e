//! Every way a call's tool can be spelled.
//!
//! Owns the list that deny and ask rules and hooks match against (SEC-31): a rule that restricts
//! must catch a tool under any name a person may have seen it by. Allow rules do not come here;
//! they name one identity.

use std::sync::OnceLock;

use toolway_types::text::{self, fold};
use toolway_types::{ServerName, ToolKey, name};

use super::concern::Concerned;
use super::rule::PREFIX;
use super::{Subject, Target};

/// What stands between a server and a tool where people type them.
pub(super) const BETWEEN: [&str; 5] = [".", " ", "/", ":", "__"];

/// The spellings of one tool, folded (NFC, lower case). Making them costs more than judging by
/// them, so whoever judges many calls of one tool keeps them.
#[derive(Debug)]
pub struct Spellings {
    /// Whole names: `mcp__<server>__<tool>` in all forms, as people type it (`server.tool`), the
    /// exposed names, bare names.
    pub(super) whole: Vec<String>,
    /// Names of the server alone, without `mcp__`.
    pub(super) server: Vec<String>,
    whose: Whose,
    /// The name it is shown as.
    shown_as: Option<String>,
    /// Whether no other tool that is known is spelled like it.
    alone: bool,
    /// The rules that speak of it, found by the first who judges by these.
    pub(super) concerned: OnceLock<Concerned>,
}

#[derive(Debug)]
enum Whose {
    Tool { key: ToolKey, apart: String },
    Builtin(String),
}

impl Spellings {
    /// Of a server's tool that the catalogue shows under this name.
    pub fn of_tool(key: &ToolKey, shown_as: &str) -> Self {
        Self::of(&Subject::tool(key).shown_as(shown_as))
    }

    /// Of a tool whose plain spelling no other tool that is known has.
    #[must_use]
    pub fn spelled_alone(self) -> Self {
        Self {
            alone: true,
            ..self
        }
    }

    pub(super) fn of(subject: &Subject<'_>) -> Self {
        let mut spellings = match subject.target {
            Target::Builtin(name) => Self {
                whole: vec![fold(name)],
                server: Vec::new(),
                whose: Whose::Builtin(name.to_owned()),
                shown_as: None,
                alone: true,
                concerned: OnceLock::new(),
            },
            Target::Tool(key) => Self::of_key(key),
        };
        spellings.alone |= subject.alone;
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
            alone: self.alone,
            spellings: Some(self),
            ..Subject::of(target)
        }
    }

    /// The exposed name that tells a server's tool from all others.
    pub(super) fn apart(&self) -> Option<&str> {
        match &self.whose {
            Whose::Tool { apart, .. } => Some(apart),
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
                for between in BETWEEN {
                    add(&mut whole, format!("{server}{between}{tool}"));
                }
            }
            // A server without prefix shows the bare name, so a rule may say just that.
            add(&mut whole, tool);
        }
        let apart = key.exposed_apart();
        add(&mut whole, fold(&apart));
        add(&mut whole, fold(&key.exposed()));
        Self {
            whole,
            server,
            whose: Whose::Tool {
                key: key.clone(),
                apart,
            },
            shown_as: None,
            alone: false,
            concerned: OnceLock::new(),
        }
    }
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
