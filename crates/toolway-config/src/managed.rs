//! Variables that the organisation sets.
//!
//! Owns which of them count at once, which the user confirms first, and which cannot be set: those
//! that say where the user's own settings are, which is fixed before any file is read. A
//! confirmation is kept in `approvals.json` with a digest of all names and values: any change asks
//! again. Does not own: what a variable means.

use serde_json::{Map, Value};
use toolway_types::{Origin, Secret};

use crate::approval::{ApprovalsFile, confirm_managed, managed_digest};
use crate::edit::{EditError, Edited};
use crate::environment::Environment;
use crate::raw::settings::LocatedName;

/// Those that count without confirmation.
pub(crate) const AT_ONCE: [&str; 3] = ["MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "MAX_MCP_OUTPUT_TOKENS"];

/// Those that say where files are, and who owns them.
const SETTLED: [&str; 6] = [
    "HOME",
    "SUDO_UID",
    "TOOLWAY_HOME",
    "TOOLWAY_TEST_SYSTEM_DIR",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
];

/// A variable that managed settings set.
#[derive(Debug, Clone)]
pub struct ManagedVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Secret,
    /// Where it stands.
    pub origin: Origin,
    /// Whether it counts.
    pub state: ManagedState,
}

/// Whether a variable of the organisation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedState {
    /// It needs no confirmation.
    AtOnce,
    /// The user confirmed it, with this value.
    Confirmed,
    /// It waits for the user.
    Waiting,
    /// It cannot be set this way.
    Settled,
}

impl ManagedState {
    /// The word shown to people and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::AtOnce => "counts",
            Self::Confirmed => "confirmed",
            Self::Waiting => "waits for you",
            Self::Settled => "cannot be set",
        }
    }
}

/// Every variable that is a text or a number, with its state.
pub(crate) fn managed_variables(
    environment: &Environment,
    written: &[(LocatedName, Value)],
    approvals: &ApprovalsFile,
) -> Vec<ManagedVariable> {
    let asked = asked_about(written);
    let is_confirmed = !asked.is_empty()
        && approvals.managed_digest() == Some(managed_digest(environment, &asked).as_str());
    let variables = written.iter().filter_map(|(named, value)| {
        let name = named.name.as_str();
        Some(ManagedVariable {
            name: named.name.clone(),
            value: Secret::new(text(value)?),
            origin: named.origin.clone(),
            state: match name {
                _ if AT_ONCE.contains(&name) => ManagedState::AtOnce,
                _ if SETTLED.contains(&name) => ManagedState::Settled,
                _ if is_confirmed => ManagedState::Confirmed,
                _ => ManagedState::Waiting,
            },
        })
    });
    variables.collect()
}

/// The value as a variable's text.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The variables that the user is asked about: one question for all of them.
fn asked_about(written: &[(LocatedName, Value)]) -> Map<String, Value> {
    let asked = written.iter().filter_map(|(named, value)| {
        let name = named.name.as_str();
        let is_asked = !AT_ONCE.contains(&name) && !SETTLED.contains(&name);
        Some((named.name.clone(), Value::from(text(value)?))).filter(|_| is_asked)
    });
    asked.collect()
}

/// The environment with those of these variables that the user confirmed.
pub(crate) fn confirmed(
    environment: &Environment,
    written: &[(LocatedName, Value)],
    approvals: &ApprovalsFile,
) -> Environment {
    let variables = managed_variables(environment, written, approvals).into_iter();
    let confirmed = variables.filter(|variable| variable.state == ManagedState::Confirmed);
    environment.with_variables(confirmed.map(|variable| (variable.name, variable.value)))
}

/// Records that the user confirmed these variables, as they were shown. They are not read again:
/// they may have changed since.
pub fn confirm_managed_variables(
    environment: &Environment,
    shown: &[ManagedVariable],
) -> Result<Edited<()>, EditError> {
    let asked = shown.iter().filter(|variable| {
        matches!(
            variable.state,
            ManagedState::Waiting | ManagedState::Confirmed
        )
    });
    let asked = asked.map(|variable| (variable.name.clone(), Value::from(variable.value.expose())));
    confirm_managed(environment, &asked.collect())
}
