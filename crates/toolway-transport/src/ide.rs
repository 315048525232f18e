//! An editor's server: on this machine, found by its lock file.
//!
//! Owns the one rule that such a server's token goes nowhere else. Lock files are read by
//! `toolway-config`; how the bytes travel is [`crate::sse`]'s and [`crate::websocket`]'s.

use std::net::Ipv4Addr;

use toolway_types::RemoteSpec;
use url::Host;

use crate::error::OpenError;

/// By address: a name could come to mean another machine.
pub(crate) fn require_this_machine(spec: &RemoteSpec) -> Result<(), OpenError> {
    match spec.url.host() {
        Some(Host::Ipv4(Ipv4Addr::LOCALHOST)) => Ok(()),
        host => Err(OpenError::NotThisMachine(
            host.map(|host| host.to_string()).unwrap_or_default(),
        )),
    }
}
