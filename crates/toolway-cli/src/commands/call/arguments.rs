//! The arguments of a call, from words, a flag or stdin to one JSON object.
//!
//! Owns the grammar `key=value`, `key:=json`, `key=@file`, `key:=@file` and the typing of plain
//! values by the tool's schema. Validation belongs to the host.

use std::io::{self, Read as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Map, Value};

use crate::exit::Exit;
use crate::output::Output;
use crate::report::Report;

/// What was typed, before the tool's schema is known.
#[derive(Debug)]
pub(super) struct Words {
    base: Base,
    pairs: Vec<Pair>,
}

#[derive(Debug)]
enum Base {
    /// Nothing was said: stdin may hold an object.
    Unsaid,
    /// An object that was given outright.
    Given(Map<String, Value>),
}

#[derive(Debug)]
struct Pair {
    key: String,
    value: Typed,
}

#[derive(Debug)]
enum Typed {
    /// To be typed by the schema.
    Plain(String),
    /// JSON already.
    Json(Value),
}

impl Words {
    /// Reads the words behind the tool's name and the `--args` flag.
    pub(super) fn parse(words: &[String], args: Option<&str>) -> Result<Self, Report> {
        let mut base = match args {
            None => Base::Unsaid,
            Some(text) => Base::Given(object(&source(text)?, "--args")?),
        };
        let mut pairs = Vec::new();
        for word in words {
            if word == "-" {
                base = Base::Given(object(&read_stdin()?, "stdin")?);
                continue;
            }
            pairs.push(pair(word)?);
        }
        Ok(Self { base, pairs })
    }

    /// The arguments, now that the schema is known.
    pub(super) fn resolve(
        self,
        schema: &Value,
        output: &Output,
    ) -> Result<Map<String, Value>, Report> {
        let mut arguments = match self.base {
            Base::Given(object) => object,
            Base::Unsaid if self.pairs.is_empty() => implicit_stdin(schema, output)?,
            Base::Unsaid => Map::new(),
        };
        let mut seen: Vec<&str> = Vec::new();
        for Pair { key, value } in &self.pairs {
            let property = &schema["properties"][key.as_str()];
            let value = match value {
                Typed::Json(value) => value.clone(),
                Typed::Plain(text) => typed(text, property),
            };
            // The same key again makes a list of a list-shaped property.
            match arguments.get_mut(key) {
                Some(Value::Array(items)) if seen.contains(&key.as_str()) => match value {
                    Value::Array(more) => items.extend(more),
                    one => items.push(one),
                },
                _ => {
                    arguments.insert(key.clone(), value);
                }
            }
            seen.push(key);
        }
        Ok(arguments)
    }
}

fn pair(word: &str) -> Result<Pair, Report> {
    let shape = || {
        Report::new(
            Exit::Usage,
            format!("`{word}` is not an argument of the form `key=value`"),
        )
        .hint("use `key=value`, `key:=json`, `key=@file`, or `--args '{…}'`")
    };
    let (key, value) = word.split_once('=').ok_or_else(shape)?;
    let (key, is_json) = match key.strip_suffix(':') {
        Some(key) => (key, true),
        None => (key, false),
    };
    if key.is_empty() {
        return Err(shape());
    }
    let text = match value.strip_prefix('@') {
        Some(path) => read_file(path)?,
        None => value.to_owned(),
    };
    let value = if is_json {
        Typed::Json(serde_json::from_str(&text).map_err(|error| {
            Report::new(
                Exit::Usage,
                format!("the value of `{key}` is not JSON: {error}"),
            )
            .hint(format!("for plain text use `{key}=…` without the colon"))
        })?)
    } else {
        Typed::Plain(text)
    };
    Ok(Pair {
        key: key.to_owned(),
        value,
    })
}

/// Plain text as the schema's type; what does not fit stays text, and validation says so.
fn typed(text: &str, property: &Value) -> Value {
    let types: Vec<&str> = match &property["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let as_text = || Value::String(text.to_owned());
    if types == ["string"] {
        return as_text();
    }
    if types == ["array"] {
        return match serde_json::from_str::<Value>(text) {
            Ok(list @ Value::Array(_)) => list,
            _ => Value::Array(vec![typed(text, &property["items"])]),
        };
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return as_text();
    };
    let fits = |kind: &&str| match *kind {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    if types.iter().any(fits) {
        return value;
    }
    // A list of allowed values is a type too.
    if let Some(allowed) = property["enum"].as_array() {
        return if allowed.contains(&value) {
            value
        } else {
            as_text()
        };
    }
    if types.is_empty() && (value.is_number() || value.is_boolean() || value.is_null()) {
        return value;
    }
    as_text()
}

fn source(text: &str) -> Result<String, Report> {
    match text {
        "-" => read_stdin(),
        _ => match text.strip_prefix('@') {
            Some(path) => read_file(path),
            None => Ok(text.to_owned()),
        },
    }
}

fn object(text: &str, place: &str) -> Result<Map<String, Value>, Report> {
    serde_json::from_str(text).map_err(|error| {
        Report::new(
            Exit::Usage,
            format!("{place} does not hold a JSON object: {error}"),
        )
        .hint("e.g. `--args '{\"key\": \"value\"}'`")
    })
}

fn read_file(path: &str) -> Result<String, Report> {
    std::fs::read_to_string(path).map_err(|error| {
        Report::new(Exit::Usage, format!("cannot read `{path}`: {error}"))
            .hint("for a value that begins with `@`, use `key:='\"@…\"'`")
    })
}

fn read_stdin() -> Result<String, Report> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

/// No arguments were typed. A file or a pipe with something in it is read; a pipe that somebody
/// merely left open — as programs that start others do — must not make the call hang, unless the
/// tool cannot be called without arguments anyway.
fn implicit_stdin(schema: &Value, output: &Output) -> Result<Map<String, Value>, Report> {
    if output.stdin_is_terminal() {
        return Ok(Map::new());
    }
    let required = schema["required"]
        .as_array()
        .is_some_and(|names| !names.is_empty());
    if !required && !stdin_has_data() {
        return Ok(Map::new());
    }
    let text = read_stdin()?;
    if text.trim().is_empty() {
        Ok(Map::new())
    } else {
        object(&text, "stdin")
    }
}

fn stdin_has_data() -> bool {
    let stdin = io::stdin();
    let mut wanted = [PollFd::new(&stdin, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut wanted, Some(&now)).is_ok_and(|ready| ready > 0)
}
