//! The transports against real peers: child processes, sockets, objects in this program.
#![expect(clippy::disallowed_methods, reason = "a test owns the tasks it starts")]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "the parts tests share fail like tests"
)]

mod authority;
mod browser;
mod client;
mod contract;
mod credentials;
mod faults;
mod http;
mod launcher;
mod mutated;
mod peer;
mod process;
mod program;
mod proxy;
mod reached;
mod resume;
mod server;
mod shield;
mod socket;
mod sse;
mod stdio;
mod websocket;
