//! `_meta`: adding members to raw parameters without touching anything else in them.
//!
//! Owns the splice. What goes in is up to the caller: the modern era's three members, a progress
//! token. A member the parameters already carry wins over ours.

use serde_json::value::RawValue;

use crate::era::meta_key;
use crate::members::{RawMembers, write_string};

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
pub struct RequestMeta {
    members: Vec<(String, Box<RawValue>)>,
}

impl RequestMeta {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What every modern request must carry.
    pub fn modern(version: &str, client_info: &RawValue, capabilities: &RawValue) -> Self {
        let mut meta = Self::new();
        if let Ok(version) = serde_json::value::to_raw_value(version) {
            meta.set(meta_key::PROTOCOL_VERSION, version);
        }
        meta.set(meta_key::CLIENT_INFO, client_info.to_owned());
        meta.set(meta_key::CLIENT_CAPABILITIES, capabilities.to_owned());
        meta
    }

    /// Sets one member.
    pub fn set(&mut self, key: &str, value: Box<RawValue>) {
        match self
            .members
            .iter_mut()
            .find(|(existing, _)| existing == key)
        {
            Some((_, slot)) => *slot = value,
            None => self.members.push((key.to_owned(), value)),
        }
    }

    /// The same with the request's progress token.
    #[must_use]
    pub fn with_progress_token(mut self, token: u64) -> Self {
        if let Ok(token) = RawValue::from_string(token.to_string()) {
            self.set(meta_key::PROGRESS_TOKEN, token);
        }
        self
    }

    /// Whether there is nothing to add.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The parameters with these members in their `_meta`; every other byte stays as it is.
    pub fn splice(&self, params: Option<&RawValue>) -> Result<Box<RawValue>, MetaError> {
        let text = params.map_or("{}", RawValue::get);
        let own = RawMembers::read(text).map_err(|error| MetaError::Params(error.to_string()))?;
        if self.is_empty() {
            return raw(text.to_owned());
        }
        let Some(existing) = own.value("_meta") else {
            return raw(self.append(text, own.get("_meta"), own.is_empty()));
        };
        let merged = self.merge(existing)?;
        let (before, after) = around(text, existing);
        raw([before, &merged, after].concat())
    }

    /// Puts a fresh `_meta` last, or in the place of a null one.
    fn append(&self, text: &str, null: Option<&RawValue>, is_first: bool) -> String {
        let mut object = String::from("{");
        self.write_members(&mut object, |_| true);
        object.push('}');
        if let Some(null) = null {
            let (before, after) = around(text, null);
            return [before, &object, after].concat();
        }
        let inner = text.trim_end().strip_suffix('}').unwrap_or(text).trim_end();
        let comma = if is_first { "" } else { "," };
        [inner, comma, "\"_meta\":", &object, "}"].concat()
    }

    fn merge(&self, existing: &RawValue) -> Result<String, MetaError> {
        let own = RawMembers::read(existing.get()).map_err(|_| MetaError::NotAnObject)?;
        let mut object = existing.get().trim_end().to_owned();
        object.pop();
        object.truncate(object.trim_end().len());
        let mut added = String::new();
        self.write_members(&mut added, |key| own.get(key).is_none());
        if !added.is_empty() && !own.is_empty() {
            object.push(',');
        }
        object.push_str(&added);
        object.push('}');
        Ok(object)
    }

    fn write_members(&self, out: &mut String, wanted: impl Fn(&str) -> bool) {
        let mut text = Vec::new();
        for (key, value) in self.members.iter().filter(|(key, _)| wanted(key)) {
            if !text.is_empty() {
                text.push(b',');
            }
            write_string(&mut text, key);
            text.push(b':');
            text.extend_from_slice(value.get().as_bytes());
        }
        out.push_str(&String::from_utf8_lossy(&text));
    }
}

/// What stands before and after `part`, which was borrowed from `whole`.
fn around<'a>(whole: &'a str, part: &RawValue) -> (&'a str, &'a str) {
    let start = (part.get().as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    let end = start + part.get().len();
    (
        whole.get(..start).unwrap_or_default(),
        whole.get(end..).unwrap_or_default(),
    )
}

fn raw(text: String) -> Result<Box<RawValue>, MetaError> {
    RawValue::from_string(text).map_err(|error| MetaError::Params(error.to_string()))
}

#[cfg(test)]
mod tests;
