//! Reading single values the way real servers write them.

use serde_json::value::RawValue;

pub(crate) fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// A string's content, or any other value as its JSON text.
pub(crate) fn text(raw: &RawValue) -> String {
    string(raw).unwrap_or_else(|| raw.get().to_owned())
}

/// An integer, also when written as `1.0` or `"1"`.
pub(crate) fn integer(raw: &RawValue) -> Option<i64> {
    let text = raw.get().trim_matches('"');
    text.parse().ok().or_else(|| {
        let float: f64 = text.parse().ok()?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked to be whole and small"
        )]
        (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
    })
}

pub(crate) fn unsigned(raw: &RawValue) -> Option<u64> {
    integer(raw).and_then(|number| u64::try_from(number).ok())
}

/// A boolean, also when written as a string.
pub(crate) fn boolean(raw: &RawValue) -> Option<bool> {
    match raw.get().trim_matches('"') {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}
