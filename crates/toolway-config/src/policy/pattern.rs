//! `*` in a pattern: any run of characters, also none. Every other character is itself.
//!
//! Owns that one rule. `?` is no wildcard, because it stands in URLs.

/// Whether a text matches a pattern, in time linear in their product at worst.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at_pattern, mut at_text) = (0, 0);
    // Where to go on when a guess was wrong: after the last star, one character further.
    let mut retry: Option<(usize, usize)> = None;
    while at_text < text.len() {
        // The star comes first: in the pattern it is never a character of its own.
        if pattern.get(at_pattern) == Some(&b'*') {
            retry = Some((at_pattern + 1, at_text));
            at_pattern += 1;
        } else if pattern.get(at_pattern) == Some(&text[at_text]) {
            at_pattern += 1;
            at_text += 1;
        } else if let Some((after_star, from)) = retry {
            retry = Some((after_star, from + 1));
            at_pattern = after_star;
            at_text = from + 1;
        } else {
            return false;
        }
    }
    pattern[at_pattern..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
            Some((byte, rest)) => text.first() == Some(byte) && naive(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_trying_everything(pattern in "[ab*]{0,8}", text in "[ab*]{0,10}") {
            prop_assert_eq!(
                matches(&pattern, &text),
                naive(pattern.as_bytes(), text.as_bytes())
            );
        }
    }
}
