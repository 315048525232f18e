//! JSON Schema as data: what its keywords hold, the schemas inside a schema, where references
//! lead, and what one schema says of a value by itself.
//!
//! Owns the one table of keywords. Does not own: whether a value fits (`toolway`), and what is made
//! of a schema for a model, a person or a header. Nothing here is fetched, and nothing fails: what
//! is not understood counts as not said.

mod keyword;
mod reference;
mod said;
#[cfg(test)]
mod tests;
mod walk;

pub use keyword::{KeywordShape, NAMES, REFERENCES, TYPES, shape};
pub use reference::{decoded, escaped, identifier, pointer_of, target, unescaped};
pub use said::{list, properties, property, required, text, type_of, types, values};
pub use walk::{Reach, SchemaPlace, is_schema_place, places, rewrite, under};
