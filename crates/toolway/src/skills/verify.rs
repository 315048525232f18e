//! Whether a file is what was listed: its size, its digest, and the head of a main file.
//!
//! Owns the comparison and the reading of a head (YAML between two lines of `---`). Any
//! difference in any field counts, in either direction: what a person approved from the list is
//! what a model gets.

use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};
use toolway_types::Untrusted;
use toolway_wire::view::SkillFile;

use super::error::FailedCheck;

/// The longest head that is read; a person wrote it.
const MAX_HEAD: usize = 256 * 1024;

/// The most that aliases may add to a head, so that one that grows without end costs no time.
const MAX_REPLAYED: usize = 10_000;

const RULE: &str = "---";

/// Size first: it costs nothing.
pub(super) fn bytes(listed: &SkillFile, bytes: &[u8]) -> Result<(), FailedCheck> {
    let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if found != listed.size {
        return Err(FailedCheck::Size {
            expected: listed.size,
            found,
        });
    }
    let found = format!("sha256:{}", hex::encode(Sha256::digest(bytes)));
    if found != listed.digest {
        return Err(FailedCheck::Digest {
            expected: listed.digest.clone(),
            found,
        });
    }
    Ok(())
}

/// Compares the head of a main file with the one that was listed, field by field.
pub(super) fn frontmatter(listed: &Map<String, Value>, text: &str) -> Result<(), FailedCheck> {
    let unusable = |reason: &str| FailedCheck::NoFrontmatter {
        reason: Untrusted::new(reason),
    };
    let head = head(text).ok_or_else(|| unusable("no YAML between two lines of `---`"))?;
    if head.len() > MAX_HEAD {
        return Err(unusable("it is longer than anybody writes"));
    }
    // As YAML 1.2 has it: `no` is a word, and not false.
    let rules = serde_saphyr::options! {
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED }
    };
    let found = serde_saphyr::from_str_with_options(head, rules);
    let found: Map<String, Value> = found.map_err(|error| {
        let message = error.without_snippet().to_string();
        unusable(message.lines().next().unwrap_or_default())
    })?;
    let missing = found.keys().filter(|field| !listed.contains_key(*field));
    let differing =
        listed
            .keys()
            .chain(missing)
            .find(|field| match (listed.get(*field), found.get(*field)) {
                (Some(expected), Some(found)) => !same(expected, found),
                _ => true,
            });
    let Some(field) = differing else {
        return Ok(());
    };
    let shown = |value: Option<&Value>| value.map(|value| Untrusted::new(value.to_string()));
    Err(FailedCheck::Frontmatter {
        field: Untrusted::new(field.as_str()),
        expected: shown(listed.get(field)),
        found: shown(found.get(field)),
    })
}

/// What stands between a first line of `---` and the next one.
fn head(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix(RULE)?;
    let start = rest.find('\n')? + 1;
    if !rest[..start].trim().is_empty() {
        return None;
    }
    let rest = &rest[start..];
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == RULE {
            return Some(&rest[..end]);
        }
        end += line.len();
    }
    None
}

/// Whether two values say the same. JSON has one kind of number, so `1.0` is `1`.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => same_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

fn same_number(one: &Number, other: &Number) -> bool {
    one == other || ((one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64())
}

#[cfg(test)]
mod tests;
