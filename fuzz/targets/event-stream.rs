//! Fuzz target: the event streams of servers (FZ-02).
//!
//! Owns the promises of reading them: the same bytes are the same events however they are cut;
//! nothing larger than the cap is delivered, and no more than that waits. Streams without anything
//! over the cap are checked against a reader of whole lines, written down here on purpose.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolway_transport::http::fuzzing::{DecodedStream, stream};

/// So small that many streams go beyond it.
const LIMIT: usize = 96;

// One byte that says how the stream is cut, then the stream.
fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else {
        return;
    };
    let (whole, _) = stream(LIMIT, [bytes]);
    for size in [1, usize::from(*size).max(2), LIMIT + 7] {
        let (cut, most) = stream(LIMIT, bytes.chunks(size));
        assert_eq!(cut, whole, "in pieces of {size}");
        // While it reads past an event, one line besides data may wait for its end.
        assert!(most <= LIMIT.max(8 * 1024) + size, "{most} bytes wait");
    }
    for (kind, data) in &whole.events {
        assert!(*kind == "oversized" || data.len() <= LIMIT);
    }
    if whole.events.iter().all(|(kind, _)| *kind != "oversized") && bytes.len() <= LIMIT {
        assert_eq!(whole, plainly(bytes));
    }
});

/// The stream as the standard has it, read all at once.
fn plainly(bytes: &[u8]) -> DecodedStream {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut heard = DecodedStream::default();
    let (mut data, mut id, mut kind) = (None::<Vec<u8>>, None::<String>, "message");
    for line in lines(bytes) {
        if line.is_empty() {
            if let Some(id) = id.take() {
                heard.last_id = Some(id).filter(|id| !id.is_empty());
            }
            if let Some(data) = data.take() {
                match kind {
                    "foreign" => heard.keepalives += 1,
                    _ if data.iter().all(u8::is_ascii_whitespace) => {}
                    kind => heard.events.push((kind, data)),
                }
            }
            kind = "message";
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            b"event" => {
                kind = match value {
                    b"" | b"message" => "message",
                    b"endpoint" => "endpoint",
                    _ => "foreign",
                }
            }
            b"id" if !value.contains(&0) => id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                heard.retry = number.map(std::time::Duration::from_millis).or(heard.retry);
            }
            b"" => heard.keepalives += 1,
            _ => {}
        }
    }
    heard
}

/// The lines that have an end, whichever of the three it is.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut lines, mut rest) = (Vec::new(), bytes);
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        lines.push(&rest[..end]);
        let is_pair = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
        rest = &rest[end + 1 + usize::from(is_pair)..];
    }
    lines
}
