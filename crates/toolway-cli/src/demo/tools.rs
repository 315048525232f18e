//! The demo's tools: what they are called, what they take, and what they do.
//!
//! A call with unfit arguments is a tool's error result, not a protocol error, so that a model
//! sees the message and can try again.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use toolway::journal::timestamp;
use toolway_wire::{RpcError, error as code};

use super::flavour::Flavour;
use super::picture;

/// What a call gives: content, or a message about what was wrong with it.
type Outcome = Result<Value, String>;

const MAX_COLOURS: u64 = 12;
const MAX_TIMES: u64 = 10;

/// The tools of one flavour, as `tools/list` shows them.
pub(super) fn list(flavour: Flavour) -> Vec<Value> {
    match flavour {
        Flavour::Desk => vec![add_tool(), now_tool()],
        Flavour::Library => vec![word_count_tool(), echo_tool()],
        Flavour::Studio => vec![palette_tool(), fail_tool()],
    }
}

/// The parameters do not fit.
pub(super) fn invalid(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

/// Runs a tool.
pub(super) fn call(flavour: Flavour, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let none = Map::new();
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(invalid("`arguments` must be an object")),
    };
    let outcome = match (flavour, name) {
        (Flavour::Desk, "add") => add(arguments),
        (Flavour::Desk, "now") => Ok(now(SystemTime::now())),
        (Flavour::Library, "word_count") => word_count(arguments),
        (Flavour::Library, "echo") => echo(arguments),
        (Flavour::Studio, "palette") => palette(arguments),
        (Flavour::Studio, "fail") => Err(fail(arguments)),
        _ => return Err(invalid(format!("unknown tool `{name}`"))),
    };
    Ok(outcome.unwrap_or_else(|message| json!({ "content": [text(&message)], "isError": true })))
}

fn tool(name: &str, title: &str, description: &str, input: Value, output: Option<Value>) -> Value {
    let mut tool = json!({
        "name": name,
        "title": title,
        "description": description,
        "annotations": {
            "title": title,
            "readOnlyHint": true,
            "destructiveHint": false,
            "idempotentHint": name != "now",
            "openWorldHint": false,
        },
    });
    tool["inputSchema"] = input;
    if let Some(output) = output {
        tool["outputSchema"] = output;
    }
    tool
}

fn add_tool() -> Value {
    let number = |description: &str| json!({ "type": "number", "description": description });
    tool(
        "add",
        "Add two numbers",
        "Adds two numbers. Whole numbers stay whole.",
        json!({
            "type": "object",
            "properties": { "a": number("The first number"), "b": number("The second number") },
            "required": ["a", "b"],
            "additionalProperties": false,
        }),
        Some(json!({
            "type": "object",
            "properties": { "sum": { "type": "number" } },
            "required": ["sum"],
        })),
    )
}

fn add(arguments: &Map<String, Value>) -> Outcome {
    let number = |name: &str| {
        arguments
            .get(name)
            .filter(|value| value.is_number())
            .ok_or_else(|| format!("`{name}` must be a number"))
    };
    let (a, b) = (number("a")?, number("b")?);
    let whole = a
        .as_i64()
        .zip(b.as_i64())
        .and_then(|(a, b)| a.checked_add(b));
    let sum = match whole {
        Some(sum) => json!(sum),
        None => match a.as_f64().zip(b.as_f64()).map(|(a, b)| a + b) {
            Some(sum) if sum.is_finite() => json!(sum),
            _ => return Err("the sum is too large".to_owned()),
        },
    };
    Ok(structured(&sum.to_string(), json!({ "sum": sum })))
}

fn now_tool() -> Value {
    tool(
        "now",
        "Tell the time",
        "The current time in UTC, as RFC 3339 and as seconds since 1970.",
        json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        Some(json!({
            "type": "object",
            "properties": {
                "utc": { "type": "string", "format": "date-time" },
                "unix": { "type": "integer" },
            },
            "required": ["utc", "unix"],
        })),
    )
}

fn now(time: SystemTime) -> Value {
    // A clock before 1970 shows 1970.
    let unix = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let utc = timestamp(time);
    structured(&utc, json!({ "utc": utc, "unix": unix }))
}

