//! What a built-in tool may do with the host it runs in.
//!
//! Owns the handle: it looks, and it reads resources. It cannot call tools, for that would go
//! around the rules; nor change servers, except that one which failed is tried again for a reader.

use std::fmt;
use std::sync::Arc;

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot, watch};
use toolway_types::{ConnectionState, ServerName, ToolKey, Untrusted};
use toolway_wire::era::method;

use crate::account::Connectors;
use crate::auth::Auth;
use crate::call::{CallError, CallOptions, Consent};
use crate::dispatch::send::{self, Lines};
use crate::snapshot::{HostSnapshot, ServerSnapshot};
use crate::supervisor::Request;

/// A look at the host.
#[derive(Clone)]
pub struct HostHandle {
    pictures: watch::Receiver<Arc<HostSnapshot>>,
    /// Held weakly: the supervisor holds this, and ends when nobody can ask it for anything.
    requests: mpsc::WeakSender<Request>,
    auth: Option<Arc<Auth>>,
    connectors: Option<Connectors>,
}

impl HostHandle {
    pub(crate) fn new(
        pictures: watch::Receiver<Arc<HostSnapshot>>,
        requests: mpsc::WeakSender<Request>,
        auth: Option<Arc<Auth>>,
        connectors: Option<Connectors>,
    ) -> Self {
        Self {
            pictures,
            requests,
            auth,
            connectors,
        }
    }

    /// What is known of logins.
    pub(super) fn auth(&self) -> Option<&Arc<Auth>> {
        self.auth.as_ref()
    }

    pub(super) fn set_connectors(&mut self, connectors: Option<Connectors>) {
        self.connectors = connectors;
    }

    /// The account whose connectors are servers too.
    pub(super) fn connectors(&self) -> Option<&Connectors> {
        self.connectors.as_ref()
    }

    /// The picture of this moment.
    pub fn snapshot(&self) -> Arc<HostSnapshot> {
        Arc::clone(&self.pictures.borrow())
    }

    /// Reads a resource, as its server answers. A server that is connecting is waited for, and one
    /// that has failed is tried again first, as for a call. Where an error names a tool, it is
    /// the URI.
    pub async fn read_resource(
        &self,
        server: &ServerName,
        uri: &str,
    ) -> Result<Box<RawValue>, CallError> {
        self.revive(server).await;
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

    /// Has a server tried again, if it has failed.
    async fn revive(&self, server: &ServerName) {
        let failed = |shown: &ServerSnapshot| matches!(shown.state, ConnectionState::Failed(_));
        let picture = self.snapshot();
        if !picture.server(server.as_str()).is_some_and(failed) {
            return;
        }
        let Some(requests) = self.requests.upgrade() else {
            return;
        };
        let (done, answer) = oneshot::channel();
        let server = server.as_str().to_owned();
        if requests
            .send(Request::Revive { server, done })
            .await
            .is_ok()
        {
            drop(requests);
            // An error means that the host is gone; the last picture says so.
            answer.await.ok();
        }
    }
}

impl fmt::Debug for HostHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HostHandle")
    }
}
