//! Validate: do the arguments fit the tool's schema, and the answer what was promised.
//!
//! Owns the bounds on arguments and the check against a schema (that of answers is in
//! `validate/structured.rs`, defaults are in `validate/defaults.rs`). The schema is a stranger's program: it is never fetched from anywhere, its patterns run in linear time, and one that
//! could take unbounded work is not run (see `validate/weight.rs`).
//!
//! A schema that cannot be used — broken, a pattern that is not run, a reference to elsewhere —
//! does not stop the call: many servers ship one, the server checks its own arguments, and the
//! schema is no boundary of ours. What of it can be used is (see `validate/compile.rs`), and the
//! outcome carries a warning. A call is refused only for a violation that was found, or for
//! arguments over the bounds.

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolway_types::{Untrusted, text};

use super::resolve::ResolvedCall;
use crate::call::{CallError, Oversize, Problem};
use crate::catalog::CatalogTool;

mod compile;
mod defaults;
mod repair;
mod structured;
#[cfg(test)]
mod tests;
mod weight;

pub(super) use structured::structured;

/// The largest arguments, in bytes of JSON: the request body that peers take.
pub const MAX_ARGUMENT_BYTES: usize = 4 * 1024 * 1024;
/// The deepest arguments; a peer of ours parses no deeper.
pub const MAX_ARGUMENT_DEPTH: usize = 60;
/// The most problems told at once.
const MAX_PROBLEMS: usize = 16;
/// The most alternatives of which it is told what they expected.
const MAX_ALTERNATIVES: usize = 4;
/// The longest message of one problem, in characters: it may quote the arguments.
const MAX_MESSAGE: usize = 300;

/// A call whose arguments match the schema, as far as the schema can be used.
#[derive(Debug)]
pub struct ValidCall<'a> {
    call: ResolvedCall<'a>,
    warning: Option<Box<str>>,
}

impl<'a> ValidCall<'a> {
    /// The tool.
    pub fn tool(&self) -> &'a CatalogTool {
        self.call.tool()
    }

    /// The arguments.
    pub fn arguments(&self) -> &Map<String, Value> {
        self.call.arguments()
    }

    pub(super) fn tool_name(&self) -> Untrusted {
        self.call.tool_name()
    }

    /// Takes other arguments, if they fit too; otherwise the old ones stay.
    pub(super) fn rewrite(&mut self, arguments: Map<String, Value>) -> Result<(), CallError> {
        let old = self.call.rewrite(arguments.into());
        match complete(&mut self.call) {
            Ok(warning) => {
                self.warning = warning;
                Ok(())
            }
            Err(error) => {
                self.call.rewrite(old);
                Err(error)
            }
        }
    }

    /// Why the arguments could not be checked, if they could not.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }
}

/// Checks the arguments.
pub fn validate(mut call: ResolvedCall<'_>) -> Result<ValidCall<'_>, CallError> {
    let warning = complete(&mut call)?;
    Ok(ValidCall { call, warning })
}

/// Checks the arguments. Where they do not fit, but do with the defaults of what is required and
/// missing, they have those from here on.
fn complete(call: &mut ResolvedCall<'_>) -> Result<Option<Box<str>>, CallError> {
    let error = match check(call) {
        Err(error @ CallError::Invalid { .. }) => error,
        verdict => return verdict,
    };
    let schema = &call.tool().received().input_schema;
    let Some(filled) = defaults::filled(schema.get(), call.arguments()) else {
        return Err(error);
    };
    let asked = call.rewrite(filled.into());
    // What is wrong besides is told without what there is a default for.
    check(call).inspect_err(|_| {
        call.rewrite(asked);
    })
}

/// Checks the arguments; gives the reason where they cannot be checked.
pub(super) fn check(call: &ResolvedCall<'_>) -> Result<Option<Box<str>>, CallError> {
    let size = Size::of(call.arguments());
    if size.bytes > MAX_ARGUMENT_BYTES {
        return Err(CallError::TooLarge {
            server: call.tool().key.server.clone(),
            tool: call.tool_name(),
            what: Oversize::Arguments,
            limit: MAX_ARGUMENT_BYTES,
        });
    }
    if size.depth > MAX_ARGUMENT_DEPTH {
        let message = format!("nested deeper than {MAX_ARGUMENT_DEPTH} levels");
        return Err(CallError::Invalid {
            server: call.tool().key.server.clone(),
            tool: call.tool_name(),
            problems: vec![Problem {
                path: String::new(),
                message,
            }],
        });
    }
    match call.tool().checker().check(call.value(), size) {
        Verdict::Fits => Ok(call.tool().checker().gap().map(|gap| {
            let shown = &call.tool().shown;
            format!("the arguments of `{shown}` were checked in part only: {gap}").into()
        })),
        Verdict::Unchecked(why) => {
            let warning = format!(
                "the arguments of `{}` were not checked: its schema {why}",
                call.tool().shown
            );
            Ok(Some(warning.into()))
        }
        Verdict::Violates(problems) => Err(CallError::Invalid {
            server: call.tool().key.server.clone(),
            tool: call.tool_name(),
            problems,
        }),
    }
}

/// What is to be said about a value.
pub(crate) enum Verdict {
    /// They fit.
    Fits,
    /// They do not; at least one problem.
    Violates(Vec<Problem>),
    /// The schema cannot be used: it …
    Unchecked(String),
}

/// A tool's schema, compiled, or why it cannot be.
#[derive(Debug)]
pub(crate) struct Checker {
    compiled: Result<compile::Compiled, String>,
}

impl Checker {
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
    pub(crate) fn check(&self, value: &Value, size: Size) -> Verdict {
        let compile::Compiled {
            validator, weight, ..
        } = match &self.compiled {
            Ok(compiled) => compiled,
            Err(why) => return Verdict::Unchecked(why.clone()),
        };
        if weight.work(size) > weight::MAX_WORK {
            return Verdict::Unchecked("would take too much work for this value".to_owned());
        }
        // Most values fit, and to find that out takes no list of what is wrong.
        if validator.is_valid(value) {
            return Verdict::Fits;
        }
        let mut problems = Vec::new();
        for error in validator.iter_errors(value).take(MAX_PROBLEMS) {
            if let ValidationErrorKind::BacktrackLimitExceeded { .. }
            | ValidationErrorKind::RegexEngineFailure { .. } = error.kind()
            {
                return Verdict::Unchecked("has a pattern that takes too long".to_owned());
            }
            problems.push(explain(&error));
        }
        if problems.is_empty() {
            Verdict::Fits
        } else {
            Verdict::Violates(problems)
        }
    }
}

fn explain(error: &ValidationError<'_>) -> Problem {
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
fn alternatives(path: &str, context: &[Vec<ValidationError<'static>>]) -> String {
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
pub(crate) struct Size {
    /// At least so many bytes of JSON.
    bytes: usize,
    /// How many values.
    values: u64,
    /// How many levels; counting stops past the limit.
    depth: usize,
}

impl Size {
    pub(crate) fn of(arguments: &Map<String, Value>) -> Self {
        let mut size = Size::default();
        size.add_object(arguments, 1);
        size
    }

    /// Of any value; counting stops past the limits.
    pub(crate) fn of_value(value: &Value) -> Self {
        let mut size = Size::default();
        size.add(value, 1);
        size
    }

    /// Whether counting stopped.
    fn is_past_limits(self) -> bool {
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
