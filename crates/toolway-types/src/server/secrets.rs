//! The parts of a definition that may name secrets, and putting their values there.

#[cfg(test)]
mod tests;

use super::{OauthSpec, RemoteSpec, ServerSpec, StdioSpec, TransportSpec};
use crate::Secret;
use crate::reference::ReferenceValues;

impl ServerSpec {
    /// The definition with the values of its references, in their order.
    #[must_use]
    pub fn with_secrets(&self, values: &[Secret]) -> ServerSpec {
        let values = ReferenceValues::new(&self.references, values);
        let mut filled = self.clone();
        filled.references.clear();
        match &mut filled.transport {
            TransportSpec::Stdio(stdio) => stdio.fill(&values),
            TransportSpec::Remote(_, remote) => remote.fill(&values),
            TransportSpec::Sdk => {}
        }
        filled
    }
}

impl StdioSpec {
    fn fill(&mut self, values: &ReferenceValues<'_>) {
        for value in self.env.values_mut() {
            values.secret(value);
        }
    }
}

impl RemoteSpec {
    fn fill(&mut self, values: &ReferenceValues<'_>) {
        for (_, value) in &mut self.headers {
            values.secret(value);
        }
        if let Some(helper) = &mut self.headers_helper {
            helper.process.fill(values);
        }
        values.address(&mut self.url);
    }
}

impl OauthSpec {
    /// The settings with the values of their references, in their order.
    #[must_use]
    pub fn with_secrets(&self, values: &[Secret]) -> OauthSpec {
        let values = ReferenceValues::new(&self.references, values);
        let mut filled = self.clone();
        filled.references.clear();
        if let Some(id) = &mut filled.client_id {
            *id = values.text(id);
        }
        if let Some(secret) = &mut filled.client_secret {
            values.secret(secret);
        }
        filled
    }
}
