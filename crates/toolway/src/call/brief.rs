//! A server's words inside a message of ours.

use toolway_types::{Untrusted, text};

/// The longest piece of them, in characters.
pub(super) const MAX_BRIEF: usize = 500;

/// A server's words for a message: one line, so that they cannot pass for lines of ours.
pub(crate) fn brief(text: &Untrusted) -> String {
    text::cut(&text.line(), MAX_BRIEF).into_owned()
}
