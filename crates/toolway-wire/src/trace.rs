//! Which trace a request is part of: W3C Trace Context and Baggage.
//!
//! Owns reading both, from `_meta` and from headers, and writing them again. Whatever is not in the
//! form of these standards, or longer than they ask to be carried, is taken for absent, so that what
//! is given out here can stand in a header. Makes no spans and decides nothing.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::era::meta_key;
use serde_json::value::RawValue;

use crate::members::{RawMembers, write_string};
use crate::raw_json::RawJson;
use crate::request_head::RequestHead;
use crate::scan;

/// The keys of `_meta`, which are the names of the headers too.
pub const KEYS: [&str; 3] = [
    meta_key::TRACEPARENT,
    meta_key::TRACESTATE,
    meta_key::BAGGAGE,
];

/// Trace Context asks for 512 characters of `tracestate` to be carried, and 32 members.
const MAX_STATE: usize = 512;
const MAX_STATE_MEMBERS: usize = 32;

/// Baggage asks for 8192 bytes to be carried.
const MAX_BAGGAGE: usize = 8192;

/// `traceparent` of the version that we know.
const PARENT_LENGTH: usize = 55;

/// Of versions to come no more than this is carried.
const MAX_PARENT: usize = 256;

/// One span, as `traceparent` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    /// The trace; never all zero.
    pub trace: [u8; 16],
    /// The span; never all zero.
    pub span: [u8; 8],
    /// Its flags.
    pub flags: u8,
}

impl TraceParent {
    /// Whether whoever began it keeps its spans.
    pub const SAMPLED: u8 = 1;

    /// Reads `traceparent`; nothing where it is none.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if text.len() > MAX_PARENT || !text.is_ascii() {
            return None;
        }
        let is_further = match bytes.get(PARENT_LENGTH) {
            None => false,
            Some(b'-') => true,
            Some(_) => return None,
        };
        let (version, rest) = bytes.get(..PARENT_LENGTH)?.split_at(2);
        let [version] = octets(version)?;
        // 255 is forbidden, and the version that we know has nothing behind its flags.
        if version == 0xff || (version == 0 && is_further) {
            return None;
        }
        let rest = rest.strip_prefix(b"-")?;
        let (trace, rest) = rest.split_at(32);
        let (span, rest) = rest.strip_prefix(b"-")?.split_at(16);
        let [flags] = octets(rest.strip_prefix(b"-")?)?;
        let parent = Self {
            trace: octets(trace)?,
            span: octets(span)?,
            flags,
        };
        let is_named = parent.trace != [0; 16] && parent.span != [0; 8];
        let is_clean = bytes.iter().all(|byte| (0x21..=0x7e).contains(byte));
        (is_named && is_clean).then_some(parent)
    }

    /// Whether its spans are kept.
    pub fn is_sampled(self) -> bool {
        self.flags & Self::SAMPLED != 0
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("00-")?;
        for byte in self.trace {
            write!(formatter, "{byte:02x}")?;
        }
        formatter.write_str("-")?;
        for byte in self.span {
            write!(formatter, "{byte:02x}")?;
        }
        write!(formatter, "-{:02x}", self.flags)
    }
}

/// Bytes written as lower-case hex digits, exactly as many.
fn octets<const N: usize>(hex: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if hex.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// What a request says of the trace that it is part of. Every text in it can stand in a header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceContext {
    parent: Option<(TraceParent, Box<str>)>,
    state: Option<Box<str>>,
    baggage: Option<Box<str>>,
}

impl TraceContext {
    /// Of these texts, each where it is valid. `tracestate` says nothing without `traceparent`.
    pub fn of_texts(
        traceparent: Option<&str>,
        tracestate: Option<&str>,
        baggage: Option<&str>,
    ) -> Self {
        let read = |text: &str| Some((TraceParent::read(text)?, Box::from(text)));
        let parent = traceparent.and_then(read);
        let state = tracestate.filter(|text| parent.is_some() && is_state(text));
        let baggage = baggage.filter(|text| is_baggage(text));
        Self {
            parent,
            state: state.map(Box::from),
            baggage: baggage.map(Box::from),
        }
    }

    /// What `_meta` of a client's request says.
    pub fn of_head(head: &RequestHead) -> Self {
        let said = [&head.traceparent, &head.tracestate, &head.baggage];
        if said.iter().all(|raw| raw.is_none()) {
            return Self::default();
        }
        let [parent, state, baggage] =
            said.map(|raw| raw.as_ref().and_then(|raw| scan::text(raw.get())));
        Self::of_texts(parent.as_deref(), state.as_deref(), baggage.as_deref())
    }

    /// What the headers of a request say. Lists may stand in several headers of one name.
    pub fn of_headers(headers: &HeaderMap) -> Self {
        let list = |name| {
            let mut values = headers.get_all(name).iter();
            let mut all = values.next()?.to_str().ok()?.to_owned();
            for value in values {
                all.push(',');
                all.push_str(value.to_str().ok()?);
            }
            Some(all)
        };
        let mut parents = headers.get_all(meta_key::TRACEPARENT).iter();
        let parent = parents.next().and_then(|value| value.to_str().ok());
        let parent = parent.filter(|_| parents.next().is_none());
        Self::of_texts(
            parent,
            list(meta_key::TRACESTATE).as_deref(),
            list(meta_key::BAGGAGE).as_deref(),
        )
    }

