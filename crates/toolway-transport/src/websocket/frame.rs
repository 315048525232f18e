//! WebSocket frames to messages, and back.
//!
//! Owns putting fragments together, with a cap on the whole: what is larger streams past, with
//! the id of the request it answers picked out on the way (REL-11). Nothing is ever inflated: no
//! extension is offered, so a frame that uses one breaks the protocol (SEC-29).

use std::io::Cursor;

use bytes::{Buf as _, Bytes, BytesMut};
use toolway_wire::Id;
use toolway_wire::skim::IdSkimmer;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use tungstenite::protocol::frame::{Frame, FrameHeader};

/// The longest payload of a control frame (RFC 6455, 5.5).
const MAX_CONTROL: usize = 125;

/// Above this a buffer is given back once its message is through.
const KEEP: usize = 1024 * 1024;

/// What arrives.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum IncomingFrame {
    /// One message, from one frame or several.
    Message(Bytes),
    /// One over the cap, and which request it answers.
    Oversized(Option<Id>),
    /// Wants a [`pong`] with the same bytes.
    Ping(Bytes),
    /// A pong.
    Pong,
    /// A close frame.
    Close {
        /// Why, as a number.
        code: Option<u16>,
        /// Why, as text.
        reason: String,
    },
}

/// The server broke the protocol.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProtocolViolation {
    #[error("a frame uses an extension that was not offered")]
    Extension,
    #[error("a frame of the server is masked")]
    Masked,
    #[error("a frame has an unknown type")]
    Unknown,
    #[error("a control frame is too long or in pieces")]
    Control,
    #[error("a message begins before the last one is complete")]
    Interleaved,
    #[error("a fragment belongs to no message")]
    Stray,
}

/// Decodes what a server sends.
#[derive(Debug)]
pub(super) struct FrameDecoder {
    buffer: BytesMut,
    frame: Option<CurrentFrame>,
    message: Option<PartialMessage>,
    limit: usize,
}

/// The frame whose payload is being read.
#[derive(Debug)]
struct CurrentFrame {
    kind: FrameKind,
    is_final: bool,
    left: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Data,
    Control(Control),
}

/// The message that is being put together.
#[derive(Debug)]
enum PartialMessage {
    Kept(BytesMut),
    Skipped(Box<IdSkimmer>),
}

