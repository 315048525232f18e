//! From a schema to what checks against it.
//!
//! Owns finding out what of a schema cannot be used, and how much memory its patterns may take.
//! Taking that out without asking for more than before is `json_schema/repair.rs`.

use std::collections::HashSet;

use jsonschema::error::{ValidationError, ValidationErrorKind};
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolway_types::text;

use crate::json_schema::repair::SchemaPath;
use crate::json_schema::weight::{Unbounded, Weight, pattern};
use crate::json_schema::{MAX_MESSAGE, ValueSize, plain, repair, weight};

/// The most memory one pattern of a schema may take: `[\p{L}\p{N}_-]{1,256}` needs this much.
const PATTERN_BYTES: usize = 16 * 1024 * 1024;
/// The most memory all patterns of a schema may take together.
const PATTERNS_BYTES: usize = 32 * 1024 * 1024;
/// The most memory of a pattern of which only the syntax is asked.
const PLAIN_PATTERN_BYTES: usize = 1024 * 1024;
/// The most parts that are taken out of one schema; older spellings of the same kind are one.
const MAX_REPAIRS: usize = 16;
/// The most parts that a warning names.
const MAX_TOLD: usize = 4;
/// The longest place or reason in it, in characters.
const MAX_PART: usize = 120;

/// A schema that can be run.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) validator: Validator,
    pub(super) weight: Weight,
    /// What of it is not checked.
    pub(super) gap: Option<Box<str>>,
}

/// Why a schema cannot be run.
enum CompileFault {
    /// As a whole: it …
    Whole(String),
    /// It is in a dialect that is not known.
    Dialect,
    /// Because of these parts.
    Parts(Vec<(SchemaPath, String)>),
}

/// What is not checked, and why.
struct UncheckedPart {
    place: String,
    why: String,
}

/// Compiles a schema, or as much of it as can be used; else says why not: it …
pub(super) fn compile(schema: &RawValue) -> Result<Compiled, String> {
    let mut schema: Value =
        serde_json::from_str(schema.get()).map_err(|error| format!("cannot be read: {error}"))?;
    let mut fault = match build(&schema) {
        Ok(compiled) => return Ok(compiled),
        Err(CompileFault::Whole(why)) => return Err(why),
        Err(fault) => fault,
    };
    let first = match &fault {
        CompileFault::Parts(parts) => parts
            .first()
            .map(|(place, why)| format!("{}: {why}", pointer(place))),
        _ => None,
    };
    let unusable = || match &first {
        Some(first) => format!("cannot be used: {first}"),
        None => "cannot be used".to_owned(),
    };
    if !repair::can_be_repaired(&schema) {
        return Err(unusable());
    }
    repair::translate(&mut schema);
    let mut parts: Vec<UncheckedPart> = Vec::new();
    let mut repairs = 0;
    // Each round takes something out, or is the last.
    for _ in 0..=MAX_REPAIRS {
        match build(&schema) {
            Ok(compiled) => {
                return Ok(Compiled {
                    gap: told(&parts),
                    ..compiled
                });
            }
            Err(found) => fault = found,
        }
        match fault {
            CompileFault::Whole(why) => return Err(why),
            CompileFault::Dialect => {
                repairs += 1;
                let why = "its dialect is not known, and it is read as 2020-12";
                let gone = repair::adopt(&mut schema);
                parts.extend(gone.into_iter().map(|place| UncheckedPart {
                    place,
                    why: why.to_owned(),
                }));
            }
            CompileFault::Parts(found) => {
                let mut old = HashSet::new();
                for (place, why) in found {
                    // Gone with another part already.
                    if !place.is_in(&schema) {
                        continue;
                    }
                    if !repair::is_old(&schema, &place) || old.insert(place.last().to_owned()) {
                        repairs += 1;
                    }
                    if repairs > MAX_REPAIRS {
                        return Err(unusable());
                    }
                    let Some(gone) = repair::take_out(&mut schema, &place) else {
                        return Err(unusable());
                    };
                    parts.extend(gone.into_iter().map(|place| UncheckedPart {
                        place,
                        why: why.clone(),
                    }));
                }
            }
        }
    }
    Err(unusable())
}

fn pointer(place: &SchemaPath) -> String {
    let pointer = place.to_string();
    format!("`{}`", text::cut(&text::clean_line(&pointer), MAX_PART))
}

/// One line about what is not checked.
fn told(parts: &[UncheckedPart]) -> Option<Box<str>> {
    let mut told: Vec<String> = parts
        .iter()
        .take(MAX_TOLD)
        .map(|UncheckedPart { place, why }| {
            let place = text::clean_line(place);
            format!("`{}` was not checked: {why}", text::cut(&place, MAX_PART))
        })
        .collect();
    if parts.len() > MAX_TOLD {
        told.push(format!("{} more parts were not", parts.len() - MAX_TOLD));
    }
    (!told.is_empty()).then(|| told.join("; ").into())
}

