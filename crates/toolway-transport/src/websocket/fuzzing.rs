//! The entry points of the fuzz targets in `fuzz/`: what a server sends on a WebSocket.
//!
//! Owns nothing. It exists only where the compiler is told `--cfg fuzzing`.

use super::frame::{FrameDecoder, IncomingFrame};

/// One thing that arrived, or why nothing more can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrivedFrame {
    /// One message.
    Message(Vec<u8>),
    /// One over the cap, and which request it answers.
    Oversized(Option<toolway_wire::Id>),
    /// Wants an answer with the same bytes.
    Ping(Vec<u8>),
    /// A pong.
    Pong,
    /// A close frame: why, as a number and as text.
    Close(Option<u16>, String),
    /// The server broke the protocol.
    Broken(String),
}

/// What a server says in these pieces, up to its close frame or a protocol violation; and the most
/// bytes that waited meanwhile.
pub fn arrivals<'a>(
    limit: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<ArrivedFrame>, usize) {
    let mut decoder = FrameDecoder::new(limit);
    let mut arrived = Vec::new();
    let mut most = 0;
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        loop {
            arrived.push(match decoder.next() {
                Ok(Some(IncomingFrame::Message(message))) => {
                    ArrivedFrame::Message(message.to_vec())
                }
                Ok(Some(IncomingFrame::Oversized(id))) => ArrivedFrame::Oversized(id),
                Ok(Some(IncomingFrame::Ping(payload))) => ArrivedFrame::Ping(payload.to_vec()),
                Ok(Some(IncomingFrame::Pong)) => ArrivedFrame::Pong,
                Ok(Some(IncomingFrame::Close { code, reason })) => {
                    arrived.push(ArrivedFrame::Close(code, reason));
                    return (arrived, most);
                }
                Ok(None) => break,
                Err(violation) => {
                    arrived.push(ArrivedFrame::Broken(violation.to_string()));
                    return (arrived, most);
                }
            });
        }
        most = most.max(decoder.held());
    }
    (arrived, most)
}
