//! Gemini's subset of `OpenAPI` 3.0, as `parameters` of a function declaration takes it.
//!
//! Owns the conversion from JSON Schema. What cannot be said is told in the description or left
//! out, and nothing is required that the server does not require. Rules and sources:
//!
//! - The fields are those of `Schema` (ai.google.dev/api/caching#Schema); any other is `Unknown
//!   name … Cannot find field`: `const`, `$schema`, `additionalProperties`, `exclusiveMinimum`
//!   (zed-industries/zed#44875, pizza-bot-app/pizza-bot#62). Of them `title`, `default` and
//!   `example` are not used: some backends refuse them.
//! - `type` is one word: "Proto field is not repeating" (zed-industries/zed#53919), and `must be
//!   specified when not using one_of, any_of or all_of` (danny-avila/LibreChat#6971). A list of
//!   types is an `anyOf`, and null is `nullable`.
//! - `When using any_of, it must be the only field set` (lambda-alpha-labs/Graphenium#37,
//!   langchain-ai/langchain-google#1216): a description moves into the first alternative.
//! - `enum` is "only allowed for STRING type" (directus/directus#27100), of strings that are not
//!   empty.
//! - `format`: "only 'enum' and 'date-time' are supported for STRING type"
//!   (google-gemini/gemini-cli#5450); `float`, `double`, `int32` and `int64` for numbers (Schema
//!   reference).
//! - "properties: should be non-empty for OBJECT type": a function that takes nothing has no
//!   `parameters`, as the reference allows; an object inside gets an optional member, as
//!   Google's own agent kit does.
//! - An array needs `items`; what is `required` must be among the properties.
//! - "Parameter names must start with a letter or an underscore and must only contain chars a-z,
//!   A-Z, 0-9, or underscores with a maximum length of 64" (Vertex reference).
//! - There are no references: `$ref` is written out, as far as the bounds below allow.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toolway_schema::{list, target};
use toolway_types::text;

use self::made::{anything, counts, default_of, describe, number, spread, string, union, word};
use crate::export::gemini::merged_schema::{MergedSchema, SchemaPart};

mod made;
mod merged_schema;

/// How deep the result may be; deeper values are any.
const MAX_DEPTH: usize = 24;
/// What the result may weigh: about its bytes. References can multiply a schema.
const MAX_WEIGHT: usize = 512 * 1024;
/// What a member weighs beside its texts.
const MEMBER_WEIGHT: usize = 64;
/// How often a definition is written out inside itself; a model needs no more to see how it goes
/// on.
const MAX_UNROLLED: usize = 2;
/// The most alternatives of one value.
const MAX_ALTERNATIVES: usize = 32;
/// The longest description of one value, in characters.
const MAX_DESCRIPTION: usize = 2_048;
/// The longest value quoted in a description, in characters.
const MAX_QUOTED: usize = 300;

/// The `parameters` of a function, none for one that takes nothing, and the names of arguments
/// that cannot be passed.
pub(super) fn parameters(schema: &Value) -> (Option<Value>, Vec<String>) {
    let mut convert = Convert {
        whole: schema,
        weight: MAX_WEIGHT,
        open: vec![schema],
        left_out: Vec::new(),
    };
    let mut said = convert.said(&[SchemaPart::new(schema)]);
    convert.absorb_alternatives(&mut said, 0);
    let fits = said.properties.iter().any(|(name, _)| is_name(name));
    let parameters = fits.then(|| {
        let mut object = convert.object(&said, 0);
        describe(&mut object, said.description());
        Value::Object(object)
    });
    if !fits {
        convert.note_unfit(&said);
    }
    (parameters, convert.left_out)
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 64
        && bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

struct Convert<'a> {
    whole: &'a Value,
    /// What is left of it.
    weight: usize,
    /// The definitions that are being written out, from the outside in.
    open: Vec<*const Value>,
    left_out: Vec<String>,
}

impl<'a> Convert<'a> {
    fn charge(&mut self, bytes: usize) {
        self.weight = self.weight.saturating_sub(MEMBER_WEIGHT + bytes);
    }

