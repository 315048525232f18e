//! What the floor gateway, the server behind every gateway and the load share.
//!
//! Owns nothing of the product and depends on none of it, so that a mistake on one side is not
//! repeated on the other.

pub mod envelope;
pub mod floor;
pub mod load;
