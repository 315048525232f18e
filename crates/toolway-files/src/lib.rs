//! Files: how Toolway opens, reads, replaces and locks them.
//!
//! Owns the one way to a private file or directory, to a file that is replaced as a whole, to a
//! lock among processes, and to reading what others may have put in a file's place.
//! Does not own: what stands in any file, or where it lies.

pub mod links;
pub mod lock;
pub mod plain_file;
pub mod private_file;
pub mod state_file;
