//! How many steps the patterns of a schema take for each byte of a text.
//!
//! Owns the estimate. The engine takes linear time, but the factor is the size of the pattern once
//! its repetitions are written out, and a pattern of a dozen characters can be worth a million.

use std::str::Chars;

use serde_json::{Map, Value};

/// What a `format` costs: a pattern of the library's own.
const FORMAT: u64 = 64;
/// What a class such as `\w` or `[^a]` costs.
const CLASS: u64 = 4;
/// What a class of Unicode such as `\p{L}` costs: hundreds of ranges, several bytes long.
const PROPERTY: u64 = 32;
/// The longest text between `{` and `}` that is read as a count.
const MAX_COUNT_TEXT: usize = 64;

/// The steps that one schema, without its parts, takes for each byte.
pub(super) fn steps(schema: &Map<String, Value>) -> u64 {
    let own = schema.get("pattern").and_then(Value::as_str).map(size);
    let of_names = schema
        .get("patternProperties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
        .map(|pattern| size(pattern));
    let lengths = ["minLength", "maxLength"];
    let others = lengths
        .iter()
        .filter(|key| schema.contains_key(**key))
        .map(|_| 1)
        .chain(schema.contains_key("format").then_some(FORMAT));
    own.into_iter()
        .chain(of_names)
        .chain(others)
        .fold(0, u64::saturating_add)
}

/// How large a pattern is with its repetitions written out. Not a parser: what it does not
/// understand counts as it stands, and the engine refuses what is no pattern.
fn size(pattern: &str) -> u64 {
    // For each group that is open: what came before its last piece, and that piece.
    let mut groups: Vec<(u64, u64)> = vec![(0, 0)];
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let piece = match character {
            '(' => {
                groups.push((0, 0));
                continue;
            }
            ')' if groups.len() > 1 => {
                let (before, last) = groups.pop().unwrap_or_default();
                before.saturating_add(last)
            }
            // These belong to the piece before them, which a count behind them repeats as well.
            '*' | '+' | '?' => {
                if let Some((_, last)) = groups.last_mut() {
                    *last = last.saturating_add(1);
                }
                continue;
            }
            '{' => match count(&characters) {
                Some((most, length)) => {
                    skip(&mut characters, length);
                    if let Some((_, last)) = groups.last_mut() {
                        *last = last.saturating_mul(most);
                    }
                    continue;
                }
                None => 1,
            },
            '[' => class(&mut characters),
            '\\' => escape(&mut characters),
            '.' => CLASS,
            _ => 1,
        };
        if let Some((before, last)) = groups.last_mut() {
            *before = before.saturating_add(*last);
            *last = piece;
        }
    }
    groups.into_iter().fold(1, |sum, (before, last)| {
        sum.saturating_add(before).saturating_add(last)
    })
}

/// The pattern with every repetition written once: what is left when its size is not the matter.
pub(in crate::json_schema) fn without_counts(pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let from = characters.as_str();
        match character {
            '{' => {
                if let Some((_, length)) = count(&characters) {
                    skip(&mut characters, length);
                    continue;
                }
            }
            '[' => drop(class(&mut characters)),
            '\\' => drop(escape(&mut characters)),
            _ => {}
        }
        plain.push(character);
        plain.push_str(&from[..from.len() - characters.as_str().len()]);
    }
    plain
}

/// The rest of a class, behind its `[`.
fn class(characters: &mut Chars<'_>) -> u64 {
    let mut cost = CLASS;
    if characters.as_str().starts_with('^') {
        characters.next();
    }
    // In the first place it does not end the class.
    if characters.as_str().starts_with(']') {
        characters.next();
    }
    while let Some(inner) = characters.next() {
        cost = cost.saturating_add(match inner {
            ']' => break,
            '\\' => match escape(characters) {
                PROPERTY => PROPERTY,
                _ => 1,
            },
            _ => 1,
        });
    }
    cost
}

