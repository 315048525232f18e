//! A message on its way into the journal.
//!
//! Owns what is kept of one: its beginning, a little of its end (where some peers put the id),
//! and its size. Taking that is all a caller pays for; it is read on the journal's thread.

use std::fmt::Write as _;

use serde_json::value::RawValue;
use toolway_wire::scan;

use super::redact::Redactor;

/// Enough for `"jsonrpc":"2.0","id":…}` at the end of a message.
const KEPT_OF_THE_END: usize = 128;

/// Each byte of a secret may be spelled `\u00XX`.
const LONGEST_ESCAPE: usize = 6;

/// The longest id or method that is shown.
const SHOWN: usize = 100;

/// What is kept of a message.
pub(super) struct MessagePiece {
    beginning: Box<[u8]>,
    end: Box<[u8]>,
    size: usize,
}

impl MessagePiece {
    /// Takes as much as is needed to find every secret in what will be shown.
    pub(super) fn of(message: &[u8], longest_secret: usize) -> Self {
        let kept = super::SHOWN_OF_A_MESSAGE + LONGEST_ESCAPE * longest_secret;
        let cut = message.len() > kept;
        let end = if cut {
            &message[message.len() - KEPT_OF_THE_END.min(message.len() - kept)..]
        } else {
            &[]
        };
        Self {
            beginning: message[..message.len().min(kept)].into(),
            end: end.into(),
            size: message.len(),
        }
    }

    /// The bytes it holds.
    pub(super) fn weight(&self) -> usize {
        self.beginning.len() + self.end.len()
    }

    /// `<method or outcome> [#<id>] <size> bytes <JSON>`.
    pub(super) fn shown(&self, redactor: &Redactor, most: usize) -> String {
        let text = String::from_utf8_lossy(&self.beginning);
        let cut = self.beginning.len() < self.size;
        let mut shown = String::new();
        let (what, id) = self.heading(&text);
        shown.push_str(&what);
        if let Some(id) = id {
            // Writing into a string cannot fail.
            let _ = write!(shown, " #{id}");
        }
        let _ = write!(shown, " {} bytes ", self.size);
        let body = redactor.json(&text, cut);
        let body = toolway_types::text::clean_line(&body);
        let room = body.floor_char_boundary(most);
        shown.push_str(&body[..room]);
        if cut || room < body.len() {
            shown.push('…');
        }
        redactor.values(&shown)
    }

    /// What the message is, and its id.
    fn heading(&self, text: &str) -> (String, Option<String>) {
        let trimmed = text.trim_start();
        if trimmed.starts_with('[') {
            return ("batch".to_owned(), None);
        }
        if !trimmed.starts_with('{') {
            return ("no message".to_owned(), None);
        }
        let members = MessageMembers::read(trimmed);
        let id = members.id.or_else(|| id_at_the_end(&self.end));
        let what = match (members.method, members.is_error) {
            (Some(method), _) => method,
            (None, true) => "error".to_owned(),
            (None, false) => "result".to_owned(),
        };
        (what, id)
    }
}

/// The outermost members of a message, as far as its beginning goes.
#[derive(Default)]
struct MessageMembers {
    method: Option<String>,
    id: Option<String>,
    is_error: bool,
}

impl MessageMembers {
    /// Not with a parser, which would refuse a beginning without its end.
    fn read(text: &str) -> Self {
        let mut members = Self::default();
        for (key, value) in scan::members(text) {
            members.take(key, value);
        }
        members
    }

    fn take(&mut self, key: &str, value: &str) {
        match key {
            "\"method\"" => self.method = word(value),
            "\"id\"" => self.id = word(value),
            "\"error\"" => self.is_error = !value.starts_with("null"),
            _ => {}
        }
    }
}

/// The string, number or word at the beginning of this text.
fn word(text: &str) -> Option<String> {
    let end = match text.as_bytes().first()? {
        b'"' => scan::string_end(text.as_bytes(), 0),
        _ => text
            .find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)))
            .unwrap_or(text.len()),
    };
    let raw = &text[..end];
    let decoded = serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned());
    let shown = toolway_types::text::clean_line(&decoded).replace(' ', "_");
    (!shown.is_empty()).then(|| toolway_types::text::cut(&shown, SHOWN).into_owned())
}

/// The id of a message whose last members are small.
fn id_at_the_end(end: &[u8]) -> Option<String> {
    let end = String::from_utf8_lossy(end);
    let members = end.rsplit_once(['}', ']']).map_or("", |(before, _)| before);
    // Whatever precedes the last nested value is not of the outermost object.
    let members = members.rsplit(['}', ']']).next()?;
    let json = format!("{{{}}}", members.trim_start_matches([',', ' ', '\n']));
    let members: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_str(&json).ok()?;
    word(members.get("id")?.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(message: &str) -> String {
        MessagePiece::of(message.as_bytes(), 0).shown(&Redactor::new(&[]), 2048)
    }

    #[test]
    fn a_message_is_named_by_method_id_and_size() {
        for (message, line) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#,
                r#"tools/call #7 58 bytes {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#,
            ),
            (
                r#"{"result":{"id":1},"id":"a b"}"#,
                r#"result #a_b 30 bytes {"result":{"id":1},"id":"a b"}"#,
            ),
            (
                r#"{"error":{"code":1},"id":2}"#,
                r#"error #2 27 bytes {"error":{"code":1},"id":2}"#,
            ),
            (
                r#"{"error":null,"result":{},"id":2}"#,
                r#"result #2 33 bytes {"error":null,"result":{},"id":2}"#,
            ),
            ("[{}]", "batch 4 bytes [{}]"),
            ("hello", "no message 5 bytes hello"),
            ("", "no message 0 bytes "),
        ] {
            assert_eq!(shown(message), line);
        }
    }

    #[test]
    fn a_large_message_is_cut_and_its_id_still_found() {
        let filler = "x".repeat(100_000);
        for message in [
            format!(r#"{{"id":9,"result":{{"text":"{filler}"}}}}"#),
            format!(r#"{{"result":{{"text":"{filler}"}},"jsonrpc":"2.0","id":9}}"#),
            format!("{{\"result\":{{\"text\":\"{filler}\"}},\n \"id\": 9}}\n"),
        ] {
            let line = shown(&message);
            assert!(
                line.starts_with(&format!("result #9 {} bytes {{", message.len())),
                "{}",
                &line[..40]
            );
            assert!(line.len() < 2200 && line.ends_with('…'), "{}", line.len());
        }
        let no_id = format!(r#"{{"result":{{"text":"{filler}\"id\":9"}}}}"#);
        assert!(
            shown(&no_id).starts_with("result 1000"),
            "{}",
            &shown(&no_id)[..40]
        );
    }
}