    /// Puts together what schemas say, references and `allOf` followed.
    fn said(&mut self, parts: &[SchemaPart<'a>]) -> MergedSchema<'a> {
        let mut said = MergedSchema::default();
        let mut waiting: Vec<SchemaPart<'a>> = parts.iter().rev().copied().collect();
        let mut seen: Vec<*const Value> = Vec::new();
        while let Some(part) = waiting.pop() {
            let Value::Object(members) = part.schema else {
                continue;
            };
            let place: *const Value = part.schema;
            if seen.contains(&place) || self.weight == 0 {
                continue;
            }
            seen.push(place);
            self.charge(0);
            said.take(members, part.decided);
            for schema in list(part.schema, "allOf").iter().rev() {
                waiting.push(SchemaPart { schema, ..part });
            }
            if let Some(schema) = target(self.whole, part.schema) {
                said.followed.push(schema);
                waiting.push(SchemaPart { schema, ..part });
            }
        }
        said
    }

    /// Takes the properties of all alternatives for an object's own, none of them required that
    /// not all require.
    fn absorb_alternatives(&mut self, said: &mut MergedSchema<'a>, depth: usize) {
        let own: BTreeSet<&str> = said.properties.iter().map(|(name, _)| *name).collect();
        let mut common: Option<BTreeSet<&str>> = None;
        for branch in std::mem::take(&mut said.alternatives) {
            let mut other = self.said(&[SchemaPart::new(branch)]);
            if !other.alternatives.is_empty() && depth < MAX_DEPTH {
                self.absorb_alternatives(&mut other, depth + 1);
            }
            for (name, schemas) in other.properties {
                if !own.contains(name) {
                    for one in schemas {
                        said.property(name, one);
                    }
                }
            }
            for text in other.descriptions {
                if !said.descriptions.contains(&text) {
                    said.descriptions.push(text);
                }
            }
            common = Some(match common {
                Some(known) => known.intersection(&other.required).copied().collect(),
                None => other.required,
            });
        }
        said.required.extend(common.unwrap_or_default());
    }

    /// One value's schema. Always valid, whatever comes in.
    fn value(&mut self, parts: &[SchemaPart<'a>], depth: usize) -> Map<String, Value> {
        if depth >= MAX_DEPTH || self.weight == 0 {
            return anything();
        }
        let said = self.said(parts);
        let times = |target| self.open.iter().filter(|open| **open == target).count();
        if said.followed.iter().any(|one| times(*one) >= MAX_UNROLLED) {
            return anything();
        }
        let outer = self.open.len();
        self.open.extend(&said.followed);
        let made = self.written_out(parts, said, depth);
        self.open.truncate(outer);
        made
    }

    fn written_out(
        &mut self,
        parts: &[SchemaPart<'a>],
        mut said: MergedSchema<'a>,
        depth: usize,
    ) -> Map<String, Value> {
        if !said.alternatives.is_empty() {
            if said.properties.is_empty() {
                return self.either(parts, &said, depth);
            }
            self.absorb_alternatives(&mut said, depth);
        }
        let (types, nullable) = said.types();
        let mut made: Vec<Map<String, Value>> = types
            .iter()
            .map(|word| self.typed(&said, word, depth))
            .collect();
        if made.is_empty() {
            // Only null fits, which has no word of its own everywhere.
            made.push(word("STRING"));
        }
        union(made, said.description(), nullable)
    }

    fn either(
        &mut self,
        parts: &[SchemaPart<'a>],
        said: &MergedSchema<'a>,
        depth: usize,
    ) -> Map<String, Value> {
        let (_, mut nullable) = match said.types {
            Some(_) => said.types(),
            None => (Vec::new(), false),
        };
        let mut made = Vec::new();
        for branch in said.alternatives.iter().take(MAX_ALTERNATIVES) {
            if branch.get("type").is_some_and(|word| word == "null") {
                nullable = true;
                continue;
            }
            // What stands beside the alternatives holds for each of them; its description is told
            // once, below.
            let mut all = vec![SchemaPart::new(branch)];
            all.extend(parts.iter().map(|part| SchemaPart {
                decided: true,
                ..*part
            }));
            made.extend(spread(self.value(&all, depth + 1)));
        }
        if made.is_empty() {
            made.push(word("STRING"));
        }
        made.truncate(MAX_ALTERNATIVES);
        let mut words = vec![said.description()];
        words.extend(default_of(said));
        words.retain(|one| !one.is_empty());
        union(made, words.join("\n"), nullable)
    }

    fn typed(&mut self, said: &MergedSchema<'a>, kind: &str, depth: usize) -> Map<String, Value> {
        let mut made = match kind {
            "object" => self.object(said, depth),
            "array" => self.array(said, depth),
            "integer" | "number" => number(said, kind),
            "boolean" => word("BOOLEAN"),
            _ => string(said),
        };
        let mut told = Vec::new();
        if let Some(values) = said.values().filter(|_| !made.contains_key("enum")) {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            let values = values.join(", ");
            told.push(format!("One of: {}", text::cut(&values, MAX_QUOTED)));
        }
        told.extend(default_of(said));
        describe(&mut made, told.join("\n"));
        let texts = ["description", "enum", "pattern"].iter();
        let texts = texts.filter_map(|key| Some(made.get(*key)?.to_string().len()));
        self.charge(texts.sum());
        made
    }

    fn object(&mut self, said: &MergedSchema<'a>, depth: usize) -> Map<String, Value> {
        self.note_unfit(said);
        let mut properties = Map::new();
        for (name, schemas) in said.properties.iter().filter(|(name, _)| is_name(name)) {
            self.charge(name.len());
            if self.weight == 0 && !properties.is_empty() {
                self.left_out.push((*name).to_owned());
                continue;
            }
            let value = match schemas.as_slice() {
                [only] => self.value(&[SchemaPart::new(only)], depth + 1),
                several => {
                    let mut made = Vec::new();
                    for one in several.iter().take(MAX_ALTERNATIVES) {
                        made.extend(spread(self.value(&[SchemaPart::new(one)], depth + 1)));
                    }
                    made.truncate(MAX_ALTERNATIVES);
                    union(made, String::new(), false)
                }
            };
            properties.insert((*name).to_owned(), Value::Object(value));
        }
        if properties.is_empty() {
            let mut unused = word("STRING");
            describe(
                &mut unused,
                "Not used: the object takes any names.".to_owned(),
            );
            properties.insert("_unused".to_owned(), Value::Object(unused));
        }
        let required: Vec<&str> = said
            .required
            .iter()
            .copied()
            .filter(|name| properties.contains_key(*name))
            .collect();
        let mut object = word("OBJECT");
        if !required.is_empty() {
            object.insert("required".to_owned(), json!(required));
        }
        object.insert("properties".to_owned(), Value::Object(properties));
        object
    }

    fn note_unfit(&mut self, said: &MergedSchema<'a>) {
        let unfit = said.properties.iter().filter(|(name, _)| !is_name(name));
        for (name, _) in unfit {
            let name = text::cut(&text::clean_line(name), 64).into_owned();
            if !self.left_out.contains(&name) {
                self.left_out.push(name);
            }
        }
    }

    fn array(&mut self, said: &MergedSchema<'a>, depth: usize) -> Map<String, Value> {
        let keyword = |name: &str| said.keywords.get(name).copied();
        let places = match (keyword("prefixItems"), keyword("items")) {
            (Some(Value::Array(places)), _) | (_, Some(Value::Array(places))) => places.as_slice(),
            (_, Some(items)) => std::slice::from_ref(items),
            _ => &[],
        };
        let mut made = Vec::new();
        for place in places.iter().take(MAX_ALTERNATIVES) {
            made.extend(spread(self.value(&[SchemaPart::new(place)], depth + 1)));
        }
        made.truncate(MAX_ALTERNATIVES);
        let items = if made.is_empty() {
            anything()
        } else {
            union(made, String::new(), false)
        };
        let mut array = word("ARRAY");
        array.insert("items".to_owned(), Value::Object(items));
        counts(said, &["minItems", "maxItems"], &mut array);
        array
    }
}
