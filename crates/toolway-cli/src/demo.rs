//! The servers that `toolway demo` connects to: built in, so that a first run needs nothing
//! installed.
//!
//! Owns what the demo servers offer. Starting, configuring and calling them is the command's work.

pub(crate) mod flavour;
mod library;
mod picture;
pub(crate) mod server;
mod tools;
