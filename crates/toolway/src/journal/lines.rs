//! Lines of one kind in a file that grows: the last of them, and those that come after.
//!
//! Owns choosing and parsing them, for the journal and for the audit. How the file is read, across
//! rotations, is `journal/tail.rs`. A line that is none of ours, a half-written one say, is passed
//! over, and counted.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use super::tail::Tail;

/// The last lines of a file that `wanted` takes, and a follower for what comes after them. `None`
/// when there is no file.
pub(crate) fn last<L>(
    directory: &Path,
    file: &str,
    count: usize,
    parse: fn(&str) -> Option<L>,
    wanted: impl Fn(&L) -> bool,
) -> io::Result<Option<(Vec<L>, LineFollower<L>)>> {
    let mut kept = VecDeque::new();
    let mut unreadable = 0;
    let tail = Tail::open(directory, file, &mut |text| {
        let line = parse(text);
        unreadable += u64::from(line.is_none());
        if let Some(line) = line.filter(&wanted) {
            kept.push_back(line);
            if kept.len() > count {
                kept.pop_front();
            }
        }
    })?;
    Ok(tail.map(|tail| {
        let follower = LineFollower {
            tail,
            parse,
            unreadable,
        };
        (kept.into(), follower)
    }))
}

/// Reads what is appended to a file of such lines.
#[derive(Debug)]
pub struct LineFollower<L> {
    tail: Tail,
    parse: fn(&str) -> Option<L>,
    unreadable: u64,
}

impl<L> LineFollower<L> {
    /// How many lines before those to come were none of ours.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Gives every whole line that came since the last time. A file that was rotated meanwhile
    /// is read to its end before the new one is begun.
    pub fn poll(&mut self, mut show: impl FnMut(L)) -> io::Result<()> {
        self.tail.poll(&mut |text| {
            if let Some(line) = (self.parse)(text) {
                show(line);
            }
        })
    }
}
