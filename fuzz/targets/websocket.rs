//! Fuzz target: what servers send on a WebSocket (FZ-03).
//!
//! Owns the promises of reading it: the same bytes are the same messages however they are cut;
//! nothing larger than the cap is delivered, and no more than that waits. A stream of whole frames
//! that is made here is read back as what was put in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolway_transport::websocket::fuzzing::{ArrivedFrame, arrivals};

/// So small that many messages go beyond it.
const LIMIT: usize = 200;

// One byte that says how the stream is cut, then the stream; the same bytes make frames as well.
fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else {
        return;
    };
    check(bytes, usize::from(*size).max(2));
    let (stream, wanted) = framed(bytes);
    let arrived = check(&stream, usize::from(*size).max(2));
    assert_eq!(arrived, wanted);
});

/// Reads a stream in pieces of several sizes; what arrives is always the same.
fn check(bytes: &[u8], size: usize) -> Vec<ArrivedFrame> {
    let (whole, _) = arrivals(LIMIT, [bytes]);
    for size in [1, size, LIMIT + 7] {
        let (cut, most) = arrivals(LIMIT, bytes.chunks(size));
        assert_eq!(cut, whole, "in pieces of {size}");
        assert!(most <= LIMIT + 125 + 14, "{most} bytes wait");
    }
    for one in &whole {
        match one {
            ArrivedFrame::Message(message) => assert!(message.len() <= LIMIT),
            ArrivedFrame::Ping(payload) => assert!(payload.len() <= 125),
            ArrivedFrame::Close(_, reason) => assert!(reason.len() <= 3 * 123),
            ArrivedFrame::Oversized(_) | ArrivedFrame::Pong | ArrivedFrame::Broken(_) => {}
        }
    }
    whole
}

/// Messages in one to three frames, with a ping between them now and then.
fn framed(bytes: &[u8]) -> (Vec<u8>, Vec<ArrivedFrame>) {
    let (mut stream, mut wanted) = (Vec::new(), Vec::new());
    for message in bytes.split(|byte| *byte == 0xFF).take(8) {
        let (parts, pings) = match message.first() {
            Some(first) => (usize::from(first % 3) + 1, first % 2 == 0),
            None => (1, false),
        };
        let size = message.len().div_ceil(parts).max(1);
        let mut pieces: Vec<&[u8]> = message.chunks(size).collect();
        if pieces.is_empty() {
            pieces.push(&[]);
        }
        let last = pieces.len() - 1;
        for (place, piece) in pieces.iter().enumerate() {
            let opcode = if place == 0 { 1 } else { 0 };
            frame(&mut stream, place == last, opcode, piece);
            if pings && place == 0 && last > 0 {
                let payload = &piece[..piece.len().min(125)];
                frame(&mut stream, true, 9, payload);
                wanted.push(ArrivedFrame::Ping(payload.to_vec()));
            }
        }
        wanted.push(if message.len() <= LIMIT {
            ArrivedFrame::Message(message.to_vec())
        } else {
            ArrivedFrame::Oversized(id_of(message))
        });
    }
    (stream, wanted)
}

/// The id as it is picked out of any message, whole.
fn id_of(message: &[u8]) -> Option<toolway_wire::Id> {
    let mut skimmer = toolway_wire::skim::IdSkimmer::new();
    skimmer.feed(message);
    skimmer.response_id()
}

fn frame(stream: &mut Vec<u8>, is_final: bool, opcode: u8, payload: &[u8]) {
    stream.push(u8::from(is_final) << 7 | opcode);
    match payload.len() {
        short @ 0..126 => stream.push(short as u8),
        long => {
            stream.push(126);
            stream.extend_from_slice(&(long as u16).to_be_bytes());
        }
    }
    stream.extend_from_slice(payload);
}
