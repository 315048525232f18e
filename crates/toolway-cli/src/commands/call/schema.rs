//! What a tool's schema says about its arguments, read through references and alternatives.
//!
//! Owns gathering: which arguments there are, which are needed, and of which kinds each may be.
//! Says nothing about whether arguments fit, which is the host's finding, and knows less than
//! JSON Schema: what it does not understand counts as not said.

#[cfg(test)]
mod tests;

use std::cell::Cell;

use serde_json::Value;

/// The deepest nesting that is followed; a circle of references ends here.
const MAX_DEPTH: usize = 16;
/// The most schemas that are looked at for one answer: alternatives of alternatives multiply.
const MAX_STEPS: usize = 2_000;

/// A kind of JSON value, as a bit of [`Kinds`].
const NULL: u8 = 1;
const BOOLEAN: u8 = 1 << 1;
const INTEGER: u8 = 1 << 2;
/// A number that is no integer.
const FRACTION: u8 = 1 << 3;
const STRING: u8 = 1 << 4;
const ARRAY: u8 = 1 << 5;
const OBJECT: u8 = 1 << 6;

/// Every kind there is, in the order in which usage lines name them.
const NAMES: [(&str, u8); 7] = [
    ("string", STRING),
    ("number", INTEGER | FRACTION),
    ("integer", INTEGER),
    ("boolean", BOOLEAN),
    ("array", ARRAY),
    ("object", OBJECT),
    ("null", NULL),
];

/// One step of a path to an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum Step {
    /// Into an object.
    Member(String),
    /// Into a list.
    Item(usize),
}

/// What is said about one argument.
#[derive(Debug, Clone, Default)]
pub(in crate::commands) struct Kind<'a> {
    /// Which kinds it may be of; none when nothing is said.
    kinds: Option<u8>,
    /// The values that are counted, where any are.
    values: Vec<&'a Value>,
    /// What the items of a list may be.
    items: Vec<&'a Value>,
}

impl<'a> Kind<'a> {
    /// The values that are counted, where any are.
    pub(in crate::commands) fn values(&self) -> &[&'a Value] {
        &self.values
    }

    /// Whether it is true or false, or nothing.
    pub(in crate::commands) fn is_boolean(&self) -> bool {
        self.kinds.is_some_and(|kinds| kinds & !NULL == BOOLEAN)
    }

    /// Whether nothing is said about kinds.
    pub(super) fn is_open(&self) -> bool {
        self.kinds.is_none()
    }

    /// Whether only texts will do.
    pub(super) fn is_text(&self) -> bool {
        self.kinds == Some(STRING)
    }

    /// Whether it is a list, or nothing.
    pub(super) fn is_list(&self) -> bool {
        self.kinds.is_some_and(|kinds| kinds & !NULL == ARRAY)
    }

    /// Whether it can be an object.
    pub(super) fn may_be_object(&self) -> bool {
        self.kinds.is_none_or(|kinds| kinds & OBJECT != 0)
    }

    /// Whether it can be a list.
    pub(super) fn may_be_list(&self) -> bool {
        self.kinds.is_none_or(|kinds| kinds & ARRAY != 0)
    }

    /// Whether a value is of a kind that is allowed outright.
    pub(super) fn allows(&self, value: &Value) -> bool {
        self.kinds.is_some_and(|kinds| kinds & kind_of(value) != 0)
    }

    /// The kinds by name, without `null` beside others.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let mut left = self.kinds.unwrap_or_default();
        if left != NULL {
            left &= !NULL;
        }
        let mut names = Vec::new();
        for (name, bits) in NAMES {
            if left & bits == bits {
                names.push(name);
                left &= !bits;
            }
        }
        names
    }

    /// One or the other.
    fn or(mut self, other: Self) -> Self {
        self.kinds = match (self.kinds, other.kinds) {
            (Some(one), Some(two)) => Some(one | two),
            // Values that are counted say what they are themselves.
            (Some(one), None) if !other.values.is_empty() => Some(one),
            (None, Some(two)) if !self.values.is_empty() => Some(two),
            _ => None,
        };
        self.values.extend(other.values);
        self.items.extend(other.items);
        self
    }

    /// The one and the other.
    fn and(mut self, other: Self) -> Self {
        self.kinds = match (self.kinds, other.kinds) {
            (Some(one), Some(two)) => Some(one & two),
            (one, two) => one.or(two),
        };
        self.values.extend(other.values);
        self.items.extend(other.items);
        self
    }
}

