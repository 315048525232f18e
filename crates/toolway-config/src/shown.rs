//! Entries in what is shown to programmers: a person may have written a secret into one.
//!
//! Owns what `Debug` says of an entry, which is its keys alone.

use std::fmt;

use serde_json::{Map, Value};

use crate::plan::PlannedServer;

/// The keys of an entry, and none of its values.
pub(crate) struct Keys<'a>(pub(crate) &'a Map<String, Value>);

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl fmt::Debug for PlannedServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PlannedServer")
            .field("name", &self.name)
            .field("scope", &self.scope)
            .field("author", &self.author)
            .field("is_typed", &self.is_typed)
            .field("origin", &self.origin)
            .field("transport", &self.transport)
            .field("definition", &Keys(&self.definition))
            .field("digest", &self.digest)
            .field("verdict", &self.verdict)
            .field("shadows", &self.shadows)
            .field("diagnoses", &self.diagnoses)
            .field("variables", &self.variables)
            .field("withheld", &self.withheld)
            .field("curation", &self.curation)
            .finish()
    }
}
