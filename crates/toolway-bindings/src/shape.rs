//! What schemas say, as types that several languages can write down.
//!
//! Owns reading one tool's schemas: references and circles, alternatives, what is said in parts. A type
//! is never narrower than its schema, but for what JSON itself is; where it would be, it is open.
//! Types themselves are `kind.rs`'s. Does not own: how a type is spelled.
//!
//! Invariants: a schema of any size, depth and circle costs a bounded amount of work. The order of an
//! object's members in the schema changes nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use toolway_schema::{REFERENCES, list, properties, required, target, types};

use crate::kind::{MAX_FORMS, Type, literal, meet, union};
use crate::names::{TakenNames, pascal};

/// The deepest nesting that is followed, references counted.
const MAX_DEPTH: usize = 40;
/// How many schemas are looked at for one tool.
const MAX_STEPS: usize = 5_000;

/// An object with members.
#[derive(Debug, Clone, Default)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) members: Vec<StructMember>,
    /// Whether the schema says that there may be more members.
    pub(crate) is_open: bool,
    /// Whether it is part of what a tool takes, rather than of what it gives.
    pub(crate) is_taken: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct StructMember {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) is_required: bool,
    /// What is said of it, before it is made a comment.
    pub(crate) description: String,
    pub(crate) remarks: Vec<String>,
}

/// All types of a module.
#[derive(Debug)]
pub(crate) struct Shapes {
    pub(crate) structs: Vec<Struct>,
    pub(crate) names: TakenNames,
}

impl Shapes {
    pub(crate) fn new(reserved: &[&str]) -> Self {
        Self {
            structs: Vec::new(),
            names: TakenNames::without(reserved),
        }
    }

    /// What a tool takes: an object, whatever its schema says.
    pub(crate) fn arguments(&mut self, schema: &Value, name: &str) -> Type {
        let kind = self.read(schema, name, true);
        let open = || Type::Map(Box::new(Type::Unknown));
        match &kind {
            Type::Struct(_) | Type::Map(_) => kind,
            Type::Union(forms) => {
                let objects = forms
                    .iter()
                    .filter(|form| matches!(form, Type::Struct(_) | Type::Map(_)));
                match objects.cloned().collect::<Vec<_>>() {
                    none if none.is_empty() => open(),
                    objects => union(objects),
                }
            }
            _ => open(),
        }
    }

    /// What a tool gives.
    pub(crate) fn result(&mut self, schema: &Value, name: &str) -> Type {
        self.read(schema, name, false)
    }

    fn read(&mut self, schema: &Value, name: &str, is_taken: bool) -> Type {
        let mut reader = SchemaReader {
            root: schema,
            shapes: self,
            is_taken,
            steps: 0,
            known: HashMap::new(),
            open: Vec::new(),
        };
        reader.read(schema, name, 0)
    }

    /// Whether every member may be left out.
    pub(crate) fn may_be_empty(&self, kind: &Type) -> bool {
        match kind {
            Type::Map(_) => true,
            Type::Struct(place) => self.structs[*place]
                .members
                .iter()
                .all(|it| !it.is_required),
            Type::Union(forms) => forms.iter().any(|form| self.may_be_empty(form)),
            _ => false,
        }
    }
}

/// What is known of an object before its members are read.
#[derive(Debug, Default, Clone)]
struct GatheredObject<'a> {
    members: BTreeMap<&'a str, Vec<&'a Value>>,
    required: BTreeSet<&'a str>,
    /// What members of other names are, where that is said; the last word counts.
    others: Option<&'a Value>,
    has_patterns: bool,
    is_closed: bool,
    /// Each adds to what is said; one of them holds.
    choices: Vec<&'a [Value]>,
}

struct SchemaReader<'a, 's> {
    root: &'a Value,
    shapes: &'s mut Shapes,
    is_taken: bool,
    steps: usize,
    /// Schemas that became a struct, by where they lie.
    known: HashMap<*const Value, usize>,
    /// Schemas that are being read.
    open: Vec<*const Value>,
}

