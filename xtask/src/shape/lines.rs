//! How many lines a file has, without its tests.
//!
//! Owns what counts as code: a line that is neither blank nor a comment alone.

use std::iter::Sum;
use std::ops::{Add, RangeInclusive};

/// Lines of product.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) all: usize,
    /// Neither blank nor a comment alone.
    pub(crate) code: usize,
}

impl Lines {
    /// Counts a text without the lines that are left out; the first line is 1.
    pub(super) fn of(text: &str, left_out: &[RangeInclusive<usize>]) -> Self {
        let mut lines = Self::default();
        for (index, line) in text.lines().enumerate() {
            if left_out.iter().any(|range| range.contains(&(index + 1))) {
                continue;
            }
            lines.all += 1;
            let line = line.trim();
            lines.code += usize::from(!line.is_empty() && !line.starts_with("//"));
        }
        lines
    }
}

impl Add for Lines {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            code: self.code + other.code,
        }
    }
}

impl Sum for Lines {
    fn sum<I: Iterator<Item = Self>>(lines: I) -> Self {
        lines.fold(Self::default(), Add::add)
    }
}
