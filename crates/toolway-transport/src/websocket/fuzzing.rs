//! The seam for the fuzz targets in `fuzz/`: what a server sends on a WebSocket.
//!
//! Owns nothing. It exists only where the compiler is told `--cfg fuzzing`.

use super::frame::{Decoder, Incoming};

/// One thing that arrived, or why nothing more can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrived {
    /// One message.
    Message(Vec<u8>),
    /// One over the cap, and which request it answers.
    Oversized(Option<toolway_wire::Id>),
    /// Wants an answer with the same bytes.
    Ping(Vec<u8>),
    /// A sign of life.
    Pong,
    /// The server is done: why, as a number and in its words.
    Close(Option<u16>, String),
    /// The server broke the protocol.
    Broken(String),
}

/// What a server says in these pieces, up to its goodbye or to what breaks the protocol; and the
/// most bytes that waited meanwhile.
pub fn arrivals<'a>(
    limit: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Arrived>, usize) {
    let mut decoder = Decoder::new(limit);
    let mut arrived = Vec::new();
    let mut most = 0;
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        loop {
            arrived.push(match decoder.next() {
                Ok(Some(Incoming::Message(message))) => Arrived::Message(message.to_vec()),
                Ok(Some(Incoming::Oversized(id))) => Arrived::Oversized(id),
                Ok(Some(Incoming::Ping(payload))) => Arrived::Ping(payload.to_vec()),
                Ok(Some(Incoming::Pong)) => Arrived::Pong,
                Ok(Some(Incoming::Close { code, reason })) => {
                    arrived.push(Arrived::Close(code, reason));
                    return (arrived, most);
                }
                Ok(None) => break,
                Err(violation) => {
                    arrived.push(Arrived::Broken(violation.to_string()));
                    return (arrived, most);
                }
            });
        }
        most = most.max(decoder.held());
    }
    (arrived, most)
}
