//! Suggestions for the value of an argument.

use super::{ViewError, object};
use crate::elements::each;
use crate::lenient;
use crate::raw_json::JsonText;

/// The most suggestions one answer may hold; what is beyond is left out.
pub const MAX_VALUES: usize = 100;

/// What `completion/complete` gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completion {
    /// The suggestions, as received, the best first.
    pub values: Vec<String>,
    /// How many there are in all, where the server says.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}

/// Views a `completion/complete` result. Suggestions that are no text are left out.
pub fn completion(result: &(impl JsonText + ?Sized)) -> Result<Completion, ViewError> {
    let members = object(result)?;
    let Some(inner) = members.value("completion") else {
        return Ok(Completion::default());
    };
    let inner = object(inner)?;
    let mut values = Vec::new();
    let mut offered = 0_usize;
    if let Some(list) = inner.value("values") {
        let seen = each(list, |value| {
            offered += 1;
            if values.len() < MAX_VALUES {
                values.extend(lenient::string(value));
            }
            offered <= MAX_VALUES
        });
        if seen.is_none() {
            values.clear();
        }
    }
    Ok(Completion {
        total: inner
            .value("total")
            .and_then(|raw| serde_json::from_str(raw.get()).ok()),
        has_more: inner
            .value("hasMore")
            .and_then(lenient::boolean)
            .unwrap_or(offered > MAX_VALUES),
        values,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn read(value: &serde_json::Value) -> Completion {
        completion(&to_raw_value(value).unwrap()).unwrap()
    }

    #[test]
    fn what_is_no_text_is_left_out_and_too_many_are_cut() {
        let read_values = read(
            &json!({"completion": {"values": ["a", 1, null, "b"], "total": 7,
            "hasMore": true}}),
        );
        assert_eq!(read_values.values, ["a", "b"]);
        assert_eq!((read_values.total, read_values.has_more), (Some(7), true));
        let many: Vec<String> = (0..250).map(|n| n.to_string()).collect();
        let cut = read(&json!({"completion": {"values": many}}));
        assert_eq!((cut.values.len(), cut.has_more), (MAX_VALUES, true));
        assert_eq!(read(&json!({})), Completion::default());
        assert_eq!(
            read(&json!({"completion": {"values": "a"}})),
            Completion::default()
        );
        assert!(completion(&to_raw_value(&json!([])).unwrap()).is_err());
    }
}
