//! The three streams of one run: those of this process, or those of another that handed them over.
//!
//! Owns reading and writing them. Streams of another process may be a terminal or a pipe that nobody
//! reads any more: what waits for them ends when their owner is gone. What words go there is
//! `output.rs`'s.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::SendFlags;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// What a pipe that can be written to takes without waiting.
const PIPE_STEP: usize = 4096;

/// Stdin, stdout and stderr of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams(Option<Arc<GivenStreams>>);

/// Streams of another process.
#[derive(Debug)]
struct GivenStreams {
    input: OwnedFd,
    output: OwnedFd,
    errors: OwnedFd,
    /// Hangs up when their owner is gone.
    owner: OwnedFd,
}

/// Which of the two that are written.
#[derive(Debug, Clone, Copy)]
enum Written {
    Output,
    Errors,
}

impl Streams {
    /// Those that another process handed over, in the order of their numbers. `owner` hangs up when
    /// that process is gone.
    pub(crate) fn given(streams: [OwnedFd; 3], owner: OwnedFd) -> Self {
        let [input, output, errors] = streams;
        Self(Some(Arc::new(GivenStreams {
            input,
            output,
            errors,
            owner,
        })))
    }

    /// Stdin and stdout of another process as one socket, which is to be that process's alone. Must
    /// be called inside a runtime.
    pub(crate) fn pipe(&self) -> io::Result<(OwnedReadHalf, OwnedWriteHalf)> {
        let socket = UnixStream::from(self.input().try_clone_to_owned()?);
        // Refused where it is no socket: then others wait on the same descriptor.
        socket.peer_addr()?;
        socket.set_nonblocking(true)?;
        Ok(tokio::net::UnixStream::from_std(socket)?.into_split())
    }

    /// Whether they are another process's.
    pub(crate) fn are_given(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn input(&self) -> BorrowedFd<'_> {
        match &self.0 {
            None => rustix::stdio::stdin(),
            Some(given) => given.input.as_fd(),
        }
    }

    pub(crate) fn output(&self) -> BorrowedFd<'_> {
        match &self.0 {
            None => rustix::stdio::stdout(),
            Some(given) => given.output.as_fd(),
        }
    }

    pub(crate) fn errors(&self) -> BorrowedFd<'_> {
        match &self.0 {
            None => rustix::stdio::stderr(),
            Some(given) => given.errors.as_fd(),
        }
    }

    /// Stdin, to be read to its end.
    pub(crate) fn reader(&self) -> impl Read + use<> {
        InputReader(self.clone())
    }

    /// Stdout, for views that write themselves.
    pub(crate) fn output_writer(&self) -> impl Write + use<> {
        StreamWriter(self.clone(), Written::Output)
    }

    /// Stderr, the same.
    pub(crate) fn error_writer(&self) -> impl Write + use<> {
        StreamWriter(self.clone(), Written::Errors)
    }

    /// Writes a whole text to stdout.
    pub(crate) fn write_output(&self, bytes: &[u8]) -> io::Result<()> {
        let mut writer = StreamWriter(self.clone(), Written::Output);
        writer.write_all(bytes)?;
        writer.flush()
    }

    /// Writes a whole text to stderr.
    pub(crate) fn write_errors(&self, bytes: &[u8]) -> io::Result<()> {
        StreamWriter(self.clone(), Written::Errors).write_all(bytes)
    }

    /// Waits until stdin can be read, for so long at most; false when the time is over.
    pub(crate) fn await_input(&self, limit: Option<&Timespec>) -> io::Result<bool> {
        let input = self.input();
        let given = self.0.as_deref();
        loop {
            let mut watched = vec![PollFd::from_borrowed_fd(input, PollFlags::IN)];
            watched.extend(given.map(|given| PollFd::new(&given.owner, PollFlags::empty())));
            match poll(&mut watched, limit) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(Errno::INTR) if limit.is_none() => continue,
                Err(Errno::INTR) => return Ok(false),
                Err(errno) => return Err(errno.into()),
            }
            if watched.get(1).is_some_and(has_hung_up) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            return Ok(true);
        }
    }

    /// Waits until the other end of stdout is closed.
    pub(crate) fn await_output_end(&self) -> io::Result<()> {
        let given = self.0.as_deref();
        loop {
            let mut watched = vec![PollFd::from_borrowed_fd(self.output(), PollFlags::empty())];
            watched.extend(given.map(|given| PollFd::new(&given.owner, PollFlags::empty())));
            match poll(&mut watched, None) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Reads from stdin what is there.
    pub(crate) fn read_input(&self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            self.await_input(None)?;
            match rustix::io::read(self.input(), &mut *bytes) {
                // Another reader of a terminal may have been quicker.
                Err(Errno::INTR | Errno::AGAIN) => {}
                Ok(count) => return Ok(count),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl GivenStreams {
    /// Waits until something can be written, and writes as much as that takes without waiting.
    fn write(&self, to: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut watched = [
                PollFd::new(to, PollFlags::OUT),
                PollFd::new(&self.owner, PollFlags::empty()),
            ];
            match poll(&mut watched, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            if has_hung_up(&watched[1]) && !watched[0].revents().contains(PollFlags::OUT) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            // A descriptor is shared with others, so it is not told to be non-blocking.
            let step = &bytes[..bytes.len().min(PIPE_STEP)];
            let is_socket = rustix::fs::fstat(to)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
            let written = if is_socket {
                rustix::net::send(to, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            } else {
                rustix::io::write(to, step)
            };
            match written {
                Ok(count) => return Ok(count),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

fn has_hung_up(watched: &PollFd<'_>) -> bool {
    let ended = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    watched.revents().intersects(ended)
}

struct InputReader(Streams);

impl Read for InputReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &self.0.0 {
            None => io::stdin().read(bytes),
            Some(_) => self.0.read_input(bytes),
        }
    }
}

struct StreamWriter(Streams, Written);

impl Write for StreamWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (&self.0.0, self.1) {
            (None, Written::Output) => io::stdout().write(bytes),
            (None, Written::Errors) => io::stderr().write(bytes),
            (Some(given), Written::Output) => given.write(&given.output, bytes),
            (Some(given), Written::Errors) => given.write(&given.errors, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match (&self.0.0, self.1) {
            (None, Written::Output) => io::stdout().flush(),
            (None, Written::Errors) => io::stderr().flush(),
            // Nothing is kept back.
            (Some(_), _) => Ok(()),
        }
    }
}
