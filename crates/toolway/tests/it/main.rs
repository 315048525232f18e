//! The host from outside: real plans, real transports, scripted servers.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests: they spawn servers of their own, and fail by panicking"
)]

mod account;
mod accounts;
mod asking;
mod attacks_on_callers;
mod audit;
mod background;
mod batch;
mod between;
mod builtin;
mod callers;
mod certificates;
mod client_identities;
mod connector_login;
mod contained;
mod cross_app;
mod curated;
mod delegated;
mod ending;
mod eras;
mod events;
mod expiry;
mod faults;
mod following;
mod forbidden;
mod guard;
mod healing;
mod helper;
mod hooks;
mod host;
mod http;
mod inbound;
mod kept;
mod leaving;
mod lifecycle;
mod logins;
mod logs;
mod midway;
mod offered;
mod outliving;
mod overheard;
mod panics;
mod passing;
mod patience;
mod pictures;
mod pins;
mod processes;
mod profiles;
mod push;
mod questions;
mod ranking;
mod references;
mod reload;
mod renewing;
mod resting;
mod shared_line;
mod signing_in;
mod skills;
mod sleep;
mod stdio;
mod step_up;
mod support;
mod tasks;
mod totals;
mod views;
mod watching;
