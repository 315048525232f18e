//! `_meta`: adding members to raw parameters without touching anything else in them.
//!
//! Owns the splice. What goes in is up to the caller: the modern era's three members, a progress
//! token. A member the parameters already carry wins over ours.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::envelope;
use crate::era::meta_key;
use crate::members::{RawMembers, write_string};
use crate::scan::{self, LoneMember, RareName};

/// Why members could not be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// The parameters are not an object, or hold `_meta` twice.
    #[error("the parameters cannot carry `_meta`: {0}")]
    Params(String),
    /// `_meta` is there and not an object.
    #[error("`_meta` of the parameters is not an object")]
    NotAnObject,
}

/// Members to add to a request's `_meta`.
#[derive(Debug, Clone, Default)]
pub struct RequestMeta<'a> {
    members: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> RequestMeta<'a> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What every modern request must carry.
    pub fn modern(
        version: &'static str,
        client_info: &'a RawValue,
        capabilities: &'a RawValue,
    ) -> Self {
        let mut written = Vec::new();
        write_string(&mut written, version);
        let version = String::from_utf8(written).unwrap_or_default();
        Self {
            members: vec![
                (meta_key::PROTOCOL_VERSION, version.into()),
                (meta_key::CLIENT_INFO, client_info.get().into()),
                (meta_key::CLIENT_CAPABILITIES, capabilities.get().into()),
            ],
        }
    }

    /// Sets one member.
    pub fn set(&mut self, key: &'a str, value: &RawValue) {
        self.put(key, value.get().to_owned().into());
    }

    fn put(&mut self, key: &'a str, value: Cow<'a, str>) {
        match self
            .members
            .iter_mut()
            .find(|(existing, _)| *existing == key)
        {
            Some((_, slot)) => *slot = value,
            None => self.members.push((key, value)),
        }
    }

    /// The same with the request's progress token.
    #[must_use]
    pub fn with_progress_token(mut self, token: u64) -> Self {
        self.put(meta_key::PROGRESS_TOKEN, token.to_string().into());
        self
    }

    /// Whether there is nothing to add.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The parameters with these members in their `_meta`; every other byte stays as it is.
    pub fn splice(&self, params: Option<&RawValue>) -> Result<Box<RawValue>, MetaError> {
        let text = params.map_or("{}", RawValue::get);
        let mut out = Vec::with_capacity(text.len() + ROOM);
        self.write(text, &mut out)?;
        let text = String::from_utf8(out).unwrap_or_default();
        RawValue::from_string(text).map_err(|error| MetaError::Params(error.to_string()))
    }

    /// The message of a request whose parameters have these members in their `_meta`.
    pub fn request(&self, id: u64, method: &str, params: &RawValue) -> Result<Bytes, MetaError> {
        let text = params.get();
        envelope::request_with(id, method, text.len() + ROOM, |out| self.write(text, out))
    }

    fn write(&self, text: &str, out: &mut Vec<u8>) -> Result<(), MetaError> {
        if self.is_empty() && text.starts_with('{') {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let existing = match find_meta(text) {
            LoneMember::Is(existing) => Some(existing),
            LoneMember::Absent => None,
            // Written in an odd way, or no object.
            LoneMember::Unclear => RawMembers::read(text)
                .map_err(|error| MetaError::Params(error.to_string()))?
                .get("_meta")
                .map(RawValue::get),
        };
        let Some(existing) = existing else {
            // Last, behind what is there.
            let inner = text.trim_end().strip_suffix('}').unwrap_or(text).trim_end();
            out.extend_from_slice(inner.as_bytes());
            out.extend_from_slice(if inner.ends_with('{') {
                b"\"_meta\":"
            } else {
                b",\"_meta\":"
            });
            self.write_into("{}", out)?;
            out.push(b'}');
            return Ok(());
        };
        let (before, after) = around(text, existing);
        out.extend_from_slice(before.as_bytes());
        self.write_into(if existing == "null" { "{}" } else { existing }, out)?;
        out.extend_from_slice(after.as_bytes());
        Ok(())
    }

    /// Writes an object with these members behind its own, which win.
    fn write_into(&self, object: &str, out: &mut Vec<u8>) -> Result<(), MetaError> {
        let own = RawMembers::read(object).map_err(|_| MetaError::NotAnObject)?;
        let inner = object.trim_end();
        let inner = inner.strip_suffix('}').unwrap_or(inner).trim_end();
        out.extend_from_slice(inner.as_bytes());
        let mut is_first = own.is_empty();
        for (key, value) in &self.members {
            if own.get(key).is_some() {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            write_string(out, key);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
        out.push(b'}');
        Ok(())
    }
}

/// The `_meta` of parameters, as far as that can be said without a parser.
fn find_meta(text: &str) -> LoneMember<'_> {
    if text.starts_with('{') && text.ends_with('}') && !has_meta(text) {
        return LoneMember::Absent;
    }
    scan::lone_member(text, "_meta")
}

/// Whether anything in this text may be called `_meta`.
pub(crate) fn has_meta(text: &str) -> bool {
    static META: RareName = RareName::new("_meta");
    META.may_stand_in(text)
}

/// As much as is usually added.
const ROOM: usize = 256;

/// What stands before and after `part`, which was borrowed from `whole`.
fn around<'a>(whole: &'a str, part: &str) -> (&'a str, &'a str) {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    let end = start + part.len();
    (
        whole.get(..start).unwrap_or_default(),
        whole.get(end..).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests;
