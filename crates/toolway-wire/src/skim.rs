//! Finding the id of a message that is too large to keep, or nests too deep to parse.
//!
//! Owns a small state machine fed with the message's bytes as they stream past: it follows the
//! nesting, looks at the members of the outermost object only, and keeps a few bytes. So the call
//! an oversized answer belongs to can fail at once, wherever the id stands (REL-11), and a client
//! is told which of its requests was refused.

use serde_json::value::RawValue;

use crate::id::Id;

/// No id we would recognise is longer.
const KEPT: usize = 256;

/// Reads past a message and remembers its id.
#[derive(Debug, Default)]
pub struct IdSkimmer {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// What of the outermost object is being read.
    place: SkimPosition,
    key: Vec<u8>,
    value: Vec<u8>,
    id: Option<Id>,
    has_method: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SkimPosition {
    #[default]
    Key,
    Value,
}

impl IdSkimmer {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads on.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            // Long strings are where an oversized message has its bulk.
            if self.in_string && !self.escaped && !self.keeps() {
                match memchr::memchr2(b'"', b'\\', bytes) {
                    None => return,
                    Some(0) => {}
                    Some(step) => {
                        bytes = &bytes[step..];
                        continue;
                    }
                }
            }
            self.step(byte);
            bytes = rest;
        }
    }

    /// Which request the message answers. `None` when it has no readable id, or when it is itself
    /// a request, whose id is the peer's and not ours.
    pub fn response_id(&self) -> Option<Id> {
        self.id.clone().filter(|_| !self.has_method)
    }

    /// Which request the message is; nothing when it is none, or has no readable id.
    pub fn request_id(&self) -> Option<Id> {
        self.id.clone().filter(|_| self.has_method)
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                self.keep(byte);
                self.depth += 1;
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_member();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.place = SkimPosition::Value,
            b',' if self.depth == 1 => self.end_member(),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.keep(byte),
        }
    }

    /// Whether what is read now may be part of an id or its name.
    fn keeps(&self) -> bool {
        let kept = match self.place {
            SkimPosition::Key => &self.key,
            SkimPosition::Value => &self.value,
        };
        self.depth == 1 && kept.len() < KEPT
    }

    fn keep(&mut self, byte: u8) {
        if self.keeps() {
            match self.place {
                SkimPosition::Key => self.key.push(byte),
                SkimPosition::Value => self.value.push(byte),
            }
        }
    }

    fn end_member(&mut self) {
        match self.key.as_slice() {
            b"\"id\"" => {
                let text = String::from_utf8_lossy(&self.value).into_owned();
                let raw = RawValue::from_string(text).ok();
                self.id = raw.and_then(|raw| Id::read(&raw).ok().flatten());
            }
            b"\"method\"" => self.has_method = true,
            _ => {}
        }
        self.key.clear();
        self.value.clear();
        self.place = SkimPosition::Key;
    }
}

#[cfg(test)]
mod tests;
