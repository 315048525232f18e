//! Takes parts out of a schema so that the rest of it can be used.
//!
//! Owns the one rule: whatever the schema took, it takes afterwards. Most keywords only ask for
//! something, so that without them less is asked. Below `not`, `if` and `contains` it is the other
//! way round, `oneOf` counts, and what `unevaluated…` and `additional…` refuse depends on what
//! stands beside them; there the whole keyword goes. A definition can be used from below any of
//! these, so those that refer to something go as soon as anything is taken out.

use std::fmt;

use serde_json::{Map, Value, json};

use toolway_schema::{
    KeywordShape, REFERENCES, escaped, is_schema_place, rewrite, shape, unescaped,
};

/// Keywords below which less asked is more refused, each with those that mean nothing without it.
const TURNING: [&[&str]; 3] = [
    &["not"],
    &["if", "then", "else"],
    &["contains", "minContains", "maxContains"],
];
/// Keywords inside which nothing may change while they stay.
const COUNTING: [&str; 4] = ["not", "if", "contains", "oneOf"];
/// Keywords that refuse what nothing beside them looked at.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// What stays beside a `$ref` that older dialects take alone.
const HOLDERS: [&str; 5] = ["$schema", "$id", "id", "$defs", "definitions"];

/// A place in a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchemaPath(Vec<String>);

impl SchemaPath {
    pub(super) fn new(steps: Vec<String>) -> Self {
        Self(steps)
    }

    /// Of a JSON pointer.
    pub(super) fn parse(pointer: &str) -> Self {
        let steps = pointer.split('/').skip(1);
        Self(steps.map(unescaped).collect())
    }

    pub(super) fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    pub(super) fn is_in(&self, schema: &Value) -> bool {
        schema.pointer(&self.to_string()).is_some()
    }
}

impl fmt::Display for SchemaPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|step| write!(f, "/{}", escaped(step)))
    }
}

/// Whether every reference leads to where schemas are. What is elsewhere would not be found by
/// walks through schemas alone.
pub(super) fn leads_to_schemas(schema: &Value) -> bool {
    let mut fits = true;
    references(schema, &mut |reference| {
        if let Some(pointer) = reference.strip_prefix('#')
            && pointer.starts_with('/')
            && schema.pointer(pointer).is_some()
        {
            fits &= is_schema_place(schema, &SchemaPath::parse(pointer).0);
        }
    });
    fits
}

fn references(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(members) => members.iter().for_each(|(key, member)| match member {
            Value::String(text) if REFERENCES.contains(&key.as_str()) => found(text),
            _ => references(member, found),
        }),
        _ => {}
    }
}

/// Says what draft-04 said of limits as later dialects do. Means the same everywhere.
pub(super) fn translate(schema: &mut Value) {
    let dialect = schema.get("$schema").and_then(Value::as_str);
    if dialect.is_some_and(|dialect| dialect.contains("draft-04")) {
        return;
    }
    rewrite(schema, &[], &mut |members, _| {
        for (exclusive, plain) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            match members.get(exclusive) {
                Some(Value::Bool(true)) if members.get(plain).is_some_and(Value::is_number) => {
                    let limit = members.shift_remove(plain).unwrap_or_default();
                    members.insert(exclusive.to_owned(), limit);
                }
                Some(Value::Bool(false)) => {
                    members.shift_remove(exclusive);
                }
                _ => {}
            }
        }
    });
}

/// Whether this is how draft-03 asked for something that is asked otherwise since, and on which
/// whole schemas are built.
pub(super) fn is_old(schema: &Value, place: &SchemaPath) -> bool {
    match (place.last(), schema.pointer(&place.to_string())) {
        ("required", Some(Value::Bool(_))) => true,
        ("type", Some(kind)) => kind == "any",
        _ => false,
    }
}

/// Reads a schema of an unknown dialect as one of 2020-12, with every `$ref` taken alone as older
/// dialects do. Gives the places that went.
pub(super) fn adopt(schema: &mut Value) -> Vec<String> {
    let mut gone = vec!["/$schema".to_owned()];
    calm(schema, &mut gone);
    if let Value::Object(members) = schema {
        members.shift_remove("$schema");
    }
    rewrite(schema, &[], &mut |members, _| {
        if members.get("$ref").is_some_and(Value::is_string) {
            members.retain(|key, _| key == "$ref" || HOLDERS.contains(&key.as_str()));
        }
    });
    gone
}

/// Takes a part out, with what cannot stay without it. Gives the places that went, or nothing
/// where the part is the schema.
pub(super) fn take_out(schema: &mut Value, place: &SchemaPath) -> Option<Vec<String>> {
    if place.0.is_empty() {
        return None;
    }
    let mut gone = Vec::new();
    calm(schema, &mut gone);
    let mut cut = Cut {
        ref_is_alone: ref_is_alone(schema),
        rename: !mentions(schema, "anyOf"),
        gone,
    };
    cut.at(schema, &place.0, String::new());
    Some(cut.gone)
}

fn ref_is_alone(schema: &Value) -> bool {
    let dialect = schema.get("$schema").and_then(Value::as_str);
    dialect.is_some_and(|dialect| !dialect.contains("2019-09") && !dialect.contains("2020-12"))
}

