//! The authentication of a server, through its public surface, against real servers on loopback.
#![expect(clippy::disallowed_methods, reason = "a test owns the tasks it starts")]
#![expect(clippy::unwrap_used, reason = "the parts tests share fail like tests")]

mod discovery;
mod grants;
mod registration;
mod site;
mod xaa;
