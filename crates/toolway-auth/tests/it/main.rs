//! What the crate promises across processes.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "the parts tests share fail like tests"
)]

mod race;
mod rel_14;
