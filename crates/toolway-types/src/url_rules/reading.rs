//! Whether a pattern denies or permits, which decides how it is read.

/// How to read what a rule leaves open: a denial widely, a permission narrowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternReading {
    /// In doubt the rule matches.
    Wide,
    /// In doubt it does not.
    Narrow,
}
