//! The commonest answer, read in one go: a few short texts and nothing else.
//!
//! Owns no meaning of its own: whatever is not exactly that, a doubled key and a member of another
//! type included, is left to the reader of all answers, and what is read here is what that one
//! would have read. It skims an answer once for each level that it goes down.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::ContentBlock;

/// Longer answers are not worth it: most of the time goes to their text.
const MOST: usize = 4096;

/// The texts of an answer, and whether it is an error.
pub(super) struct PlainResult {
    pub(super) content: Vec<ContentBlock>,
    pub(super) is_error: bool,
}

/// Reads an answer that is short and plain.
pub(super) fn read(json: &str) -> Option<PlainResult> {
    if json.len() > MOST {
        return None;
    }
    serde_json::from_str(json).ok()
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum PlainMember {
    Content,
    IsError,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum BlockMember {
    Type,
    Text,
}

impl<'de> Deserialize<'de> for PlainResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PlainVisitor;
        impl<'de> Visitor<'de> for PlainVisitor {
            type Value = PlainResult;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an answer of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<PlainResult, A::Error> {
                let (mut content, mut is_error) = (None, None);
                while let Some(member) = members.next_key()? {
                    let twice = match member {
                        PlainMember::Content => content.replace(members.next_value()?).is_some(),
                        PlainMember::IsError => is_error.replace(members.next_value()?).is_some(),
                    };
                    if twice {
                        return Err(de::Error::custom("a member stands twice"));
                    }
                }
                let TextBlocks(content) = content.unwrap_or_default();
                Ok(PlainResult {
                    content,
                    is_error: is_error.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_map(PlainVisitor)
    }
}

/// A list of blocks of text.
#[derive(Default)]
struct TextBlocks(Vec<ContentBlock>);

impl<'de> Deserialize<'de> for TextBlocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextBlocksVisitor;
        impl<'de> Visitor<'de> for TextBlocksVisitor {
            type Value = TextBlocks;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("blocks of text")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<TextBlocks, A::Error> {
                let mut texts = Vec::new();
                while let Some(TextBlock { text }) = blocks.next_element()? {
                    // Most answers have one, and a vector begins with room for four.
                    if texts.is_empty() {
                        texts.reserve_exact(1);
                    }
                    texts.push(ContentBlock::Text { text });
                }
                Ok(TextBlocks(texts))
            }
        }
        deserializer.deserialize_seq(TextBlocksVisitor)
    }
}

/// A block of text.
struct TextBlock {
    text: String,
}

impl<'de> Deserialize<'de> for TextBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextBlockVisitor;
        impl<'de> Visitor<'de> for TextBlockVisitor {
            type Value = TextBlock;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a block of text")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<TextBlock, A::Error> {
                let (mut kind, mut text) = (None, None);
                while let Some(part) = parts.next_key()? {
                    let twice = match part {
                        BlockMember::Type => {
                            kind.replace(parts.next_value::<&'de str>()?).is_some()
                        }
                        BlockMember::Text => text.replace(parts.next_value()?).is_some(),
                    };
                    if twice || kind.is_some_and(|kind| kind != "text") {
                        return Err(de::Error::custom("no plain block"));
                    }
                }
                match (kind, text) {
                    (Some(_), Some(text)) => Ok(TextBlock { text }),
                    _ => Err(de::Error::custom("no plain block")),
                }
            }
        }
        deserializer.deserialize_map(TextBlockVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::super::{in_full, tool_result};
    use super::*;

    fn both(json: &str) -> (Option<PlainResult>, String) {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        let full = format!("{:?}", in_full(&raw));
        assert_eq!(format!("{:?}", tool_result(&raw)), full, "{json}");
        (read(json), full)
    }

    #[test]
    fn plain_texts_are_read_at_once() {
        for json in [
            r#"{"content":[{"type":"text","text":"done"}]}"#,
            r#"{ "isError" : true , "content" : [ { "text" : "a\n\u00e9" , "type" : "text" } ] }"#,
            r#"{"content":[]}"#,
            "{}",
            r#"{"cont\u0065nt":[{"type":"text","text":""},{"type":"text","text":"b"}]}"#,
        ] {
            assert!(both(json).0.is_some(), "{json}");
        }
    }

    #[test]
    fn everything_else_is_left_to_the_reader_of_all_answers() {
        let long = format!(
            r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#,
            "x".repeat(MOST)
        );
        for json in [
            &long,
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"content":[]}"#,
            r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#,
            r#"{"content":[["text","a"]]}"#,
            r#"[[{"type":"text","text":"a"}],true]"#,
            r#"{"content":{"type":"text","text":"a"}}"#,
            r#"{"content":[{"type":"text","text":7}]}"#,
            r#"{"content":[{"type":"text"}]}"#,
            r#"{"content":[{"type":"image","text":"a"}]}"#,
            r#"{"content":[{"type":"text","text":"a","annotations":{}}]}"#,
            r#"{"content":null}"#,
            r#"{"content":[],"isError":"true"}"#,
            r#"{"content":[],"isError":null}"#,
            r#"{"content":[],"resultType":"task"}"#,
            r#"{"content":[],"structuredContent":{"a":1}}"#,
            r#"{"content":[],"Content":[]}"#,
            r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
            "7",
        ] {
            assert!(both(json).0.is_none(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_at_once_is_what_would_have_been_read(
            parts in prop::collection::vec(prop::sample::select(&[
                "{", "}", "[", "]", ":", ",", "\"content\"", "\"type\"", "\"text\"",
                "\"isError\"", "true", "false", "null", "\"a\\n\"", "{\"type\":\"text\",\"text\":\"x\"}",
                "\"content\":[", "],", "{\"content\":[{\"type\":\"text\",\"text\":\"x\"}", "]}",
            ][..]), 0..12)
        ) {
            let json = parts.concat();
            if serde_json::from_str::<&RawValue>(&json).is_ok() {
                both(&json);
            }
        }
    }
}