impl FrameDecoder {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            frame: None,
            message: None,
            limit,
        }
    }

    /// Where to read into.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP {
            self.buffer = BytesMut::new();
        }
        self.buffer.reserve(16 * 1024);
        &mut self.buffer
    }

    /// How many bytes wait for more.
    #[cfg(fuzzing)]
    pub(super) fn held(&self) -> usize {
        let kept = match &self.message {
            Some(PartialMessage::Kept(whole)) => whole.len(),
            Some(PartialMessage::Skipped(_)) | None => 0,
        };
        self.buffer.len() + kept
    }

    /// The next thing of what was read.
    pub(super) fn next(&mut self) -> Result<Option<IncomingFrame>, ProtocolViolation> {
        loop {
            let Some(frame) = &mut self.frame else {
                if !self.begin()? {
                    return Ok(None);
                }
                continue;
            };
            let incoming = match frame.kind {
                FrameKind::Control(control) => {
                    let length = usize::try_from(frame.left).unwrap_or(usize::MAX);
                    if self.buffer.len() < length {
                        return Ok(None);
                    }
                    self.frame = None;
                    let payload = self.buffer.split_to(length).freeze();
                    Some(controlled(control, &payload)?)
                }
                FrameKind::Data => {
                    let here = usize::try_from(frame.left)
                        .unwrap_or(usize::MAX)
                        .min(self.buffer.len());
                    frame.left -= here as u64;
                    let (is_through, is_final) = (frame.left == 0, frame.is_final);
                    let part = self.buffer.split_to(here);
                    self.extend(part);
                    if !is_through {
                        return Ok(None);
                    }
                    self.frame = None;
                    if is_final { self.finish() } else { None }
                }
            };
            if incoming.is_some() {
                return Ok(incoming);
            }
        }
    }

    /// Reads a frame's header; false when it is not all there.
    fn begin(&mut self) -> Result<bool, ProtocolViolation> {
        let mut cursor = Cursor::new(&self.buffer[..]);
        let parsed = FrameHeader::parse(&mut cursor).map_err(|_| ProtocolViolation::Unknown)?;
        let Some((header, length)) = parsed else {
            return Ok(false);
        };
        let read = usize::try_from(cursor.position()).unwrap_or_default();
        self.buffer.advance(read);
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(ProtocolViolation::Extension);
        }
        if header.mask.is_some() {
            return Err(ProtocolViolation::Masked);
        }
        let kind = match header.opcode {
            OpCode::Control(Control::Reserved(_)) | OpCode::Data(Data::Reserved(_)) => {
                return Err(ProtocolViolation::Unknown);
            }
            OpCode::Control(control) => {
                if !header.is_final || length > MAX_CONTROL as u64 {
                    return Err(ProtocolViolation::Control);
                }
                FrameKind::Control(control)
            }
            OpCode::Data(Data::Continue) if self.message.is_none() => {
                return Err(ProtocolViolation::Stray);
            }
            OpCode::Data(Data::Continue) => FrameKind::Data,
            OpCode::Data(_) if self.message.is_some() => {
                return Err(ProtocolViolation::Interleaved);
            }
            OpCode::Data(_) => {
                self.message = Some(PartialMessage::Kept(BytesMut::new()));
                FrameKind::Data
            }
        };
        self.frame = Some(CurrentFrame {
            kind,
            is_final: header.is_final,
            left: length,
        });
        Ok(true)
    }

    fn extend(&mut self, part: BytesMut) {
        match &mut self.message {
            None => {}
            Some(PartialMessage::Skipped(skimmer)) => skimmer.feed(&part),
            Some(PartialMessage::Kept(whole)) if whole.len() + part.len() > self.limit => {
                let mut skimmer = Box::new(IdSkimmer::new());
                skimmer.feed(whole);
                skimmer.feed(&part);
                self.message = Some(PartialMessage::Skipped(skimmer));
            }
            // The usual case costs no copy.
            Some(PartialMessage::Kept(whole)) if whole.is_empty() => *whole = part,
            Some(PartialMessage::Kept(whole)) => whole.extend_from_slice(&part),
        }
    }

    fn finish(&mut self) -> Option<IncomingFrame> {
        Some(match self.message.take()? {
            PartialMessage::Kept(whole) => IncomingFrame::Message(whole.freeze()),
            PartialMessage::Skipped(skimmer) => IncomingFrame::Oversized(skimmer.response_id()),
        })
    }
}

fn controlled(control: Control, payload: &Bytes) -> Result<IncomingFrame, ProtocolViolation> {
    match control {
        Control::Ping => Ok(IncomingFrame::Ping(payload.clone())),
        Control::Pong => Ok(IncomingFrame::Pong),
        Control::Close => {
            let (code, reason) = match payload[..] {
                [high, low, ref reason @ ..] => (Some(u16::from_be_bytes([high, low])), reason),
                _ => (None, &[][..]),
            };
            let reason = String::from_utf8_lossy(reason).into_owned();
            Ok(IncomingFrame::Close { code, reason })
        }
        Control::Reserved(_) => Err(ProtocolViolation::Unknown),
    }
}

/// One message as one text frame.
pub(super) fn text(message: Bytes) -> Result<Vec<u8>, getrandom::Error> {
    encode(OpCode::Data(Data::Text), message)
}

/// A ping.
pub(super) fn ping() -> Result<Vec<u8>, getrandom::Error> {
    encode(OpCode::Control(Control::Ping), Bytes::new())
}

/// The answer to a ping.
pub(super) fn pong(payload: Bytes) -> Result<Vec<u8>, getrandom::Error> {
    encode(OpCode::Control(Control::Pong), payload)
}

/// A close frame.
pub(super) fn close(code: u16) -> Result<Vec<u8>, getrandom::Error> {
    let payload = Bytes::copy_from_slice(&code.to_be_bytes());
    encode(OpCode::Control(Control::Close), payload)
}

/// Every client frame is masked with random bytes (RFC 6455, 5.3).
fn encode(opcode: OpCode, payload: Bytes) -> Result<Vec<u8>, getrandom::Error> {
    let mut mask = [0; 4];
    getrandom::fill(&mut mask)?;
    let header = FrameHeader {
        opcode,
        mask: Some(mask),
        ..FrameHeader::default()
    };
    let mut frame = Vec::with_capacity(payload.len() + 14);
    // Writing to memory cannot fail.
    let _ = Frame::from_payload(header, payload).format(&mut frame);
    Ok(frame)
}

#[cfg(test)]
mod tests;
