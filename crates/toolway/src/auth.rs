//! Who a server's requests say they come from.
//!
//! Owns the choice of a server's credentials: its headers helper where its entry names one.
//! Does not own: how a helper runs (`toolway-auth`), or when a refused request is sent again
//! (`toolway-transport`).

use std::sync::Arc;

use toolway_auth::helper::{Helper, HelperCredentials};
use toolway_transport::{Credentials, OpenOptions};
use toolway_types::{RemoteSpec, ServerName, ServerSpec, TransportSpec};

use crate::connection::Source;
use crate::journal::JournalWriter;

/// The credentials for one connection to a server; none where its entry wants none.
pub(crate) fn credentials(
    server: &ServerName,
    source: &Source,
    open: &OpenOptions,
    journal: Option<&JournalWriter>,
) -> Option<Arc<dyn Credentials>> {
    let Source::Spec(spec) = source else {
        return None;
    };
    let remote = remote(spec)?;
    let definition = remote.headers_helper.clone()?;
    let open = OpenOptions {
        credentials: None,
        ..open.clone()
    };
    let helper = Helper::new(server.clone(), remote.url.clone(), definition, open);
    let journal = journal.cloned();
    let keep_back = move |headers: &[_]| {
        if let Some(journal) = &journal {
            journal.keep_back(headers);
        }
    };
    Some(Arc::new(HelperCredentials::new(
        helper,
        Box::new(keep_back),
    )))
}

/// The part of a definition that concerns servers across a network.
fn remote(spec: &ServerSpec) -> Option<&RemoteSpec> {
    match &spec.transport {
        TransportSpec::Http(remote)
        | TransportSpec::Sse(remote)
        | TransportSpec::Ws(remote)
        | TransportSpec::SseIde(remote)
        | TransportSpec::WsIde(remote)
        | TransportSpec::Connector(remote) => Some(remote),
        TransportSpec::Stdio(_) | TransportSpec::Sdk => None,
    }
}