/// The rest of an escape, behind its `\`, with the braces that belong to it.
fn escape(characters: &mut Chars<'_>) -> u64 {
    let Some(escaped) = characters.next() else {
        return 1;
    };
    let end = match (escaped, characters.as_str().chars().next()) {
        ('p' | 'P' | 'x' | 'u' | 'U' | 'k', Some('{')) => Some('}'),
        ('k', Some('<')) => Some('>'),
        // `\pL`
        ('p' | 'P', Some(_)) => {
            characters.next();
            None
        }
        _ => None,
    };
    if let Some(end) = end {
        // What never ends is no pattern.
        characters.by_ref().find(|c| *c == end);
    }
    match escaped {
        'p' | 'P' => PROPERTY,
        _ => CLASS,
    }
}

/// The largest number of `n}`, `n,}`, `,m}` or `n,m}`, and how many characters that is; `None`
/// when the `{` before it is one that stands for itself.
fn count(behind: &Chars<'_>) -> Option<(u64, usize)> {
    let text = behind.as_str();
    let first = text.trim_start().chars().next()?;
    // The engine takes white space and, when asked to, comments between the digits.
    if !first.is_ascii_digit() && !matches!(first, ',' | '#') {
        return None;
    }
    let length = text.chars().take(MAX_COUNT_TEXT).position(|c| c == '}');
    let Some(length) = length else {
        return Some((u64::MAX, 0));
    };
    let counts: String = text.chars().take(length).collect();
    let most = counts
        .split(',')
        .map(str::trim)
        .filter(|count| !count.is_empty())
        .map(|count| count.parse().unwrap_or(u64::MAX))
        .max()
        .unwrap_or(1)
        .max(1);
    Some((most, length + 1))
}

fn skip(characters: &mut Chars<'_>, length: usize) {
    characters.by_ref().take(length).for_each(drop);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_and_sequences_add() {
        assert_eq!(size("^abc$"), 6);
        assert_eq!(size("a{10}b{20,}c{2,5}"), 36);
        assert_eq!(size("((ab){10}c){100}"), 2_101);
        assert_eq!(size(r"\d{4}-\d{2}"), 26);
        assert_eq!(size("[a-f\\]]{8}"), 65);
        // A count repeats what is repeated already.
        assert_eq!(size("(abc)+{10}"), 41);
        assert_eq!(size("a{10}?{10}"), 111);
        assert_eq!(size("(((a{1000}){1000}){1000}){99999999999}"), u64::MAX);
        // No pattern at all.
        assert_eq!(size(")(("), 2);
    }

    #[test]
    fn braces_that_belong_to_an_escape_or_to_nothing_are_no_counts() {
        for (pattern, expected) in [
            (r"\p{L}", 33),
            (r"\P{Script=Greek}", 33),
            (r"\pL{2}", 65),
            (r"^[\p{L}\p{N}_-]{1,64}$", 1 + 1 + 64 * 70 + 1),
            (r"[^\p{L}]", 37),
            (r"[]\p{L}]{2}", 73),
            (r"\x{1F600}{3}", 13),
            (r"\u{41}", 5),
            (r"(?<n>a)\k<n>", 10),
            (r"[\x{41}-\x{5A}]{2}", 15),
            // These stand for themselves; the engine decides.
            ("a{b}", 5),
            ("{}", 3),
            // White space in a count does not hide it.
            ("a{ 10 , 20 }", 21),
            ("a{1 0}", u64::MAX),
        ] {
            assert_eq!(size(pattern), expected, "{pattern}");
        }
        // However many braces there are, it is read once.
        assert_eq!(size(&"{1".repeat(30_000)), u64::MAX);
        assert_eq!(size(&"{a".repeat(30_000)), 60_001);
    }

    #[test]
    fn counts_are_taken_out_and_nothing_else() {
        for (pattern, plain) in [
            (
                r"^[\p{L}{2}]{1,64}(\x{41}{3}|b)+{7}?$",
                r"^[\p{L}{2}](\x{41}|b)+?$",
            ),
            (r"a{b}\{3}", r"a{b}\{3}"),
            ("é{9}", "é"),
        ] {
            assert_eq!(without_counts(pattern), plain);
        }
    }
}
