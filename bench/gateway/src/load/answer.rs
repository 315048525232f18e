//! Reading the answer to one HTTP request as it comes in.
//!
//! Owns framing (a length, or chunks) and finding the message in it. What a right answer is belongs
//! to `request.rs`.

use anyhow::{Context as _, Result, bail};
use memchr::memmem;

/// One answer on a connection that stays open.
#[derive(Default)]
pub struct IncomingAnswer {
    /// What was read and belongs to this answer.
    pub input: Vec<u8>,
    head: Option<Head>,
    /// Where the next chunk begins.
    place: usize,
    /// The chunks, put together.
    chunks: Vec<u8>,
}

struct Head {
    status: u16,
    /// Where the body begins.
    end: usize,
    framing: Framing,
    session: Option<String>,
    is_stream: bool,
}

enum Framing {
    Length(usize),
    Chunks,
}

impl IncomingAnswer {
    /// Forgets the last answer.
    pub fn clear(&mut self) {
        self.input.clear();
        self.head = None;
        self.chunks.clear();
    }

    /// Whether the answer is whole.
    pub fn is_whole(&mut self) -> Result<bool> {
        if self.head.is_none() {
            let Some(end) = memmem::find(&self.input, b"\r\n\r\n") else {
                return Ok(false);
            };
            self.head = Some(Head::read(&self.input[..end])?);
            self.place = end + 4;
        }
        let Some(head) = &self.head else {
            return Ok(false);
        };
        match head.framing {
            Framing::Length(length) => Ok(self.input.len() >= head.end + length),
            Framing::Chunks => self.gather(),
        }
    }

    fn gather(&mut self) -> Result<bool> {
        loop {
            let rest = &self.input[self.place..];
            let Some(end) = memmem::find(rest, b"\r\n") else {
                return Ok(false);
            };
            let size = std::str::from_utf8(&rest[..end]).ok();
            let size = size.and_then(|text| text.split(';').next());
            let size = size.and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
            let size = size.context("a chunk has no size")?;
            let whole = end + 2 + size + 2;
            if rest.len() < whole {
                return Ok(false);
            }
            self.chunks
                .extend_from_slice(&rest[end + 2..end + 2 + size]);
            self.place += whole;
            if size == 0 {
                return Ok(true);
            }
        }
    }

    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |head| head.status)
    }

    /// The session that the answer opened.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.head.as_ref()?.session.as_deref()
    }

    /// The body; empty before it is there.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        match &self.head {
            Some(Head {
                framing: Framing::Length(length),
                end,
                ..
            }) => self.input.get(*end..end + length).unwrap_or_default(),
            Some(_) => &self.chunks,
            None => &[],
        }
    }

    /// The message in the body: all of it, or the last event that holds one.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        let body = self.body();
        if !self.head.as_ref().is_some_and(|head| head.is_stream) {
            return body;
        }
        body.split(|byte| *byte == b'\n')
            .filter_map(|line| line.strip_prefix(b"data:"))
            .map(<[u8]>::trim_ascii)
            .rfind(|data| data.starts_with(b"{"))
            .unwrap_or_default()
    }
}

impl Head {
    fn read(text: &[u8]) -> Result<Self> {
        let shown = std::str::from_utf8(text).context("the head of an answer is no text")?;
        let mut lines = shown.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("`{first}` is no status"))?;
        let (mut framing, mut session, mut is_stream) = (None, None, false);
        for line in lines {
            let Some((name, value)) = line.split_once(':') else {
                bail!("`{line}` is no field");
            };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                framing = Some(Framing::Length(value.parse()?));
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                framing = Some(Framing::Chunks);
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                session = Some(value.to_owned());
            } else if name.eq_ignore_ascii_case("content-type") {
                is_stream = value.starts_with("text/event-stream");
            }
        }
        Ok(Self {
            status,
            end: text.len() + 4,
            framing: framing.context("an answer has no length")?,
            session,
            is_stream,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&str]) -> IncomingAnswer {
        let mut answer = IncomingAnswer::default();
        for (number, piece) in pieces.iter().enumerate() {
            answer.input.extend_from_slice(piece.as_bytes());
            assert_eq!(answer.is_whole().unwrap(), number + 1 == pieces.len());
        }
        answer
    }

    #[test]
    fn a_body_with_a_length_is_whole_when_all_is_there() {
        let answer = read(&["HTTP/1.1 200 OK\r\nContent-", "Length: 4\r\n\r\n{", "}  "]);
        assert_eq!((answer.status(), answer.message()), (200, &b"{}  "[..]));
    }

    #[test]
    fn chunks_of_a_stream_are_put_together() {
        let head = "HTTP/1.1 200 OK\r\nMcp-Session-Id: s\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        let answer = read(&[
            head,
            "6\r\ndata: \r\n",
            "b\r\n\n\ndata: {\"a",
            "\r\n",
            "5\r\n\":1}\n",
            "\r\n0\r\n",
            "\r\n",
        ]);
        assert_eq!(answer.message(), br#"{"a":1}"#);
        assert_eq!(answer.session(), Some("s"));
    }
}
