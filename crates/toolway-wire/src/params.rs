//! Parameters that are passed on: what is judged of them, and what only travels along.
//!
//! Owns splitting the parameters of a request into the members that somebody decides on and all
//! others, and writing the others again, byte for byte. Of `_meta` everything travels but what
//! each sender says for itself: its revision, its name, its capabilities, its progress token, its
//! log level.

use crate::era::meta_key;
use crate::members::write_string;
use crate::raw_json::RawJson;

/// The members of `_meta` that a sender writes for its own hop.
const OF_ONE_HOP: [&str; 6] = [
    meta_key::PROTOCOL_VERSION,
    meta_key::CLIENT_INFO,
    meta_key::CLIENT_CAPABILITIES,
    meta_key::LOG_LEVEL,
    meta_key::SUBSCRIPTION_ID,
    meta_key::PROGRESS_TOKEN,
];

/// The members of parameters that somebody decides on, or that are written anew, whatever is asked.
const DECIDED: [&str; 12] = [
    "_meta",
    "name",
    "arguments",
    "uri",
    "ref",
    "argument",
    "context",
    "cursor",
    "requestState",
    "inputResponses",
    "task",
    "taskId",
];

/// Why parameters cannot be passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// They are no object.
    #[error("the parameters are no object: {0}")]
    NotAnObject(String),
    /// A member stands twice, so that two readers could see different things (SEC-22).
    #[error("the parameters have the member `{0}` twice")]
    Doubled(String),
    /// `_meta` is no object.
    #[error("`_meta` of the parameters is no object")]
    Meta,
    /// A member that is decided on stands there in other letters: a server that reads names without
    /// their case would take it for that one (SEC-21).
    #[error("the parameters have the member `{written}`, which is written `{meant}`")]
    Letters {
        /// As it stands there.
        written: String,
        /// What it can be taken for.
        meant: &'static str,
    },
}

/// The members of a request's parameters that travel along as they are, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CarriedParams(Vec<(Box<str>, RawJson)>);

impl CarriedParams {
    /// Splits parameters into these members, where they are there and not null, and all others.
    pub fn split<const N: usize>(
        params: &RawJson,
        named: [&str; N],
    ) -> Result<([Option<RawJson>; N], Self), ParamsError> {
        if let Some(twice) = params.doubled_member() {
            return Err(ParamsError::Doubled(twice));
        }
        let members = params
            .members()
            .map_err(|error| ParamsError::NotAnObject(error.to_string()))?;
        let mut found = [const { None }; N];
        let mut carried = Vec::new();
        for (name, value) in members {
            if value.bytes() == "null" {
                continue;
            }
            if let Some(place) = named.iter().position(|named| *named == name) {
                found[place] = Some(value);
            } else if name != "_meta" {
                carried.push((name.into(), value));
            } else if let Some(meta) = carried_meta(&value)? {
                carried.push((name.into(), meta));
            }
        }
        Ok((found, Self(carried)))
    }

    /// The same as [`Self::split`], of a request whose members have a meaning: none of them may look
    /// like one that is decided on.
    pub fn split_known<const N: usize>(
        params: &RawJson,
        named: [&str; N],
    ) -> Result<([Option<RawJson>; N], Self), ParamsError> {
        let split = Self::split(params, named)?;
        for (written, _) in &split.1.0 {
            let meant = DECIDED
                .into_iter()
                .find(|meant| is_lookalike(meant, written));
            if let Some(meant) = meant {
                let written = written.to_string();
                return Err(ParamsError::Letters { written, meant });
            }
        }
        Ok(split)
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        let (_, value) = self.0.iter().find(|(key, _)| **key == *name)?;
        Some(value)
    }

    /// Whether nothing travels along.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same without members of these names.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        self.0.retain(|(name, _)| !names.contains(&&**name));
        self
    }

    /// The same with this one, in the place of what had its name.
    #[must_use]
    pub fn with(mut self, name: &str, value: RawJson) -> Self {
        match self.0.iter_mut().find(|(key, _)| **key == *name) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((name.into(), value)),
        }
        self
    }

    /// Appends them to an object that is being written, each with a comma before it.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (name, value) in &self.0 {
            out.push(b',');
            write_string(out, name);
            out.push(b':');
            out.extend_from_slice(value.bytes());
        }
    }
}

/// Whether a reader that does not look at the case of letters, or at what joins words, takes this name
/// for that one. Some such readers fold further than others: `K` (Kelvin) and `ſ` (long s) are letters
/// of ASCII to them. Version 2 of the official Python SDK takes `request_state` for `requestState`, and
/// `meta` for `_meta`.
fn is_lookalike(meant: &str, written: &str) -> bool {
    meant != written && letters(meant).eq(letters(written))
}

/// A name as such a reader sees it.
fn letters(name: &str) -> impl Iterator<Item = Option<char>> {
    let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
    letters.map(|letter| {
        if letter.is_ascii() {
            return Some(letter.to_ascii_lowercase());
        }
        let upper = letter.to_uppercase();
        upper.flat_map(char::to_lowercase).next()
    })
}

