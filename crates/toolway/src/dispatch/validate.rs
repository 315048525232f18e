//! Validate: do the arguments fit the tool's schema, and the answer what was promised.
//!
//! Owns holding a call's arguments against the schema of its tool. The check itself is
//! `json_schema.rs`; that of answers is `validate/structured.rs`, defaults are
//! `validate/defaults.rs`.
//!
//! A schema that cannot be used — broken, a pattern that is not run, a reference to elsewhere —
//! does not stop the call: many servers ship one, the server checks its own arguments, and the
//! schema is no boundary of ours. What of it can be used is, and the
//! outcome carries a warning. A call is refused only for a violation that was found, or for
//! arguments over the bounds.

use std::ops::Deref;

use serde_json::{Map, Value};
use toolway_types::text;
use toolway_wire::RawJson;

use super::resolve::ResolvedCall;
use crate::call::{CallError, CallFault, Oversize};
use crate::json_schema::{
    MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH, Problem, SchemaVerdict, ValueSize,
};

mod defaults;
mod structured;

pub(super) use structured::structured;

/// The longest that is said about arguments that cannot be read.
const MAX_PROBLEM: usize = 200;

/// A call whose arguments match the schema, as far as the schema can be used.
#[derive(Debug)]
pub struct ValidCall<'a> {
    call: ResolvedCall<'a>,
    warning: Option<Box<str>>,
}

impl<'a> Deref for ValidCall<'a> {
    type Target = ResolvedCall<'a>;

    fn deref(&self) -> &ResolvedCall<'a> {
        &self.call
    }
}

impl ValidCall<'_> {
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

/// Checks the arguments. Where they do not fit, but do without those that are `null`, or with the
/// defaults of what is required and missing, they are that from here on.
fn complete(call: &mut ResolvedCall<'_>) -> Result<Option<Box<str>>, CallError> {
    let error = match check(call) {
        Err(error @ CallError::Failed(_, CallFault::Invalid(_))) => error,
        verdict => return verdict,
    };
    let schema = &call.tool().received().input_schema;
    let given = without_nulls(call.arguments());
    let filled = defaults::filled(schema.get(), given.as_ref().unwrap_or(call.arguments()));
    let Some(better) = filled.or(given) else {
        return Err(error);
    };
    let asked = call.rewrite(better.into());
    // What is wrong besides is told without what there is a default for.
    check(call).inspect_err(|_| {
        call.rewrite(asked);
    })
}

/// The arguments without those that are `null`, where there are any: many clients write that for
/// what they leave out.
fn without_nulls(arguments: &Map<String, Value>) -> Option<Map<String, Value>> {
    if !arguments.values().any(Value::is_null) {
        return None;
    }
    let given = arguments.iter().filter(|(_, value)| !value.is_null());
    Some(
        given
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

/// Checks the arguments; gives the reason where they cannot be checked.
pub(super) fn check(call: &ResolvedCall<'_>) -> Result<Option<Box<str>>, CallError> {
    if let Some(problem) = call.problem() {
        return Err(call.failed(CallFault::Invalid(vec![Problem {
            path: String::new(),
            message: text::cut(&text::clean_line(problem), MAX_PROBLEM).into_owned(),
        }])));
    }
    let size = ValueSize::of(call.arguments());
    let raw = call.raw_arguments().map_or(0, RawJson::len);
    if size.bytes.max(raw) > MAX_ARGUMENT_BYTES {
        return Err(call.failed(CallFault::TooLarge {
            what: Oversize::Arguments,
            limit: MAX_ARGUMENT_BYTES,
        }));
    }
    if size.depth > MAX_ARGUMENT_DEPTH {
        let message = format!("nested deeper than {MAX_ARGUMENT_DEPTH} levels");
        return Err(call.failed(CallFault::Invalid(vec![Problem {
            path: String::new(),
            message,
        }])));
    }
    match call.tool().checker().check(call.value(), size) {
        SchemaVerdict::Fits => Ok(call.tool().checker().gap().map(|gap| {
            let shown = &call.tool().shown;
            format!("the arguments of `{shown}` were checked in part only: {gap}").into()
        })),
        SchemaVerdict::Unchecked(why) => {
            let warning = format!(
                "the arguments of `{}` were not checked: its schema {why}",
                call.tool().shown
            );
            Ok(Some(warning.into()))
        }
        SchemaVerdict::Violates(problems) => Err(call.failed(CallFault::Invalid(problems))),
    }
}
