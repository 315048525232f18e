//! Structured content beside content: whether one only repeats the other.
//!
//! Owns the comparison. The protocol asks servers to repeat structured content as text for older
//! clients, and their SDKs wrap a bare answer, or the blocks of the content, into an object with
//! one field; neither is needed twice.

use serde_json::Value;
use serde_json::value::RawValue;
use toolway_wire::view::ContentBlock;

use super::media;

/// Whether the blocks say all that the structured content says.
pub(crate) fn is_repeated(structured: &RawValue, content: &[ContentBlock]) -> bool {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let Ok(structured) = serde_json::from_str::<Value>(structured.get()) else {
        return false;
    };
    if texts.iter().any(|text| says(text, &structured)) {
        return true;
    }
    // `{"result": …}`, `{"content": …}`
    let Value::Object(fields) = &structured else {
        return false;
    };
    let (1, Some(only)) = (fields.len(), fields.values().next()) else {
        return false;
    };
    if let Value::Array(items) = only
        && !items.is_empty()
        && items.len() == content.len()
        && items
            .iter()
            .zip(content)
            .all(|(item, block)| is(item, block))
    {
        return true;
    }
    match only {
        Value::Array(items) if items.len() == texts.len() => {
            let mut pairs = texts.iter().zip(items);
            pairs.all(|(text, item)| says(text, item)) || says_all(&texts, only)
        }
        only => says_all(&texts, only),
    }
}

fn says_all(texts: &[&str], value: &Value) -> bool {
    texts.iter().any(|text| says(text, value))
}

/// Whether a value is a block of content, and nothing besides.
fn is(item: &Value, block: &ContentBlock) -> bool {
    const PARTS: [&str; 8] = [
        "type",
        "text",
        "data",
        "blob",
        "mimeType",
        "uri",
        "annotations",
        "_meta",
    ];
    let Value::Object(members) = item else {
        return false;
    };
    if let ContentBlock::Unknown { raw, .. } = block {
        return serde_json::from_str::<Value>(raw.get()).is_ok_and(|block| block == *item);
    }
    let members = match members.get("resource") {
        Some(Value::Object(resource)) => resource,
        _ => members,
    };
    if members.keys().any(|key| !PARTS.contains(&key.as_str())) {
        return false;
    }
    let has = |key: &str, value: &str| members.get(key).is_some_and(|member| member == value);
    match (block, media::encoded(block)) {
        (ContentBlock::Text { text }, _) => has("text", text),
        (_, Some((data, _))) => has("data", data) || has("blob", data),
        _ => false,
    }
}

/// Whether a text is a value: as JSON, or word for word.
fn says(text: &str, value: &Value) -> bool {
    if let Value::String(words) = value
        && words == text
    {
        return true;
    }
    serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn text_that_is_the_same_as_the_structure_is_told_from_text_that_is_not() {
        for (structured, texts, repeated) in [
            (json!({"a": 1}), vec![r#"{ "a": 1 }"#], true),
            (json!({"a": 1}), vec!["note", r#"{"a":1}"#], true),
            (json!({"a": 1}), vec!["a is one"], false),
            (json!({"result": 42}), vec!["42"], true),
            (json!({"result": "words"}), vec!["words"], true),
            (json!({"content": "a\nb"}), vec!["a\nb"], true),
            (
                json!({"result": [1, {"b": 2}]}),
                vec!["1", r#"{"b": 2}"#],
                true,
            ),
            (json!({"result": [1, 2]}), vec!["[1, 2]"], true),
            (json!({"result": [1]}), vec!["[1]"], true),
            (json!({"result": [1, 2]}), vec!["1"], false),
            (json!({"a": 1, "b": 2}), vec!["1"], false),
            (json!({"a": 1}), vec![], false),
            (json!(null), vec!["null"], true),
        ] {
            let content: Vec<ContentBlock> = texts
                .iter()
                .map(|text| ContentBlock::Text {
                    text: (*text).to_owned(),
                })
                .collect();
            let raw = to_raw_value(&structured).unwrap();
            assert_eq!(
                is_repeated(&raw, &content),
                repeated,
                "{structured} {texts:?}"
            );
        }
    }
}
