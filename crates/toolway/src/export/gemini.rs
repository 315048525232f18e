//! Gemini's subset of OpenAPI 3.0, as `parameters` of a function declaration takes it.
//!
//! Owns the conversion from JSON Schema. What cannot be said is told in the description or left
//! out, and nothing is required that the server does not require. Rules and sources:
//!
//! - The fields are those of `Schema` (ai.google.dev/api/caching#Schema); any other is "Unknown
//!   name … Cannot find field": `const`, `$schema`, `additionalProperties`, `exclusiveMinimum`
//!   (zed-industries/zed#44875, pizza-bot-app/pizza-bot#62). Of them `title`, `default` and
//!   `example` are not used: some backends refuse them.
//! - `type` is one word: "Proto field is not repeating" (zed-industries/zed#53919), and "must be
//!   specified when not using one_of, any_of or all_of" (danny-avila/LibreChat#6971). A list of
//!   types is an `anyOf`, and null is `nullable`.
//! - "When using any_of, it must be the only field set" (lambda-alpha-labs/Graphenium#37,
//!   langchain-ai/langchain-google#1216): a description moves into the first alternative.
//! - `enum` is "only allowed for STRING type" (directus/directus#27100), of strings that are not
//!   empty.
//! - `format`: "only 'enum' and 'date-time' are supported for STRING type"
//!   (google-gemini/gemini-cli#5450); `float`, `double`, `int32` and `int64` for numbers (Schema
//!   reference).
//! - "properties: should be non-empty for OBJECT type": a function that takes nothing has no
//!   `parameters`, as the reference allows; an object inside gets a member nobody need pass, as
//!   Google's own agent kit does.
//! - An array needs `items`; what is `required` must be among the properties.
//! - "Parameter names must start with a letter or an underscore and must only contain chars a-z,
//!   A-Z, 0-9, or underscores with a maximum length of 64" (Vertex reference).
//! - There are no references: `$ref` is written out, as far as the bounds below allow.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use toolway_types::text;

use super::root::local;

/// How deep the result may be; deeper values are any.
const MAX_DEPTH: usize = 24;
/// What the result may weigh: about its bytes. References can multiply a schema.
const MAX_WEIGHT: usize = 512 * 1024;
/// What a member weighs beside its texts.
const MEMBER_WEIGHT: usize = 64;
/// How often a definition is written out inside itself; a model needs no more to see how it goes on.
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
    let mut said = convert.said(&[Part::new(schema)]);
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

/// A schema that holds together with others.
#[derive(Clone, Copy)]
struct Part<'a> {
    schema: &'a Value,
    /// Whether its `anyOf` and `oneOf` were followed already, and its own words told.
    decided: bool,
}

impl<'a> Part<'a> {
    fn new(schema: &'a Value) -> Self {
        Self {
            schema,
            decided: false,
        }
    }
}

/// What several schemas together say of one value.
#[derive(Default)]
struct Said<'a> {
    /// The first word on each keyword.
    keywords: BTreeMap<&'a str, &'a Value>,
    types: Option<BTreeSet<&'a str>>,
    /// Each with its alternatives.
    properties: Vec<(&'a str, Vec<&'a Value>)>,
    required: BTreeSet<&'a str>,
    descriptions: Vec<&'a str>,
    alternatives: Vec<&'a Value>,
    /// The definitions that were referred to.
    followed: Vec<*const Value>,
}

impl<'a> Said<'a> {
    fn description(&self) -> String {
        if self.descriptions.is_empty() {
            let title = self.keywords.get("title").and_then(|title| title.as_str());
            return title.unwrap_or_default().to_owned();
        }
        self.descriptions.join("\n")
    }

    fn property(&mut self, name: &'a str, schema: &'a Value) {
        match self.properties.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) if known.contains(&schema) => {}
            Some((_, known)) => known.push(schema),
            None => self.properties.push((name, vec![schema])),
        }
    }

    fn has(&self, keywords: &[&str]) -> bool {
        keywords
            .iter()
            .any(|keyword| self.keywords.contains_key(*keyword))
    }

    /// The values it may have, where it says so.
    fn values(&self) -> Option<Vec<&'a Value>> {
        let word = |keyword: &str| self.keywords.get(keyword).copied();
        match (word("const"), word("enum")) {
            (Some(only), _) => Some(vec![only]),
            (None, Some(Value::Array(values))) => Some(values.iter().collect()),
            _ => None,
        }
    }

    /// Its types, `null` apart.
    fn types(&self) -> (Vec<&'a str>, bool) {
        const ORDER: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];
        let mut nullable = self.keywords.get("nullable") == Some(&&Value::Bool(true));
        if let Some(types) = &self.types {
            nullable |= types.contains("null");
            let number = types.contains("number");
            let known = ORDER
                .into_iter()
                .filter(|word| types.contains(word) && !(number && *word == "integer"));
            return (known.collect(), nullable);
        }
        if let Some(values) = self.values() {
            nullable |= values.contains(&&Value::Null);
            let has = |word: &str| values.iter().any(|value| type_of(value) == Some(word));
            let known: Vec<&str> = ORDER.into_iter().filter(|word| has(word)).collect();
            if !known.is_empty() || nullable {
                return (known, nullable);
            }
        }
        let inferred = if !self.properties.is_empty() || self.has(&["additionalProperties"]) {
            vec!["object"]
        } else if self.has(&["items", "prefixItems", "minItems", "maxItems"]) {
            vec!["array"]
        } else if self.has(&["pattern", "minLength", "maxLength", "format"]) {
            vec!["string"]
        } else if self.has(&["minimum", "maximum", "multipleOf"]) {
            vec!["number"]
        } else {
            vec!["string", "number", "boolean"]
        };
        (inferred, nullable)
    }
}

