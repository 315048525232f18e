//! An example call of a tool, as a line that can be pasted into a shell.
//!
//! Owns which values stand in it. They come from a server, and so do the names: only what means the
//! same in every shell is written (decision 18), never `key=@file`, with which `toolway call` reads
//! a file, and never a word that begins like a flag. Where that leaves nothing, there is no example.

use serde_json::{Map, Value, json};
use toolway_types::name::shell_word;
use toolway_types::text::{TextKind, legible};

use super::shape::{Form, Member, Members, Shape};
use crate::commands::call::Place;

/// The deepest nesting that is filled in.
const MAX_DEPTH: usize = 6;
/// The longest text of a server that is written.
const TEXT: usize = 80;
/// The longest line: more than that is better written to a file.
const LINE: usize = 1_000;
/// The most letters that a made-up text is drawn out to.
const LETTERS: usize = 64;

/// The words of the line as a shell takes them; none where they could not be typed as they stand.
pub(super) fn words(
    place: &Place<'_>,
    tool: &str,
    exposed: &str,
    arguments: &[&Member],
) -> Option<Vec<String>> {
    let mut words = Vec::new();
    match (place, is_plain(tool)) {
        (Place::Server(server), true) => {
            words.extend([(*server).to_owned(), tool.to_owned()]);
        }
        (Place::Command(_), true) => words.push(tool.to_owned()),
        (Place::Host, _) | (Place::Server(_), false) => words.push(exposed.to_owned()),
        (Place::Command(_), false) => return None,
    }
    let values: Option<Vec<Value>> = arguments
        .iter()
        .map(|argument| sample(&argument.shape, 0))
        .collect();
    let values = values?;
    let mut pairs = Some(Vec::new());
    for (argument, value) in arguments.iter().zip(&values) {
        pairs = pairs.filter(|_| is_plain(&argument.name));
        let Some(pairs) = &mut pairs else { break };
        spell(&argument.name, value, &argument.shape, pairs);
    }
    words.extend(pairs.unwrap_or_else(|| {
        let named = arguments.iter().map(|argument| argument.name.clone());
        let object: Map<String, Value> = named.zip(values).collect();
        vec!["--args".to_owned(), Value::Object(object).to_string()]
    }));
    // In single quotes all of these mean themselves in POSIX shells, but not in fish.
    let is_safe = |word: &String| is_shown_as_is(word) && !word.contains(['\'', '\\']);
    let is_flag = |word: &String| word.starts_with('-') && word != "--args";
    if !words.iter().all(is_safe) || words.iter().any(is_flag) {
        return None;
    }
    if let Place::Command(command) = place {
        if command.iter().any(|word| word.contains(char::is_control)) {
            return None;
        }
        words.push("--".to_owned());
        words.extend(command.iter().cloned());
    }
    let typed = ["toolway", "call"].into_iter().map(str::to_owned);
    let typed = typed.chain(words.iter().map(|word| shell_word(word).into_owned()));
    let typed: Vec<String> = typed.collect();
    let length: usize = typed.iter().map(|word| word.chars().count() + 1).sum();
    (length <= LINE).then_some(typed)
}

/// A name that is the same word in every shell, and no path into an argument.
fn is_plain(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && name.chars().all(is_letter)
}

fn is_shown_as_is(text: &str) -> bool {
    legible(text, TextKind::Code) == text
}

