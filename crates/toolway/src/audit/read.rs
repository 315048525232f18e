//! Reading the audit, for whoever shows it.
//!
//! Owns choosing the last lines and following what is appended. A line that is none of ours, a
//! half-written one say, is passed over.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use super::{FILE, Line};
use crate::journal::Tail;

/// The last lines that `wanted` takes, and a follower for what comes after them. `None` when
/// nothing was ever written down.
pub fn read_last(
    directory: &Path,
    count: usize,
    wanted: impl Fn(&Line) -> bool,
) -> io::Result<Option<(Vec<Line>, Follower)>> {
    let mut kept = VecDeque::new();
    let tail = Tail::open(directory, FILE, &mut |text| {
        if let Some(line) = Line::parse(text)
            && wanted(&line)
        {
            kept.push_back(line);
            if kept.len() > count {
                kept.pop_front();
            }
        }
    })?;
    Ok(tail.map(|tail| (kept.into(), Follower(tail))))
}

/// Reads what is appended to the audit.
#[derive(Debug)]
pub struct Follower(Tail);

impl Follower {
    /// Gives every whole line that came since the last time.
    pub fn poll(&mut self, mut show: impl FnMut(Line)) -> io::Result<()> {
        self.0.poll(&mut |text| {
            if let Some(line) = Line::parse(text) {
                show(line);
            }
        })
    }
}
