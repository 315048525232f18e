//! What a tool's schema takes, as a person reads it: alternatives, members, items, defaults.
//!
//! Owns reading a schema into a tree, through references, `allOf`, `anyOf` and `oneOf`. How the tree
//! is spelled is `shape/spelling.rs`. How words are typed by a schema is `call/schema.rs`, which asks
//! only of which kind a value is; whether arguments fit is the host's finding.
//!
//! Invariants: a schema of any size and any circle costs a bounded amount of work. What is not
//! understood counts as not said.

mod spelling;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use toolway_schema::{list, properties, required, target, text, types};

pub(super) use self::spelling::{signature, value};

/// The deepest nesting that is followed, references counted.
const MAX_DEPTH: usize = 24;
/// The most that one schema may cost: a step for each schema that is looked at, and for each that is
/// copied where alternatives multiply.
const MAX_STEPS: usize = 10_000;
/// The most alternatives of one place.
const MAX_FORMS: usize = 32;

/// What limits a value, by the words of JSON Schema.
const LIMITS: [&str; 11] = [
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];

/// What one place takes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Shape {
    /// It is one of these; anything where there are none.
    pub(super) forms: Vec<Form>,
    pub(super) description: Option<String>,
    pub(super) default: Option<Value>,
    /// A value that the server gives as an example.
    pub(super) example: Option<Value>,
    /// Its limits, as the schema has them.
    pub(super) limits: Map<String, Value>,
}

/// One way to be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// A kind of value that holds no others.
    Plain(&'static str),
    /// Exactly this.
    Value(Value),
    /// A list of such items.
    List(Box<Shape>),
    /// A list with a shape for each place.
    Places(Vec<Shape>),
    Object(Members),
    /// What is not followed: the name of a definition that leads back to itself.
    Again(String),
}

/// What an object holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Members {
    pub(super) named: Vec<Member>,
    /// What members of any other name are.
    pub(super) others: Option<Box<Shape>>,
}

/// One member of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    pub(super) name: String,
    /// Whether it has to be given: one with a default is sent by the host.
    pub(super) needed: bool,
    pub(super) shape: Shape,
}

impl Shape {
    /// Reads a schema.
    pub(super) fn read(schema: &Value) -> Self {
        let mut reader = Reader {
            root: schema,
            steps: 0,
            open: Vec::new(),
        };
        reader.read(schema, 0)
    }

    fn of(form: Form) -> Self {
        Self {
            forms: vec![form],
            ..Self::default()
        }
    }

    /// Its members, where it is one kind of object or a list of them, `null` aside.
    pub(super) fn members(&self) -> Option<&Members> {
        match self.only()? {
            Form::Object(members) if !members.named.is_empty() => Some(members),
            Form::List(items) => items.members(),
            _ => None,
        }
    }

    /// The only form beside `null`.
    pub(super) fn only(&self) -> Option<&Form> {
        let mut forms = self
            .forms
            .iter()
            .filter(|form| **form != Form::Plain("null"));
        forms.next().filter(|_| forms.next().is_none())
    }

    /// How many shapes there are in it.
    fn weight(&self) -> usize {
        let forms = self.forms.iter().map(|form| match form {
            Form::Plain(_) | Form::Value(_) | Form::Again(_) => 0,
            Form::List(items) => items.weight(),
            Form::Places(places) => places.iter().map(Self::weight).sum(),
            Form::Object(members) => {
                let named = members.named.iter().map(|member| member.shape.weight());
                let others = members.others.iter().map(|others| others.weight());
                named.chain(others).sum()
            }
        });
        1 + forms.sum::<usize>()
    }

    /// The one and the other.
    fn and(self, other: Self) -> Self {
        let forms = match (self.forms.as_slice(), other.forms.as_slice()) {
            (_, []) => self.forms,
            ([], _) => other.forms,
            (ours, theirs) => {
                let pairs = ours
                    .iter()
                    .flat_map(|one| theirs.iter().filter_map(|two| one.meet(two)));
                distinct(pairs)
            }
        };
        let mut limits = self.limits;
        for (name, limit) in other.limits {
            limits.entry(name).or_insert(limit);
        }
        Self {
            forms,
            description: self.description.or(other.description),
            default: self.default.or(other.default),
            example: self.example.or(other.example),
            limits,
        }
    }