fn kind_of(value: &Value) -> u8 {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(number) if number.is_i64() || number.is_u64() => INTEGER,
        Value::Number(_) => FRACTION,
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

/// The arguments of a tool.
pub(in crate::commands) struct Schema<'a> {
    root: &'a Value,
    steps: Cell<usize>,
}

/// The arguments that are there, and those that are needed.
#[derive(Debug, Default)]
pub(in crate::commands) struct Arguments {
    /// All, in the schema's order.
    pub(in crate::commands) known: Vec<String>,
    /// Those that every call needs.
    pub(super) needed: Vec<String>,
    /// Groups of which a call needs one, what is needed anyway left out.
    pub(super) choices: Vec<Vec<Vec<String>>>,
}

impl Arguments {
    fn add(&mut self, other: Self) {
        merge(&mut self.known, other.known);
        merge(&mut self.needed, other.needed);
        self.choices.extend(other.choices);
    }
}

fn merge(into: &mut Vec<String>, more: Vec<String>) {
    for name in more {
        if !into.contains(&name) {
            into.push(name);
        }
    }
}

impl<'a> Schema<'a> {
    /// Of a tool with this schema.
    pub(in crate::commands) fn new(root: &'a Value) -> Self {
        Self {
            root,
            steps: Cell::new(0),
        }
    }

    /// The arguments it speaks of.
    pub(in crate::commands) fn arguments(&self) -> Arguments {
        self.steps.set(0);
        let mut all = self.gather(self.root, 0).unwrap_or_default();
        let needed = &all.needed;
        for choice in &mut all.choices {
            for group in choice.iter_mut() {
                group.retain(|name| !needed.contains(name));
            }
            choice.dedup();
        }
        // Who may choose to give nothing need not choose.
        let is_real = |choice: &Vec<Vec<String>>| {
            choice.len() > 1 && choice.iter().all(|group| !group.is_empty())
        };
        all.choices.retain(is_real);
        let needed = all.needed.clone();
        merge(&mut all.known, needed);
        all
    }

