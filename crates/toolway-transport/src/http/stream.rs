//! Event streams: a decoder with a cap on every event.
//!
//! Owns turning bytes into events, however they are cut and whichever line ends they have. An
//! event that was cut off is never delivered, and neither is its id (REL-25). One over the cap is
//! refused, or read past by [`skip`]. How long a stream may be silent is in [`watchdog`].

mod skip;
pub(crate) mod watchdog;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use toolway_wire::Id;

use skip::SkippedEvent;

/// The longest line that is looked at besides data.
const FIELD: usize = 8 * 1024;

/// One event with a meaning here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamEvent {
    /// A message.
    Message(Bytes),
    /// Where to post messages, on a legacy HTTP+SSE stream.
    Endpoint(Bytes),
    /// A message over the cap that was read past, and which request it answers.
    Oversized(Option<Id>),
}

/// An event is larger than the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventTooLarge;

/// Decodes a stream.
#[derive(Debug)]
pub(crate) struct EventDecoder {
    buffer: BytesMut,
    /// Up to here the buffer holds no line end.
    scanned: usize,
    /// A CR ended the last line, so an LF that follows belongs to it.
    after_cr: bool,
    at_start: bool,
    event: PendingEvent,
    /// The id of the last event that was delivered.
    last_id: Option<String>,
    retry: Option<Duration>,
    /// How many keepalives arrived.
    keepalives: u32,
    skipping: Option<SkippedEvent>,
    limit: usize,
}

#[derive(Debug, Default)]
struct PendingEvent {
    data: Option<EventData>,
    id: Option<String>,
    kind: EventKind,
}

/// The type of an event.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    #[default]
    Message,
    Endpoint,
    Foreign,
}

#[derive(Debug)]
enum EventData {
    /// The usual case costs no copy.
    One(Bytes),
    Many(BytesMut),
}

impl EventDecoder {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            after_cr: false,
            at_start: true,
            event: PendingEvent::default(),
            last_id: None,
            retry: None,
            keepalives: 0,
            skipping: None,
            limit,
        }
    }

    /// Where to resume.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server asks to wait before resuming.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// How many keepalives arrived.
    pub(crate) fn keepalives(&self) -> u32 {
        self.keepalives
    }

    /// How many bytes wait for more.
    #[cfg(fuzzing)]
    pub(crate) fn held(&self) -> usize {
        self.buffer.len() + self.event.len()
    }

    /// A new connection continues the stream: half an event of the old one is void.
    pub(crate) fn restart(&mut self) {
        self.buffer.clear();
        self.scanned = 0;
        self.after_cr = false;
        self.at_start = true;
        self.event = PendingEvent::default();
        self.keepalives = 0;
        self.skipping = None;
    }

    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next event of what was fed.
    pub(crate) fn next_event(&mut self) -> Result<Option<StreamEvent>, EventTooLarge> {
        if self.skipping.is_some() {
            return Ok(self.skip_on());
        }
        while let Some(end) = self.line_end() {
            // Before the line is taken, for then it depends on its length alone and not on how
            // the stream was cut.
            if self.event.len() + end > self.limit {
                return Err(EventTooLarge);
            }
            let line = self.take_line(end);
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
            } else {
                self.field(&line);
            }
        }
        if self.event.len() + self.buffer.len() > self.limit {
            Err(EventTooLarge)
        } else {
            Ok(None)
        }
    }

    /// Takes the LF of a line end whose CR has been taken.
    fn drop_second_half(&mut self) {
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer[0] == b'\n' {
                let _ = self.buffer.split_to(1);
            }
        }
    }

    /// Where the line ends that the buffer begins with.
    fn line_end(&mut self) -> Option<usize> {
        self.drop_second_half();
        let Some(step) = memchr::memchr2(b'\r', b'\n', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        Some(self.scanned + step)
    }

    fn take_line(&mut self, end: usize) -> Bytes {
        self.after_cr = self.buffer[end] == b'\r';
        let mut line = self.buffer.split_to(end + 1).freeze();
        line.truncate(end);
        self.scanned = 0;
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xEF\xBB\xBF") {
            line = line.slice(3..);
        }
        line
    }

    fn field(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let mut value = line.slice((colon + 1).min(line.len())..);
        if value.first() == Some(&b' ') {
            value = value.slice(1..);
        }
        match &line[..colon] {
            b"data" => self.event.push(value),
            b"event" => {
                self.event.kind = match &value[..] {
                    b"" | b"message" => EventKind::Message,
                    b"endpoint" => EventKind::Endpoint,
                    _ => EventKind::Foreign,
                }
            }
            // It is kept for as long as the stream, and sent back in a header.
            b"id" if !value.contains(&0) && value.len() <= FIELD => {
                self.event.id = Some(String::from_utf8_lossy(&value).into_owned());
            }
            b"retry" => {
                let number = std::str::from_utf8(&value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                self.retry = number.map(Duration::from_millis).or(self.retry);
            }
            // An empty name is a comment, used as a keepalive.
            b"" => self.keepalives = self.keepalives.saturating_add(1),
            // Others are for the future.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<StreamEvent> {
        let event = std::mem::take(&mut self.event);
        if let Some(id) = event.id {
            self.last_id = (!id.is_empty()).then_some(id);
        }
        let data = match event.data? {
            EventData::One(bytes) => bytes,
            EventData::Many(bytes) => bytes.freeze(),
        };
        let blank = data.iter().all(u8::is_ascii_whitespace);
        match event.kind {
            EventKind::Foreign => {
                self.keepalives = self.keepalives.saturating_add(1);
                None
            }
            _ if blank => None,
            EventKind::Message => Some(StreamEvent::Message(data)),
            EventKind::Endpoint => Some(StreamEvent::Endpoint(data)),
        }
    }
}

impl PendingEvent {
    fn push(&mut self, value: Bytes) {
        self.data = Some(match self.data.take() {
            None => EventData::One(value),
            Some(EventData::One(first)) => {
                let mut many = BytesMut::from(&first[..]);
                many.extend_from_slice(b"\n");
                many.extend_from_slice(&value);
                EventData::Many(many)
            }
            Some(EventData::Many(mut many)) => {
                many.extend_from_slice(b"\n");
                many.extend_from_slice(&value);
                EventData::Many(many)
            }
        });
    }

    fn len(&self) -> usize {
        match &self.data {
            None => 0,
            Some(EventData::One(bytes)) => bytes.len(),
            Some(EventData::Many(bytes)) => bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests;