    /// This, and beside it one of several.
    fn and_one_of(self, several: Vec<Self>) -> Self {
        let forms = several.iter().flat_map(|one| {
            let ours = Self {
                forms: self.forms.clone(),
                ..Self::default()
            };
            ours.and(one.clone()).forms
        });
        // One that says nothing lets anything in.
        let is_open = self.forms.is_empty() && several.iter().any(|one| one.forms.is_empty());
        let forms = if is_open { Vec::new() } else { distinct(forms) };
        // What an optional value says of itself stands beside `null`.
        let null = Form::Plain("null");
        let mut told = several
            .into_iter()
            .filter(|one| one.forms != [null.clone()]);
        let told = match (told.next(), told.next()) {
            (Some(only), None) => only,
            _ => Self::default(),
        };
        let words = Self {
            forms: Vec::new(),
            ..self
        };
        Self {
            forms,
            ..words.and(Self {
                forms: Vec::new(),
                ..told
            })
        }
    }
}

fn distinct(forms: impl Iterator<Item = Form>) -> Vec<Form> {
    let mut kept: Vec<Form> = Vec::new();
    for form in forms {
        if kept.len() < MAX_FORMS && !kept.contains(&form) {
            kept.push(form);
        }
    }
    kept
}

impl Form {
    /// What is both.
    fn meet(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (one, two) if one == two => Some(one.clone()),
            (Self::Plain("number"), integer @ Self::Plain("integer"))
            | (integer @ Self::Plain("integer"), Self::Plain("number")) => Some(integer.clone()),
            (Self::Value(value), Self::Plain(kind)) | (Self::Plain(kind), Self::Value(value)) => {
                is_of(value, kind).then(|| Self::Value(value.clone()))
            }
            (Self::Object(ours), Self::Object(theirs)) => {
                Some(Self::Object(ours.clone().and(theirs.clone())))
            }
            (Self::List(ours), Self::List(theirs)) => Some(Self::List(Box::new(
                ours.as_ref().clone().and(theirs.as_ref().clone()),
            ))),
            (places @ Self::Places(_), Self::List(_))
            | (Self::List(_), places @ Self::Places(_)) => Some(places.clone()),
            (again @ Self::Again(_), _) | (_, again @ Self::Again(_)) => Some(again.clone()),
            _ => None,
        }
    }
}

impl Members {
    fn and(mut self, other: Self) -> Self {
        for member in other.named {
            match self.named.iter_mut().find(|ours| ours.name == member.name) {
                Some(ours) => {
                    ours.shape = std::mem::take(&mut ours.shape).and(member.shape);
                    ours.needed = (ours.needed || member.needed) && ours.shape.default.is_none();
                }
                None => self.named.push(member),
            }
        }
        self.others = self.others.or(other.others);
        self
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => kind == "number" || (kind == "integer" && !number.is_f64()),
        Value::String(_) => kind == "string",
        Value::Array(_) | Value::Object(_) => false,
    }
}

