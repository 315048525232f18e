//! Reading journals, to show them.
//!
//! Owns finding a server's files. How their lines are chosen and followed is `journal/lines.rs`;
//! what is read is cleaned again.

use std::io;
use std::path::Path;

use toolway_types::ServerName;

use super::file::{JournalName, server_of};
use super::line::{JournalLine, JournalLineKind};
use super::lines::{LineFollower, last};

/// Every server that has a journal here.
pub fn logged_servers(directory: &Path) -> Vec<ServerName> {
    let mut servers: Vec<ServerName> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| server_of(entry.ok()?.file_name().to_str()?))
        .collect();
    servers.sort();
    servers.dedup();
    servers
}

/// The last lines of a server's journal that `wanted` takes, and a follower for what comes after
/// them. `None` when there is no journal.
pub fn read_last(
    directory: &Path,
    name: &JournalName,
    count: usize,
    wanted: impl Fn(JournalLineKind) -> bool,
) -> io::Result<Option<(Vec<JournalLine>, LineFollower<JournalLine>)>> {
    last(directory, &name.file(), count, JournalLine::parse, |line| {
        wanted(line.kind)
    })
}
