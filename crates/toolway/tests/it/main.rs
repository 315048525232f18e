//! The host from outside: real plans, real transports, scripted servers.

#![expect(
    clippy::disallowed_methods,
    reason = "scripted servers and callers are tasks of the test's own"
)]

mod host;
mod http;
mod lifecycle;
mod stdio;
mod support;
