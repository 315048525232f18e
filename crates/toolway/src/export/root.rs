//! The root of a schema: an object, and nothing that a target refuses there.
//!
//! Owns how `$ref`, `allOf`, `anyOf` and `oneOf` at the root become properties: those of all
//! branches together, each as its branches describe it, and required only if every branch that
//! could apply requires it. So nothing is required that the server does not require.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use toolway_schema::{list, properties, required, target};
use toolway_types::text;

use crate::catalog::sanitize::MAX_DESCRIPTION;

/// How deep branches are followed; deeper ones say nothing.
const MAX_DEPTH: usize = 16;
/// How many branches are followed in all: references can multiply them.
const MAX_BRANCHES: usize = 512;
/// How many bytes of properties are taken from branches.
const MAX_BYTES: usize = 256 * 1024;

/// The root as a plain object without the refused keywords.
pub(super) fn plain(schema: &Value, refused: &[&str]) -> Map<String, Value> {
    let mut root = schema.as_object().cloned().unwrap_or_default();
    let composed = ["$ref", "allOf", "anyOf", "oneOf"]
        .iter()
        .any(|keyword| root.contains_key(*keyword));
    if composed {
        let mut gather = Gather {
            whole: schema,
            branches: 0,
            bytes: 0,
        };
        let gathered = gather.all(schema, 0);
        for keyword in ["$ref", "allOf", "anyOf", "oneOf"] {
            root.remove(keyword);
        }
        gathered.write(&mut root);
    }
    for keyword in refused {
        root.remove(*keyword);
    }
    root.insert("type".to_owned(), json!("object"));
    root
}

/// Takes out the properties whose names do not fit.
pub(super) fn keep_properties(
    root: &mut Map<String, Value>,
    fits: impl Fn(&str) -> bool,
    left_out: &mut Vec<String>,
) {
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        properties.retain(|name, _| {
            let fits = fits(name);
            if !fits {
                left_out.push(text::cut(&text::clean_line(name), 64).into_owned());
            }
            fits
        });
    }
    // What cannot be passed cannot be required.
    if let Some(Value::Array(required)) = root.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(&fits));
    }
}

/// What a schema says about an object's members.
#[derive(Default)]
struct Gathered {
    properties: BTreeMap<String, Value>,
    /// In the order they were found.
    order: Vec<String>,
    required: BTreeSet<String>,
    descriptions: Vec<String>,
}

impl Gathered {
    fn put(&mut self, name: &str, value: Value, keyword: &str) {
        match self.properties.get_mut(name) {
            None => {
                self.order.push(name.to_owned());
                self.properties.insert(name.to_owned(), value);
            }
            Some(known) if *known == value => {}
            Some(known) => {
                // Beside other keywords a list is theirs, and means something else.
                let alone = known.as_object().is_some_and(|known| known.len() == 1);
                let list = known.get_mut(keyword).and_then(Value::as_array_mut);
                match list.filter(|_| alone) {
                    Some(list) if list.contains(&value) => {}
                    Some(list) => list.push(value),
                    None => *known = json!({ keyword: [known.take(), value] }),
                }
            }
        }
    }

    fn describe(&mut self, more: Vec<String>) {
        for text in more {
            if !self.descriptions.contains(&text) {
                self.descriptions.push(text);
            }
        }
    }

    /// Takes in what holds as well.
    fn and(&mut self, mut other: Gathered) {
        for name in other.order {
            if let Some(value) = other.properties.remove(&name) {
                self.put(&name, value, "allOf");
            }
        }
        self.required.append(&mut other.required);
        self.describe(other.descriptions);
    }

    /// Takes in what may hold instead.
    fn or(&mut self, mut other: Gathered) {
        for name in other.order {
            if let Some(value) = other.properties.remove(&name) {
                self.put(&name, value, "anyOf");
            }
        }
        self.required.retain(|name| other.required.contains(name));
        self.describe(other.descriptions);
    }

    fn write(mut self, root: &mut Map<String, Value>) {
        let mut properties = Map::new();
        for name in self.order {
            if let Some(value) = self.properties.remove(&name) {
                properties.insert(name, value);
            }
        }
        root.insert("properties".to_owned(), Value::Object(properties));
        if self.required.is_empty() {
            root.remove("required");
        } else {
            root.insert("required".to_owned(), json!(self.required));
        }
        let description = self.descriptions.join("\n");
        if !description.is_empty() {
            let description = text::cut(&description, MAX_DESCRIPTION);
            root.insert("description".to_owned(), json!(description));
        }
    }
}

struct Gather<'a> {
    whole: &'a Value,
    branches: usize,
    bytes: usize,
}

impl<'a> Gather<'a> {
    fn all(&mut self, schema: &'a Value, depth: usize) -> Gathered {
        let mut gathered = Gathered::default();
        if !schema.is_object() {
            return gathered;
        }
        self.branches += 1;
        if depth > MAX_DEPTH || self.branches > MAX_BRANCHES {
            return gathered;
        }
        for (name, value) in properties(schema) {
            let value = self.taken(value, depth);
            gathered.put(name, value, "allOf");
        }
        gathered
            .required
            .extend(required(schema).map(str::to_owned));
        if let Some(text) = toolway_schema::text(schema, "description") {
            gathered.describe(vec![text.to_owned()]);
        }
        if let Some(target) = target(self.whole, schema) {
            gathered.and(self.all(target, depth + 1));
        }
        for branch in list(schema, "allOf") {
            gathered.and(self.all(branch, depth + 1));
        }
        for keyword in ["anyOf", "oneOf"] {
            let mut branches = list(schema, keyword).iter();
            if let Some(first) = branches.next() {
                let mut either = self.all(first, depth + 1);
                for branch in branches {
                    either.or(self.all(branch, depth + 1));
                }
                gathered.and(either);
            }
        }
        gathered
    }

    /// A property's schema; those of the root itself are always taken, for they are there anyway.
    fn taken(&mut self, value: &Value, depth: usize) -> Value {
        if depth == 0 {
            return value.clone();
        }
        if self.bytes <= MAX_BYTES {
            self.bytes += value.to_string().len();
        }
        if self.bytes <= MAX_BYTES {
            value.clone()
        } else {
            json!({})
        }
    }
}
