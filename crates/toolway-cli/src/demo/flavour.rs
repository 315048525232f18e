//! The three servers of the demo, told apart by what they offer.

use clap::ValueEnum;

/// One of them. Each offers something else, so that a table of all three is worth looking at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Flavour {
    /// `add` and `now`.
    Desk,
    /// `word_count` and `echo`, two resources and a prompt.
    Library,
    /// `palette`, and `fail` to see an error.
    Studio,
}

impl Flavour {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Flavour::Desk => "desk",
            Flavour::Library => "library",
            Flavour::Studio => "studio",
        }
    }

    pub(super) fn instructions(self) -> &'static str {
        match self {
            Flavour::Desk => "Adds numbers and tells the time.",
            Flavour::Library => "Counts words and keeps a few things to read.",
            Flavour::Studio => "Mixes colours. `fail` always answers an error.",
        }
    }
}
