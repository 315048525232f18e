//! What a built-in tool may do with the host it runs in.
//!
//! Owns the handle: it looks, and it reads resources, which rules and hooks judge. It cannot call
//! tools, for that would go around the rules; nor change servers, except that one which failed is
//! tried again for a reader.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, json};
use toolway_types::{ConnectionState, ServerName, ToolKey};
use toolway_wire::RawJson;
use toolway_wire::era::method;

use crate::account::Connectors;
use crate::auth::Auth;
use crate::call::{CallError, CallOptions, CallerSide, Consent};
use crate::dispatch::Dispatch;
use crate::dispatch::hooks::HookRunner;
use crate::dispatch::send::{self, PreparedRequest};
use crate::offering::{Offering, PriorConsent};
use crate::route::Route;
use crate::snapshot::{HostSnapshot, ServerSnapshot, ServerWaker};

/// A look at the host.
#[derive(Clone)]
pub struct HostHandle {
    /// Its servers. Weak: a snapshot holds the tools that hold this, and so does the supervisor.
    pub(crate) servers: ServerWaker,
    /// What is known of logins.
    pub(crate) auth: Option<Arc<Auth>>,
    /// The account whose connectors are servers too.
    pub(crate) connectors: Option<Connectors>,
    /// Who judges what is read.
    pub(crate) runner: Arc<HookRunner>,
    /// Whose call it is for; none: the host's own.
    pub(crate) caller: Option<Arc<CallerSide>>,
}

impl HostHandle {
    fn caller(&self) -> &Arc<CallerSide> {
        self.caller.as_ref().unwrap_or(self.runner.caller())
    }

    /// Whether it is the owner's call, or one in the owner's name.
    pub(super) fn acts_for_owner(&self) -> bool {
        let owner = self.runner.caller();
        self.caller().caller.principal == owner.caller.principal
    }

    /// The snapshot of this moment.
    pub fn snapshot(&self) -> Arc<HostSnapshot> {
        let snapshots = self.servers.snapshots.upgrade();
        // A host that is gone has no servers.
        snapshots.map_or_else(Arc::default, |snapshots| Arc::clone(&snapshots.borrow()))
    }

    /// Reads a resource, as its server answers. A server that is connecting is waited for, one
    /// that rests is woken, and one that has failed is tried again first, as for a call. Where an error names a tool, it is
    /// the URI.
    ///
    /// Rules and hooks see it as `ReadMcpResource` of that server. No user can be asked, so where
    /// one would have to be, it is refused.
    pub async fn read_resource(
        &self,
        server: &ServerName,
        uri: &str,
    ) -> Result<RawJson, CallError> {
        self.revive(server).await;
        let pending = |snapshot: &Arc<HostSnapshot>| {
            let server = snapshot.server(server.as_str());
            server.is_some_and(ServerSnapshot::is_pending)
        };
        let snapshots = self.servers.snapshots.upgrade();
        if let Some(mut snapshots) = snapshots.map(|snapshots| snapshots.subscribe()) {
            // An error means that the host is gone; then no snapshot has a route either.
            let _ = snapshots.wait_for(|snapshot| !pending(snapshot)).await;
        }
        let snapshot = self.snapshot();
        let route = snapshot.route(server)?;
        let params = Map::from_iter([("uri".to_owned(), uri.into())]);
        let options = CallOptions::new(Consent::Prompt);
        let offering = Offering::ReadResource;
        // What the host's owner said yes to is no other caller's.
        let kind = self.caller().caller.kind;
        let others = self.runner.approvals().of_another_caller(kind, false);
        let dispatch = Dispatch {
            caller: self.caller(),
            approvals: match &self.caller {
                Some(caller) if !Arc::ptr_eq(caller, self.runner.caller()) => &others,
                _ => self.runner.approvals(),
            },
            ..self.runner.dispatch(&snapshot)
        };
        let asked =
            dispatch.permit_offering(offering, server, params, PriorConsent::Given, &options);
        let (entry, permitted) = asked.await;
        let read = match permitted {
            Ok(permitted) => {
                let uri = permitted.text("uri").unwrap_or_default();
                self.read_by(&*route, server, uri).await
            }
            Err(error) => Err(error),
        };
        entry.finish_read(&read).await;
        read
    }

    /// The same by this route, for a call that was judged already.
    pub(super) async fn read_by(
        &self,
        route: &dyn Route,
        server: &ServerName,
        uri: &str,
    ) -> Result<RawJson, CallError> {
        let key = ToolKey::new(server.clone(), uri);
        let (method, params) = (method::RESOURCES_READ, json!({ "uri": uri }));
        let options = CallOptions::new(Consent::Typed);
        let general = self.snapshot().general_limits();
        let caller = self.caller();
        let request = PreparedRequest::new(&key, method, &params)?;
        send::request(route, request, &options, general, caller).await
    }

    /// Has a server tried again, if it has failed, and wakes one that rests.
    async fn revive(&self, server: &ServerName) {
        let snapshot = self.snapshot();
        let Some(shown) = snapshot.server(server.as_str()) else {
            return;
        };
        let Some(orders) = self.servers.orders.upgrade() else {
            return;
        };
        if shown.is_resting() {
            orders.wake(std::slice::from_ref(server)).await;
        } else if matches!(shown.state, ConnectionState::Failed(_)) {
            orders.revive(server.as_str()).await;
        }
    }
}

impl fmt::Debug for HostHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HostHandle")
    }
}
