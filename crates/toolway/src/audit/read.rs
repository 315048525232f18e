//! Reading the audit, to show it.
//!
//! Owns which file that is; how its lines are chosen and followed is `journal/lines.rs`.

use std::io;
use std::path::Path;

use super::{AuditLine, FILE};
use crate::journal::{LineFollower, last};

/// The last lines that `wanted` takes, and a follower for what comes after them. `None` when
/// nothing was ever written down.
pub fn read_last(
    directory: &Path,
    count: usize,
    wanted: impl Fn(&AuditLine) -> bool,
) -> io::Result<Option<(Vec<AuditLine>, LineFollower<AuditLine>)>> {
    last(
        directory,
        FILE,
        count,
        |line| serde_json::from_str(line).ok(),
        wanted,
    )
}
