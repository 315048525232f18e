//! From a definition to its transport.
//!
//! Owns the one match over the transports. How each one works is in the module of its name.

use toolway_types::{ServerSpec, TransportSpec};

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
        TransportSpec::Http(remote) | TransportSpec::Connector(remote) => {
            http::open(remote, options)
        }
        TransportSpec::Sse(remote) => sse::open(remote, options),
        TransportSpec::Ws(remote) => websocket::open(remote, options),
        TransportSpec::SseIde(remote) => ide::open_sse(remote, options),
        TransportSpec::WsIde(remote) => ide::open_websocket(remote, options),
        // Linked by the host, which has the object: see `in_process`.
        TransportSpec::Sdk => Err(OpenError::NoObject),
    }
}
