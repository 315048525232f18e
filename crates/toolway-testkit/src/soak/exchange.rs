//! One HTTP/1.1 connection of a soaking client: requests out, answers in, as JSON or as events.
//!
//! Owns the framing. It shares nothing with the product's own HTTP.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::SoakFault;

/// Longer than this, no answer is waited for: it is lost.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

pub(super) struct Exchange {
    stream: TcpStream,
    input: Vec<u8>,
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct WebAnswer {
    pub(super) status: u16,
    pub(super) session: Option<String>,
    /// The messages in it, in order.
    pub(super) messages: Vec<Value>,
    /// The connection ends with it.
    pub(super) closes: bool,
}

/// What reading led to.
#[derive(Debug)]
pub(super) enum Heard {
    Answer(WebAnswer),
    /// Nothing whole came in time; what came is kept.
    Nothing,
    /// The other side closed.
    End,
}

impl Exchange {
    pub(super) fn open(address: SocketAddr) -> Result<Self, SoakFault> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            input: Vec::new(),
        })
    }

    /// Sends a request with these fields.
    pub(super) fn send(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Result<(), SoakFault> {
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n",
            self.stream.peer_addr()?,
            body.len()
        );
        for (name, value) in fields {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.stream.write_all(text.as_bytes())?;
        Ok(())
    }

    /// Waits for the whole answer for so long.
    pub(super) fn hear(&mut self, patience: Duration) -> Result<Heard, SoakFault> {
        self.stream.set_read_timeout(Some(patience))?;
        let mut chunk = [0; 1 << 14];
        loop {
            if let Some((answer, end)) = whole(&self.input)? {
                self.input.drain(..end);
                return Ok(Heard::Answer(answer));
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(Heard::End),
                Ok(count) => self.input.extend_from_slice(&chunk[..count]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(Heard::Nothing);
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Heard::End),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The answer, which must come.
    pub(super) fn answer(&mut self) -> Result<WebAnswer, SoakFault> {
        match self.hear(PATIENCE)? {
            Heard::Answer(answer) => Ok(answer),
            Heard::Nothing => Err(SoakFault::new("an answer is lost: nothing came")),
            Heard::End => Err(SoakFault::new("an answer is lost: the connection ended")),
        }
    }

    /// Events of a stream that stays open: those that are whole by now.
    pub(super) fn events(&mut self, patience: Duration) -> Result<Option<Vec<Value>>, SoakFault> {
        self.stream.set_read_timeout(Some(patience))?;
        let mut chunk = [0; 1 << 14];
        match self.stream.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(count) => self.input.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let end = self
            .input
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |place| place + 1);
        let lines: Vec<u8> = self.input.drain(..end).collect();
        Ok(Some(messages(&lines)))
    }
}

/// The first whole answer, and where it ends.
fn whole(input: &[u8]) -> Result<Option<(WebAnswer, usize)>, SoakFault> {
    let Some(head) = memchr::memmem::find(input, b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&input[..head]);
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let Some(status) = first.split(' ').nth(1).and_then(|word| word.parse().ok()) else {
        return Err(SoakFault::new(format!("`{first}` is no status")));
    };
    let fields: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .collect();
    let field = |name: &str| {
        let found = fields.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| *value)
    };
    let begin = head + 4;
    let (body, end) = if field("transfer-encoding").is_some() {
        match chunks(input, begin)? {
            Some(found) => found,
            None => return Ok(None),
        }
    } else {
        let length: usize = field("content-length")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        match input.get(begin..begin + length) {
            Some(body) => (body.to_vec(), begin + length),
            None => return Ok(None),
        }
    };
    let is_stream = field("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let messages = if is_stream {
        messages(&body)
    } else {
        serde_json::from_slice(&body).into_iter().collect()
    };
    let answer = WebAnswer {
        status,
        session: field("mcp-session-id").map(str::to_owned),
        messages,
        closes: field("connection").is_some_and(|word| word.eq_ignore_ascii_case("close")),
    };
    Ok(Some((answer, end)))
}

fn chunks(input: &[u8], begin: usize) -> Result<Option<(Vec<u8>, usize)>, SoakFault> {
    let (mut body, mut place) = (Vec::new(), begin);
    loop {
        let Some(line) = input
            .get(place..)
            .and_then(|rest| memchr::memmem::find(rest, b"\r\n"))
        else {
            return Ok(None);
        };
        let size = String::from_utf8_lossy(&input[place..place + line]);
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else {
            return Err(SoakFault::new(format!("`{size}` is no size of a chunk")));
        };
        place += line + 2;
        let Some(chunk) = input.get(place..place + size + 2) else {
            return Ok(None);
        };
        body.extend_from_slice(&chunk[..size]);
        place += size + 2;
        if size == 0 {
            return Ok(Some((body, place)));
        }
    }
}

/// The messages of a stream of events; what is no message (a comment, a priming event) is left.
fn messages(stream: &[u8]) -> Vec<Value> {
    stream
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"data:"))
        .filter_map(|data| serde_json::from_slice(data.trim_ascii()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_one_by_one_when_they_are_whole() {
        let one = b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{\"id\":1}";
        let two = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n9\r\n{\"id\":2}\n\r\n0\r\n\r\n";
        let both = [&one[..], &two[..]].concat();
        let (first, end) = whole(&both).unwrap().unwrap();
        assert_eq!(
            (first.messages[0]["id"].as_u64(), end),
            (Some(1), one.len())
        );
        let (second, end) = whole(&both[end..]).unwrap().unwrap();
        assert_eq!(
            (second.messages[0]["id"].as_u64(), end),
            (Some(2), two.len())
        );
        for cut in 0..two.len() {
            assert!(whole(&two[..cut]).unwrap().is_none(), "{cut}");
        }
    }
}