/// `_meta` without what is of one hop only; nothing when nothing is left.
fn carried_meta(meta: &RawJson) -> Result<Option<RawJson>, ParamsError> {
    let members = meta.members().map_err(|_| ParamsError::Meta)?;
    // As it is written first: what has the right name needs no closer look, and they begin alike.
    let is_kept = |name: &str| {
        !OF_ONE_HOP.contains(&name) && !OF_ONE_HOP.iter().any(|own| is_lookalike(own, name))
    };
    if members.iter().all(|(name, _)| is_kept(name)) {
        return Ok((!members.is_empty()).then(|| meta.clone()));
    }
    let mut kept = Vec::with_capacity(meta.len());
    for (name, value) in members.iter().filter(|(name, _)| is_kept(name)) {
        kept.push(if kept.is_empty() { b'{' } else { b',' });
        write_string(&mut kept, name);
        kept.push(b':');
        kept.extend_from_slice(value.bytes());
    }
    if kept.is_empty() {
        return Ok(None);
    }
    kept.push(b'}');
    RawJson::read(&kept.into())
        .map(Some)
        .map_err(|_| ParamsError::Meta)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn params(text: &'static str) -> RawJson {
        RawJson::read(&Bytes::from_static(text.as_bytes())).expect("JSON")
    }

    fn written(carried: &CarriedParams) -> String {
        let mut out = Vec::new();
        carried.write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn what_is_not_judged_travels_along_byte_for_byte() {
        let params = params(
            r#"{"name":"t","arguments":{"n": 1e2 },"_meta":{"a b": [ 1 ],"progressToken":7,
            "io.modelcontextprotocol/clientInfo":{"name":"x"},"traceparent":"00-1"},
            "requestState":"s\u0041","x": 123456789012345678901234567890}"#,
        );
        let ([name, arguments], carried) =
            CarriedParams::split(&params, ["name", "arguments"]).expect("an object");
        assert_eq!(name.expect("a name").get(), r#""t""#);
        let arguments = arguments.expect("arguments");
        assert_eq!(arguments.get(), r#"{"n": 1e2 }"#);
        let message = params.bytes().as_ptr_range();
        assert!(message.contains(&arguments.bytes().as_ptr()));
        assert_eq!(
            written(&carried),
            r#","_meta":{"a b":[ 1 ],"traceparent":"00-1"},"requestState":"s\u0041","x":123456789012345678901234567890"#
        );
        assert_eq!(
            written(&carried.without(&["requestState", "_meta"])),
            r#","x":123456789012345678901234567890"#
        );
    }

    #[test]
    fn meta_of_one_hop_alone_is_left_out() {
        let params = params(r#"{"_meta":{"progressToken":"p"},"task":null}"#);
        let ([], carried) = CarriedParams::split(&params, []).expect("an object");
        assert!(carried.is_empty());
    }

    #[test]
    fn sec_22_what_two_readers_may_see_differently_is_not_passed_on() {
        for (text, problem) in [
            (
                r#"{"arguments":{"a":{"b":1,"b":2}}}"#,
                ParamsError::Doubled("b".to_owned()),
            ),
            (
                r#"{"_meta":{"a":1,"\u0061":2}}"#,
                ParamsError::Doubled("a".to_owned()),
            ),
            (r#"{"_meta":[]}"#, ParamsError::Meta),
        ] {
            assert_eq!(
                CarriedParams::split(&params(text), []),
                Err(problem),
                "{text}"
            );
        }
        assert!(CarriedParams::split(&params("[]"), []).is_err());
    }

    #[test]
    fn sec_21_what_looks_like_a_member_that_is_decided_on_is_not_passed_on() {
        for (text, meant) in [
            (r#"{"name":"safe","Name":"danger"}"#, "name"),
            (r#"{"name":"safe","NAME":"danger"}"#, "name"),
            (r#"{"ARGUMENTS":{}}"#, "arguments"),
            (r#"{"argument\u017f":{}}"#, "arguments"),
            (r#"{"tas\u212a":{}}"#, "task"),
            (r#"{"requeststate":"s"}"#, "requestState"),
            (r#"{"URI":"a:b"}"#, "uri"),
            (r#"{"_META":{}}"#, "_meta"),
            (r#"{"meta":{}}"#, "_meta"),
            (r#"{"request_state":"s"}"#, "requestState"),
            (r#"{"Request-State":"s"}"#, "requestState"),
            (r#"{"input_responses":{}}"#, "inputResponses"),
            (r#"{"task_id":"t"}"#, "taskId"),
        ] {
            let found = CarriedParams::split_known(&params(text), ["name"]);
            let is_it =
                matches!(&found, Err(ParamsError::Letters { meant: it, .. }) if *it == meant);
            assert!(is_it, "{text}: {found:?}");
        }
        let other = params(r#"{"name":"t","names":1,"Nam":2,"n\u00e4me":3,"x":4}"#);
        assert!(CarriedParams::split_known(&other, ["name"]).is_ok());
        let of_hop = params(
            r#"{"_meta":{"ProgressToken":1,"progressTo\u212aen":2,"Progress":3,"progress_token":4}}"#,
        );
        let ([], carried) = CarriedParams::split(&of_hop, []).expect("an object");
        assert_eq!(written(&carried), r#","_meta":{"Progress":3}"#);
    }
}
