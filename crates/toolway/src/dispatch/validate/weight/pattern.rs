//! How many steps the patterns of a schema take for each byte of a text.
//!
//! Owns the estimate. The engine takes linear time, but the factor is the size of the pattern once
//! its repetitions are written out, and a pattern of a dozen characters can be worth a million.

use serde_json::{Map, Value};

/// What a `format` costs: a pattern of the library's own.
const FORMAT: u64 = 64;
/// What a class such as `\w` or `[^a]` costs.
const CLASS: u64 = 4;

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
    let mut characters = pattern.chars().peekable();
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
            '{' => {
                let counts: String = characters.by_ref().take_while(|c| *c != '}').collect();
                if let Some((_, last)) = groups.last_mut() {
                    *last = last.saturating_mul(most(&counts));
                }
                continue;
            }
            '[' => {
                let mut length = CLASS;
                while let Some(inner) = characters.next() {
                    match inner {
                        ']' => break,
                        '\\' => drop(characters.next()),
                        _ => {}
                    }
                    length += 1;
                }
                length
            }
            '\\' => {
                characters.next();
                CLASS
            }
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

/// The largest number of `n`, `n,` or `n,m`.
fn most(counts: &str) -> u64 {
    counts
        .split(',')
        .filter(|count| !count.is_empty())
        .map(|count| count.parse().unwrap_or(u64::MAX))
        .max()
        .unwrap_or(1)
        .max(1)
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
        assert_eq!(size("(((a{1000}){1000}){1000}){99999999999}"), u64::MAX);
        // No pattern at all.
        assert_eq!(size(")(("), 2);
    }
}