struct Reader<'a> {
    root: &'a Value,
    steps: usize,
    /// The references that are being followed.
    open: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, schema: &'a Value, depth: usize) -> Shape {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > MAX_STEPS {
            return Shape::of(Form::Again("…".to_owned()));
        }
        if !schema.is_object() {
            return Shape::default();
        }
        let mut shape = self.own(schema, depth);
        if let Some(target) = target(self.root, schema) {
            let reference = text(schema, "$ref").unwrap_or_default();
            let referred = self.referred(reference, target, depth);
            if self.can_join(&shape, &referred) {
                shape = shape.and(referred);
            }
        }
        for part in list(schema, "allOf") {
            let part = self.read(part, depth + 1);
            if self.can_join(&shape, &part) {
                shape = shape.and(part);
            }
        }
        for choice in ["anyOf", "oneOf"] {
            let mut several = Vec::new();
            for one in list(schema, choice) {
                let one = self.read(one, depth + 1);
                if self.can_join(&shape, &one) {
                    several.push(one);
                }
            }
            if !several.is_empty() {
                shape = shape.and_one_of(several);
            }
        }
        shape
    }

    /// Whether there is still room to copy what joining two shapes copies.
    fn can_join(&mut self, one: &Shape, two: &Shape) -> bool {
        let [ours, theirs] = [one, two].map(|shape| shape.forms.len().max(1));
        self.steps += one.weight() * theirs + two.weight() * ours;
        self.steps <= MAX_STEPS
    }

    fn referred(&mut self, reference: &'a str, target: &'a Value, depth: usize) -> Shape {
        if self.open.contains(&reference) {
            let name = reference.rsplit('/').next().unwrap_or(reference);
            let name = if name.is_empty() || name == "#" {
                "…"
            } else {
                name
            };
            return Shape::of(Form::Again(name.to_owned()));
        }
        self.open.push(reference);
        let shape = self.read(target, depth + 1);
        self.open.pop();
        shape
    }

    /// What a schema says itself.
    fn own(&mut self, schema: &'a Value, depth: usize) -> Shape {
        let description = text(schema, "description").map(str::trim);
        let limits = LIMITS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), schema.get(*name)?.clone())));
        Shape {
            forms: self.forms(schema, depth),
            description: description
                .filter(|words| !words.is_empty())
                .map(str::to_owned),
            default: schema.get("default").cloned(),
            example: list(schema, "examples").first().cloned(),
            limits: limits.collect(),
        }
    }

    fn forms(&mut self, schema: &'a Value, depth: usize) -> Vec<Form> {
        if let Some(value) = schema.get("const") {
            return vec![Form::Value(value.clone())];
        }
        if schema.get("enum").is_some_and(Value::is_array) {
            return distinct(
                list(schema, "enum")
                    .iter()
                    .map(|value| Form::Value(value.clone())),
            );
        }
        let has = |keys: &[&str]| keys.iter().any(|key| schema.get(key).is_some());
        let kinds: Vec<&str> = match schema.get("type") {
            Some(Value::String(_) | Value::Array(_)) => types(schema).collect(),
            _ if has(&["properties", "required", "patternProperties"]) => vec!["object"],
            _ if has(&["items", "prefixItems"]) => vec!["array"],
            _ => Vec::new(),
        };
        let mut forms = Vec::new();
        for kind in kinds {
            forms.push(match kind {
                "object" => Form::Object(self.object(schema, depth)),
                "array" => self.items(schema, depth),
                "string" => Form::Plain("string"),
                "number" => Form::Plain("number"),
                "integer" => Form::Plain("integer"),
                "boolean" => Form::Plain("boolean"),
                "null" => Form::Plain("null"),
                _ => continue,
            });
        }
        distinct(forms.into_iter())
    }

    fn items(&mut self, schema: &'a Value, depth: usize) -> Form {
        let places = ["prefixItems", "items"]
            .into_iter()
            .find_map(|key| schema.get(key)?.as_array());
        if let Some(places) = places {
            let shapes = places.iter().map(|place| self.read(place, depth + 1));
            return Form::Places(shapes.collect());
        }
        let items = schema.get("items").map(|items| self.read(items, depth + 1));
        Form::List(Box::new(items.unwrap_or_default()))
    }

    fn object(&mut self, schema: &'a Value, depth: usize) -> Members {
        let required: Vec<&str> = required(schema).collect();
        let mut named = Vec::new();
        for (name, property) in properties(schema) {
            let shape = self.read(property, depth + 1);
            named.push(Member {
                name: name.clone(),
                needed: required.contains(&name.as_str()) && shape.default.is_none(),
                shape,
            });
        }
        for name in required {
            if !named.iter().any(|member| member.name == name) {
                named.push(Member {
                    name: name.to_owned(),
                    needed: true,
                    shape: Shape::default(),
                });
            }
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let others = schema
            .get("additionalProperties")
            .filter(|it| it.is_object());
        let others = others.or_else(|| patterns?.values().next());
        Members {
            named,
            others: others.map(|others| Box::new(self.read(others, depth + 1))),
        }
    }
}
