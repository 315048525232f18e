//! How much work a schema can cause, found out before it is run.
//!
//! Owns the bound. A schema of a few kilobytes can name itself twice at every step and so take
//! longer than anyone lives; the schema's size says nothing about that. What counts is how often
//! one value is judged: `allOf`, `$ref` and their like judge the same value again, and each of
//! them that looks into a value's members multiplies the work of the next level. A list of choices
//! is as many judgements, and a pattern reads the whole text (see `weight/pattern.rs`).
//!
//! The count errs towards more. A schema past the bound is not wrong, only not run.

use std::collections::HashMap;

use serde_json::Value;
use toolway_schema::{REFERENCES, Reach, SchemaPlace, places, under};

use crate::json_schema::ValueSize;
use crate::json_schema::repair::leads_to_schemas;

pub(super) mod pattern;

/// The most judgements one check may take: well under a second.
pub(super) const MAX_WORK: u64 = 10_000_000;
/// The longest way through `$ref`, `allOf` and their like without going deeper into the value;
/// it keeps the recursion off the end of the stack.
const MAX_CHAIN: usize = 32;

/// Keywords whose schemas judge the same value.
const SAME_VALUE: [&str; 9] = [
    "not",
    "if",
    "then",
    "else",
    "allOf",
    "anyOf",
    "oneOf",
    "dependentSchemas",
    "dependencies",
];
/// Keywords that look into the members of a value.
const MEMBERS: [&str; 12] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "dependentSchemas",
    "dependencies",
];

/// Keywords whose every entry is looked at for one value.
const ENTRIES: [&str; 4] = ["enum", "required", "patternProperties", "dependentRequired"];
/// Steps through a text that take as long as one judgement.
const STEPS_PER_JUDGEMENT: u64 = 64;

/// Why a schema cannot be bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unbounded {
    /// It refers to something outside itself, or in a way not followed here.
    #[error("has a reference that is not followed")]
    Reference,
    /// A reference leads back to itself without getting anywhere.
    #[error("refers to itself without end")]
    Endless,
    /// Too long a way from reference to reference.
    #[error("goes from reference to reference too often")]
    Chain,
}

/// What one value costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Weight {
    /// How often one value may be judged at one place.
    judgements: u64,
    /// How many of these look into its members.
    openings: u64,
    /// How many steps each byte of text may take.
    steps: u64,
    /// The longest chain.
    chain: usize,
}

impl Weight {
    /// The most judgements that arguments of this size can take.
    pub(super) fn work(self, size: ValueSize) -> u64 {
        let levels = u32::try_from(size.depth).unwrap_or(u32::MAX);
        let judging = self.judgements.saturating_mul(size.values.max(1));
        let bytes = u64::try_from(size.bytes).unwrap_or(u64::MAX);
        let reading = self.steps.saturating_mul(bytes) / STEPS_PER_JUDGEMENT;
        self.openings
            .max(1)
            .saturating_pow(levels)
            .saturating_mul(judging.saturating_add(reading))
    }

    fn largest(self, other: Self) -> Self {
        Self {
            judgements: self.judgements.max(other.judgements),
            openings: self.openings.max(other.openings),
            steps: self.steps.max(other.steps),
            chain: self.chain.max(other.chain),
        }
    }
}

/// Every part that may be run as a schema. What is no schema by its place can be made one by a
/// reference.
pub(super) fn parts(schema: &Value) -> Vec<SchemaPlace<'_>> {
    let reach = if leads_to_schemas(schema) {
        Reach::Unknown
    } else {
        Reach::Everything
    };
    places(schema, reach)
}

/// Weighs a whole schema: the heaviest of its parts.
pub(super) fn weigh(schema: &Value) -> Result<Weight, Unbounded> {
    let parts = parts(schema);
    let mut scale = Scale::new(schema, &parts)?;
    parts.iter().try_fold(Weight::default(), |most, part| {
        Ok(most.largest(scale.weight(part.schema)?))
    })
}

