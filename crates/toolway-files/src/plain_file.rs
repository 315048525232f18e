//! Reading a file that may be anybody's: a pipe or a device in its place must not make us wait, and
//! a huge one must not fill our memory.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file; `None` when something else lies there. The metadata is of the opened file,
/// whatever the path means later.
pub fn open(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    open_with(path, OFlags::empty())
}

/// As [`open`], but a link in its place is an error.
pub fn open_no_link(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    open_with(path, OFlags::NOFOLLOW)
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<Option<(File, Metadata)>> {
    let flags = (flags | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let facts = file.metadata()?;
    Ok(facts.is_file().then_some((file, facts)))
}

/// All that can be read, up to this many bytes; `None` when there is more. Room is made at once for
/// what the metadata says is there.
pub fn read_at_most(file: File, facts: &Metadata, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let room = facts.len().min(limit) + 1;
    let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
    // One more than is taken, so that a longer one is not mistaken for its beginning.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}
