//! The commonest answer, looked through without reading it: texts and nothing else.
//!
//! Owns no meaning of its own: what it tells of an answer is what the reader of all answers would
//! have read, and it tells nothing of one that is not exactly that, a doubled key and a text that
//! may not be readable included. Most answers are only passed on, so nothing is kept of them.
//!
//! It is given JSON that was found to be valid; of other text it may say anything.

use memchr::memchr2;

/// Whether an answer that consists of texts is an error; nothing of any other answer. Each text is
/// shown as it stands there, quotes included.
pub(super) fn skim<'a>(json: &'a str, mut text: impl FnMut(&'a str)) -> Option<bool> {
    let mut scan = ContentScan {
        json,
        rest: json.as_bytes(),
    };
    let (mut has_content, mut has_type, mut is_error) = (false, false, None);
    scan.list(b'{', b'}', |scan| {
        if !has_content && scan.take(br#""content""#) {
            has_content = true;
            scan.take(b":").then_some(())?;
            scan.list(b'[', b']', |scan| scan.block().map(&mut text))
        } else if is_error.is_none() && scan.take(br#""isError""#) {
            scan.take(b":").then_some(())?;
            is_error = Some(scan.take(b"true"));
            (is_error == Some(true) || scan.take(b"false")).then_some(())
        } else if !has_type && scan.take(br#""resultType""#) {
            has_type = true;
            (scan.take(b":") && scan.take(br#""complete""#)).then_some(())
        } else {
            None
        }
    })?;
    Some(is_error.unwrap_or_default())
}

/// What is still to be looked at. Whatever gives nothing found something that it does not know.
struct ContentScan<'a> {
    json: &'a str,
    rest: &'a [u8],
}

impl<'a> ContentScan<'a> {
    /// The text of a block of text.
    fn block(&mut self) -> Option<&'a str> {
        let (mut has_type, mut text) = (false, None);
        self.list(b'{', b'}', |scan| {
            if !has_type && scan.take(br#""type""#) {
                has_type = true;
                (scan.take(b":") && scan.take(br#""text""#)).then_some(())
            } else if text.is_none() && scan.take(br#""text""#) {
                scan.take(b":").then_some(())?;
                text = Some(scan.string()?);
                Some(())
            } else {
                None
            }
        })?;
        text.filter(|_| has_type)
    }

    /// An object or an array, of which each part has to find its own end.
    #[inline]
    fn list(
        &mut self,
        open: u8,
        close: u8,
        mut each: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.take(&[open]).then_some(())?;
        if self.take(&[close]) {
            return Some(());
        }
        loop {
            each(self)?;
            if !self.take(b",") {
                return self.take(&[close]).then_some(());
            }
        }
    }

    /// A text, every escape of which stands for something.
    fn string(&mut self) -> Option<&'a str> {
        self.take(b"\"").then_some(())?;
        let start = self.json.len() - self.rest.len() - 1;
        loop {
            let end = memchr2(b'"', b'\\', self.rest)?;
            let (found, rest) = self.rest.get(end..)?.split_first()?;
            if *found == b'"' {
                self.rest = rest;
                return self.json.get(start..self.json.len() - rest.len());
            }
            // Half of a character, unless the other half follows: for the reader to find out.
            if let [
                b'u',
                b'd' | b'D',
                b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F',
                ..,
            ] = rest
            {
                return None;
            }
            self.rest = rest.get(1..)?;
        }
    }

    /// Goes past a word, and the room before it, if it is this one.
    #[inline]
    fn take(&mut self, word: &[u8]) -> bool {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
        let rest = self.rest.strip_prefix(word);
        if let Some(rest) = rest {
            self.rest = rest;
        }
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::super::{ResultType, in_full, tool_result};
    use super::*;
    use crate::view::ContentBlock;

    /// Skims, and holds what it says against what is read.
    fn skimmed(json: &str) -> Option<bool> {
        let skimmed = skim(json, |_| ());
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        let read = in_full(&raw);
        assert_eq!(
            format!("{:?}", tool_result(&raw)),
            format!("{read:?}"),
            "{json}"
        );
        if let Some(is_error) = skimmed {
            let read = read.unwrap();
            assert_eq!(is_error, read.is_error, "{json}");
            assert_eq!(read.result_type, ResultType::Complete, "{json}");
            assert!(read.structured.is_none() && read.meta.is_none(), "{json}");
            let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text { .. });
            assert!(read.content.iter().all(is_text), "{json}");
        }
        skimmed
    }

    #[test]
    fn answers_of_texts_are_known() {
        let long = format!(
            r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#,
            r#"x\\\"é\n\u00e9\/"#.repeat(4096)
        );
        for (json, is_error) in [
            (r#"{"content":[{"type":"text","text":"done"}]}"#, false),
            (
                r#" { "isError" : true , "content" : [ { "text" : "a\n" , "type" : "text" } ] } "#,
                true,
            ),
            (r#"{"isError":false,"content":[]}"#, false),
            (
                r#"{"content":[{"type":"text","text":"a"}],"resultType":"complete"}"#,
                false,
            ),
            (
                r#"{"resultType" : "complete","isError":true,"content":[]}"#,
                true,
            ),
            ("{}", false),
            ("\n{\t\r\n}", false),
            (
                r#"{"content":[{"type":"text","text":""},{"type":"text","text":"b"}],"isError":true}"#,
                true,
            ),
            (
                r#"{"content":[{"type":"text","text":"\\u\\ud800\uD7FF\ue000"}]}"#,
                false,
            ),
            (&long, false),
        ] {
            assert_eq!(skimmed(json), Some(is_error), "{json}");
        }
    }

    #[test]
    fn nothing_is_said_of_anything_else() {
        for json in [
            r#"{"content":[{"type":"text","text":"a"}],"content":[]}"#,
            r#"{"isError":true,"isError":false}"#,
            r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#,
            r#"{"content":[{"type":"text","type":"text","text":"b"}]}"#,
            r#"{"content":[["text","a"]]}"#,
            r#"[[{"type":"text","text":"a"}],true]"#,
            r#"{"content":{"type":"text","text":"a"}}"#,
            r#"{"content":[{"type":"text","text":7}]}"#,
            r#"{"content":[{"type":"text"}]}"#,
            r#"{"content":[{"text":"a"}]}"#,
            r#"{"content":[{}]}"#,
            r#"{"content":[{"type":"image","text":"a"}]}"#,
            r#"{"content":[{"type":"t\u0065xt","text":"a"}]}"#,
            r#"{"cont\u0065nt":[]}"#,
            r#"{"content":[{"type":"text","text":"a","annotations":{}}]}"#,
            r#"{"content":null}"#,
            r#"{"content":[],"isError":"true"}"#,
            r#"{"content":[],"isError":null}"#,
            r#"{"content":[],"isError":0}"#,
            r#"{"content":[],"resultType":"task"}"#,
            r#"{"content":[],"resultType":"complete","resultType":"complete"}"#,
            r#"{"content":[],"resultType":"comp\u006cete"}"#,
            r#"{"content":[],"structuredContent":{"a":1}}"#,
            r#"{"content":[],"_meta":{}}"#,
            r#"{"content":[],"Content":[]}"#,
            r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
            r#"{"content":[{"type":"text","text":"\uDFFF"}]}"#,
            r#"{"content":[{"type":"text","text":"\ud83d\ude00"}]}"#,
            "7",
            "null",
            "\"text\"",
        ] {
            assert_eq!(skimmed(json), None, "{json}");
        }
    }

    #[test]
    fn text_that_is_no_json_is_survived() {
        let whole = r#"{"content":[{"type":"text","text":"a\u00e9\\"}],"isError":true}"#;
        for end in 0..whole.len() {
            if let Some(part) = whole.get(..end) {
                let _ = skim(part, |_| ());
            }
        }
        for broken in [
            "",
            "{\"",
            "{\"\\",
            "{\"\\u",
            "{\"\\ud",
            "{\"isError\":t",
            "{,",
        ] {
            assert_eq!(skim(broken, |_| ()), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn what_is_said_is_what_would_have_been_read(
            parts in prop::collection::vec(prop::sample::select(&[
                "{", "}", "[", "]", ":", ",", "\"content\"", "\"type\"", "\"text\"", " ",
                "\"isError\"", "true", "false", "null", "\"a\\n\"", "\"\\ud83d\\ude00\"",
                "{\"type\":\"text\",\"text\":\"x\"}", "\"content\":[", "],", "\"isError\":true",
                "{\"content\":[{\"type\":\"text\",\"text\":\"x\"}", "]}", "\"\\\\\"",
                "\"resultType\"", "\"complete\"", ",\"resultType\":\"complete\"",
            ][..]), 0..12)
        ) {
            let json = parts.concat();
            if serde_json::from_str::<&RawValue>(&json).is_ok() {
                skimmed(&json);
            }
        }
    }
}
