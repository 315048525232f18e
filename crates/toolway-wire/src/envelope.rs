//! JSON-RPC envelopes: one message in, one message out, payloads untouched.
//!
//! Owns parsing bytes into a borrowed [`Message`] and writing messages as bytes. Deliberately
//! tolerant of what real servers send (BOM, CRLF, `error: null`, float ids) and strict about
//! what lets two readers disagree (doubled members, depth). Batches are split, not parsed: no
//! caller ever sees one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use toolway_types::limits;

use crate::elements::each;
use crate::error::RpcError;
use crate::id::Id;
use crate::members::write_string;
use crate::plain;
use crate::raw_json::RawJson;
pub use crate::received::ReceivedMessage;
use crate::scan::{self, JsonKey};
use crate::skim::IdSkimmer;

/// One message, borrowed from its bytes.
#[derive(Debug)]
pub enum Message<'a> {
    /// The peer asks something and waits for an answer.
    Request {
        /// Its id, to be echoed.
        id: Id,
        /// The method.
        method: Cow<'a, str>,
        /// The parameters, untouched.
        params: Option<&'a RawValue>,
    },
    /// The peer tells something.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The parameters, untouched.
        params: Option<&'a RawValue>,
    },
    /// The peer answers.
    Response {
        /// Which request it answers; absent when the peer could not read the request's id.
        id: Option<Id>,
        /// The result, untouched, or the error.
        outcome: Result<&'a RawValue, RpcError>,
    },
}

impl Message<'_> {
    pub(crate) fn received(self, part: impl Fn(&RawValue) -> RawJson) -> ReceivedMessage {
        match self {
            Message::Request { id, method, params } => ReceivedMessage::Request {
                id,
                method: method.into_owned(),
                params: params.map(part),
            },
            Message::Notification { method, params } => ReceivedMessage::Notification {
                method: method.into_owned(),
                params: params.map(part),
            },
            Message::Response { id, outcome } => ReceivedMessage::Response {
                id,
                outcome: outcome.map(part),
            },
        }
    }
}

/// Why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not UTF-8.
    #[error("the message is not UTF-8")]
    Encoding,
    /// Not JSON, or not an object.
    #[error("the message is not a JSON object: {0}")]
    Json(String),
    /// A member stands twice.
    #[error("the message has the member `{0}` twice")]
    Doubled(String),
    /// Nested too deeply.
    #[error("the message nests deeper than {} levels", scan::MAX_DEPTH)]
    TooDeep,
    /// The id cannot be one.
    #[error("the message's id is neither a string nor an integer")]
    Id,
    /// JSON, but neither request, notification nor answer.
    #[error("the message is JSON but not JSON-RPC 2.0")]
    NotRpc,
}

/// Reads one message.
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, EnvelopeError> {
    let text = std::str::from_utf8(bytes).map_err(|_| EnvelopeError::Encoding)?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    if !scan::is_shallow(text.as_bytes()) {
        return Err(EnvelopeError::TooDeep);
    }
    let members: EnvelopeMembers<'_> = serde_json::from_str(text).map_err(|error| {
        // The only custom error our visitor raises carries the member's name.
        let message = error.to_string();
        match message
            .strip_prefix(DOUBLED)
            .and_then(|rest| rest.split_once('\u{0}'))
        {
            Some((name, _)) => EnvelopeError::Doubled(name.to_owned()),
            None => EnvelopeError::Json(message),
        }
    })?;
    members.classify()
}

/// The same, with parts that are slices of it.
pub fn receive(bytes: &Bytes) -> Result<ReceivedMessage, EnvelopeError> {
    if let Some(message) = plain::read(bytes, plain::Names::Own) {
        return Ok(message);
    }
    Ok(parse(bytes)?.received(|raw| RawJson::part_of(bytes, raw)))
}

/// Reads one message on whose every member we decide and another acts, so that both must see the
/// same: a member that stands twice refuses it at any depth (SEC-22). With the refusal comes the
/// id of a request that can still be told about it.
pub fn parse_unambiguous(bytes: &Bytes) -> Result<ReceivedMessage, (EnvelopeError, Option<Id>)> {
    if let Some(message) = plain::read(bytes, plain::Names::All) {
        return Ok(message);
    }
    let message = parse(bytes).map_err(|error| {
        let id = match error {
            EnvelopeError::TooDeep => {
                let mut skimmer = IdSkimmer::new();
                skimmer.feed(bytes);
                skimmer.request_id()
            }
            _ => None,
        };
        (error, id)
    })?;
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let Some(name) = scan::doubled_key(text) else {
        return Ok(message.received(|raw| RawJson::unambiguous_part_of(bytes, raw)));
    };
    let id = match message {
        Message::Request { id, .. } => Some(id),
        Message::Notification { .. } | Message::Response { .. } => None,
    };
    Err((EnvelopeError::Doubled(name), id))
}

/// The messages of a batch (2025-03-26 only), or `None` when the bytes are not a JSON array.
pub fn split_batch(bytes: &[u8]) -> Option<Vec<&RawValue>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    if !text.trim_start().starts_with('[') {
        return None;
    }
    let array: &RawValue = serde_json::from_str(text).ok()?;
    let mut parts = Vec::new();
    let mut too_many = false;
    each(array, |part| {
        too_many = parts.len() == MAX_BATCH;
        parts.push(part);
        !too_many
    })?;
    (!too_many).then_some(parts)
}

/// The most messages of one batch; a larger one is none.
const MAX_BATCH: usize = limits::message::BATCH;

const DOUBLED: &str = "doubled member \u{0}";

