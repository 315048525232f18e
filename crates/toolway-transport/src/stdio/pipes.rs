//! The three pipes between this process and a server.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;

/// Our ends of the three pipes.
pub(crate) struct Pipes {
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

/// The server's ends.
pub(super) struct ChildEnds {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

pub(super) fn open() -> io::Result<(Pipes, ChildEnds)> {
    let (stdin, our_stdin) = io::pipe()?;
    let (our_stdout, stdout) = io::pipe()?;
    let (our_stderr, stderr) = io::pipe()?;
    let pipes = Pipes {
        stdin: pipe::Sender::from_owned_fd(our_stdin.into())?,
        stdout: pipe::Receiver::from_owned_fd(our_stdout.into())?,
        stderr: pipe::Receiver::from_owned_fd(our_stderr.into())?,
    };
    let ends = ChildEnds {
        stdin: stdin.into(),
        stdout: stdout.into(),
        stderr: stderr.into(),
    };
    Ok((pipes, ends))
}