    /// The span that the request was made in.
    pub fn parent(&self) -> Option<TraceParent> {
        self.parent.as_ref().map(|(parent, _)| *parent)
    }

    /// What those before noted of the trace.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.parent.is_none() && self.baggage.is_none()
    }

    /// The same, with what another says where this one says nothing.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        if self.parent.is_none() {
            (self.parent, self.state) = (other.parent, other.state);
        }
        self.baggage = self.baggage.or(other.baggage);
        self
    }

    /// The same in another span of ours, which is of the same trace.
    #[must_use]
    pub fn within(&self, span: TraceParent) -> Self {
        Self {
            parent: Some((span, span.to_string().into())),
            ..self.clone()
        }
    }

    /// What is said, by its keys.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let parent = self.parent.as_ref().map(|(_, text)| &**text);
        let texts = [parent, self.state.as_deref(), self.baggage.as_deref()];
        let members = KEYS.into_iter().zip(texts);
        members.filter_map(|(key, text)| Some((key, text?)))
    }

    /// The same as headers.
    pub fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.members().filter_map(|(key, text)| {
            let value = HeaderValue::from_str(text).ok()?;
            Some((HeaderName::from_static(key), value))
        })
    }

    /// `_meta` that says this, and nothing else of a trace; what else stood there stays, in its
    /// place. Nothing where nothing is left.
    pub fn in_meta(&self, meta: Option<&RawJson>) -> Option<RawJson> {
        let mut out = Vec::with_capacity(meta.map_or(0, RawJson::len) + 256);
        let own = meta.and_then(|meta| RawMembers::read(meta.get()).ok());
        let begin = |out: &mut Vec<u8>, key: &str| {
            out.push(if out.is_empty() { b'{' } else { b',' });
            write_string(out, key);
            out.push(b':');
        };
        for (key, value) in own.iter().flat_map(RawMembers::entries) {
            if !KEYS.contains(&key) {
                begin(&mut out, key);
                out.extend_from_slice(value.get().as_bytes());
            } else if let Some((_, text)) = self.members().find(|(name, _)| *name == key) {
                begin(&mut out, key);
                write_string(&mut out, text);
            }
        }
        let is_new = |key: &str| own.as_ref().is_none_or(|own| own.get(key).is_none());
        for (key, text) in self.members().filter(|(key, _)| is_new(key)) {
            begin(&mut out, key);
            write_string(&mut out, text);
        }
        if out.is_empty() {
            return None;
        }
        out.push(b'}');
        RawJson::read(&out.into()).ok()
    }

    /// These parameters, saying this of their request's trace; as they are where they are no object.
    pub fn told_in(&self, params: Box<RawValue>) -> Box<RawValue> {
        match self.in_params(params.get()).map(RawValue::from_string) {
            Some(Ok(said)) => said,
            _ => params,
        }
    }

    /// The same for all parameters of a request; nothing where they are no object.
    pub fn in_params(&self, params: &str) -> Option<String> {
        let members = RawMembers::read(params).ok()?;
        let meta = self.in_meta(members.value("_meta").map(RawJson::from).as_ref());
        let has_meta = members.get("_meta").is_some();
        let mut out = Vec::with_capacity(params.len() + 256);
        let added = meta.as_ref().filter(|_| !has_meta);
        let added = added.map(|meta| ("_meta", meta.as_raw()));
        for (name, value) in members.entries().chain(added) {
            let value = match name {
                "_meta" => match &meta {
                    Some(meta) => meta.get(),
                    None => continue,
                },
                _ => value.get(),
            };
            out.push(if out.is_empty() { b'{' } else { b',' });
            write_string(&mut out, name);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
        if out.is_empty() {
            out.push(b'{');
        }
        out.push(b'}');
        String::from_utf8(out).ok()
    }
}

/// Whether a text has the form of `tracestate`: members with a name and a value.
fn is_state(text: &str) -> bool {
    let mut members = 0;
    text.len() <= MAX_STATE
        && text.split(',').all(|member| {
            let member = member.trim_matches([' ', '\t']);
            members += usize::from(!member.is_empty());
            // Empty members are allowed.
            member.is_empty() || is_member(member)
        })
        && (1..=MAX_STATE_MEMBERS).contains(&members)
}

/// Whether a text has the form of `baggage`.
fn is_baggage(text: &str) -> bool {
    text.len() <= MAX_BAGGAGE
        && text.split(',').all(|member| {
            let member = member.trim_matches([' ', '\t']);
            // Properties may stand behind the value.
            is_member(member.split(';').next().unwrap_or_default()) && is_visible(member)
        })
}

fn is_member(member: &str) -> bool {
    let Some((name, _)) = member.split_once('=') else {
        return false;
    };
    let name = name.trim_matches([' ', '\t']);
    !name.is_empty() && name.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) && is_visible(member)
}

fn is_visible(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.all(|byte| (0x20..=0x7e).contains(&byte) || byte == b'\t')
}

#[cfg(test)]
mod tests;
