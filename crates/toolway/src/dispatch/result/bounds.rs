//! How much of a result a model gets.
//!
//! Owns the numbers, how they are written, and what a tool may say about them.

use serde::Deserialize;
use serde_json::value::RawValue;
use toolway_config::ResultText;
use toolway_types::limits;

/// The most characters that pass as they are.
pub const MAX_CHARS: usize = limits::result::CHARACTERS;
/// The most that a tool may raise that to.
pub const MAX_RAISED_CHARS: usize = limits::result::RAISED_CHARACTERS;

/// The limits of one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultBounds {
    /// The most characters of text.
    pub(crate) chars: usize,
    /// The most tokens, of text and pictures together.
    pub(crate) tokens: usize,
    /// Whether the tool raised the limit for text, to which then only characters count.
    pub(crate) raised: bool,
    /// What becomes of hidden characters.
    pub(crate) text: ResultText,
}

impl ResultBounds {
    /// No limits: what an editor answers is for this program.
    pub(crate) const NONE: ResultBounds = ResultBounds {
        chars: usize::MAX,
        tokens: usize::MAX,
        raised: false,
        text: ResultText::Keep,
    };

    /// The limits for a tool with this `_meta`.
    pub(crate) fn of(meta: Option<&RawValue>, max_tokens: usize) -> Self {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow, rename = "anthropic/maxResultSizeChars")]
            chars: Option<&'a RawValue>,
        }
        let asked = meta
            .and_then(|meta| serde_json::from_str::<Wire<'_>>(meta.get()).ok())
            .and_then(|wire| serde_json::from_str::<u64>(wire.chars?.get()).ok())
            .map(|chars| usize::try_from(chars).unwrap_or(usize::MAX))
            .filter(|chars| *chars > MAX_CHARS);
        Self {
            chars: asked.map_or(MAX_CHARS, |chars| chars.min(MAX_RAISED_CHARS)),
            tokens: max_tokens,
            raised: asked.is_some(),
            text: ResultText::default(),
        }
    }

    /// Whether there are any.
    pub(crate) fn hold(&self) -> bool {
        *self != Self::NONE
    }

    /// Whether so much passes as it is.
    pub(crate) fn admit(&self, size: TextSize) -> bool {
        let by_chars_only = self.raised && size.pictures == 0;
        size.chars <= self.chars && (by_chars_only || size.tokens <= self.tokens)
    }
}

/// How large something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TextSize {
    /// Characters of text.
    pub(crate) chars: usize,
    /// Tokens of text and pictures.
    pub(crate) tokens: usize,
    /// How many pictures.
    pub(crate) pictures: usize,
}

impl std::ops::Add for TextSize {
    type Output = TextSize;

    fn add(self, other: TextSize) -> TextSize {
        TextSize {
            chars: self.chars.saturating_add(other.chars),
            tokens: self.tokens.saturating_add(other.tokens),
            pictures: self.pictures.saturating_add(other.pictures),
        }
    }
}

/// A number as people read it: `1,234,567`.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn a_tool_raises_its_limit_up_to_the_ceiling_and_never_lowers_it() {
        for (meta, chars, raised) in [
            (json!({}), 100_000, false),
            (
                json!({"anthropic/maxResultSizeChars": 100_000}),
                100_000,
                false,
            ),
            (
                json!({"anthropic/maxResultSizeChars": 100_001}),
                100_001,
                true,
            ),
            (
                json!({"anthropic/maxResultSizeChars": 500_000}),
                500_000,
                true,
            ),
            (
                json!({"anthropic/maxResultSizeChars": 500_001}),
                500_000,
                true,
            ),
            (
                json!({"anthropic/maxResultSizeChars": u64::MAX}),
                500_000,
                true,
            ),
            (json!({"anthropic/maxResultSizeChars": 10}), 100_000, false),
            (json!({"anthropic/maxResultSizeChars": -1}), 100_000, false),
            (
                json!({"anthropic/maxResultSizeChars": "200000"}),
                100_000,
                false,
            ),
            (json!([1]), 100_000, false),
        ] {
            let raw = to_raw_value(&meta).unwrap();
            let bounds = ResultBounds::of(Some(&raw), 25_000);
            assert_eq!((bounds.chars, bounds.raised), (chars, raised), "{meta}");
        }
    }
}
