//! The daemon: one process of a user that keeps servers, and runs commands for other processes on
//! their own streams.
//!
//! Owns how a command comes to run there. The socket and what is said over it are
//! `toolway_gateway::daemon_socket`'s. Parts: `attach.rs` (the process that was typed, and waits),
//! `runs.rs` (commands in the daemon), `hosts.rs` (the hosts they use), `start.rs` (starting one),
//! `relay.rs` (a client's pipe that outlives a daemon).
//!
//! Invariant: a command does what it would do in a process of its own: it has the streams, the
//! variables, the directory, the plan and the approvals of who typed it.

pub(crate) mod attach;
mod build;
mod hosts;
mod relay;
pub(crate) mod runs;
pub(crate) mod start;

pub(crate) use self::hosts::RunInDaemon;

use toolway_config::Environment;

/// What says whether the daemon is used.
pub(crate) const VARIABLE: &str = "TOOLWAY_DAEMON";

/// Whether commands use the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonUse {
    /// Never.
    Off,
    /// Where one runs.
    Attach,
    /// Always: one that does not run is started.
    Start,
}

impl DaemonUse {
    /// What the variable says; nothing where it does not say it in a way that is known.
    pub(crate) fn said(environment: &Environment) -> Result<Option<Self>, String> {
        match environment.var(VARIABLE) {
            None | Some("") => Ok(None),
            Some("off") => Ok(Some(Self::Off)),
            Some("attach") => Ok(Some(Self::Attach)),
            Some("auto") => Ok(Some(Self::Start)),
            Some(other) => Err(other.to_owned()),
        }
    }
}
