//! What goes to one client. Owns what the socket could not take yet.

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::Poll;
use super::upstream::Line;

/// Below this, an answer is put together and written in one piece.
const SMALL: usize = 1 << 16;

pub struct Outgoing {
    token: u64,
    /// Each with how much of it was sent.
    parts: VecDeque<(Vec<u8>, usize)>,
}

impl Outgoing {
    #[must_use]
    pub fn new(token: u64) -> Self {
        Self {
            token,
            parts: VecDeque::new(),
        }
    }

    /// Sends now what can be sent, and keeps the rest.
    pub fn send(&mut self, bytes: &[u8], to: &TcpStream, poll: &Poll) -> io::Result<()> {
        let sent = if self.parts.is_empty() && !bytes.is_empty() {
            write(to, bytes)?
        } else {
            0
        };
        if sent < bytes.len() {
            self.keep(bytes[sent..].to_vec(), 0, to, poll)?;
        }
        Ok(())
    }

    /// Sends the head and the rest of a line. A long line is not copied.
    pub fn send_line(
        &mut self,
        head: &mut Vec<u8>,
        line: Line<'_>,
        from: usize,
        to: &TcpStream,
        poll: &Poll,
    ) -> io::Result<()> {
        match line {
            Line::Long(line) if line.len() - from > SMALL => {
                self.send(head, to, poll)?;
                let sent = if self.parts.is_empty() {
                    from + write(to, &line[from..])?
                } else {
                    from
                };
                if sent < line.len() {
                    self.keep(line, sent, to, poll)?;
                }
                Ok(())
            }
            line => {
                head.extend_from_slice(&line.bytes()[from..]);
                self.send(head, to, poll)
            }
        }
    }

    fn keep(&mut self, part: Vec<u8>, sent: usize, to: &TcpStream, poll: &Poll) -> io::Result<()> {
        if self.parts.is_empty() {
            poll.change(to, self.token, EventFlags::IN | EventFlags::OUT)?;
        }
        self.parts.push_back((part, sent));
        Ok(())
    }

    /// Goes on with what was kept.
    pub fn flush(&mut self, to: &TcpStream, poll: &Poll) -> io::Result<()> {
        if self.parts.is_empty() {
            return Ok(());
        }
        while let Some((part, sent)) = self.parts.front_mut() {
            *sent += write(to, &part[*sent..])?;
            if *sent < part.len() {
                return Ok(());
            }
            self.parts.pop_front();
        }
        poll.change(to, self.token, EventFlags::IN)
    }
}

fn write(to: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    match rustix::io::write(to, bytes) {
        Ok(count) => Ok(count),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
