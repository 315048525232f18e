//! The parts of the floor gateway: waiting and reading here, what a client asks in `request.rs`,
//! a server in `upstream.rs`, what a client cannot take at once in `outgoing.rs`.

pub mod outgoing;
pub mod request;
pub mod upstream;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;

/// How much is read at once.
const CHUNK: usize = 1 << 16;

/// Everything that is waited for.
pub struct Poll {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Poll {
    /// Says so many at a time.
    pub fn new(most: usize) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(most),
        })
    }

    /// From now on, `token` is said when this can be read.
    pub fn add(&self, source: impl AsFd, token: u64) -> io::Result<()> {
        epoll::add(
            &self.epoll,
            source,
            EventData::new_u64(token),
            EventFlags::IN,
        )?;
        Ok(())
    }

    /// The same for something that can only be written, which is waited for when it is full.
    pub fn add_outlet(&self, source: impl AsFd, token: u64) -> io::Result<()> {
        epoll::add(
            &self.epoll,
            source,
            EventData::new_u64(token),
            EventFlags::empty(),
        )?;
        Ok(())
    }

    /// Which of reading and writing is waited for.
    pub fn change(&self, source: impl AsFd, token: u64, flags: EventFlags) -> io::Result<()> {
        epoll::modify(&self.epoll, source, EventData::new_u64(token), flags)?;
        Ok(())
    }

    /// Waits, and says what is ready.
    pub fn wait(&mut self, tokens: &mut Vec<u64>) -> io::Result<()> {
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        tokens.clear();
        tokens.extend(self.events.iter().map(|event| event.data.u64()));
        Ok(())
    }
}

/// Reads what is there, once; nothing when nothing was, zero at the end.
pub fn receive(source: impl AsFd, to: &mut Vec<u8>) -> io::Result<Option<usize>> {
    // Twice as much each time: a long message is not moved over and over.
    to.reserve(if to.is_empty() { 4096 } else { CHUNK });
    match rustix::io::read(source, spare_capacity(to)) {
        Ok(count) => Ok(Some(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
