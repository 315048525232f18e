//! What one schema says by itself, without what it refers to.

use serde_json::{Map, Value};

/// The entries of a list; none where there is no list.
pub fn list<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    let found = schema.get(keyword).and_then(Value::as_array);
    found.map_or(&[], Vec::as_slice)
}

/// A text.
pub fn text<'a>(schema: &'a Value, keyword: &str) -> Option<&'a str> {
    schema.get(keyword)?.as_str()
}

/// The properties, in the order they are written.
pub fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> + Clone {
    let found = schema.get("properties").and_then(Value::as_object);
    found.into_iter().flat_map(Map::iter)
}

/// One property.
pub fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.as_object()?.get(name)
}

/// The names of what has to be there.
pub fn required(schema: &Value) -> impl Iterator<Item = &str> {
    list(schema, "required").iter().filter_map(Value::as_str)
}

/// The types: one word, or a list of them.
pub fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let said = match schema.get("type") {
        Some(Value::Array(words)) => words.as_slice(),
        Some(word) => std::slice::from_ref(word),
        None => &[],
    };
    said.iter().filter_map(Value::as_str)
}

/// The values that are listed one by one, where any are.
pub fn values(schema: &Value) -> impl Iterator<Item = &Value> {
    list(schema, "enum").iter().chain(schema.get("const"))
}

/// The narrowest type of a value.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
