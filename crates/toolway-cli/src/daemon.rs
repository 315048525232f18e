//! The daemon: one process of a user that keeps servers, and runs commands for other processes on
//! their own streams.
//!
//! Owns how a command comes to run there. The socket and what is said over it are
//! `toolway_gateway::daemon_socket`'s. Parts: `runs.rs` (commands in the daemon), `start.rs` (starting
//! one), `relay.rs` (a client's pipe that outlives a daemon), `request.rs` (what is asked). The hosts that commands use there are
//! `crate::kept_hosts`'s, and the process that was typed and waits is `crate::attach`'s.
//!
//! Invariant: a command does what it would do in a process of its own: it has the streams, the
//! variables, the directory, the plan and the approvals of who typed it.

pub(crate) mod build;
pub(crate) mod relay;
pub(crate) mod request;
pub(crate) mod runs;
pub(crate) mod start;