fn word_count_tool() -> Value {
    let count = json!({ "type": "integer", "minimum": 0 });
    tool(
        "word_count",
        "Count words",
        "Counts the words, lines and characters of a text and finds its longest word.",
        json!({
            "type": "object",
            "properties": { "text": { "type": "string", "description": "The text to count" } },
            "required": ["text"],
            "additionalProperties": false,
        }),
        Some(json!({
            "type": "object",
            "properties": {
                "words": count, "lines": count, "characters": count,
                "longest": { "type": "string" },
            },
            "required": ["words", "lines", "characters", "longest"],
        })),
    )
}

fn word_count(arguments: &Map<String, Value>) -> Outcome {
    let counted = string(arguments, "text")?;
    let words = counted.split_whitespace().count();
    let lines = counted.lines().count();
    let characters = counted.chars().count();
    // The first of equally long ones.
    let longest = counted
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .rev()
        .max_by_key(|word| word.chars().count())
        .unwrap_or_default();
    Ok(structured(
        &format!(
            "{}, {}, {}; longest: {longest}",
            plural(words, "word"),
            plural(lines, "line"),
            plural(characters, "character")
        ),
        json!({ "words": words, "lines": lines, "characters": characters, "longest": longest }),
    ))
}

fn echo_tool() -> Value {
    tool(
        "echo",
        "Echo",
        "Says a text back, once or several times.",
        json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "What to say" },
                "times": {
                    "type": "integer", "minimum": 1, "maximum": MAX_TIMES, "default": 1,
                    "description": "How often",
                },
            },
            "required": ["text"],
            "additionalProperties": false,
        }),
        None,
    )
}

fn echo(arguments: &Map<String, Value>) -> Outcome {
    let said = string(arguments, "text")?;
    let times = integer(arguments, "times", 1, MAX_TIMES)?;
    let content: Vec<Value> = (0..times).map(|_| text(said)).collect();
    Ok(json!({ "content": content }))
}

fn palette_tool() -> Value {
    tool(
        "palette",
        "Mix a palette",
        "A palette of evenly spread colours, as hexadecimal codes and as a small picture.",
        json!({
            "type": "object",
            "properties": {
                "colours": {
                    "type": "integer", "minimum": 1, "maximum": MAX_COLOURS, "default": 5,
                    "description": "How many colours",
                },
                "hue": {
                    "type": "integer", "minimum": 0, "maximum": 359, "default": 210,
                    "description": "The hue to start from, in degrees",
                },
            },
            "additionalProperties": false,
        }),
        None,
    )
}

fn palette(arguments: &Map<String, Value>) -> Outcome {
    let count = integer(arguments, "colours", 5, MAX_COLOURS)?.max(1);
    let hue = integer(arguments, "hue", 210, 359)?;
    let colours: Vec<picture::Colour> = (0..count)
        .map(|step| picture::Colour::from_hue(hue + step * 360 / count))
        .collect();
    let codes: Vec<String> = colours.iter().map(|colour| colour.code()).collect();
    Ok(json!({ "content": [
        text(&codes.join(" ")),
        {
            "type": "image",
            "data": STANDARD.encode(picture::swatches(&colours)),
            "mimeType": "image/png",
        },
    ] }))
}

fn fail_tool() -> Value {
    tool(
        "fail",
        "Fail",
        "Always answers an error, to see what one looks like.",
        json!({
            "type": "object",
            "properties": { "reason": { "type": "string", "description": "What to complain about" } },
            "additionalProperties": false,
        }),
        None,
    )
}

fn fail(arguments: &Map<String, Value>) -> String {
    match arguments.get("reason").and_then(Value::as_str) {
        Some(reason) => format!("failed as asked: {reason}"),
        None => "failed as asked".to_owned(),
    }
}

fn string<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    let value = arguments.get(name).and_then(Value::as_str);
    value.ok_or_else(|| format!("`{name}` must be a string"))
}

fn integer(
    arguments: &Map<String, Value>,
    name: &str,
    default: u64,
    most: u64,
) -> Result<u64, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value
            .as_u64()
            .filter(|value| *value <= most)
            .ok_or_else(|| format!("`{name}` must be a whole number up to {most}")),
    }
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn structured(shown: &str, value: Value) -> Value {
    let mut result = json!({ "content": [text(shown)] });
    result["structuredContent"] = value;
    result
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn known_seconds_have_their_dates() {
        for (unix, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800, "2024-02-29T00:00:00.000Z"),
            (1_785_196_800, "2026-07-28T00:00:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            let result = now(SystemTime::UNIX_EPOCH + Duration::from_secs(unix));
            assert_eq!(result["structuredContent"]["utc"], shown);
        }
    }
}
