//! The owner's way into a gateway that runs: a unix socket in a private folder.
//!
//! Owns both of its ends: the folder and the names in it (`folder.rs`), listening (`listen.rs`), and
//! a small client (`client.rs`). Framed like stdio, one message per line, and it talks MCP like every
//! way in; what else its service answers is `hosted/owner.rs`.
//!
//! Invariants: the folder is ours and 0700, the socket ours and 0600; each end knows that the other
//! is the same user's before it reads a byte. Every process has a socket of its own, which stands
//! under its name only while somebody listens: one that refuses connections is a dead process's
//! (REL-34).

mod client;
mod folder;
mod listen;

pub(crate) use self::client::is_own;
pub use self::client::{OwnerCallError, OwnerClient};
pub use self::folder::{FoundGateway, Reached, SocketFolder, SocketFolderError};
pub use self::listen::OwnerSocket;
pub(crate) use self::listen::{serve_connections, talk};
