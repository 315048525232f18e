//! `*` in a pattern: any run of characters, also none. Every other character is itself.
//!
//! Owns that one rule. `?` is no wildcard, because it stands in URLs.

/// Whether a text matches a pattern, in time linear in their product at worst.
pub fn matches(pattern: &str, text: &str) -> bool {
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

/// A character in a text for something that is not known yet. No pattern has it, so that only a
/// star matches it.
pub const UNKNOWN: char = '\u{1}';

/// Whether a text could match a pattern, whatever stands for each [`UNKNOWN`] in it.
pub fn could_match(pattern: &str, text: &str) -> bool {
    let unknown = u8::try_from(UNKNOWN).unwrap_or_default();
    let pattern = pattern.as_bytes();
    // After as much of the text as was read: whether as much of the pattern can be used up.
    let mut used = vec![false; pattern.len() + 1];
    used[0] = true;
    let stars = |used: &mut Vec<bool>| {
        for at in 0..pattern.len() {
            used[at + 1] |= used[at] && pattern[at] == b'*';
        }
    };
    stars(&mut used);
    for byte in text.bytes() {
        let mut next = vec![false; pattern.len() + 1];
        let mut before = false;
        for at in 0..=pattern.len() {
            before |= used[at];
            next[at] = if byte == unknown {
                before
            } else {
                let is_star = used[at] && pattern.get(at) == Some(&b'*');
                is_star || (at > 0 && used[at - 1] && pattern[at - 1] == byte)
            };
        }
        stars(&mut next);
        used = next;
    }
    used[pattern.len()]
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

    #[test]
    fn what_is_unknown_could_be_anything() {
        for (pattern, text) in [
            ("/admin/*", "/\u{1}/mcp"),
            ("/admin", "/\u{1}"),
            ("/a/b", "/\u{1}"),
            ("/*/mcp", "/\u{1}/mcp"),
            ("/x\u{1f}", "/\u{1}\u{1}"),
        ] {
            assert!(could_match(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("/admin/*", "/b/\u{1}"), ("/a", "/\u{1}/mcp"), ("", "a")] {
            assert!(!could_match(pattern, text), "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn where_all_is_known_both_agree(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            prop_assert_eq!(could_match(&pattern, &text), matches(&pattern, &text));
        }

        #[test]
        fn whatever_the_value_is_a_match_was_foreseen(
            pattern in "[ab*]{0,8}", before in "[ab]{0,4}", value in "[ab]{0,4}", after in "[ab]{0,4}"
        ) {
            let open = format!("{before}{UNKNOWN}{after}");
            let text = format!("{before}{value}{after}");
            if matches(&pattern, &text) {
                prop_assert!(could_match(&pattern, &open));
            }
            if matches(&pattern, &open) {
                prop_assert!(matches(&pattern, &text));
            }
        }

        #[test]
        fn it_agrees_with_trying_everything(pattern in "[ab*]{0,8}", text in "[ab*]{0,10}") {
            prop_assert_eq!(
                matches(&pattern, &text),
                naive(pattern.as_bytes(), text.as_bytes())
            );
        }
    }
}
