//! JSON Schema of servers: compiled once, checked against values, within bounds.
//!
//! Owns the check and the wording of what does not fit. A schema is untrusted: it is never fetched
//! from anywhere, its patterns run in linear time, and one that could take unbounded work is not
//! run (`json_schema/weight.rs`). What of a broken schema can be used is (`json_schema/compile.rs`,
//! `json_schema/repair.rs`).

mod compile;
mod plain;
mod repair;
#[cfg(test)]
mod tests;
mod weight;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolway_types::text;

/// The largest arguments, in bytes of JSON: the request body that peers take.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 4 * 1024 * 1024;

/// The deepest arguments; a peer of ours parses no deeper.
pub(crate) const MAX_ARGUMENT_DEPTH: usize = 60;

/// The most problems told at once.
pub(crate) const MAX_PROBLEMS: usize = 16;

/// The most alternatives of which it is told what they expected.
pub(crate) const MAX_ALTERNATIVES: usize = 4;

/// The longest message of one problem, in characters: it may quote the arguments.
pub(crate) const MAX_MESSAGE: usize = 300;

/// What is to be said about a value.
pub(crate) enum SchemaVerdict {
    /// They fit.
    Fits,
    /// They do not; at least one problem.
    Violates(Vec<Problem>),
    /// The schema cannot be used: it …
    Unchecked(String),
}

/// A tool's schema, compiled, or why it cannot be.
#[derive(Debug)]
pub(crate) struct SchemaChecker {
    compiled: Result<compile::Compiled, String>,
}

impl SchemaChecker {
    /// Compiles a schema, in the dialect it names. Never reads a file or the network.
    pub(crate) fn compile(schema: &RawValue) -> Self {
        Self {
            compiled: compile::compile(schema),
        }
    }

    /// What of the schema is not checked, though the rest is: one line, with the reasons.
    pub(crate) fn gap(&self) -> Option<&str> {
        self.compiled.as_ref().ok()?.gap.as_deref()
    }

    /// Checks a value of this size.
    pub(crate) fn check(&self, value: &Value, size: ValueSize) -> SchemaVerdict {
        let compile::Compiled {
            validator, weight, ..
        } = match &self.compiled {
            Ok(compiled) => compiled,
            Err(why) => return SchemaVerdict::Unchecked(why.clone()),
        };
        if weight.work(size) > weight::MAX_WORK {
            return SchemaVerdict::Unchecked("would take too much work for this value".to_owned());
        }
        // Most values fit, and to find that out takes no list of what is wrong.
        if validator.is_valid(value) {
            return SchemaVerdict::Fits;
        }
        let mut problems = Vec::new();
        for error in validator.iter_errors(value).take(MAX_PROBLEMS) {
            if let ValidationErrorKind::BacktrackLimitExceeded { .. }
            | ValidationErrorKind::RegexEngineFailure { .. } = error.kind()
            {
                return SchemaVerdict::Unchecked("has a pattern that takes too long".to_owned());
            }
            problems.push(explain(&error));
        }
        if problems.is_empty() {
            SchemaVerdict::Fits
        } else {
            SchemaVerdict::Violates(problems)
        }
    }
}

pub(crate) fn explain(error: &ValidationError<'_>) -> Problem {
    let path = error.instance_path().to_string();
    let message = match error.kind() {
        ValidationErrorKind::Required { property } => match property.as_str() {
            Some(property) => format!("`{property}` is missing"),
            None => format!("{property} is missing"),
        },
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("`{}` does not belong here", unexpected.join("`, `"))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            alternatives(&path, context)
        }
        // The library quotes the whole value; what was expected says more than what was given.
        _ => error.masked().to_string(),
    };
    Problem {
        path: text::cut(&text::clean_line(&path), MAX_MESSAGE).into_owned(),
        message: text::cut(&text::clean_line(&message), MAX_MESSAGE).into_owned(),
    }
}

/// What each alternative expected, because that none fits says nothing about how to mend it.
pub(crate) fn alternatives(path: &str, context: &[Vec<ValidationError<'static>>]) -> String {
    let mut expectations: Vec<String> = Vec::new();
    for branch in context.iter().filter_map(|branch| branch.first()) {
        let Problem {
            path: deeper,
            message,
        } = explain(branch);
        let expectation = match deeper.strip_prefix(path) {
            Some(rest) if !rest.is_empty() => format!("`{rest}`: {message}"),
            _ => message,
        };
        if !expectations.contains(&expectation) {
            expectations.push(expectation);
        }
    }
    let more = expectations.len().saturating_sub(MAX_ALTERNATIVES);
    expectations.truncate(MAX_ALTERNATIVES);
    if more > 0 {
        expectations.push(format!("{more} more"));
    }
    format!("fits no alternative: {}", expectations.join(", or "))
}

/// How large a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ValueSize {
    /// At least so many bytes of JSON.
    pub(crate) bytes: usize,
    /// How many values.
    values: u64,
    /// How many levels; counting stops past the limit.
    pub(crate) depth: usize,
}

impl ValueSize {
    pub(crate) fn of(arguments: &Map<String, Value>) -> Self {
        let mut size = ValueSize::default();
        size.add_object(arguments, 1);
        size
    }

    /// Of any value; counting stops past the limits.
    pub(crate) fn of_value(value: &Value) -> Self {
        let mut size = ValueSize::default();
        size.add(value, 1);
        size
    }

    /// Whether counting stopped.
    pub(crate) fn is_past_limits(self) -> bool {
        self.bytes > MAX_ARGUMENT_BYTES || self.depth > MAX_ARGUMENT_DEPTH
    }

    fn add_object(&mut self, members: &Map<String, Value>, depth: usize) {
        self.bytes += 2;
        for (key, member) in members {
            self.bytes += key.len() + 4;
            self.add(member, depth + 1);
        }
    }

    fn add(&mut self, value: &Value, depth: usize) {
        self.values += 1;
        self.depth = self.depth.max(depth);
        // Past the limit nothing more needs to be known.
        if depth > MAX_ARGUMENT_DEPTH || self.bytes > MAX_ARGUMENT_BYTES {
            return;
        }
        match value {
            Value::String(text) => self.bytes += text.len() + 3,
            Value::Array(items) => {
                self.bytes += 2;
                for item in items {
                    self.add(item, depth + 1);
                }
            }
            Value::Object(members) => self.add_object(members, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.bytes += 2,
        }
    }
}

/// One way in which arguments do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, as a JSON pointer into the arguments; empty for the arguments as a whole.
    pub path: String,
    /// What was expected there.
    pub message: String,
}

/// The most values in a schema, counting every object, array and scalar.
pub(crate) const MAX_SCHEMA_NODES: usize = 2_000;