#[derive(Default)]
struct EnvelopeMembers<'a> {
    version: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> EnvelopeMembers<'a> {
    fn classify(self) -> Result<Message<'a>, EnvelopeError> {
        if self
            .version
            .is_some_and(|version| version.get() != "\"2.0\"")
        {
            return Err(EnvelopeError::NotRpc);
        }
        let id = self
            .id
            .map(Id::read)
            .transpose()
            .map_err(|_| EnvelopeError::Id)?
            .flatten();
        if let Some(method) = self.method {
            let Ok(JsonKey(method)) = serde_json::from_str(method.get()) else {
                return Err(EnvelopeError::NotRpc);
            };
            let params = self.params.filter(|params| params.get() != "null");
            return Ok(match id {
                Some(id) => Message::Request { id, method, params },
                None => Message::Notification { method, params },
            });
        }
        // `"error": null` beside a result is a success; a real error beside a result is an error.
        let error = self.error.filter(|error| error.get() != "null");
        match (error, self.result) {
            (Some(error), _) => Ok(Message::Response {
                id,
                outcome: Err(RpcError::read(error)),
            }),
            (None, Some(result)) => Ok(Message::Response {
                id,
                outcome: Ok(result),
            }),
            (None, None) => Err(EnvelopeError::NotRpc),
        }
    }
}

impl<'de> Deserialize<'de> for EnvelopeMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = EnvelopeMembers<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EnvelopeMembers<'de>, A::Error> {
        let mut members = EnvelopeMembers::default();
        let mut unknown = HashSet::new();
        while let Some(JsonKey(key)) = map.next_key::<JsonKey<'de>>()? {
            let value = map.next_value::<&'de RawValue>()?;
            // Exact case only: `Method` is an unknown member, never the method (SEC-21).
            let slot = match &*key {
                "jsonrpc" => &mut members.version,
                "id" => &mut members.id,
                "method" => &mut members.method,
                "params" => &mut members.params,
                "result" => &mut members.result,
                "error" => &mut members.error,
                _ => {
                    if let Some(twice) = unknown.replace(key) {
                        return Err(doubled(&twice));
                    }
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                return Err(doubled(&key));
            }
        }
        Ok(members)
    }
}

fn doubled<E: de::Error>(name: &str) -> E {
    E::custom(format_args!("{DOUBLED}{}\u{0}", name.replace('\u{0}', "")))
}

/// A request of ours.
pub fn request(id: u64, method: &str, params: &RawValue) -> Bytes {
    let mut out = start(method.len() + params.get().len());
    out.extend_from_slice(b",\"id\":");
    Id::from(id).write(&mut out);
    out.extend_from_slice(b",\"method\":");
    write_string(&mut out, method);
    finish(out, b",\"params\":", params)
}

/// A request of ours whose parameters are written by `params`, about so many bytes.
pub(crate) fn request_with<E>(
    id: u64,
    method: &str,
    size: usize,
    params: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<Bytes, E> {
    let mut out = start(method.len() + size);
    out.extend_from_slice(b",\"id\":");
    Id::from(id).write(&mut out);
    out.extend_from_slice(b",\"method\":");
    write_string(&mut out, method);
    out.extend_from_slice(b",\"params\":");
    let from = out.len();
    params(&mut out)?;
    put_on_one_line(&mut out, from);
    out.push(b'}');
    Ok(out.into())
}

/// A notification of ours.
pub fn notification(method: &str, params: Option<&RawValue>) -> Bytes {
    let mut out = start(method.len() + params.map_or(0, |params| params.get().len()));
    out.extend_from_slice(b",\"method\":");
    write_string(&mut out, method);
    if let Some(params) = params {
        return finish(out, b",\"params\":", params);
    }
    out.push(b'}');
    out.into()
}

/// Our answer to a request.
pub fn response(id: &Id, result: &RawValue) -> Bytes {
    let mut out = start(result.get().len());
    out.extend_from_slice(b",\"id\":");
    id.write(&mut out);
    finish(out, b",\"result\":", result)
}

/// The same with a result that is JSON by construction.
pub fn response_of_bytes(id: &Id, result: &[u8]) -> Bytes {
    let mut out = start(result.len());
    out.extend_from_slice(b",\"id\":");
    id.write(&mut out);
    out.extend_from_slice(b",\"result\":");
    write_line(&mut out, result);
    out.push(b'}');
    out.into()
}

/// Our refusal of a request; without an id when its id could not be read.
pub fn error_response(id: Option<&Id>, error: &RpcError) -> Bytes {
    let mut out = start(error.message.len());
    out.extend_from_slice(b",\"id\":");
    match id {
        Some(id) => id.write(&mut out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"error\":{\"code\":");
    out.extend_from_slice(error.code.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":");
    write_string(&mut out, &error.message);
    if let Some(data) = &error.data {
        out.extend_from_slice(b",\"data\":");
        write_raw(&mut out, data);
    }
    out.extend_from_slice(b"}}");
    out.into()
}

fn start(payload: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload + 96);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    out
}

fn finish(mut out: Vec<u8>, label: &[u8], payload: &RawValue) -> Bytes {
    out.extend_from_slice(label);
    write_raw(&mut out, payload);
    out.push(b'}');
    out.into()
}

fn write_raw(out: &mut Vec<u8>, raw: &RawValue) {
    write_line(out, raw.get().as_bytes());
}

/// Appends JSON on one line. Inside strings JSON has no bare line breaks, so every one found
/// stands between tokens and may become a space.
fn write_line(out: &mut Vec<u8>, json: &[u8]) {
    let from = out.len();
    out.extend_from_slice(json);
    put_on_one_line(out, from);
}

fn put_on_one_line(out: &mut [u8], from: usize) {
    let mut at = from;
    while let Some(step) = memchr::memchr2(b'\n', b'\r', &out[at..]) {
        at += step;
        out[at] = b' ';
    }
}

#[cfg(test)]
mod tests;
