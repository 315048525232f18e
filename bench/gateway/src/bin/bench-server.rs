//! The server behind every gateway: over stdin and stdout, a few microseconds a call.
//!
//! `bench-server [--modern] [--tools N] [--name WORD]`. It offers `echo`, which says a text again,
//! `big`, a text of so many bytes, and fillers up to N tools. Without `--modern` it knows only
//! `initialize`. Answers to what was read at once are written at once.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use gateway_bench::envelope::member;

/// Answers stand here without their closing braces: what an era adds follows.
const MODERN: &str = r#","resultType":"complete""#;
const INITIALIZED: &str = concat!(
    r#","result":{"capabilities":{"tools":{}},"#,
    r#""serverInfo":{"name":"bench","version":"1.0.0"},"protocolVersion":"#
);
const DISCOVERED: &str = concat!(
    r#","result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"#,
    r#""resultType":"complete","ttlMs":60000,"cacheScope":"private","#,
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1.0.0"}}"#
);
const UNKNOWN: &str = r#","error":{"code":-32601,"message":"method not found""#;
const CACHE: &str = r#","ttlMs":60000,"cacheScope":"private""#;

struct Server {
    modern: bool,
    /// The answer to `tools/list`, without its closing braces.
    tools: String,
    /// The last big text: making it is no part of what is measured.
    big: Vec<u8>,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (mut modern, mut count, mut name) = (false, 2, String::from("filler"));
    while let Some(word) = words.next() {
        match word.as_str() {
            "--modern" => modern = true,
            "--tools" => match words.next().and_then(|word| word.parse().ok()) {
                Some(number) => count = number,
                None => return ExitCode::from(2),
            },
            "--name" => name = words.next().unwrap_or_default(),
            _ => return ExitCode::from(2),
        }
    }
    let mut server = Server {
        modern,
        tools: tools(count, &name),
        big: Vec::new(),
    };
    match server.serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// As large as tools of published servers are: about 400 bytes each.
fn tools(count: usize, name: &str) -> String {
    let mut text = String::from(concat!(
        r#","result":{"tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object","#,
        r#""properties":{"text":{"type":"string"}},"required":["text"]}},"#,
        r#"{"name":"big","description":"A text of that many bytes","inputSchema":{"type":"object","#,
        r#""properties":{"bytes":{"type":"integer"}},"required":["bytes"]}}"#,
    ));
    for number in 2..count {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            concat!(
                r#",{{"name":"{name}_{number}","description":"Looks up the record of that number in"#,
                r#" the table and says what is known about it, with its history","inputSchema":"#,
                r#"{{"type":"object","properties":{{"record":{{"type":"string","description":"Which"#,
                r#" record"}},"limit":{{"type":"integer","minimum":1,"description":"How many lines of"#,
                r#" history"}}}},"required":["record"]}}}}"#,
            ),
            name = name,
            number = number
        );
    }
    text.push(']');
    text
}

impl Server {
    fn serve(&mut self) -> io::Result<()> {
        let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
        let (mut unread, mut unsent) = (Vec::with_capacity(1 << 16), Vec::new());
        let mut chunk = vec![0; 1 << 16];
        loop {
            let count = input.read(&mut chunk)?;
            if count == 0 {
                return Ok(());
            }
            let mut looked = unread.len();
            unread.extend_from_slice(&chunk[..count]);
            let mut begin = 0;
            while let Some(end) = memchr::memchr(b'\n', &unread[looked..]) {
                self.answer(&unread[begin..looked + end], &mut unsent);
                looked += end + 1;
                begin = looked;
            }
            unread.drain(..begin);
            if !unsent.is_empty() {
                output.write_all(&unsent)?;
                output.flush()?;
                unsent.clear();
                if unsent.capacity() > 1 << 20 {
                    unsent = Vec::new();
                }
            }
        }
    }

    fn answer(&mut self, line: &[u8], to: &mut Vec<u8>) {
        // A message without an id wants no answer.
        let Some(id) = member(line, b"id") else {
            return;
        };
        let is_modern = self.modern && memchr::memmem::find(line, b"2026-07-28").is_some();
        to.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        to.extend_from_slice(&line[id]);
        let extra = if is_modern { MODERN } else { "" };
        match member(line, b"method").map(|range| &line[range]) {
            Some(br#""tools/call""#) => {
                self.call(line, to);
                to.extend_from_slice(extra.as_bytes());
            }
            Some(br#""tools/list""#) => {
                to.extend_from_slice(self.tools.as_bytes());
                to.extend_from_slice(extra.as_bytes());
                if is_modern {
                    to.extend_from_slice(CACHE.as_bytes());
                }
            }
            Some(br#""initialize""#) => {
                // Whatever the client speaks: all versions with `initialize` are alike here.
                to.extend_from_slice(INITIALIZED.as_bytes());
                to.extend_from_slice(inside(inside(line, b"params"), b"protocolVersion"));
            }
            Some(br#""server/discover""#) if is_modern => {
                to.extend_from_slice(DISCOVERED.as_bytes());
            }
            Some(br#""ping""#) => to.extend_from_slice(br#","result":{"#),
            _ => to.extend_from_slice(UNKNOWN.as_bytes()),
        }
        to.extend_from_slice(b"}}\n");
    }

    /// The result of a call, without its closing brace.
    fn call(&mut self, line: &[u8], to: &mut Vec<u8>) {
        let arguments = inside(inside(line, b"params"), b"arguments");
        to.extend_from_slice(br#","result":{"content":[{"type":"text","text":"#);
        let bytes = inside(arguments, b"bytes");
        if bytes.is_empty() {
            to.extend_from_slice(inside(arguments, b"text"));
        } else {
            let count = String::from_utf8_lossy(bytes).parse().unwrap_or(0);
            self.big.resize(count, b'x');
            to.push(b'"');
            to.extend_from_slice(&self.big);
            to.push(b'"');
        }
        to.extend_from_slice(b"}]");
    }
}

/// The value of a member; empty where there is none.
fn inside<'a>(object: &'a [u8], name: &[u8]) -> &'a [u8] {
    member(object, name).map_or(&[], |range| &object[range])
}