/// Where the references are that are not followed, each as the steps to it.
pub(super) fn unfollowed(schema: &Value) -> Vec<Vec<String>> {
    let parts = parts(schema);
    let Ok(scale) = Scale::new(schema, &parts) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for part in &parts {
        for key in REFERENCES {
            let reference = toolway_schema::text(part.schema, key);
            if reference.is_some_and(|reference| scale.target(reference).is_none()) {
                found.push(part.steps_to(key));
            }
        }
    }
    found
}

struct Scale<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// By the address of the part; absent while it is being weighed is `None`.
    known: HashMap<*const Value, Option<Weight>>,
}

impl<'a> Scale<'a> {
    fn new(root: &'a Value, parts: &[SchemaPlace<'a>]) -> Result<Self, Unbounded> {
        let dialect = toolway_schema::text(root, "$schema").unwrap_or_default();
        let has_plain_ids = dialect.contains("draft-04") || dialect.contains("draft-03");
        let mut anchors = HashMap::new();
        for part in parts {
            let text = |key| toolway_schema::text(part.schema, key);
            for name in [text("$anchor"), text("$dynamicAnchor")]
                .into_iter()
                .flatten()
            {
                anchors.insert(name, part.schema);
            }
            // A part with an address of its own changes what references in it mean.
            let has_address = text("$id").is_some() || has_plain_ids && text("id").is_some();
            if has_address && !std::ptr::eq(part.schema, root) {
                return Err(Unbounded::Reference);
            }
        }
        Ok(Self {
            root,
            anchors,
            known: HashMap::new(),
        })
    }

    fn weight(&mut self, schema: &'a Value) -> Result<Weight, Unbounded> {
        let Value::Object(members) = schema else {
            return Ok(Weight {
                judgements: 1,
                chain: 1,
                ..Weight::default()
            });
        };
        match self.known.insert(schema, None) {
            Some(None) => return Err(Unbounded::Endless),
            Some(Some(weight)) => {
                self.known.insert(schema, Some(weight));
                return Ok(weight);
            }
            None => {}
        }
        let mut parts: Vec<&'a Value> = Vec::new();
        for key in SAME_VALUE {
            let inner = members.get(key).map(|value| under(key, value));
            parts.extend(inner.into_iter().flatten().map(|(_, part)| part));
        }
        for key in REFERENCES {
            if let Some(reference) = members.get(key).and_then(Value::as_str) {
                parts.push(self.target(reference).ok_or(Unbounded::Reference)?);
            }
        }
        let opens = MEMBERS.iter().any(|key| members.contains_key(*key));
        let entries = ENTRIES.iter().filter_map(|key| members.get(*key));
        let entries: usize = entries
            .map(|entries| match entries {
                Value::Array(items) => items.len(),
                Value::Object(members) => members.len(),
                _ => 0,
            })
            .sum();
        let mut sum = Weight {
            judgements: u64::try_from(entries).unwrap_or(u64::MAX).saturating_add(1),
            openings: u64::from(opens),
            steps: pattern::steps(members),
            chain: 0,
        };
        for part in parts {
            let weight = self.weight(part)?;
            sum.judgements = sum.judgements.saturating_add(weight.judgements);
            sum.openings = sum.openings.saturating_add(weight.openings);
            sum.steps = sum.steps.saturating_add(weight.steps);
            sum.chain = sum.chain.max(weight.chain);
        }
        sum.chain += 1;
        if sum.chain > MAX_CHAIN {
            return Err(Unbounded::Chain);
        }
        self.known.insert(schema, Some(sum));
        Ok(sum)
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        let fragment = reference.strip_prefix('#')?;
        // An escaped pointer could mean another part than the one found here.
        if fragment.contains('%') {
            return None;
        }
        match fragment {
            "" => Some(self.root),
            pointer if pointer.starts_with('/') => self.root.pointer(pointer),
            anchor => self.anchors.get(anchor).copied(),
        }
    }
}
