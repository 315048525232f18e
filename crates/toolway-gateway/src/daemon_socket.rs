//! The way into the daemon of one user: a unix socket over which other processes have it run commands
//! on their own streams.
//!
//! Owns both ends: the socket's place and that one process at a time listens there (`listen.rs`), what
//! is said (`message.rs`), and the end of who asks (`attach.rs`). Framed like stdio, JSON-RPC like
//! every way in. What a command is, and running it, is the program's.
//!
//! Invariants: the folder is ours and 0700, the socket ours and 0600; each end knows that the other
//! is the same user's before it says anything, because what is said holds variables of the
//! environment. Whoever listens holds the lock beside the socket, which the kernel gives back however
//! its process ends.

mod attach;
mod listen;
mod message;

pub use self::attach::{
    AttachError, DaemonClient, RunBeginning, RunOutcome, SignalFeed, signal_note,
};
pub use self::listen::{
    AskedRun, DaemonOpening, DaemonSocket, DaemonSocketError, EndTeller, Heard, Replies,
};
pub use self::message::{
    DaemonRequest, RunEnd, RunRefusal, RunRefused, RunRequest, SignalNote, WhyMoving, method,
};
