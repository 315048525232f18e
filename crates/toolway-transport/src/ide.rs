//! An editor's server: on this machine, found by its lock file.
//!
//! Owns the one rule that such a server's token goes nowhere else. Lock files are read by
//! `toolway-config`; how the bytes travel is [`crate::sse`]'s and [`crate::websocket`]'s.

use std::net::Ipv4Addr;

use toolway_types::RemoteSpec;
use url::Host;

use crate::channel::Channel;
use crate::error::OpenError;
use crate::options::OpenOptions;
use crate::{sse, websocket};

/// Opens a channel to an editor that speaks HTTP+SSE.
pub(crate) fn open_sse(spec: &RemoteSpec, options: &OpenOptions) -> Result<Channel, OpenError> {
    on_this_machine(spec)?;
    sse::open(spec, options)
}

/// Opens a channel to an editor that speaks WebSocket.
pub(crate) fn open_websocket(
    spec: &RemoteSpec,
    options: &OpenOptions,
) -> Result<Channel, OpenError> {
    on_this_machine(spec)?;
    websocket::open(spec, options)
}

/// By address: a name could come to mean another machine.
fn on_this_machine(spec: &RemoteSpec) -> Result<(), OpenError> {
    match spec.url.host() {
        Some(Host::Ipv4(Ipv4Addr::LOCALHOST)) => Ok(()),
        host => Err(OpenError::NotThisMachine(
            host.map(|host| host.to_string()).unwrap_or_default(),
        )),
    }
}
