//! From a definition to its transport.
//!
//! Owns the one match over the transports. How each one works is in the module of its name.

use toolway_types::{RemoteKind, ServerSpec, TransportPeer, TransportSpec};

use crate::channel::Channel;
use crate::error::OpenError;
use crate::options::OpenOptions;
use crate::{http, ide, sse, stdio, websocket};

/// Opens a channel to a server.
pub async fn open(spec: &ServerSpec, options: &OpenOptions) -> Result<Channel, OpenError> {
    match &spec.transport {
        TransportSpec::Stdio(program) => {
            stdio::open(program, &options.limits, &options.shield, &options.launcher).await
        }
        // Linked by the host, which has the object: see `in_process`.
        TransportSpec::Sdk => Err(OpenError::NoObject),
        TransportSpec::Remote(kind, remote) => {
            if kind.facts().peer == TransportPeer::Editor {
                ide::require_this_machine(remote)?;
            }
            match kind {
                RemoteKind::Http | RemoteKind::Connector => http::open(remote, options),
                RemoteKind::Sse | RemoteKind::SseIde => sse::open(remote, options),
                RemoteKind::Ws | RemoteKind::WsIde => websocket::open(remote, options),
            }
        }
    }
}
