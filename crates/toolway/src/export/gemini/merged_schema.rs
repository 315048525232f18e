//! What JSON Schema says of one value, several schemas taken together.
//!
//! Owns the reading. What becomes of it is `gemini.rs`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use toolway_schema::type_of;

/// A schema that holds together with others.
#[derive(Clone, Copy)]
pub(super) struct SchemaPart<'a> {
    pub(super) schema: &'a Value,
    /// Whether its `anyOf` and `oneOf` were followed already, and its own words told.
    pub(super) decided: bool,
}

impl<'a> SchemaPart<'a> {
    pub(super) fn new(schema: &'a Value) -> Self {
        Self {
            schema,
            decided: false,
        }
    }
}

/// What several schemas together say of one value.
#[derive(Default)]
pub(super) struct MergedSchema<'a> {
    /// The first word on each keyword.
    pub(super) keywords: BTreeMap<&'a str, &'a Value>,
    pub(super) types: Option<BTreeSet<&'a str>>,
    /// Each with its alternatives.
    pub(super) properties: Vec<(&'a str, Vec<&'a Value>)>,
    pub(super) required: BTreeSet<&'a str>,
    pub(super) descriptions: Vec<&'a str>,
    pub(super) alternatives: Vec<&'a Value>,
    /// The definitions that were referred to.
    pub(super) followed: Vec<*const Value>,
}

impl<'a> MergedSchema<'a> {
    pub(super) fn description(&self) -> String {
        if self.descriptions.is_empty() {
            let title = self.keywords.get("title").and_then(|title| title.as_str());
            return title.unwrap_or_default().to_owned();
        }
        self.descriptions.join("\n")
    }

    pub(super) fn property(&mut self, name: &'a str, schema: &'a Value) {
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
    pub(super) fn values(&self) -> Option<Vec<&'a Value>> {
        let word = |keyword: &str| self.keywords.get(keyword).copied();
        match (word("const"), word("enum")) {
            (Some(only), _) => Some(vec![only]),
            (None, Some(Value::Array(values))) => Some(values.iter().collect()),
            _ => None,
        }
    }

    /// Its types, `null` apart.
    pub(super) fn types(&self) -> (Vec<&'a str>, bool) {
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
            let has = |word: &str| values.iter().any(|value| type_of(value) == word);
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

    /// Takes in what one schema says.
    pub(super) fn take(&mut self, members: &'a Map<String, Value>, decided: bool) {
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("type", value) => {
                    let words: BTreeSet<&str> = match value {
                        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
                        word => word.as_str().into_iter().collect(),
                    };
                    let both = match &self.types {
                        Some(known) => known.intersection(&words).copied().collect(),
                        None => words,
                    };
                    // Two that exclude each other were not meant; the first one counts.
                    if !both.is_empty() {
                        self.types = Some(both);
                    }
                }
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        // The first word on it counts: the others only narrow it.
                        if !self.properties.iter().any(|(known, _)| known == name) {
                            self.properties.push((name, vec![schema]));
                        }
                    }
                }
                ("required", Value::Array(names)) => {
                    self.required.extend(names.iter().filter_map(Value::as_str));
                }
                ("description", Value::String(text)) => {
                    if !decided && !self.descriptions.contains(&text.as_str()) {
                        self.descriptions.push(text);
                    }
                }
                ("anyOf" | "oneOf", Value::Array(branches)) => {
                    if !decided && self.alternatives.is_empty() {
                        self.alternatives = branches.iter().collect();
                    }
                }
                ("title" | "default", _) if decided => {}
                (keyword, value) => {
                    self.keywords.entry(keyword).or_insert(value);
                }
            }
        }
    }
}
