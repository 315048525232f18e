//! Resolve: which tool of which server is meant.
//!
//! Owns binding a request to one tool of one catalogue revision. From here on nothing is looked
//! up by a flattened name again (SEC-31).

use std::mem;
use std::sync::LazyLock;

use serde_json::{Map, Value};
use toolway_wire::{CarriedParams, RawJson};

use crate::call::{CallError, CallFault, ToolArguments, ToolTarget};
use crate::catalog::{Catalog, CatalogTool};

/// A call bound to one tool of one catalogue. It borrows both the tool and the arguments, because
/// every stage moves it on.
#[derive(Debug)]
pub struct ResolvedCall<'a> {
    tool: &'a CatalogTool,
    arguments: &'a mut CallArguments,
}

/// The arguments of a call: an object, kept as the value that schemas are held against.
#[derive(Debug)]
pub struct CallArguments {
    value: Value,
    /// The bytes that the value was read from, which are sent in its place.
    raw: Option<RawJson>,
    /// Why there is no value.
    problem: Option<String>,
    carried: CarriedParams,
}

impl From<Map<String, Value>> for CallArguments {
    fn from(arguments: Map<String, Value>) -> Self {
        Self {
            value: Value::Object(arguments),
            raw: None,
            problem: None,
            carried: CarriedParams::default(),
        }
    }
}

impl CallArguments {
    /// Reads arguments. What is wrong with them is said when they are validated.
    pub(super) fn of(arguments: ToolArguments, carried: CarriedParams) -> Self {
        let (members, raw, problem) = match arguments {
            ToolArguments::Parsed(members) => (members, None, None),
            ToolArguments::Raw(raw) => match ToolArguments::read(&raw) {
                Ok(members) => (members, Some(raw), None),
                Err(problem) => (Map::new(), Some(raw), Some(problem)),
            },
        };
        Self {
            raw,
            problem,
            carried,
            ..Self::from(members)
        }
    }

    pub(super) fn members(&self) -> &Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        // It is always an object; the rest is for the compiler.
        self.value.as_object().unwrap_or(&NONE)
    }

    /// The bytes they came in, unless somebody wrote others.
    pub(super) fn raw(&self) -> Option<&RawJson> {
        self.raw.as_ref()
    }
}

impl<'a> ResolvedCall<'a> {
    /// A call of a tool that is at hand.
    pub(super) fn of(tool: &'a CatalogTool, arguments: &'a mut CallArguments) -> Self {
        Self { tool, arguments }
    }

    /// The same call, as one of another tool.
    pub(super) fn judged_as<'b>(self, tool: &'b CatalogTool) -> ResolvedCall<'b>
    where
        'a: 'b,
    {
        ResolvedCall {
            tool,
            arguments: self.arguments,
        }
    }

    /// The tool.
    pub fn tool(&self) -> &'a CatalogTool {
        self.tool
    }

    /// The arguments as asked.
    pub fn arguments(&self) -> &Map<String, Value> {
        self.arguments.members()
    }

    /// The bytes that the arguments came in, unless somebody wrote others.
    pub(super) fn raw_arguments(&self) -> Option<&RawJson> {
        self.arguments.raw()
    }

    /// What travels along with them.
    pub(super) fn carried(&self) -> &CarriedParams {
        &self.arguments.carried
    }

    /// Why the arguments could not be read.
    pub(super) fn problem(&self) -> Option<&str> {
        self.arguments.problem.as_deref()
    }

    /// Puts other arguments in their place; gives the old ones. What travels along stays.
    pub(super) fn rewrite(&mut self, mut arguments: CallArguments) -> CallArguments {
        arguments.carried = mem::take(&mut self.arguments.carried);
        mem::replace(self.arguments, arguments)
    }

    /// The arguments as one JSON value.
    pub(super) fn value(&self) -> &Value {
        &self.arguments.value
    }

    /// The call ends here, for this reason.
    pub(super) fn failed(&self, fault: CallFault) -> CallError {
        CallError::Failed(self.tool.key.clone(), fault)
    }
}

/// Finds the tool that a request means.
pub fn resolve<'a>(
    catalog: &'a Catalog,
    target: &ToolTarget,
    arguments: &'a mut CallArguments,
) -> Result<ResolvedCall<'a>, CallError> {
    let tool = catalog.find(target)?;
    Ok(ResolvedCall { tool, arguments })
}
