//! Resolve: which tool of which server is meant.
//!
//! Owns binding a request to one tool of one catalogue revision. From here on nothing is looked
//! up by a flattened name again (SEC-31).

use std::sync::{Arc, LazyLock};

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
    arguments: Arguments,
}

/// An object, kept as the value that schemas are held against.
#[derive(Debug)]
struct Arguments(Value);

impl Arguments {
    fn new(arguments: Map<String, Value>) -> Self {
        Self(Value::Object(arguments))
    }

    fn members(&self) -> &Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        // It is always an object; the rest is for the compiler.
        self.0.as_object().unwrap_or(&NONE)
    }
}

impl ResolvedCall {
    /// The tool.
    pub fn tool(&self) -> &CatalogTool {
        self.0.catalog.at(self.0.index)
    }

    /// The arguments as asked.
    pub fn arguments(&self) -> &Map<String, Value> {
        self.0.arguments.members()
    }

    /// Puts other arguments in their place.
    pub(super) fn rewrite(&mut self, arguments: Map<String, Value>) {
        self.0.arguments = Arguments::new(arguments);
    }

    /// The arguments as one JSON value.
    pub(super) fn value(&self) -> &Value {
        &self.0.arguments.0
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
        arguments: Arguments::new(request.arguments),
    })))
}
