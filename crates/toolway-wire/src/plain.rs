//! Plain messages, read in one walk.
//!
//! Owns the short way for what nearly every message is: JSON of few members and little depth, with
//! names that need no escapes and stand once. What is taken here reads as a parser reads it; whatever
//! is not plain is left to `envelope.rs`, which asks one.

use bytes::Bytes;
use bytestring::ByteString;

use crate::id::Id;
use crate::raw_json::RawJson;
use crate::received::ReceivedMessage;
use crate::scan;

/// The deepest nesting that is plain.
const DEPTH: usize = 24;

/// As many names are remembered at a time.
const NAMES: usize = 48;

/// Whose names are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// Those of the message itself.
    Own,
    /// Those of every object in it: none may stand twice.
    All,
}

/// Reads a message, if it is a plain one. With [`Names::All`], no member stands twice in what is given.
pub(crate) fn read(message: &Bytes, names: Names) -> Option<ReceivedMessage> {
    let message = ByteString::try_from(message.clone()).ok()?;
    let text = &*message;
    let mut walk = Walk {
        json: text.as_bytes(),
        at: 0,
        names: [(0, 0); NAMES],
        open: 0,
        looked_at: names,
    };
    let mut found = PlainMembers::default();
    walk.message(&mut found)?;
    let of = |(begin, end): Span| text.get(begin..end).unwrap_or_default();
    let part = |span| RawJson::part_at(&message, of(span), names == Names::All);
    if found
        .version
        .is_some_and(|version| of(version) != "\"2.0\"")
    {
        return None;
    }
    let id = match found.id {
        Some(id) => Some(Id::of_text(of(id)).ok()?),
        None => None,
    };
    let id = id.flatten();
    if let Some(method) = found.method {
        let method = of(method).strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', method.as_bytes()).is_some() {
            return None;
        }
        let (method, params) = (method.to_owned(), found.params.map(part));
        let params = params.filter(|params| params.bytes() != "null");
        return Some(match id {
            Some(id) => ReceivedMessage::Request { id, method, params },
            None => ReceivedMessage::Notification { method, params },
        });
    }
    // Errors are rare, and have parts of their own.
    let result = found.result.filter(|_| found.error.is_none())?;
    Some(ReceivedMessage::Response {
        id,
        outcome: Ok(part(result)),
    })
}

/// Where something begins and ends.
type Span = (usize, usize);

/// The members of a message that mean something.
#[derive(Default)]
struct PlainMembers {
    version: Option<Span>,
    id: Option<Span>,
    method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
}

struct Walk<'a> {
    json: &'a [u8],
    at: usize,
    /// The names in all open objects, those of the innermost last.
    names: [Span; NAMES],
    open: usize,
    looked_at: Names,
}

impl Walk<'_> {
    fn message(&mut self, found: &mut PlainMembers) -> Option<()> {
        self.blank();
        self.take(b'{')?;
        self.blank();
        loop {
            let name = self.name(0)?;
            let begin = self.at;
            self.value(1)?;
            let slot = match self.json.get(name.0..name.1)? {
                b"jsonrpc" => &mut found.version,
                b"id" => &mut found.id,
                b"method" => &mut found.method,
                b"params" => &mut found.params,
                b"result" => &mut found.result,
                b"error" => &mut found.error,
                // Of no meaning to anybody.
                _ => &mut None,
            };
            *slot = Some((begin, self.at));
            if !self.goes_on(b'}')? {
                break;
            }
        }
        self.blank();
        (self.at == self.json.len()).then_some(())
    }

    /// A name and the colon behind it. `first` is where the names of its object begin.
    fn name(&mut self, first: usize) -> Option<Span> {
        let begin = self.at + 1;
        let end = self.string()?;
        let name = self.json.get(begin..end)?;
        if memchr::memchr(b'\\', name).is_some() {
            return None;
        }
        let earlier = self.names.get(first..self.open)?;
        let is_same = |other: &Span| self.json.get(other.0..other.1) == Some(name);
        if earlier.iter().any(is_same) {
            return None;
        }
        *self.names.get_mut(self.open)? = (begin, end);
        self.open += 1;
        self.colon()?;
        Some((begin, end))
    }

    fn colon(&mut self) -> Option<()> {
        self.blank();
        self.take(b':')?;
        self.blank();
        Some(())
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match *self.json.get(self.at)? {
            b'"' => self.string().map(drop),
            b'{' if depth < DEPTH => self.object(depth),
            b'[' if depth < DEPTH => self.array(depth),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let first = self.open;
        self.at += 1;
        self.blank();
        if self.json.get(self.at) == Some(&b'}') {
            self.at += 1;
            return Some(());
        }
        loop {
            if self.looked_at == Names::All {
                self.name(first)?;
            } else {
                self.string()?;
                self.colon()?;
            }
            self.value(depth + 1)?;
            if !self.goes_on(b'}')? {
                self.open = first;
                return Some(());
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        self.blank();
        if self.json.get(self.at) == Some(&b']') {
            self.at += 1;
            return Some(());
        }
        loop {
            self.value(depth + 1)?;
            if !self.goes_on(b']')? {
                return Some(());
            }
        }
    }

    /// Whether a comma follows, and not the end.
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        self.blank();
        let byte = *self.json.get(self.at)?;
        self.at += 1;
        if byte == b',' {
            self.blank();
            return Some(true);
        }
        (byte == end).then_some(false)
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.json.get(self.at) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        let is_there = self.json.get(self.at) == Some(&byte);
        self.at += 1;
        is_there.then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let end = self.at + word.len();
        let is_there = self.json.get(self.at..end) == Some(word);
        self.at = end;
        is_there.then_some(())
    }

    fn number(&mut self) -> Option<()> {
        if self.json.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.json.get(self.at)? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        // Fractions and exponents are rare, and have rules of their own.
        let is_over = !matches!(
            self.json.get(self.at),
            Some(b'.' | b'e' | b'E' | b'0'..=b'9')
        );
        is_over.then_some(())
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.json.get(self.at) {
            self.at += 1;
        }
    }

    /// A string; gives where its text ends.
    fn string(&mut self) -> Option<usize> {
        self.take(b'"')?;
        loop {
            self.at += scan::plain_run(self.json.get(self.at..)?, true);
            match *self.json.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(self.at - 1);
                }
                b'\\' => self.escape()?,
                // As they are, control characters stand in no string.
                0..=0x1F => return None,
                _ => self.leap()?,
            }
        }
    }

    /// Goes on to the next byte of a string that means something.
    fn leap(&mut self) -> Option<()> {
        let rest = self.json.get(self.at..)?;
        let step = memchr::memchr2(b'"', b'\\', rest)?;
        // Without a way out of the loop, the compiler looks at many bytes at a time.
        let is_text =
            |part: &[u8]| part.iter().fold(u8::MAX, |least, byte| least.min(*byte)) > 0x1F;
        if !rest.get(..step)?.chunks(256).all(is_text) {
            return None;
        }
        self.at += step;
        Some(())
    }

    fn escape(&mut self) -> Option<()> {
        match *self.json.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.at += 2;
                Some(())
            }
            b'u' => {
                let digits = self.json.get(self.at + 2..self.at + 6)?;
                self.at += 6;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
