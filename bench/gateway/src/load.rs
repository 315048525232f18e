//! The load: starts gateways, drives them, and checks every answer.
//!
//! Owns what is sent and what counts as an answer. `plan.rs` says which gateways there are and
//! `place.rs` runs one; `process.rs` looks at processes from outside; `request.rs` and `answer.rs`
//! are the two directions of HTTP, `batch.rs` the timing; `figures.rs` takes the figures, `neighbours.rs` is who
//! disturbs. What they
//! mean is in `bench/README.md`.

pub mod answer;
pub mod batch;
pub mod figures;
pub mod neighbours;
pub mod place;
pub mod plan;
pub mod process;
pub mod request;
