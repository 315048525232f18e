//! Resolve: which tool of which server is meant.
//!
//! Owns binding a request to one tool of one catalogue revision. From here on nothing is looked
//! up by a flattened name again (SEC-31).

use std::mem;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::call::{CallError, CallFault, ToolTarget};
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
pub struct CallArguments(Value);

impl From<Map<String, Value>> for CallArguments {
    fn from(arguments: Map<String, Value>) -> Self {
        Self(Value::Object(arguments))
    }
}

impl CallArguments {
    pub(super) fn members(&self) -> &Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        // It is always an object; the rest is for the compiler.
        self.0.as_object().unwrap_or(&NONE)
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

    /// Puts other arguments in their place; gives the old ones.
    pub(super) fn rewrite(&mut self, arguments: CallArguments) -> CallArguments {
        mem::replace(self.arguments, arguments)
    }

    /// The arguments as one JSON value.
    pub(super) fn value(&self) -> &Value {
        &self.arguments.0
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
