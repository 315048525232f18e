//! Rules about calls, what they decide about one tool, and the organisation's variables.

use serde::{Deserialize, Serialize};
use toolway_types::{Scope, ServerName};

use crate::{DiagnosisRow, SourceRow, Word};

/// All rules, and what decides without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleListing {
    /// What happens without a rule: `default`, `auto` or `bypass`.
    pub mode: Word,
    /// Whether the mode `bypass` is forbidden.
    pub bypass_forbidden: bool,
    /// What happens when a tool's definition changed.
    pub pins: Word,
    /// Who decides in the mode `auto`.
    pub classifier: Option<ClassifierRow>,
    /// In the order in which they count.
    pub rules: Vec<RuleRow>,
    /// What is odd about them.
    pub remarks: Vec<DiagnosisRow>,
    /// Those that do not count for a server here.
    pub unheeded: Vec<UnheededRow>,
}

/// Who decides in the mode `auto`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassifierRow {
    /// What it is called: its program or its tool.
    pub title: String,
    /// Where it stands.
    pub source: SourceRow,
    /// Whether it is asked at all.
    pub decides: bool,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRow {
    /// `allow`, `ask` or `deny`.
    pub list: Word,
    /// As written.
    pub rule: String,
    /// The scope it stands in.
    pub scope: Scope,
    /// Where it stands.
    pub source: SourceRow,
}

/// A rule that does not count: it was given for another server of that name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnheededRow {
    /// As written.
    pub rule: String,
    /// Where it stands.
    pub source: SourceRow,
    /// The server; absent where the row that this one is part of names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// Where the entry of the server stands that it does not count for.
    pub entry: SourceRow,
}

/// What is decided about a call of one tool, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgmentRow {
    /// Its server.
    pub server: ServerName,
    /// Its own name.
    pub tool: String,
    /// `allowed`, `asked`, `classified` or `denied`.
    pub decision: Word,
    /// The rule that decides; null when none does.
    pub rule: Option<String>,
    /// Where that stands.
    pub source: Option<SourceRow>,
    /// What happens without a rule.
    pub mode: Word,
    /// A rule that would count for another server of that name; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheeded: Option<UnheededRow>,
    /// False when it is not known what the server calls the tool; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_is_known: Option<bool>,
    /// The state of the server in which this is decided; absent when it is in every state.
    #[serde(rename = "while", default, skip_serializing_if = "Option::is_none")]
    pub while_state: Option<Word>,
    /// What is decided in other states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Word>,
}

/// The variables that the organisation sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyListing {
    /// In the order in which they are set.
    pub variables: Vec<VariableRow>,
}

/// A variable that the organisation sets. Its value is not shown: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableRow {
    /// Its name.
    pub name: String,
    /// Whether it counts.
    pub state: Word,
    /// Where it is set.
    pub source: SourceRow,
}