fn mentions(schema: &Value, word: &str) -> bool {
    let mut mentioned = false;
    references(schema, &mut |reference| {
        mentioned |= reference.contains(word);
    });
    mentioned
}

fn refers(value: &Value) -> bool {
    let mut refers = false;
    references(value, &mut |_| refers = true);
    refers
}

/// Takes out what depends on a part elsewhere and could refuse more without it.
fn calm(schema: &mut Value, gone: &mut Vec<String>) {
    let rename = !mentions(schema, "anyOf");
    rewrite(schema, &COUNTING, &mut |members, here| {
        // First, for what is taken out below may have been the one that looked.
        if members.values().any(refers) || REFERENCES.iter().any(|it| members.contains_key(*it)) {
            remove(members, &UNEVALUATED, here, gone);
        }
        for group in TURNING {
            if members.get(group[0]).is_some_and(refers) {
                remove(members, group, here, gone);
            }
        }
        if members.get("oneOf").is_some_and(refers) {
            ease(members, here, rename, gone);
        }
    });
}

/// Takes keywords out.
fn remove(members: &mut Map<String, Value>, group: &[&str], here: &str, gone: &mut Vec<String>) {
    for keyword in group {
        if members.shift_remove(*keyword).is_some() {
            gone.push(format!("{here}/{keyword}"));
        }
    }
}

/// Asks for any alternative instead of exactly one; whether they are still there.
fn ease(
    members: &mut Map<String, Value>,
    here: &str,
    rename: bool,
    gone: &mut Vec<String>,
) -> bool {
    let Some(alternatives) = members.shift_remove("oneOf") else {
        return false;
    };
    gone.push(format!("{here}/oneOf"));
    let eased = rename && !members.contains_key("anyOf");
    if eased {
        members.insert("anyOf".to_owned(), alternatives);
    }
    eased
}

struct Cut {
    /// Whether the dialect ignores what stands beside a `$ref`.
    ref_is_alone: bool,
    /// Whether `oneOf` may become `anyOf`: no reference would find it by mistake.
    rename: bool,
    gone: Vec<String>,
}

impl Cut {
    fn at(&mut self, schema: &mut Value, steps: &[String], here: String) {
        let ([keyword, rest @ ..], Value::Object(members)) = (steps, &mut *schema) else {
            // It is no schema at all: asks for nothing.
            *schema = json!({});
            self.gone.push(here);
            return;
        };
        let mut keyword = keyword.as_str();
        remove(members, &UNEVALUATED, &here, &mut self.gone);
        if let Some(group) = TURNING.iter().find(|group| group.contains(&keyword))
            && (group[0] == keyword || group[0] == "contains" || rest.is_empty())
        {
            // Without `then` or `else` less is asked; the others go together.
            let group: &[&str] = match keyword {
                "then" | "else" => &[keyword],
                _ => group,
            };
            return remove(members, group, &here, &mut self.gone);
        }
        if keyword == "oneOf" {
            if rest.is_empty() || !members.get("oneOf").is_some_and(Value::is_array) {
                return remove(members, &["oneOf"], &here, &mut self.gone);
            }
            if !ease(members, &here, self.rename, &mut self.gone) {
                return;
            }
            keyword = "anyOf";
        }
        let there = format!("{here}/{keyword}");
        match (shape(keyword), members.get_mut(keyword), rest) {
            (
                Some(KeywordShape::SchemaMap | KeywordShape::Dependencies),
                Some(Value::Object(parts)),
                [name, rest @ ..],
            ) => {
                let there = format!("{there}/{}", escaped(name));
                let goes = match (keyword, parts.get(name)) {
                    ("patternProperties", _) => rest.is_empty(),
                    ("dependencies", Some(Value::Object(_))) => false,
                    ("dependencies", _) => true,
                    _ => false,
                };
                if goes {
                    parts.shift_remove(name);
                    self.gone.push(there);
                    if keyword == "patternProperties" {
                        remove(members, &["additionalProperties"], &here, &mut self.gone);
                    }
                } else if let Some(part) = parts.get_mut(name) {
                    self.at(part, rest, there);
                }
            }
            (
                Some(KeywordShape::SchemaList | KeywordShape::Items),
                Some(Value::Array(parts)),
                [index, rest @ ..],
            ) => {
                let part = index
                    .parse()
                    .ok()
                    .and_then(|index: usize| parts.get_mut(index));
                // A list that is no list of schemas in this dialect is refused as a whole.
                if let Some(part) = part {
                    self.at(part, rest, format!("{there}/{index}"));
                }
            }
            (
                Some(KeywordShape::Schema | KeywordShape::Items),
                Some(part @ Value::Object(_)),
                [_, ..],
            ) => {
                self.at(part, rest, there);
            }
            _ => {
                let with: &[&str] = match keyword {
                    "properties" | "patternProperties" => &["additionalProperties"],
                    "prefixItems" => &["items"],
                    "items" => &["additionalItems"],
                    _ => &[],
                };
                remove(members, &[keyword], &here, &mut self.gone);
                remove(members, with, &here, &mut self.gone);
                if REFERENCES.contains(&keyword) && self.ref_is_alone {
                    members.retain(|key, _| HOLDERS.contains(&key.as_str()));
                }
            }
        }
    }
}
