//! What a client asks over HTTP/1.1: as much of it as the floor gateway needs.
//!
//! Owns finding the body, and the few answers that no server is asked for.

use std::io;
use std::ops::Range;

use memchr::memmem;

pub const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
pub const DONE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
pub const NOT_ALLOWED: &[u8] =
    b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n";
pub const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

/// The longest head.
const MOST: usize = 1 << 16;

pub enum Request {
    /// A message for the server of that number.
    Post { server: usize, body: Range<usize> },
    /// Nothing for a server; `is_end` when a client says that it is done.
    Other { is_end: bool, end: usize },
}

impl Request {
    /// Where the next request begins.
    #[must_use]
    pub fn end(&self) -> usize {
        match self {
            Request::Post { body, .. } => body.end,
            Request::Other { end, .. } => *end,
        }
    }
}

/// The first whole request.
pub fn read(input: &[u8]) -> io::Result<Option<Request>> {
    let Some(end) = memmem::find(input, b"\r\n\r\n") else {
        if input.len() > MOST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        return Ok(None);
    };
    let head = &input[..end];
    let mut lines = memchr::memchr_iter(b'\n', head);
    let first = lines.next().unwrap_or(head.len());
    let mut words = head[..first].split(|byte| *byte == b' ');
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut begin = first + 1;
    let mut length = 0;
    while begin < head.len() {
        let line_end = lines.next().unwrap_or(head.len());
        let line = &head[begin..line_end];
        const NAME: &[u8] = b"content-length:";
        if line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME) {
            length = number(line[NAME.len()..].trim_ascii())?;
        }
        begin = line_end + 1;
    }
    let body = end + 4..end + 4 + length;
    if input.len() < body.end {
        return Ok(None);
    }
    if method != b"POST" {
        return Ok(Some(Request::Other {
            is_end: method == b"DELETE",
            end: body.end,
        }));
    }
    let server = match path.strip_prefix(b"/mcp/") {
        Some(rest) => number(rest)?,
        None => 0,
    };
    Ok(Some(Request::Post { server, body }))
}

fn number(text: &[u8]) -> io::Result<usize> {
    let text = std::str::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData)?;
    text.parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_when_it_is_whole() {
        let whole = b"POST /mcp/2 HTTP/1.1\r\nHost: a\r\ncontent-LENGTH: 3\r\n\r\nabcPOST";
        for cut in 0..whole.len() - 4 {
            assert!(read(&whole[..cut]).unwrap().is_none(), "{cut}");
        }
        let Some(Request::Post { server, body }) = read(whole).unwrap() else {
            panic!("no request");
        };
        assert_eq!((server, &whole[body]), (2, &b"abc"[..]));
    }

    #[test]
    fn only_posts_have_messages() {
        let Some(Request::Other { is_end, end }) = read(b"DELETE /mcp HTTP/1.1\r\n\r\n").unwrap()
        else {
            panic!("a message");
        };
        assert_eq!((is_end, end), (true, 24));
        assert!(read(b"POST /mcp HTTP/1.1\r\nContent-Length: x\r\n\r\n").is_err());
    }
}
