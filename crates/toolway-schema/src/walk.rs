//! The schemas inside a schema: to read them all, and to change them.
//!
//! Owns which values are looked into. The parser bounds how deep a document is, and so the recursion.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::keyword::{KeywordShape, shape};
use crate::reference::{escaped, identifier};

/// How much of a document counts as schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// What stands under keywords that hold schemas.
    Schemas,
    /// As well what stands under unknown keywords: some readers look into it.
    Unknown,
    /// Every value: a reference can make a schema of any.
    Everything,
}

/// A schema, and where it stands.
#[derive(Debug, Clone)]
pub struct SchemaPlace<'a> {
    /// The names of members and the numbers of entries that lead to it.
    pub steps: Vec<Cow<'a, str>>,
    /// The schema.
    pub schema: &'a Value,
    /// The identifier of the nearest schema around it that has one: references count from there.
    pub base: Option<&'a str>,
}

impl SchemaPlace<'_> {
    /// The steps to one of its members.
    pub fn steps_to(&self, member: &str) -> Vec<String> {
        let steps = self.steps.iter().map(ToString::to_string);
        steps.chain([member.to_owned()]).collect()
    }

    /// The steps as a JSON pointer.
    pub fn pointer(&self) -> String {
        let steps = self.steps.iter();
        steps.fold(String::new(), |pointer, step| step_to(&pointer, step))
    }
}

fn step_to(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", escaped(step))
}

/// A schema and all inside it, in the order they are written.
pub fn places(root: &Value, reach: Reach) -> Vec<SchemaPlace<'_>> {
    let mut walk = Walk {
        reach,
        steps: Vec::new(),
        found: Vec::new(),
    };
    walk.schema(root, None);
    walk.found
}

struct Walk<'a> {
    reach: Reach,
    steps: Vec<Cow<'a, str>>,
    found: Vec<SchemaPlace<'a>>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value, base: Option<&'a str>) {
        let base = identifier(schema).or(base);
        self.found.push(SchemaPlace {
            steps: self.steps.clone(),
            schema,
            base,
        });
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            self.steps.push(Cow::Borrowed(keyword));
            let is_unknown = shape(keyword).is_none();
            if self.reach == Reach::Everything || self.reach == Reach::Unknown && is_unknown {
                self.any(value, base);
            } else {
                for (step, part) in under(keyword, value) {
                    let before = self.steps.len();
                    self.steps.extend(step);
                    self.schema(part, base);
                    self.steps.truncate(before);
                }
            }
            self.steps.pop();
        }
    }

    /// A value that may be a schema, or hold some.
    fn any(&mut self, value: &'a Value, base: Option<&'a str>) {
        match value {
            Value::Object(_) => self.schema(value, base),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.steps.push(index.to_string().into());
                    self.any(item, base);
                    self.steps.pop();
                }
            }
            _ => {}
        }
    }
}

/// The schemas right under a keyword, each with the step to it where several can stand there.
pub fn under<'a>(keyword: &str, value: &'a Value) -> Vec<(Option<Cow<'a, str>>, &'a Value)> {
    match (shape(keyword), value) {
        (Some(KeywordShape::Schema | KeywordShape::Items), Value::Object(_) | Value::Bool(_)) => {
            vec![(None, value)]
        }
        (Some(KeywordShape::SchemaList | KeywordShape::Items), Value::Array(parts)) => {
            let parts = parts.iter().enumerate();
            let parts = parts.map(|(index, part)| (Some(index.to_string().into()), part));
            parts.collect()
        }
        (Some(KeywordShape::SchemaMap | KeywordShape::Dependencies), Value::Object(parts)) => {
            let parts = parts.iter().filter(|(_, part)| !part.is_array());
            let parts = parts.map(|(name, part)| (Some(Cow::Borrowed(name.as_str())), part));
            parts.collect()
        }
        _ => Vec::new(),
    }
}

/// Calls for every object that is a schema, the outer ones first, with the pointer to it, but not
/// inside these keywords.
pub fn rewrite(
    schema: &mut Value,
    but: &[&str],
    visit: &mut impl FnMut(&mut Map<String, Value>, &str),
) {
    rewrite_at(schema, "", but, visit);
}

fn rewrite_at(
    schema: &mut Value,
    here: &str,
    but: &[&str],
    visit: &mut impl FnMut(&mut Map<String, Value>, &str),
) {
    let Value::Object(members) = schema else {
        return;
    };
    visit(members, here);
    for (keyword, value) in members {
        if but.contains(&keyword.as_str()) {
            continue;
        }
        let there = step_to(here, keyword);
        match (shape(keyword), value) {
            (Some(KeywordShape::Schema | KeywordShape::Items), value @ Value::Object(_)) => {
                rewrite_at(value, &there, but, visit);
            }
            (Some(KeywordShape::SchemaList | KeywordShape::Items), Value::Array(parts)) => {
                for (index, part) in parts.iter_mut().enumerate() {
                    rewrite_at(part, &format!("{there}/{index}"), but, visit);
                }
            }
            (Some(KeywordShape::SchemaMap | KeywordShape::Dependencies), Value::Object(parts)) => {
                for (name, part) in parts {
                    rewrite_at(part, &step_to(&there, name), but, visit);
                }
            }
            _ => {}
        }
    }
}

/// Whether these steps lead to a place where a schema stands.
pub fn is_schema_place(schema: &Value, steps: &[impl AsRef<str>]) -> bool {
    let [keyword, rest @ ..] = steps else {
        return true;
    };
    let Some(value) = schema.get(keyword.as_ref()) else {
        return false;
    };
    let found = under(keyword.as_ref(), value);
    found.into_iter().any(|(step, part)| match (step, rest) {
        (None, rest) => is_schema_place(part, rest),
        (Some(step), [name, rest @ ..]) => step == name.as_ref() && is_schema_place(part, rest),
        (Some(_), []) => false,
    })
}