impl<'a> SchemaReader<'a, '_> {
    fn read(&mut self, schema: &'a Value, name: &str, depth: usize) -> Type {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > MAX_STEPS || !schema.is_object() {
            return Type::Unknown;
        }
        let place: *const Value = schema;
        if let Some(known) = self.known.get(&place) {
            return Type::Struct(*known);
        }
        if self.open.contains(&place) {
            return Type::Unknown;
        }
        self.open.push(place);
        let kind = self.read_new(schema, name, depth);
        self.open.pop();
        kind
    }

    fn read_new(&mut self, schema: &'a Value, name: &str, depth: usize) -> Type {
        if is_alias(schema)
            && let Some(target) = target(self.root, schema)
        {
            return self.read(target, &referred(schema, name), depth + 1);
        }
        if self.is_object(schema, 0) {
            return self.object(schema, name, depth);
        }
        let mut kind = self.own(schema, name, depth);
        if let Some(target) = target(self.root, schema) {
            let referred = self.read(target, &referred(schema, name), depth + 1);
            kind = meet(kind, referred);
        }
        for part in list(schema, "allOf") {
            let part = self.read(part, name, depth + 1);
            kind = meet(kind, part);
        }
        for choice in ["anyOf", "oneOf"] {
            let choices = list(schema, choice);
            if choices.is_empty() {
                continue;
            }
            let mut forms = Vec::new();
            for (place, one) in choices.iter().enumerate() {
                if one == &Value::Bool(false) {
                    continue;
                }
                let one = self.read(one, &format!("{name}{}", place + 1), depth + 1);
                forms.push(meet(kind.clone(), one));
            }
            kind = union(forms);
        }
        kind
    }

    /// What a schema says itself, of what is no object.
    fn own(&mut self, schema: &'a Value, name: &str, depth: usize) -> Type {
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if schema.get("enum").is_some_and(Value::is_array) {
            return union(list(schema, "enum").iter().map(literal));
        }
        let mut kinds: Vec<&str> = types(schema).collect();
        if kinds.is_empty()
            && (schema.get("items").is_some() || schema.get("prefixItems").is_some())
        {
            kinds.push("array");
        }
        let mut forms = Vec::new();
        for kind in kinds {
            forms.push(match kind {
                "null" => Type::Null,
                "boolean" => Type::Boolean,
                "integer" => Type::Integer,
                "number" => Type::Number,
                "string" => Type::String,
                "array" => self.items(schema, name, depth),
                "object" => self.object(schema, name, depth),
                // A word that JSON Schema does not know says nothing.
                _ => return Type::Unknown,
            });
        }
        union(forms)
    }

    fn items(&mut self, schema: &'a Value, name: &str, depth: usize) -> Type {
        let places = ["prefixItems", "items"]
            .into_iter()
            .find_map(|key| schema.get(key)?.as_array());
        let Some(places) = places else {
            let items = schema.get("items");
            let items = items.map_or(Type::Unknown, |items| {
                self.read(items, &format!("{name}Item"), depth + 1)
            });
            return Type::List(Box::new(items));
        };
        let mut kinds = Vec::new();
        for (place, schema) in places.iter().enumerate() {
            kinds.push(self.read(schema, &format!("{name}Item{}", place + 1), depth + 1));
        }
        let rest = ["items", "additionalItems"]
            .into_iter()
            .find_map(|key| schema.get(key).filter(|rest| !rest.is_array()));
        let least = schema.get("minItems").and_then(Value::as_u64);
        let most = schema.get("maxItems").and_then(Value::as_u64);
        let count = u64::try_from(kinds.len()).ok();
        let no_more = rest == Some(&Value::Bool(false)) || (most.is_some() && most <= count);
        // Without these words a list may be shorter or longer.
        if !kinds.is_empty() && kinds.len() <= 12 && least == count && no_more {
            return Type::Tuple(kinds);
        }
        let more = match rest {
            _ if no_more => None,
            Some(rest) => Some(self.read(rest, &format!("{name}Item"), depth + 1)),
            None => Some(Type::Unknown),
        };
        Type::List(Box::new(union(kinds.into_iter().chain(more))))
    }

    /// Whether a schema speaks of objects only.
    fn is_object(&self, schema: &Value, depth: usize) -> bool {
        if depth > 8 || schema.get("const").is_some() || schema.get("enum").is_some() {
            return false;
        }
        let mut kinds = types(schema);
        match (kinds.next(), kinds.next()) {
            (Some("object"), None) => return true,
            (Some(_), _) => return false,
            (None, _) => {}
        }
        let has = |key: &str| schema.get(key).is_some_and(Value::is_object);
        let has_items = schema.get("items").is_some() || schema.get("prefixItems").is_some();
        if has("properties") && !has_items {
            return true;
        }
        let referred = target(self.root, schema);
        let mut parts = list(schema, "allOf").iter().chain(referred);
        parts.any(|part| self.is_object(part, depth + 1))
    }

    fn object(&mut self, schema: &'a Value, name: &str, depth: usize) -> Type {
        let mut gathered = GatheredObject::default();
        let mut seen = Vec::new();
        if !self.gather(schema, &mut gathered, &mut seen) {
            return Type::Map(Box::new(Type::Unknown));
        }
        let choices = std::mem::take(&mut gathered.choices);
        // What only says which members go together makes no type.
        let telling = choices
            .into_iter()
            .find(|choices| choices.iter().any(|one| self.adds_members(one, 0)));
        let Some(choices) = telling else {
            return self.of_gathered(Some(schema), gathered, name, depth);
        };
        if choices.len() > MAX_FORMS {
            return Type::Map(Box::new(Type::Unknown));
        }
        let mut forms = Vec::new();
        for (place, one) in choices.iter().enumerate() {
            let mut variant = gathered.clone();
            let mut seen = seen.clone();
            if !self.gather(one, &mut variant, &mut seen) {
                return Type::Map(Box::new(Type::Unknown));
            }
            // What is said in alternatives of alternatives is left open.
            variant.is_closed &= variant.choices.is_empty();
            if !variant.choices.is_empty() {
                variant.others = None;
                variant.has_patterns = true;
            }
            forms.push(self.of_gathered(None, variant, &format!("{name}{}", place + 1), depth));
        }
        union(forms)
    }

    /// Whether an alternative brings members of its own.
    fn adds_members(&self, schema: &Value, depth: usize) -> bool {
        if depth > 8 {
            return true;
        }
        let referred = target(self.root, schema);
        schema.get("properties").is_some_and(Value::is_object)
            || schema
                .get("additionalProperties")
                .is_some_and(Value::is_object)
            || schema.get("patternProperties").is_some()
            || ["allOf", "anyOf", "oneOf"]
                .into_iter()
                .flat_map(|key| list(schema, key))
                .chain(referred)
                .any(|part| self.adds_members(part, depth + 1))
    }

    /// Puts together what a schema says in its parts. False where that leads back to itself.
    fn gather(
        &mut self,
        schema: &'a Value,
        gathered: &mut GatheredObject<'a>,
        seen: &mut Vec<*const Value>,
    ) -> bool {
        self.steps += 1;
        let place: *const Value = schema;
        if seen.contains(&place) || self.steps > MAX_STEPS {
            return false;
        }
        seen.push(place);
        for (name, member) in properties(schema) {
            gathered.members.entry(name).or_default().push(member);
        }
        gathered.required.extend(required(schema));
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => gathered.is_closed = true,
            Some(others) => gathered.others = Some(others),
            None => {}
        }
        let referred = target(self.root, schema);
        let is_unclear = |key: &&str| schema.get(*key).is_some();
        gathered.has_patterns |= ["patternProperties", "then", "else", "dependentSchemas"]
            .iter()
            .any(is_unclear)
            || (referred.is_none() && REFERENCES.iter().any(is_unclear));
        for choice in ["anyOf", "oneOf"] {
            let choices = list(schema, choice);
            if !choices.is_empty() {
                gathered.choices.push(choices);
            }
        }
        let mut parts = list(schema, "allOf").iter().chain(referred);
        parts.all(|part| self.gather(part, gathered, seen))
    }

    fn of_gathered(
        &mut self,
        schema: Option<&'a Value>,
        gathered: GatheredObject<'a>,
        name: &str,
        depth: usize,
    ) -> Type {
        let mut members = gathered.members;
        // What has to be there and is not described is there all the same.
        for name in &gathered.required {
            members.entry(name).or_default();
        }
        if members.is_empty() && !gathered.is_closed {
            let others = match gathered.others {
                Some(others) if !gathered.has_patterns => {
                    self.read(others, &format!("{name}Value"), depth + 1)
                }
                _ => Type::Unknown,
            };
            return Type::Map(Box::new(others));
        }
        let place = self.shapes.structs.len();
        let own = self.shapes.names.take_type(name.to_owned());
        self.shapes.structs.push(Struct {
            name: own.clone(),
            is_taken: self.is_taken,
            is_open: gathered.has_patterns || (gathered.others.is_some() && !gathered.is_closed),
            members: Vec::new(),
        });
        // An alternative is more than its schema: what else leads there is without the rest.
        if let Some(schema) = schema {
            self.known.insert(schema, place);
        }
        let mut read = Vec::new();
        for (name, schemas) in members {
            let is_required = gathered.required.contains(name);
            if !is_required && schemas.contains(&&Value::Bool(false)) {
                // It must not be there.
                continue;
            }
            let below = format!("{own}{}", pascal(name));
            let mut kind = Type::Unknown;
            for schema in &schemas {
                let one = self.read(schema, &below, depth + 1);
                kind = meet(kind, one);
            }
            let said = schemas
                .iter()
                .find_map(|schema| toolway_schema::text(schema, "description"));
            read.push(StructMember {
                name: name.to_owned(),
                kind,
                is_required,
                description: said.unwrap_or_default().to_owned(),
                remarks: schemas
                    .first()
                    .map(|schema| crate::words::remarks(schema))
                    .unwrap_or_default(),
            });
        }
        self.shapes.structs[place].members = read;
        Type::Struct(place)
    }
}

/// What a struct is called that a reference leads to.
fn referred(schema: &Value, name: &str) -> String {
    let reference = toolway_schema::text(schema, "$ref").unwrap_or_default();
    match reference.rsplit('/').next() {
        Some(last) if reference.starts_with("#/") => pascal(last),
        _ => name.to_owned(),
    }
}

/// Whether a schema says nothing but where another is.
fn is_alias(schema: &Value) -> bool {
    let words = [
        "$ref",
        "title",
        "description",
        "default",
        "examples",
        "$comment",
        "deprecated",
    ];
    schema.get("$ref").is_some()
        && schema
            .as_object()
            .is_some_and(|members| members.keys().all(|key| words.contains(&key.as_str())))
}