fn build(schema: &Value) -> Result<Compiled, CompileFault> {
    let weight = match weight::weigh(schema) {
        Ok(weight) => weight,
        Err(Unbounded::Reference) => {
            let places = weight::unfollowed(schema);
            if places.is_empty() {
                return Err(CompileFault::Whole(Unbounded::Reference.to_string()));
            }
            let why = "a reference to elsewhere or to nothing is not followed";
            let parts = places
                .into_iter()
                .map(|steps| (SchemaPath::new(steps), why.to_owned()));
            return Err(CompileFault::Parts(parts.collect()));
        }
        Err(why) => return Err(CompileFault::Whole(why.to_string())),
    };
    if weight.work(ValueSize::default()) > weight::MAX_WORK {
        return Err(CompileFault::Whole(
            "would take too much work for any value".to_owned(),
        ));
    }
    if Draft::default().detect(schema) == Draft::Unknown {
        return Err(CompileFault::Dialect);
    }
    let limit = pattern_limit(schema);
    let mut options = jsonschema::options()
        .offline()
        .with_pattern_options(PatternOptions::regex().size_limit(limit));
    if plain::is_plain(schema) {
        options = options
            .with_draft(Draft::Draft7)
            .should_validate_formats(false);
    }
    let validator = options
        .build(schema)
        .map_err(|error| fault(schema, &error, limit))?;
    Ok(Compiled {
        validator,
        weight,
        gap: None,
    })
}

/// What the library could not use. It tells one thing at a time; everything of the same kind is
/// looked for at once, because it compiles all patterns anew each time.
fn fault(schema: &Value, error: &ValidationError<'_>, limit: usize) -> CompileFault {
    if error.instance_path().as_str().is_empty() {
        let reason = text::clean_line(&error.to_string()).into_owned();
        let reason = text::cut(&reason, MAX_MESSAGE);
        return CompileFault::Whole(format!("cannot be used: {reason}"));
    }
    let mut parts = Vec::new();
    if let ValidationErrorKind::Format { .. } = error.kind() {
        find_patterns(schema, &mut Vec::new(), &mut |steps, pattern| {
            if let Some(why) = unusable_pattern(pattern, limit) {
                parts.push((SchemaPath::new(steps.to_vec()), why.to_owned()));
            }
        });
    } else {
        let meta = match Draft::default().detect(schema) {
            Draft::Draft4 => jsonschema::draft4::meta::validator(),
            Draft::Draft6 => jsonschema::draft6::meta::validator(),
            Draft::Draft7 => jsonschema::draft7::meta::validator(),
            Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
            _ => jsonschema::draft202012::meta::validator(),
        };
        // One more than are taken out, and one place can have several problems.
        for error in meta.iter_errors(schema).take(super::MAX_SCHEMA_NODES) {
            parts.push(part(&error));
        }
    }
    if parts.is_empty() {
        parts.push(part(error));
    }
    CompileFault::Parts(parts)
}

fn part(error: &ValidationError<'_>) -> (SchemaPath, String) {
    let error = deepest(error);
    let reason = match error.kind() {
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            format!("{} does not belong there", error.instance())
        }
        _ => error.to_string(),
    };
    let reason = text::clean_line(&reason);
    (
        SchemaPath::parse(error.instance_path().as_str()),
        text::cut(&reason, MAX_PART).into_owned(),
    )
}

/// Where an alternative got further than to the value itself, the problem is there.
fn deepest<'a, 'b>(error: &'a ValidationError<'b>) -> &'a ValidationError<'b> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return error;
    };
    let here = error.instance_path().as_str().len();
    context
        .iter()
        .flatten()
        .find(|inner| inner.instance_path().as_str().len() > here)
        .map_or(error, |inner| deepest(inner))
}

/// The memory for each pattern, so that all together stay within theirs.
fn pattern_limit(schema: &Value) -> usize {
    let mut patterns = HashSet::new();
    find_patterns(schema, &mut Vec::new(), &mut |_, pattern| {
        patterns.insert(pattern.to_owned());
    });
    (PATTERNS_BYTES / patterns.len().max(1)).min(PATTERN_BYTES)
}

/// Calls for every pattern; values that are no schemas are not looked into.
fn find_patterns(value: &Value, steps: &mut Vec<String>, found: &mut impl FnMut(&[String], &str)) {
    let mut deeper = |step: String, member: &Value| {
        steps.push(step);
        find_patterns(member, steps, found);
        steps.pop();
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                deeper(index.to_string(), item);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("const" | "default", _) | ("enum" | "examples", Value::Array(_)) => {}
                    _ => deeper(key.clone(), member),
                }
            }
            if let Some(Value::String(pattern)) = members.get("pattern") {
                steps.push("pattern".to_owned());
                found(steps, pattern);
                steps.pop();
            }
            if let Some(Value::Object(parts)) = members.get("patternProperties") {
                for pattern in parts.keys() {
                    steps.extend(["patternProperties".to_owned(), pattern.clone()]);
                    found(steps, pattern);
                    steps.truncate(steps.len() - 2);
                }
            }
        }
        _ => {}
    }
}

/// Why a pattern cannot be run, if it cannot.
fn unusable_pattern(pattern: &str, limit: usize) -> Option<&'static str> {
    let options = |bytes| PatternOptions::regex().size_limit(bytes);
    let compiles = |pattern: &str, bytes| {
        let schema = json!({ "pattern": pattern });
        let options = jsonschema::options().with_pattern_options(options(bytes));
        options.build(&schema).is_ok()
    };
    if compiles(pattern, limit) {
        return None;
    }
    let plain = pattern::without_counts(pattern);
    if compiles(&plain, PLAIN_PATTERN_BYTES) {
        return Some("the pattern is too large once its repetitions are written out");
    }
    let schema = json!({ "pattern": plain });
    let looks_around = jsonschema::options()
        .with_pattern_options(PatternOptions::fancy_regex().size_limit(PLAIN_PATTERN_BYTES))
        .build(&schema)
        .is_ok();
    Some(if looks_around {
        "the pattern looks around or refers back, which can take without end"
    } else {
        "it is no pattern that is understood here"
    })
}
