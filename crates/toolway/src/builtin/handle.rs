//! What a built-in tool may do with the host it runs in.
//!
//! Owns the handle: it looks, and it reads resources. It cannot call tools, for that would go
//! around the rules; nor change servers.

use std::fmt;
use std::sync::Arc;

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;
use toolway_types::{ServerName, ToolKey, Untrusted};
use toolway_wire::era::method;

use crate::auth::Auth;
use crate::call::{CallError, CallOptions, Consent};
use crate::dispatch::send::{self, Lines};
use crate::snapshot::{HostSnapshot, ServerSnapshot};

/// A look at the host.
#[derive(Clone)]
pub struct HostHandle {
    pictures: watch::Receiver<Arc<HostSnapshot>>,
    auth: Option<Arc<Auth>>,
}

impl HostHandle {
    pub(crate) fn new(
        pictures: watch::Receiver<Arc<HostSnapshot>>,
        auth: Option<Arc<Auth>>,
    ) -> Self {
        Self { pictures, auth }
    }

    /// What is known of logins.
    pub(super) fn auth(&self) -> Option<&Arc<Auth>> {
        self.auth.as_ref()
    }

    /// The picture of this moment.
    pub fn snapshot(&self) -> Arc<HostSnapshot> {
        Arc::clone(&self.pictures.borrow())
    }

    /// Reads a resource, as its server answers. A server that is connecting is waited for. Where
    /// an error names a tool, it is the URI.
    pub async fn read_resource(
        &self,
        server: &ServerName,
        uri: &str,
    ) -> Result<Box<RawValue>, CallError> {
        let pending = |picture: &Arc<HostSnapshot>| {
            let server = picture.server(server.as_str());
            server.is_some_and(ServerSnapshot::is_pending)
        };
        // An error means that the host is gone; then the last picture has no line either.
        let _ = self
            .pictures
            .clone()
            .wait_for(|picture| !pending(picture))
            .await;
        let picture = self.snapshot();
        let line = picture.line(server)?;
        let key = ToolKey::new(server.clone(), uri);
        let params =
            to_raw_value(&json!({ "uri": uri })).map_err(|error| CallError::Malformed {
                server: server.clone(),
                tool: Untrusted::new(uri),
                what: Untrusted::new(error.to_string()),
            })?;
        // Nobody has to consent, so the consent is never looked at.
        let options = CallOptions::new(Consent::Typed);
        let options = send::options(&options, &*line, picture.general_limits());
        let limit = options.timeout;
        line.request(method::RESOURCES_READ, params, options)
            .await
            .map_err(|error| send::explain(error, &key, limit))
    }
}

impl fmt::Debug for HostHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HostHandle")
    }
}
