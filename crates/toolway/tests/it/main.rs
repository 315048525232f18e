//! The host from outside: real plans, real transports, scripted servers.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests: they spawn servers of their own, and fail by panicking"
)]

mod faults;
mod host;
mod http;
mod lifecycle;
mod stdio;
mod support;
