//! Reading journals, for whoever shows them.
//!
//! Owns finding a server's files, the last lines of them, and following what is appended. How the
//! files are read, across rotations, is `journal/tail.rs`; what is read is cleaned again.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use toolway_types::ServerName;

use super::file::{file_name, server_of};
use super::line::{Kind, Line};
use super::tail::Tail;

/// Every server that has a journal here.
pub fn logged_servers(directory: &Path) -> Vec<ServerName> {
    let mut servers: Vec<ServerName> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| server_of(entry.ok()?.file_name().to_str()?))
        .collect();
    servers.sort();
    servers
}

/// The last lines of a server's journal that `wanted` takes, and a follower for what comes after
/// them. `None` when there is no journal.
pub fn read_last(
    directory: &Path,
    server: &ServerName,
    count: usize,
    wanted: impl Fn(Kind) -> bool,
) -> io::Result<Option<(Vec<Line>, Follower)>> {
    let mut kept = VecDeque::new();
    let tail = Tail::open(directory, &file_name(server), &mut |text| {
        if let Some(line) = Line::parse(text)
            && wanted(line.kind)
        {
            kept.push_back(line);
            if kept.len() > count {
                kept.pop_front();
            }
        }
    })?;
    Ok(tail.map(|tail| (kept.into(), Follower(tail))))
}

/// Reads what is appended to a journal.
#[derive(Debug)]
pub struct Follower(Tail);

impl Follower {
    /// Gives every whole line that came since the last time. A file that was rotated meanwhile
    /// is read to its end before the new one is begun.
    pub fn poll(&mut self, mut show: impl FnMut(Line)) -> io::Result<()> {
        self.0.poll(&mut |text| {
            if let Some(line) = Line::parse(text) {
                show(line);
            }
        })
    }
}