/// A text of a server that can stand in a line.
fn is_typable(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let is_short = text.chars().count() <= TEXT;
            is_short && is_shown_as_is(text) && !text.contains(['\'', '\\', '"', '`', '\n'])
        }
        Value::Array(items) => items.iter().all(is_typable),
        Value::Object(members) => members
            .iter()
            .all(|(name, value)| is_plain(name) && is_typable(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Writes a value as words: `a.b=…` for what is within an object, JSON where a word would be read
/// as something else.
fn spell(path: &str, value: &Value, shape: &Shape, words: &mut Vec<String>) {
    match (value, shape.only()) {
        (Value::Object(members), Some(Form::Object(known)))
            if !members.is_empty() && members.keys().all(|name| is_plain(name)) =>
        {
            for (name, value) in members {
                let member = known.named.iter().find(|member| member.name == *name);
                let any = Shape::default();
                let shape = member.map_or(&any, |member| &member.shape);
                spell(&format!("{path}.{name}"), value, shape, words);
            }
        }
        (Value::Array(items), Some(Form::List(of))) if !items.is_empty() => {
            let is_text = |item: &Value| item.as_str().is_some_and(|text| is_word(text, of));
            let is_object = |item: &Value| item.as_object().is_some_and(|it| !it.is_empty());
            for (place, item) in items.iter().enumerate() {
                if is_text(item) {
                    spell(path, item, of, words);
                } else if items.iter().all(is_object) {
                    spell(&format!("{path}[{place}]"), item, of, words);
                } else {
                    words.push(format!("{path}:={value}"));
                    return;
                }
            }
        }
        (Value::String(text), _) if is_word(text, shape) => words.push(format!("{path}={text}")),
        (Value::Number(_) | Value::Bool(_), Some(Form::Plain(kind))) if *kind != "string" => {
            words.push(format!("{path}={value}"));
        }
        _ => words.push(format!("{path}:={value}")),
    }
}

/// Whether a word is read as this text: not as a file's name, nor as what it looks like.
fn is_word(text: &str, shape: &Shape) -> bool {
    let looks_like_more = serde_json::from_str::<Value>(text).is_ok();
    let is_only_text = shape.only() == Some(&Form::Plain("string"));
    !text.starts_with('@') && (is_only_text || !looks_like_more)
}

/// A value that fits, as far as its schema tells.
fn sample(shape: &Shape, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    let given = [&shape.example, &shape.default].into_iter().flatten();
    let given = given.filter(|value| !value.is_null() && is_typable(value));
    if let Some(value) = given.into_iter().next() {
        return Some(value.clone());
    }
    if shape.forms.is_empty() {
        return Some("text".into());
    }
    // `null` says least about how it is written.
    let (null, others): (Vec<&Form>, Vec<&Form>) = shape
        .forms
        .iter()
        .partition(|form| matches!(form, Form::Plain("null") | Form::Value(Value::Null)));
    let mut forms = others.into_iter().chain(null);
    forms.find_map(|form| match form {
        Form::Value(value) => Some(value.clone()).filter(is_typable),
        Form::Plain("string") => Some(text(shape)),
        Form::Plain("boolean") => Some(Value::Bool(true)),
        Form::Plain("null") => Some(Value::Null),
        Form::Plain(_) => Some(number(shape)),
        Form::List(items) => {
            let least = count(shape, "minItems").unwrap_or(1).clamp(1, LETTERS);
            let item = sample(items, depth + 1)?;
            Some(Value::Array(vec![item; least]))
        }
        Form::Places(places) => {
            let places: Option<Vec<Value>> = places
                .iter()
                .map(|place| sample(place, depth + 1))
                .collect();
            places.map(Value::Array)
        }
        Form::Object(Members { named, .. }) => {
            let needed = named.iter().filter(|member| member.needed);
            let members: Option<Map<String, Value>> = needed
                .map(|member| {
                    let is_safe = is_typable(&Value::from(member.name.as_str()));
                    let value = sample(&member.shape, depth + 1).filter(|_| is_safe);
                    Some((member.name.clone(), value?))
                })
                .collect();
            members.map(Value::Object)
        }
        Form::Again(_) => None,
    })
}

fn count(shape: &Shape, limit: &str) -> Option<usize> {
    usize::try_from(shape.limits.get(limit)?.as_u64()?).ok()
}

fn text(shape: &Shape) -> Value {
    let format = shape.limits.get("format").and_then(Value::as_str);
    let text = match format.unwrap_or_default() {
        "uri" | "url" | "uri-reference" | "iri" => "https://example.com",
        "email" => "someone@example.com",
        "date" => "2026-01-31",
        "date-time" => "2026-01-31T12:00:00Z",
        "time" => "12:00:00Z",
        "uuid" => "123e4567-e89b-12d3-a456-426614174000",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        _ => {
            let most = count(shape, "maxLength").unwrap_or(LETTERS);
            let least = count(shape, "minLength").unwrap_or_default().min(LETTERS);
            let length = least.max(most.min("text".len()));
            return "text"
                .chars()
                .cycle()
                .take(length)
                .collect::<String>()
                .into();
        }
    };
    text.into()
}

fn number(shape: &Shape) -> Value {
    let limit = |name: &str| shape.limits.get(name).filter(|limit| limit.is_number());
    let step = limit("multipleOf");
    let least = limit("minimum");
    let above = limit("exclusiveMinimum").and_then(Value::as_i64);
    let most = limit("maximum").filter(|most| most.as_f64().is_some_and(|most| most < 1.0));
    match (step, least, above, most) {
        (Some(step), ..) => step.clone(),
        (None, Some(least), ..) => least.clone(),
        (None, None, Some(above), _) => json!(above.saturating_add(1)),
        (None, None, None, Some(most)) => most.clone(),
        (None, None, None, None) => json!(1),
    }
}
