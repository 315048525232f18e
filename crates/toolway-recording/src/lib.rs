//! Recordings: what was said to servers and by them, one line for each message, and a server that says
//! it again.
//!
//! Owns the format (`line.rs`), the file while it is written (`file.rs`) and read (`read.rs`), which
//! messages belong together (`exchange.rs`), and what is answered from them (`replay.rs`). Does not
//! own: what is secret. Whoever writes a line has taken secrets out before.
//!
//! Invariants: what was written is there after a crash, up to the last whole line. A recording is
//! private to its owner, and never written through a link. Reading fails for a file that is none, and
//! for nothing else.

mod exchange;
mod file;
mod line;
mod read;
mod replay;

#[cfg(test)]
mod tests;

pub use file::{LARGEST, RecordingError, RecordingFile};
pub use line::{MARK, Side};
pub use read::{ReadError, Recording, RecordingSummary};
pub use replay::{Matching, Replay, ReplayStep};
