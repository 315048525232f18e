//! How a tool is called, as a line to type: made from its schema for the hints of errors.
//!
//! Owns no checking; what does not fit is the host's finding.

use serde_json::{Map, Value};
use toolway_types::{Untrusted, nearest};

use toolway_types::name::shell_word;

use super::schema::{Kind, Schema};

/// More optional arguments than this make a line that nobody reads.
const MAX_OPTIONAL: usize = 6;

/// How the server was named, so that the line names it the same way.
pub(in crate::commands) enum Place<'a> {
    /// By its name or its URL.
    Server(&'a str),
    /// By the command behind `--`.
    Command(&'a [String]),
    /// Not at all: the tool is the host's own.
    Host,
}

/// The whole line: `toolway call files read path=<string> [head=<number>]`.
pub(super) fn line(place: &Place<'_>, tool: &str, schema: &Value) -> String {
    let mut words = vec!["toolway".to_owned(), "call".to_owned()];
    if let Place::Server(server) = place {
        words.push(word(server));
    }
    words.push(word(tool));
    words.extend(arguments(schema));
    if let Place::Command(command) = place {
        words.push("--".to_owned());
        words.extend(command.iter().map(|part| word(part)));
    }
    Untrusted::new(words.join(" ")).to_string()
}

/// Warnings about arguments that the tool does not name: most are slips of the pen.
pub(super) fn unknown(tool: &str, schema: &Value, arguments: &Map<String, Value>) -> Vec<String> {
    let Some(properties) = schema["properties"].as_object() else {
        return Vec::new();
    };
    // A schema that speaks of further arguments means to take them.
    let open = schema.get("additionalProperties") != Some(&Value::Bool(false))
        && [
            "additionalProperties",
            "patternProperties",
            "anyOf",
            "allOf",
            "oneOf",
            "$ref",
        ]
        .iter()
        .any(|key| schema.get(key).is_some());
    if open || properties.is_empty() {
        return Vec::new();
    }
    arguments
        .keys()
        .filter(|key| !properties.contains_key(*key))
        .map(|key| {
            let free = properties
                .keys()
                .filter(|known| !arguments.contains_key(*known));
            let text = match nearest(key, free.map(String::as_str)) {
                Some(known) => {
                    format!("`{tool}` has no argument `{key}`; did you mean `{known}`?")
                }
                None => format!("`{tool}` has no argument `{key}`"),
            };
            Untrusted::new(text).to_string()
        })
        .collect()
}

/// The required arguments, then those of which some are, then the others in brackets.
fn arguments(schema: &Value) -> Vec<String> {
    let schema = Schema::new(schema);
    let all = schema.arguments();
    let pair = |name: &String| pair(name, &schema, &schema.argument(name));
    let mut words: Vec<String> = all
        .known
        .iter()
        .filter(|name| all.needed.contains(name))
        .map(pair)
        .collect();
    for choice in &all.choices {
        let groups = choice.iter().map(|group| {
            let pairs: Vec<String> = group.iter().map(pair).collect();
            pairs.join(" ")
        });
        words.push(format!("({})", groups.collect::<Vec<_>>().join(" | ")));
    }
    let is_other = |name: &&String| {
        let chosen = all.choices.iter().flatten().flatten();
        !all.needed.contains(name) && !chosen.into_iter().any(|chosen| chosen == *name)
    };
    let others: Vec<&String> = all.known.iter().filter(is_other).collect();
    words.extend(
        others
            .iter()
            .take(MAX_OPTIONAL)
            .map(|name| format!("[{}]", pair(name))),
    );
    if others.len() > MAX_OPTIONAL {
        words.push("[…]".to_owned());
    }
    words
}

fn pair<'a>(key: &str, schema: &Schema<'a>, kind: &Kind<'a>) -> String {
    let key = word(key);
    if !kind.values().is_empty() {
        let allowed: Vec<String> = kind
            .values()
            .iter()
            .filter(|value| !value.is_null())
            .map(|value| value.as_str().map_or_else(|| value.to_string(), word))
            .collect();
        return format!("{key}={}", allowed.join("|"));
    }
    match kind.names().as_slice() {
        [] => format!("{key}=<value>"),
        ["array"] => match schema.items(kind).names().as_slice() {
            [item @ ("string" | "number" | "integer" | "boolean")] => format!("{key}=<{item}>…"),
            _ => format!("{key}:='[…]'"),
        },
        ["object"] => format!("{key}:='{{…}}'"),
        ["boolean"] => format!("{key}=true|false"),
        several => format!("{key}=<{}>", several.join("|")),
    }
}

/// A word as it is typed.
fn word(text: &str) -> String {
    shell_word(text).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_line_shows_what_is_needed_first_and_how_each_kind_is_written() {
        let schema = json!({
            "properties": {
                "verbose": {"type": "boolean"},
                "path": {"type": "string"},
                "city": {"type": "string", "enum": ["New York", "Rome"]},
                "names": {"type": "array", "items": {"type": "string"}},
                "edits": {"type": "array", "items": {"type": "object"}},
                "options": {"type": "object"},
                "any thing": {},
            },
            "required": ["path", "city"],
        });
        assert_eq!(
            line(&Place::Server("My Files"), "edit", &schema),
            "toolway call 'My Files' edit path=<string> city='New York'|Rome [verbose=true|false] \
             [names=<string>…] [edits:='[…]'] [options:='{…}'] ['any thing'=<value>]"
        );
        let command = ["npx".to_owned(), "-y".to_owned(), "a server".to_owned()];
        assert_eq!(
            line(&Place::Command(&command), "now", &json!({})),
            "toolway call now -- npx -y 'a server'"
        );
    }

    #[test]
    fn a_long_list_of_optional_arguments_is_cut() {
        let properties: Map<String, Value> = (0..9)
            .map(|index| (format!("k{index}"), json!({"type": "string"})))
            .collect();
        let text = line(
            &Place::Server("s"),
            "t",
            &json!({ "properties": properties }),
        );
        assert!(text.ends_with("[k5=<string>] […]"), "{text}");
    }

    #[test]
    fn only_a_schema_that_names_all_its_arguments_has_unknown_ones() {
        let Value::Object(given) = json!({"mesage": "x"}) else {
            unreachable!()
        };
        let properties = json!({"message": {"type": "string"}});
        assert_eq!(
            unknown("echo", &json!({ "properties": properties }), &given),
            ["`echo` has no argument `mesage`; did you mean `message`?"]
        );
        let Value::Object(given) = json!({"a": 1, "c": 2, "path": "x", "paths": "y"}) else {
            unreachable!()
        };
        let properties = json!({"a": {}, "b": {}, "path": {}});
        assert_eq!(
            unknown("sum", &json!({ "properties": properties }), &given),
            ["`sum` has no argument `c`", "`sum` has no argument `paths`"]
        );
        for open in [
            json!({}),
            json!({ "properties": {} }),
            json!({ "properties": properties, "additionalProperties": {} }),
            json!({ "properties": properties, "patternProperties": {} }),
        ] {
            assert!(unknown("echo", &open, &given).is_empty(), "{open}");
        }
    }
}
