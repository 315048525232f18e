//! The arguments of a call, from words, a flag or stdin to one JSON object.
//!
//! Owns the grammar `key=value`, `key:=json`, `key=@file`, `key:=@file` and the typing of plain
//! values by the tool's schema; nested keys are `path.rs`. The host validates.

use std::io::Read as _;

use rustix::event::Timespec;
use serde_json::{Map, Value};
use toolway_types::Untrusted;
use toolway_types::name::shell_word;

use crate::context::Context;
use crate::report::Report;

use super::path;
use super::schema::{Kind, Schema, Step};

/// How long the writer of a pipe is waited for.
const PATIENCE: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// What was typed, before the tool's schema is known.
#[derive(Debug)]
pub(super) struct Words {
    base: Base,
    pairs: Vec<Pair>,
}

#[derive(Debug)]
enum Base {
    /// Nothing was said: stdin may hold what is needed.
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
    pub(super) fn parse(
        context: &Context,
        words: &[String],
        args: Option<&str>,
    ) -> Result<Self, Report> {
        let mut base = match args {
            None => Base::Unsaid,
            Some(text) => Base::Given(object(&source(context, text)?, "--args")?),
        };
        let mut pairs = Vec::new();
        for word in words {
            if word == "-" {
                base = Base::Given(object(&read_stdin(context)?, "stdin")?);
                continue;
            }
            pairs.push(pair(context, word)?);
        }
        Ok(Self { base, pairs })
    }

    /// The arguments, now that the schema is known.
    pub(super) fn resolve(
        self,
        schema: &Value,
        context: &Context,
    ) -> Result<Map<String, Value>, Report> {
        let mut arguments = match self.base {
            Base::Given(object) => object,
            Base::Unsaid if self.pairs.is_empty() => implicit_stdin(schema, context)?,
            Base::Unsaid => Map::new(),
        };
        let mut seen: Vec<(&str, Vec<Step>)> = Vec::new();
        let schema = Schema::new(schema);
        for Pair { key, value } in &self.pairs {
            let steps = path::steps(key, &schema)?;
            for (other, there) in &seen {
                if path::is_within(there, &steps) {
                    return Err(path::clash(other, key));
                }
                if path::is_within(&steps, there) {
                    return Err(path::clash(key, other));
                }
            }
            let value = match value {
                Typed::Json(value) => value.clone(),
                Typed::Plain(text) => typed(text, &schema, &schema.within(&steps)),
            };
            let is_again = seen.iter().any(|(_, there)| *there == steps);
            // The same key again makes a list of a list-shaped property.
            match path::place(&mut arguments, key, &steps)? {
                Value::Array(items) if is_again => match value {
                    Value::Array(more) => items.extend(more),
                    one => items.push(one),
                },
                place => *place = value,
            }
            seen.push((key, steps));
        }
        Ok(arguments)
    }
}

fn pair(context: &Context, word: &str) -> Result<Pair, Report> {
    let shape = || {
        Report::usage(format!(
            "`{word}` is not an argument of the form `key=value`"
        ))
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
        Some(path) => read_file(context, path)?,
        None => value.to_owned(),
    };
    let value = if is_json {
        Typed::Json(serde_json::from_str(&text).map_err(|error| {
            Report::usage(format!("the value of `{key}` is not JSON: {error}"))
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

/// Plain text as the schema's type; what does not fit stays text, and validation says so. Where a
/// text would fit as well as what it looks like, it is what it looks like.
fn typed<'a>(text: &str, schema: &Schema<'a>, kind: &Kind<'a>) -> Value {
    let as_text = || Value::String(text.to_owned());
    let json = serde_json::from_str::<Value>(text).ok();
    // A list of allowed values is a type too.
    let counts = |value: &Value| kind.values().contains(&value);
    if let Some(value) = json.as_ref().filter(|value| counts(value)) {
        return value.clone();
    }
    if counts(&as_text()) || kind.is_text() {
        return as_text();
    }
    if let Some(value) = json.as_ref().filter(|value| kind.allows(value)) {
        return value.clone();
    }
    if kind.is_list() {
        return Value::Array(vec![typed(text, schema, &schema.items(kind))]);
    }
    match json {
        Some(value @ (Value::Number(_) | Value::Bool(_) | Value::Null))
            if kind.is_open() && kind.values().is_empty() =>
        {
            value
        }
        _ => as_text(),
    }
}

fn source(context: &Context, text: &str) -> Result<String, Report> {
    match text {
        "-" => read_stdin(context),
        _ => match text.strip_prefix('@') {
            Some(path) => read_file(context, path),
            None => Ok(text.to_owned()),
        },
    }
}

fn object(text: &str, place: &str) -> Result<Map<String, Value>, Report> {
    serde_json::from_str(text).map_err(|error| {
        Report::usage(format!("{place} does not hold a JSON object: {error}"))
            .hint("e.g. `--args '{\"key\": \"value\"}'`")
    })
}

fn read_file(context: &Context, path: &str) -> Result<String, Report> {
    std::fs::read_to_string(context.path(path)).map_err(|error| {
        Report::usage(format!("cannot read `{path}`: {error}"))
            .hint("for a value that begins with `@`, use `key:='\"@…\"'`")
    })
}

fn read_stdin(context: &Context) -> Result<String, Report> {
    let mut text = String::new();
    context
        .output
        .streams()
        .reader()
        .read_to_string(&mut text)?;
    Ok(text)
}

/// No arguments were typed. Stdin is read only where the tool needs some: it may belong to a loop of
/// the shell. A pipe that was left open must not make the call hang.
fn implicit_stdin(schema: &Value, context: &Context) -> Result<Map<String, Value>, Report> {
    let all = Schema::new(schema).arguments();
    let is_enough = all.needed.is_empty() && all.choices.is_empty();
    if is_enough || context.output.stdin_is_terminal() || !stdin_has_data(context) {
        return Ok(Map::new());
    }
    let text = read_stdin(context)?;
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    object(&text, "stdin").map_err(|report| {
        let chosen = all.choices.iter().flatten().flatten();
        let missing = all.needed.iter().chain(chosen).next();
        let missing = missing.map_or("key", String::as_str);
        let missing = Untrusted::new(shell_word(missing));
        report.hint(format!(
            "stdin was read because `{missing}` is missing: give it as `{missing}=…`, or keep \
             stdin out with `< /dev/null`"
        ))
    })
}

/// Whether there is something to read on stdin, or its end, within a moment.
fn stdin_has_data(context: &Context) -> bool {
    let streams = context.output.streams();
    streams.await_input(Some(&PATIENCE)).unwrap_or_default()
}
