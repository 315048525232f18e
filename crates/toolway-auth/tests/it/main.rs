//! What the crate promises across processes.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "the parts tests share fail like tests"
)]

mod case;
mod discovery;
mod login;
mod person;
mod race;
mod registration;
mod rel_14;
mod site;
