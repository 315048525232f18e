//! Reading past an event that is too large to keep.
//!
//! Owns what becomes of its lines as they stream by: data is looked through for the id of the
//! request it answers, its own id is remembered so that it is not asked for again, and nothing
//! else is kept (REL-11).

use bytes::{Buf as _, Bytes};
use toolway_wire::skim::IdSkimmer;

use super::{EventData, EventDecoder, EventKind, FIELD, StreamEvent};

/// What is remembered of the event.
#[derive(Debug, Default)]
pub(super) struct SkippedEvent {
    skimmer: IdSkimmer,
    /// The kind of line whose end has not come yet.
    line: Option<SkippedLine>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkippedLine {
    Data,
    Other,
}

impl EventDecoder {
    /// Reads past the event that was too large; [`EventDecoder::next_event`] says when it is over.
    pub(crate) fn skip(&mut self) {
        let mut skip = SkippedEvent::default();
        match self.event.data.take() {
            None => {}
            Some(EventData::One(bytes)) => skip.skimmer.feed(&bytes),
            Some(EventData::Many(bytes)) => skip.skimmer.feed(&bytes),
        }
        self.scanned = 0;
        if std::mem::take(&mut self.at_start) && self.buffer.starts_with(b"\xEF\xBB\xBF") {
            self.buffer.advance(3);
        }
        self.skipping = Some(skip);
    }

    /// Reads on through what was fed; gives the end of the event when it is there.
    pub(super) fn skip_on(&mut self) -> Option<StreamEvent> {
        let mut skip = self.skipping.take()?;
        loop {
            if let Some(line) = skip.line {
                let end = memchr::memchr2(b'\r', b'\n', &self.buffer);
                let part = self.buffer.split_to(end.unwrap_or(self.buffer.len()));
                if line == SkippedLine::Data {
                    skip.skimmer.feed(&part);
                }
                if end.is_none() {
                    break;
                }
                self.end_line();
                skip.line = None;
            } else {
                self.drop_second_half();
                match self.buffer.first() {
                    None => break,
                    Some(b'\r' | b'\n') => {
                        self.end_line();
                        self.scanned = 0;
                        let is_message = self.event.kind == EventKind::Message;
                        // What else the event said, its id above all, counts as usual.
                        self.event.data = None;
                        let _ = self.dispatch();
                        let id = skip.skimmer.response_id().filter(|_| is_message);
                        return Some(StreamEvent::Oversized(id));
                    }
                    Some(_) if self.buffer.starts_with(b"data:") => {
                        self.buffer.advance(b"data:".len());
                        skip.line = Some(SkippedLine::Data);
                    }
                    Some(_) => match memchr::memchr2(b'\r', b'\n', &self.buffer) {
                        Some(end) => {
                            let line: Bytes = self.buffer.split_to(end).freeze();
                            self.end_line();
                            // However it was cut, one that is too long is not looked at.
                            if line.len() <= FIELD {
                                self.field(&line);
                            }
                        }
                        None if self.buffer.len() > FIELD => skip.line = Some(SkippedLine::Other),
                        // It may become anything.
                        None => break,
                    },
                }
            }
        }
        self.skipping = Some(skip);
        None
    }

    /// Takes the line end the buffer begins with.
    fn end_line(&mut self) {
        self.after_cr = self.buffer.first() == Some(&b'\r');
        self.buffer.advance(1);
    }
}
