//! Reading the audit, for whoever shows it.
//!
//! Owns which file that is; how its lines are chosen and followed is `journal/lines.rs`.

use std::io;
use std::path::Path;

use super::{FILE, Line};
use crate::journal::{Follower, last};

/// The last lines that `wanted` takes, and a follower for what comes after them. `None` when
/// nothing was ever written down.
pub fn read_last(
    directory: &Path,
    count: usize,
    wanted: impl Fn(&Line) -> bool,
) -> io::Result<Option<(Vec<Line>, Follower<Line>)>> {
    last(directory, FILE, count, Line::parse, wanted)
}
