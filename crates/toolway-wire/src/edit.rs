//! Writing a JSON object again with some of its members replaced, every other byte as it was.
//!
//! Owns the one rewriter that definitions, results and notifications share. What is replaced is up
//! to the caller.

use crate::members::write_string;
use crate::raw_json::RawJson;
use crate::scan;

/// What stands in the place of a member.
#[derive(Debug, Clone, Copy)]
pub enum Replacement<'a> {
    /// What stood there.
    Kept,
    /// This text; no member where there is none.
    Text(Option<&'a str>),
    /// This JSON; no member where there is none.
    Json(Option<&'a str>),
}

/// Appends an object, with what `place` says for each of its members.
pub fn rewrite<'a>(json: &str, out: &mut Vec<u8>, mut place: impl FnMut(&str) -> Replacement<'a>) {
    out.push(b'{');
    let start = out.len();
    for (key, value) in scan::members(json) {
        let name = scan::text(key).unwrap_or_default();
        let placed = place(&name);
        if matches!(placed, Replacement::Text(None) | Replacement::Json(None)) {
            continue;
        }
        if out.len() > start {
            out.push(b',');
        }
        out.extend_from_slice(key.as_bytes());
        out.push(b':');
        match placed {
            Replacement::Text(Some(text)) => write_string(out, text),
            Replacement::Json(Some(json)) => out.extend_from_slice(json.as_bytes()),
            _ => out.extend_from_slice(value.as_bytes()),
        }
    }
    out.push(b'}');
}

/// The same object with other members; one that is no object stays as it is.
pub fn rewritten<'a>(json: &RawJson, place: impl FnMut(&str) -> Replacement<'a>) -> RawJson {
    let mut out = Vec::with_capacity(json.len() + 64);
    rewrite(json.get(), &mut out, place);
    RawJson::read(&out.into()).unwrap_or_else(|_| json.clone())
}

/// Adds a text to an object that was just written.
pub fn add_text(out: &mut Vec<u8>, name: &str, text: &str) {
    out.pop();
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    write_string(out, name);
    out.push(b':');
    write_string(out, text);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_kept_replaced_and_left_out() {
        let json = r#" { "a" : 1e2 , "b\u0062": "x", "c": {"a": 1}, "d":[ ] } "#;
        let mut out = Vec::new();
        rewrite(json, &mut out, |name| match name {
            "bb" => Replacement::Text(Some("new \"b\"")),
            "c" => Replacement::Json(None),
            "d" => Replacement::Json(Some("{}")),
            _ => Replacement::Kept,
        });
        add_text(&mut out, "e", "f");
        let out = String::from_utf8(out).expect("text");
        assert_eq!(out, r#"{"a":1e2,"b\u0062":"new \"b\"","d":{},"e":"f"}"#);
        let mut empty = Vec::new();
        rewrite("{}", &mut empty, |_| Replacement::Kept);
        add_text(&mut empty, "a", "b");
        assert_eq!(empty, br#"{"a":"b"}"#);
    }
}