fn type_of(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    })
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
    fn said(&mut self, parts: &[Part<'a>]) -> Said<'a> {
        let mut said = Said::default();
        let mut waiting: Vec<Part<'a>> = parts.iter().rev().copied().collect();
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
            Self::take(&mut said, members, part.decided);
            let all = members.get("allOf").and_then(Value::as_array);
            for schema in all.into_iter().flatten().rev() {
                waiting.push(Part { schema, ..part });
            }
            if let Some(schema) = local(self.whole, members) {
                said.followed.push(schema);
                waiting.push(Part { schema, ..part });
            }
        }
        said
    }

    fn take(said: &mut Said<'a>, members: &'a Map<String, Value>, decided: bool) {
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("type", value) => {
                    let words: BTreeSet<&str> = match value {
                        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
                        word => word.as_str().into_iter().collect(),
                    };
                    let both = match &said.types {
                        Some(known) => known.intersection(&words).copied().collect(),
                        None => words,
                    };
                    // Two that exclude each other were not meant; the first one counts.
                    if !both.is_empty() {
                        said.types = Some(both);
                    }
                }
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        // The first word on it counts: the others only narrow it.
                        if !said.properties.iter().any(|(known, _)| known == name) {
                            said.properties.push((name, vec![schema]));
                        }
                    }
                }
                ("required", Value::Array(names)) => {
                    said.required.extend(names.iter().filter_map(Value::as_str));
                }
                ("description", Value::String(text)) => {
                    if !decided && !said.descriptions.contains(&text.as_str()) {
                        said.descriptions.push(text);
                    }
                }
                ("anyOf" | "oneOf", Value::Array(branches)) => {
                    if !decided && said.alternatives.is_empty() {
                        said.alternatives = branches.iter().collect();
                    }
                }
                ("title" | "default", _) if decided => {}
                (keyword, value) => {
                    said.keywords.entry(keyword).or_insert(value);
                }
            }
        }
    }

    /// Takes the properties of all alternatives for an object's own, none of them required that
    /// not all require.
    fn absorb_alternatives(&mut self, said: &mut Said<'a>, depth: usize) {
        let own: BTreeSet<&str> = said.properties.iter().map(|(name, _)| *name).collect();
        let mut common: Option<BTreeSet<&str>> = None;
        for branch in std::mem::take(&mut said.alternatives) {
            let mut other = self.said(&[Part::new(branch)]);
            if !other.alternatives.is_empty() && depth < MAX_DEPTH {
                self.absorb_alternatives(&mut other, depth + 1);
            }
            for (name, schemas) in other.properties {
                if !own.contains(name) {
                    schemas.into_iter().for_each(|one| said.property(name, one));
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
    fn value(&mut self, parts: &[Part<'a>], depth: usize) -> Map<String, Value> {
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
        parts: &[Part<'a>],
        mut said: Said<'a>,
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

    fn either(&mut self, parts: &[Part<'a>], said: &Said<'a>, depth: usize) -> Map<String, Value> {
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
            let mut all = vec![Part::new(branch)];
            all.extend(parts.iter().map(|part| Part {
                decided: true,
                ..*part
            }));
            made.extend(spread(self.value(&all, depth + 1)));
        }
        if made.is_empty() {
            made.push(word("STRING"));
        }
        made.truncate(MAX_ALTERNATIVES);
        let mut words = said.description();
        if let Some(default) = default_of(said) {
            words = format!("{words}\n{default}").trim_start().to_owned();
        }
        union(made, words, nullable)
    }

    fn typed(&mut self, said: &Said<'a>, kind: &str, depth: usize) -> Map<String, Value> {
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

    fn object(&mut self, said: &Said<'a>, depth: usize) -> Map<String, Value> {
        self.note_unfit(said);
        let mut properties = Map::new();
        for (name, schemas) in said.properties.iter().filter(|(name, _)| is_name(name)) {
            self.charge(name.len());
            if self.weight == 0 && !properties.is_empty() {
                self.left_out.push((*name).to_owned());
                continue;
            }
            let value = match schemas.as_slice() {
                [only] => self.value(&[Part::new(only)], depth + 1),
                several => {
                    let mut made = Vec::new();
                    for one in several.iter().take(MAX_ALTERNATIVES) {
                        made.extend(spread(self.value(&[Part::new(one)], depth + 1)));
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

    fn note_unfit(&mut self, said: &Said<'a>) {
        let unfit = said.properties.iter().filter(|(name, _)| !is_name(name));
        for (name, _) in unfit {
            let name = text::cut(&text::clean_line(name), 64).into_owned();
            if !self.left_out.contains(&name) {
                self.left_out.push(name);
            }
        }
    }

    fn array(&mut self, said: &Said<'a>, depth: usize) -> Map<String, Value> {
        let keyword = |name: &str| said.keywords.get(name).copied();
        let places = match (keyword("prefixItems"), keyword("items")) {
            (Some(Value::Array(places)), _) | (_, Some(Value::Array(places))) => places.as_slice(),
            (_, Some(items)) => std::slice::from_ref(items),
            _ => &[],
        };
        let mut made = Vec::new();
        for place in places.iter().take(MAX_ALTERNATIVES) {
            made.extend(spread(self.value(&[Part::new(place)], depth + 1)));
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

fn string(said: &Said<'_>) -> Map<String, Value> {
    let mut string = word("STRING");
    if let Some(values) = said.values() {
        let mut fits: Vec<&str> = Vec::new();
        for value in values.iter().filter_map(|value| value.as_str()) {
            if !value.is_empty() && !fits.contains(&value) {
                fits.push(value);
            }
        }
        let empty = values.iter().any(|value| value.as_str() == Some(""));
        if !fits.is_empty() && !empty {
            string.insert("enum".to_owned(), json!(fits));
            string.insert("format".to_owned(), json!("enum"));
        }
        return string;
    }
    if said
        .keywords
        .get("format")
        .is_some_and(|format| *format == "date-time")
    {
        string.insert("format".to_owned(), json!("date-time"));
    }
    if let Some(pattern) = said.keywords.get("pattern").filter(|one| one.is_string()) {
        string.insert("pattern".to_owned(), (*pattern).clone());
    }
    counts(said, &["minLength", "maxLength"], &mut string);
    string
}

fn number(said: &Said<'_>, kind: &str) -> Map<String, Value> {
    let (name, formats) = match kind {
        "integer" => ("INTEGER", ["int32", "int64"]),
        _ => ("NUMBER", ["float", "double"]),
    };
    let mut number = word(name);
    let format = said
        .keywords
        .get("format")
        .and_then(|format| format.as_str());
    if let Some(format) = format.filter(|format| formats.contains(format)) {
        number.insert("format".to_owned(), json!(format));
    }
    for (limit, exclusive) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        // An excluded limit becomes an included one, which allows one value more.
        let value = [limit, exclusive]
            .iter()
            .find_map(|keyword| said.keywords.get(keyword).filter(|one| one.is_number()));
        if let Some(value) = value {
            number.insert(limit.to_owned(), (*value).clone());
        }
    }
    number
}

/// Copies whole numbers that are not negative.
fn counts(said: &Said<'_>, keywords: &[&str], into: &mut Map<String, Value>) {
    for keyword in keywords {
        let count = said.keywords.get(keyword).and_then(|count| count.as_u64());
        if let Some(count) = count.filter(|count| i64::try_from(*count).is_ok()) {
            into.insert((*keyword).to_owned(), json!(count));
        }
    }
}

fn default_of(said: &Said<'_>) -> Option<String> {
    let default = said.keywords.get("default").filter(|one| !one.is_null())?;
    Some(format!(
        "Default: {}",
        text::cut(&default.to_string(), MAX_QUOTED)
    ))
}

fn word(kind: &str) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!(kind));
    schema
}

/// A value of which nothing is known; there is no word for it.
fn anything() -> Map<String, Value> {
    union(
        ["STRING", "NUMBER", "BOOLEAN"].map(word).into(),
        String::new(),
        false,
    )
}

/// The alternatives of a schema: those it lists, or itself. Lists in lists are not taken.
fn spread(mut schema: Map<String, Value>) -> Vec<Map<String, Value>> {
    match schema.remove("anyOf") {
        Some(Value::Array(inner)) => inner
            .into_iter()
            .filter_map(|one| match one {
                Value::Object(one) => Some(one),
                _ => None,
            })
            .collect(),
        _ => vec![schema],
    }
}

/// One of several schemas, with a description of the whole. There is at least one.
fn union(made: Vec<Map<String, Value>>, words: String, nullable: bool) -> Map<String, Value> {
    let mut different: Vec<Map<String, Value>> = Vec::with_capacity(made.len());
    for one in made {
        if !different.contains(&one) {
            different.push(one);
        }
    }
    if let Some(first) = different.first_mut() {
        describe(first, words);
        if nullable {
            first.insert("nullable".to_owned(), json!(true));
        }
    }
    if different.len() == 1 {
        different.remove(0)
    } else {
        let mut either = Map::new();
        either.insert("anyOf".to_owned(), json!(different));
        either
    }
}

/// Puts words before a schema's description.
fn describe(schema: &mut Map<String, Value>, words: String) {
    if words.is_empty() {
        return;
    }
    let words = match schema.get("description").and_then(Value::as_str) {
        Some(known) if !known.is_empty() => format!("{words}\n{known}"),
        _ => words,
    };
    let words = text::cut(&words, MAX_DESCRIPTION);
    schema.insert("description".to_owned(), json!(words));
}
