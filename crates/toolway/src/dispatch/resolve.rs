//! Resolve: which tool of which server is meant.
//!
//! Owns binding a request to one tool of one catalogue revision. From here on nothing is looked
//! up by a flattened name again (SEC-31).

use std::sync::Arc;

use serde_json::{Map, Value};
use toolway_types::Untrusted;

use crate::call::{CallError, ToolRequest};
use crate::catalog::{Catalog, CatalogTool};

/// A call bound to one tool of one catalogue. Boxed, because every stage moves it on.
#[derive(Debug)]
pub struct ResolvedCall(Box<Bound>);

#[derive(Debug)]
struct Bound {
    catalog: Arc<Catalog>,
    index: usize,
    arguments: Map<String, Value>,
}

impl ResolvedCall {
    /// The tool.
    pub fn tool(&self) -> &CatalogTool {
        self.0.catalog.at(self.0.index)
    }

    /// The arguments as asked.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.0.arguments
    }

    /// Puts other arguments in their place.
    pub(super) fn rewrite(&mut self, arguments: Map<String, Value>) {
        self.0.arguments = arguments;
    }

    /// Shows the tool and the arguments as one JSON value, which they are not kept as.
    pub(super) fn look<T>(&mut self, look: impl FnOnce(&CatalogTool, &Value) -> T) -> T {
        let value = Value::Object(std::mem::take(&mut self.0.arguments));
        let seen = look(self.tool(), &value);
        if let Value::Object(arguments) = value {
            self.0.arguments = arguments;
        }
        seen
    }

    /// The tool's own name, for messages.
    pub(super) fn tool_name(&self) -> Untrusted {
        Untrusted::new(&self.tool().key.tool)
    }
}

/// Finds the tool that a request means.
pub fn resolve(catalog: &Arc<Catalog>, request: ToolRequest) -> Result<ResolvedCall, CallError> {
    let index = catalog.position(&request.target)?;
    Ok(ResolvedCall(Box::new(Bound {
        catalog: Arc::clone(catalog),
        index,
        arguments: request.arguments,
    })))
}
