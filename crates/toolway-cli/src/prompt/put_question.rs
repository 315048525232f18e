//! What is asked before a call runs, wherever the question comes from: this process, or the rows of
//! another.
//!
//! Owns bringing both into one shape, so that they look the same. Nothing here is cleaned yet.

use serde_json::{Map, Value};
use toolway::{Against, Lasting, PermissionQuestion};
use toolway_rows::{QuestionRow, SourceRow};
use toolway_types::ServerName;

/// A question for permission.
pub(super) struct PutQuestion<'a> {
    pub(super) server: &'a ServerName,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) destructive: Option<bool>,
    /// The rule that asks, and where it stands.
    pub(super) rule: Option<(&'a str, String)>,
    pub(super) unheeded: Option<PutUnheeded<'a>>,
    pub(super) hook: Option<&'a str>,
    pub(super) classifier: Option<&'a str>,
    /// How the definition changed, every line.
    pub(super) change: Option<(Against, &'a [String])>,
    pub(super) lasting: Lasting,
}

/// A rule that was given for another server of that name.
pub(super) struct PutUnheeded<'a> {
    pub(super) server: &'a ServerName,
    /// Where the entry of the server stands.
    pub(super) entry: String,
    pub(super) rule: &'a str,
    /// Where that stands.
    pub(super) origin: String,
}

impl<'a> From<&'a PermissionQuestion<'a>> for PutQuestion<'a> {
    fn from(question: &'a PermissionQuestion<'a>) -> Self {
        let change = question.change;
        Self {
            server: &question.key.server,
            tool: &question.key.tool,
            arguments: question.arguments,
            destructive: question.destructive,
            rule: question
                .rule
                .map(|(rule, origin)| (rule, origin.to_string())),
            unheeded: question.unheeded.map(|unheeded| PutUnheeded {
                server: &unheeded.server.server,
                entry: unheeded.server.origin.to_string(),
                rule: &unheeded.rule.rule,
                origin: unheeded.rule.origin.to_string(),
            }),
            hook: question.hook,
            classifier: question.classifier,
            change: change.map(|change| (change.against, change.all.as_slice())),
            lasting: question.lasting.clone(),
        }
    }
}

impl<'a> PutQuestion<'a> {
    /// A question of another process; none where it asks for no permission.
    pub(super) fn of_row(row: &'a QuestionRow) -> Option<Self> {
        let change = row.change.as_ref().map(|change| {
            let against = match &*change.against {
                "permitted" => Against::Permitted,
                "namesake" => Against::Namesake,
                _ => Against::Nothing,
            };
            (against, change.lines.as_slice())
        });
        let source = row.source.as_ref().map(place).unwrap_or_default();
        Some(Self {
            server: &row.server,
            tool: row.tool.as_deref()?,
            arguments: row.arguments.as_ref()?,
            destructive: row.destructive,
            rule: row.rule.as_deref().map(|rule| (rule, source)),
            unheeded: row.unheeded.as_ref().map(|unheeded| PutUnheeded {
                server: &row.server,
                entry: place(&unheeded.entry),
                rule: &unheeded.rule,
                origin: place(&unheeded.source),
            }),
            hook: row.hook.as_deref(),
            classifier: row.classifier.as_deref(),
            change,
            lasting: lasting(row),
        })
    }
}

/// How long a yes can hold, by the answers that can be given.
fn lasting(row: &QuestionRow) -> Lasting {
    let choice = |word: &str| row.choices.iter().find(|choice| choice.answer == word);
    let rule = |word: &str| choice(word).and_then(|choice| choice.rule.clone());
    let (tool, server) = (rule("always-tool"), rule("always-server"));
    if tool.is_some() || server.is_some() {
        Lasting::Always { tool, server }
    } else if choice("session").is_some() {
        Lasting::Session
    } else {
        Lasting::Once
    }
}

fn place(source: &SourceRow) -> String {
    match source.line {
        Some(line) => format!("{}:{line}", source.path),
        None => source.path.clone(),
    }
}
