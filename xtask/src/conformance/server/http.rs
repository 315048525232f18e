//! As much of HTTP/1.1 as two programs on this machine need to talk through us: heads, bodies, and
//! one request without a connection that outlives it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A start line and headers, as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) start: String,
    pub(super) headers: Vec<(String, String)>,
}

impl Head {
    /// None where the connection ended before one came.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let Some(start) = line(from)? else {
            return Ok(None);
        };
        let mut headers = Vec::new();
        while let Some(line) = line(from)?.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            headers.push((name.to_owned(), value.to_owned()));
        }
        Ok(Some(Self { start, headers }))
    }

    /// A header's value without the blanks around it.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.headers.push((name.to_owned(), format!(" {value}")));
    }

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut text = format!("{}\r\n", self.start);
        for (name, value) in &self.headers {
            text.push_str(name);
            text.push(':');
            text.push_str(value);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        to.write_all(text.as_bytes())
    }

    /// What follows this head. Only an answer may end with its connection.
    pub(super) fn body<'a, R: BufRead>(&self, from: &'a mut R) -> Body<'a, R> {
        let is_answer = self.start.starts_with("HTTP/");
        let has_none = [" 204", " 304"]
            .iter()
            .any(|code| self.start.contains(code));
        let is_chunked = self
            .value("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        let length = self
            .value("content-length")
            .and_then(|value| value.parse().ok());
        let left = match length {
            _ if is_chunked => Left::Chunk(0),
            Some(length) => Left::Bytes(length),
            None if is_answer && !has_none => Left::UntilEnd,
            None => Left::Bytes(0),
        };
        Body { from, left }
    }
}

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if from.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// The bytes of a body, whichever way their end is said.
pub(super) struct Body<'a, R> {
    from: &'a mut R,
    left: Left,
}

enum Left {
    Bytes(u64),
    /// Of the present chunk; at its end comes the size of the next.
    Chunk(u64),
    UntilEnd,
    Nothing,
}

impl<R: BufRead> Read for Body<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Left::Chunk(0) = self.left {
            self.left = match next_chunk(self.from)? {
                0 => Left::Nothing,
                size => Left::Chunk(size),
            };
        }
        let (Left::Bytes(left) | Left::Chunk(left)) = &mut self.left else {
            return match self.left {
                Left::UntilEnd => self.from.read(buffer),
                _ => Ok(0),
            };
        };
        let count = self.from.take(*left).read(buffer)?;
        *left -= count as u64;
        if let Left::Chunk(0) = self.left {
            line(self.from)?;
        }
        Ok(count)
    }
}

/// The size of the chunk that comes; 0 where none does, and then its trailers are read.
fn next_chunk(from: &mut impl BufRead) -> io::Result<u64> {
    let Some(size) = line(from)? else {
        return Ok(0);
    };
    let size = size.split(';').next().unwrap_or_default().trim();
    let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
    if size == 0 {
        while line(from)?.is_some_and(|line| !line.is_empty()) {}
    }
    Ok(size)
}

/// Host and port, and path, of `http://HOST:PORT/PATH`.
pub(super) fn split(url: &str) -> Result<(&str, &str)> {
    let rest = url
        .strip_prefix("http://")
        .with_context(|| format!("`{url}` is no address of plain HTTP"))?;
    Ok(rest.split_at(rest.find('/').unwrap_or(rest.len())))
}

/// One request of the modern revision, and its result.
pub(super) fn ask(url: &str, method: &str) -> Result<Value> {
    let (authority, path) = split(url)?;
    let version = "2026-07-28";
    let body = serde_json::json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": { "name": "xtask", "version": "0.0.0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    })
    .to_string();
    let mut stream = TcpStream::connect(authority)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Type: \
         application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: \
         {version}\r\nMcp-Method: {method}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut reader = BufReader::new(stream);
    let head = Head::read(&mut reader)?.context("the connection was closed without an answer")?;
    let mut text = String::new();
    head.body(&mut reader).read_to_string(&mut text)?;
    let json = text
        .lines()
        .find_map(|line| line.strip_prefix("data:"))
        .unwrap_or(&text);
    let answer: Value = serde_json::from_str(json)
        .with_context(|| format!("`{method}` was answered with {}: {text}", head.start))?;
    match answer.get("result") {
        Some(result) => Ok(result.clone()),
        None => bail!("`{method}` was answered with {}: {text}", head.start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Head, String, String) {
        let mut bytes = text.as_bytes();
        let head = Head::read(&mut bytes).unwrap().unwrap();
        let mut body = String::new();
        head.body(&mut bytes).read_to_string(&mut body).unwrap();
        (head, body, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn bodies_end_where_their_heads_say() {
        let (_, body, rest) = read("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcdef");
        assert_eq!((body.as_str(), rest.as_str()), ("abc", "def"));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: 1\r\n\r\nrest";
        let (_, body, rest) = read(chunked);
        assert_eq!((body.as_str(), rest.as_str()), ("abcde", "rest"));
        assert_eq!(read("HTTP/1.1 200 OK\r\n\r\nall of it").1, "all of it");
        assert_eq!(read("HTTP/1.1 204 No Content\r\n\r\nnext").2, "next");
        assert_eq!(read("GET / HTTP/1.1\r\n\r\nnext").2, "next");
    }

    #[test]
    fn a_head_is_written_as_it_was_read() {
        let text = "POST /mcp HTTP/1.1\r\nmcp-name:   odd  \r\nHost: x\r\n\r\n";
        let head = Head::read(&mut text.as_bytes()).unwrap().unwrap();
        assert_eq!(head.value("MCP-Name"), Some("odd"));
        let mut written = Vec::new();
        head.write(&mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), text);
        assert!(Head::read(&mut "".as_bytes()).unwrap().is_none());
    }

    #[test]
    fn an_address_has_a_host_and_a_path() {
        let (authority, path) = split("http://127.0.0.1:80/mcp/a").unwrap();
        assert_eq!((authority, path), ("127.0.0.1:80", "/mcp/a"));
        assert!(split("https://127.0.0.1/mcp").is_err());
    }
}
