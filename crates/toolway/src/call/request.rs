//! A wish to run a tool: which one, with which arguments, and what travels along.
//!
//! Owns arguments in both forms: as values, and as the bytes that a client sent. What is decided
//! about bytes is decided on what was parsed of them, and they are sent as they came, unless
//! somebody wrote others.

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolway_types::Untrusted;
use toolway_wire::{CarriedParams, ParamsError, RawJson};

use super::ToolTarget;
use super::brief::brief;

/// A wish to run a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    /// Which tool.
    pub target: ToolTarget,
    /// Its arguments, by name.
    pub arguments: ToolArguments,
    /// What else stands in the parameters of a client's request: `_meta`, and what continues an
    /// earlier one. It reaches the server as it is; see [`Continuations`](super::Continuations).
    pub carried: CarriedParams,
}

impl ToolRequest {
    /// A call of this tool with these arguments, and nothing else.
    pub fn new(target: ToolTarget, arguments: impl Into<ToolArguments>) -> Self {
        Self {
            target,
            arguments: arguments.into(),
            carried: CarriedParams::default(),
        }
    }

    /// A call of this tool by the parameters of a client's `tools/call`: its arguments as the bytes
    /// they came in, and all else that stands there but the name.
    pub fn of_params(target: ToolTarget, params: &RawJson) -> Result<Self, ParamsError> {
        let ([_, arguments], carried) = CarriedParams::split_known(params, ["name", "arguments"])?;
        let none = || ToolArguments::Parsed(Map::new());
        Ok(Self {
            target,
            arguments: arguments.map_or_else(none, ToolArguments::Raw),
            carried,
        })
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolArguments {
    /// As values.
    Parsed(Map<String, Value>),
    /// As the bytes they came in, which are sent unless somebody writes others.
    Raw(RawJson),
}

impl Default for ToolArguments {
    fn default() -> Self {
        Self::Parsed(Map::new())
    }
}

impl From<Map<String, Value>> for ToolArguments {
    fn from(arguments: Map<String, Value>) -> Self {
        Self::Parsed(arguments)
    }
}

impl From<RawJson> for ToolArguments {
    fn from(arguments: RawJson) -> Self {
        Self::Raw(arguments)
    }
}

impl ToolArguments {
    /// Reads bytes; gives what is wrong with them otherwise. What another reader could read
    /// differently is not read at all (SEC-22).
    pub(crate) fn read(raw: &RawJson) -> Result<Map<String, Value>, String> {
        if let Some(twice) = raw.doubled_member() {
            let twice = brief(&Untrusted::new(twice));
            return Err(format!("the member `{twice}` stands twice"));
        }
        serde_json::from_str(raw.get()).map_err(|error| error.to_string())
    }

    /// A text among them.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        match self {
            Self::Parsed(arguments) => Some(arguments.get(name)?.as_str()?.into()),
            Self::Raw(raw) => match Self::read(raw).ok()?.remove(name)? {
                Value::String(text) => Some(text.into()),
                _ => None,
            },
        }
    }
}
