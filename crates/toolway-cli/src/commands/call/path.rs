//! Arguments within arguments: `ship_to.street=…`, `items[0].id=…`.
//!
//! Owns reading such a key and putting its value in its place. A key is a path only where the schema
//! has an object or a list of its first name; a property whose own name has a dot comes first.

use serde_json::{Map, Value};
use toolway_types::Untrusted;

use crate::report::Report;

use super::schema::{Schema, Step};

/// Reads a key: one step where it is a plain name.
pub(in crate::commands) fn steps(key: &str, schema: &Schema<'_>) -> Result<Vec<Step>, Report> {
    let plain = || vec![Step::Member(key.to_owned())];
    let known = schema.arguments().known;
    if known.iter().any(|name| name == key) {
        return Ok(plain());
    }
    let Some((first, mut rest)) = longest(key, &known) else {
        return Ok(plain());
    };
    let kind = schema.argument(first);
    let can_hold = if rest.starts_with('[') {
        kind.may_be_list()
    } else {
        kind.may_be_object()
    };
    if !can_hold {
        return Ok(plain());
    }
    let mut steps = vec![Step::Member(first.to_owned())];
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (number, behind) = inner.split_once(']').unwrap_or((inner, ""));
            let number = number.parse().map_err(|_| {
                usage(format!(
                    "`{key}`: between brackets stands a number from 0 on"
                ))
                .hint(format!("e.g. `{}[0]=…`", shown(first)))
            })?;
            steps.push(Step::Item(number));
            rest = behind;
            if !rest.is_empty() && !rest.starts_with(['.', '[']) {
                return Err(unreadable(key));
            }
            continue;
        }
        let inner = rest.strip_prefix('.').unwrap_or(rest);
        let members = schema.members(&steps);
        let whole = members.iter().find(|name| *name == inner);
        let (name, behind) = match whole {
            Some(_) => (inner, ""),
            None => longest(inner, &members).unwrap_or_else(|| {
                let end = inner.find(['.', '[']).unwrap_or(inner.len());
                inner.split_at(end)
            }),
        };
        if name.is_empty() {
            return Err(unreadable(key));
        }
        steps.push(Step::Member(name.to_owned()));
        rest = behind;
    }
    Ok(steps)
}

/// The longest of these names that a key begins with, and what comes behind it.
fn longest<'k>(key: &'k str, names: &[String]) -> Option<(&'k str, &'k str)> {
    let fitting = names.iter().filter_map(|name| {
        let rest = key.strip_prefix(name.as_str())?;
        let is_path = !name.is_empty() && rest.starts_with(['.', '[']);
        is_path.then(|| key.split_at(name.len()))
    });
    fitting.max_by_key(|(name, _)| name.len())
}

/// Whether one of two paths leads through the other.
pub(super) fn is_within(outer: &[Step], inner: &[Step]) -> bool {
    outer.len() < inner.len() && inner.starts_with(outer)
}

/// The place that a path leads to, made where it is not there yet.
pub(super) fn place<'m>(
    arguments: &'m mut Map<String, Value>,
    key: &str,
    steps: &[Step],
) -> Result<&'m mut Value, Report> {
    let [Step::Member(first), rest @ ..] = steps else {
        return Err(unreadable(key));
    };
    let mut at = arguments.entry(first.clone()).or_insert(Value::Null);
    for step in rest {
        if at.is_null() {
            *at = match step {
                Step::Member(_) => Value::Object(Map::new()),
                Step::Item(_) => Value::Array(Vec::new()),
            };
        }
        at = match (step, at) {
            (Step::Member(name), Value::Object(members)) => {
                members.entry(name.clone()).or_insert(Value::Null)
            }
            (Step::Item(number), Value::Array(items)) => {
                if *number == items.len() {
                    items.push(Value::Null);
                }
                let count = items.len();
                items.get_mut(*number).ok_or_else(|| {
                    usage(format!(
                        "`{key}` is given, but item {count} before it is not"
                    ))
                    .hint("number items from 0 on, in order")
                })?
            }
            (Step::Member(_), _) => return Err(no_place(key, "an object")),
            (Step::Item(_), _) => return Err(no_place(key, "a list")),
        };
    }
    Ok(at)
}

fn no_place(key: &str, kind: &str) -> Report {
    usage(format!(
        "`{key}` has no place: what it is to stand in is not {kind}"
    ))
    .hint("look at what `--args` and the other arguments say")
}

fn unreadable(key: &str) -> Report {
    usage(format!(
        "`{key}` is not an argument of the form `name.name` or `name[0]`"
    ))
    .hint("e.g. `ship_to.street=…` or `items[0].id=…`")
}

/// Two arguments of which one would overwrite the other.
pub(super) fn clash(outer: &str, inner: &str) -> Report {
    usage(format!("`{outer}` and `{inner}` cannot both be given")).hint(format!(
        "give the whole as `{}:='…'`, or its parts alone",
        shown(outer)
    ))
}

fn usage(message: String) -> Report {
    Report::usage(Untrusted::new(message).to_string())
}

fn shown(name: &str) -> String {
    Untrusted::new(name).to_string()
}
