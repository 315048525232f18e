//! Toolway on a terminal: what moves on the screen.
//!
//! Owns the live views of servers, while they connect ([`progress`]) and while they are watched
//! ([`live`]), and the line of a call that takes long ([`waiting`]). Each change is an event
//! that `update.rs` folds into the state (`state.rs`), and `view/` draws the state;
//! only `progress.rs` and `live.rs` wait and write. Reads snapshots, never a connection.

mod backend;
pub mod live;
pub mod progress;
mod state;
mod update;
mod view;
pub mod waiting;

pub use live::watch;
pub use progress::{NoticeFeed, TerminalSize, ViewOptions, show};
pub use view::Theme;
pub use view::servers::offers;
pub use waiting::wait;
