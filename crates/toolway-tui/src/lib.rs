//! Toolway on a terminal: what moves on the screen.
//!
//! Owns the live view of connecting servers: [`progress`]. Each change is an event (`event.rs`)
//! that `update.rs` folds into the state (`app.rs`), and `view/` draws the state; only
//! `progress.rs` waits and writes. Reads snapshots, never a connection.

mod app;
mod backend;
mod event;
pub mod progress;
mod update;
mod view;

pub use progress::{Options, Screen, show};
pub use view::Theme;
