//! The authentication of a server, through its public surface: against real servers on loopback,
//! and across processes.
#![expect(clippy::disallowed_methods, reason = "a test owns the tasks it starts")]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the parts tests share fail like tests"
)]

mod account;
mod case;
mod discovery;
mod grants;
mod hostile;
mod inbound;
mod login;
mod person;
mod race;
mod registration;
mod rel_14;
mod site;
mod xaa;