    /// What it says about one argument.
    pub(in crate::commands) fn argument(&self, name: &str) -> Kind<'a> {
        self.steps.set(0);
        self.property(self.root, name, 0).unwrap_or_default()
    }

    /// What it says about the place that a path leads to.
    pub(in crate::commands) fn within(&self, path: &[Step]) -> Kind<'a> {
        if let [Step::Member(name)] = path {
            return self.argument(name);
        }
        let places = self.places(path);
        self.steps.set(0);
        let kinds = places.into_iter().filter_map(|place| self.kind(place, 0));
        kinds.reduce(Kind::or).unwrap_or_default()
    }

    /// The members of the object that a path leads to.
    pub(in crate::commands) fn members(&self, path: &[Step]) -> Vec<String> {
        let mut names = Vec::new();
        for place in self.places(path) {
            self.steps.set(0);
            merge(&mut names, self.gather(place, 0).unwrap_or_default().known);
        }
        names
    }

    /// The schemas of the place that a path leads to.
    fn places(&self, path: &[Step]) -> Vec<&'a Value> {
        self.steps.set(0);
        let mut places = vec![self.root];
        for step in path {
            let mut next = Vec::new();
            for place in places {
                self.enter(place, step, 0, &mut next);
            }
            places = next;
        }
        places
    }

    fn enter(&self, schema: &'a Value, step: &Step, depth: usize, into: &mut Vec<&'a Value>) {
        if !self.step(depth) {
            return;
        }
        let own = match step {
            Step::Member(name) => schema
                .get("properties")
                .and_then(|all| all.get(name))
                .or_else(|| schema.get("additionalProperties")),
            Step::Item(_) => schema.get("items"),
        };
        into.extend(own.filter(|own| own.is_object()));
        let parts = self.target(schema).into_iter();
        for choice in ["allOf", "anyOf", "oneOf"] {
            for part in each(schema, choice) {
                self.enter(part, step, depth + 1, into);
            }
        }
        for part in parts {
            self.enter(part, step, depth + 1, into);
        }
    }

    /// What is said about the items of a list.
    pub(super) fn items(&self, list: &Kind<'a>) -> Kind<'a> {
        self.steps.set(0);
        let kinds = list.items.iter().filter_map(|items| self.kind(items, 0));
        kinds.reduce(Kind::or).unwrap_or_default()
    }

    /// Whether there is still room to look into one more.
    fn step(&self, depth: usize) -> bool {
        self.steps.set(self.steps.get() + 1);
        depth < MAX_DEPTH && self.steps.get() < MAX_STEPS
    }

    /// The schema that a reference within this one leads to.
    fn target(&self, schema: &Value) -> Option<&'a Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }

    /// What a schema says about the value it is for; none when it was not followed to its end.
    fn kind(&self, schema: &'a Value, depth: usize) -> Option<Kind<'a>> {
        if !self.step(depth) {
            return None;
        }
        let named = |name: &Value| {
            let known = NAMES.iter().find(|(known, _)| name == known);
            known.map_or(0, |(_, bits)| *bits)
        };
        let kinds = match schema.get("type") {
            Some(one @ Value::String(_)) => Some(named(one)),
            Some(Value::Array(several)) => Some(several.iter().map(named).fold(0, |a, b| a | b)),
            _ => None,
        };
        let counted = schema.get("enum").and_then(Value::as_array);
        let said = Kind {
            kinds: kinds.filter(|kinds| *kinds != 0),
            values: counted
                .into_iter()
                .flatten()
                .chain(schema.get("const"))
                .collect(),
            items: schema.get("items").into_iter().collect(),
        };
        let is_cut = Cell::new(false);
        let look = |schema| {
            let found = self.kind(schema, depth + 1);
            is_cut.set(is_cut.get() || found.is_none());
            found
        };
        let parts = self.target(schema).into_iter().chain(each(schema, "allOf"));
        let mut said = parts.filter_map(look).fold(said, Kind::and);
        for choice in ["anyOf", "oneOf"] {
            if let Some(any) = each(schema, choice).filter_map(look).reduce(Kind::or) {
                said = said.and(any);
            }
        }
        // What only leads in a circle says nothing, which is not that anything goes.
        let says_nothing = said.is_open() && said.values.is_empty();
        (!(is_cut.get() && says_nothing)).then_some(said)
    }

    /// What a schema of an object says about one member; none when nothing.
    fn property(&self, schema: &'a Value, name: &str, depth: usize) -> Option<Kind<'a>> {
        if !self.step(depth) {
            return None;
        }
        let own = schema.get("properties").and_then(|all| all.get(name));
        let own = own.or_else(|| schema.get("additionalProperties"));
        let own = own.filter(|own| own.is_object());
        let own = own.and_then(|own| self.kind(own, depth + 1));
        let look = |schema| self.property(schema, name, depth + 1);
        let parts = self.target(schema).into_iter().chain(each(schema, "allOf"));
        let mut said = own
            .into_iter()
            .chain(parts.filter_map(look))
            .reduce(Kind::and);
        for choice in ["anyOf", "oneOf"] {
            let any = each(schema, choice).filter_map(look).reduce(Kind::or);
            said = said.into_iter().chain(any).reduce(Kind::and);
        }
        said
    }

    /// The arguments that a schema speaks of; none when it was not followed to its end.
    fn gather(&self, schema: &'a Value, depth: usize) -> Option<Arguments> {
        if !self.step(depth) {
            return None;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let texts = required.into_iter().flatten().filter_map(Value::as_str);
        // What has a default need not be typed: the host sends it.
        let has_default = |name: &&str| {
            let property = properties.and_then(|all| all.get(*name));
            property.is_some_and(|property| {
                let referred = self.target(property);
                property.get("default").is_some()
                    || referred.is_some_and(|referred| referred.get("default").is_some())
            })
        };
        let texts = texts.filter(|name| !has_default(name));
        let mut all = Arguments {
            known: properties
                .into_iter()
                .flat_map(|all| all.keys().cloned())
                .collect(),
            needed: texts.map(str::to_owned).collect(),
            choices: Vec::new(),
        };
        let look = |schema| self.gather(schema, depth + 1);
        for part in self.target(schema).into_iter().chain(each(schema, "allOf")) {
            all.add(look(part).unwrap_or_default());
        }
        for choice in ["anyOf", "oneOf"] {
            let groups: Vec<Arguments> = each(schema, choice).filter_map(look).collect();
            let Some(first) = groups.first() else {
                continue;
            };
            let everywhere = |name: &&String| groups.iter().all(|it| it.needed.contains(*name));
            let common = first.needed.iter().filter(everywhere).cloned().collect();
            merge(&mut all.needed, common);
            let needs = groups.iter().map(|group| group.needed.clone());
            all.choices.push(needs.collect());
            for group in groups {
                merge(&mut all.known, group.known);
            }
        }
        Some(all)
    }
}

/// The schemas of a list of them.
fn each<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    let list = schema.get(key).and_then(Value::as_array);
    list.into_iter().flatten()
}
