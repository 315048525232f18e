//! Typed modules of servers' tools: in TypeScript, in Python and in Rust.
//!
//! Owns what a module says, byte for byte, and how one is held against what a server offers later.
//! Parts: `shape.rs` (what a schema says, as types; `kind.rs`), `names.rs` (identifiers), `words.rs` (comments and
//! literals), one file for each language, `stamp.rs` (what a module was made from). Does not own: where
//! tools come from and where files go.
//!
//! Invariants: the same tools give the same bytes. Whatever a server says, the module is valid code in
//! which nothing of the server's is more than a comment, a literal or part of an identifier of ASCII
//! letters. What cannot be said in a language's types is open there, never narrower than the schema.

mod kind;
mod module;
mod names;
mod python;
mod rust;
mod shape;
mod stamp;
mod tools;
mod typescript;
mod words;

#[cfg(test)]
mod tests;

pub use module::{index, module};
pub use names::stem;
pub use stamp::{ModuleChange, ModuleStamp, ToolStamp};
pub use tools::{Language, ServerTools, ToolDefinition, VERSION};
