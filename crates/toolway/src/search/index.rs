//! The index: every word of every tool, weighed by the field it stands in.
//!
//! Owns the ranking: BM25F. A term counts in each field by that field's weight and length, the
//! sum is damped, and rare terms count more. The crates that offer BM25 score one text; a word
//! in a tool's name tells far more than the same word in the description of an argument, and
//! only fields can say so. Does not own what is done with a query (`search.rs`).

use std::collections::HashMap;

use serde_json::Value;

use super::words;
use crate::catalog::CatalogTool;

/// The fields of a tool: how much a word in it weighs, and how much a long field is held
/// against its words.
const FIELDS: [(f32, f32); 8] = [
    (5.0, 0.4),  // its own name
    (3.5, 0.0),  // its server's name
    (3.0, 0.4),  // its title
    (3.0, 0.4),  // its search hint
    (1.6, 0.6),  // the first sentence of its description
    (0.6, 0.75), // the rest of it
    (0.8, 0.6),  // the names of its arguments
    (0.3, 0.75), // what its arguments are for
];
/// Where the sum of a term's weights stops to matter.
const DAMPING: f32 = 1.2;
/// What a word weighs that stands for the one asked for.
const STANDS_FOR: f32 = 0.45;
/// What a word weighs that was probably meant.
const MEANT: f32 = 0.7;
/// How alike two words must be for one to be meant by the other.
const NEAR: f64 = 0.88;
/// The shortest word that is looked at as a slip.
const SHORTEST_SLIP: usize = 4;
/// The part of a score that does not depend on how many of the query's words were found.
const UNCOVERED: f32 = 0.15;
/// How deep arguments are looked at.
const DEPTH: usize = 3;
/// The most words of one field: a server must not make searching slow.
const MAX_WORDS: usize = 600;

/// Where a term occurs.
#[derive(Debug, Clone, Copy)]
struct Posting {
    tool: u32,
    /// Over all fields, damped.
    weight: f32,
}

#[derive(Debug, Default)]
struct Term {
    postings: Vec<Posting>,
    /// Whether a tool is named by it; only such words are what people misspell.
    names: bool,
}

/// All words of one catalogue's tools.
#[derive(Debug, Default)]
pub(crate) struct Index {
    terms: HashMap<String, Term>,
    tools: usize,
}

/// One word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// In lower case, as asked.
    pub(super) word: String,
    /// Whether only tools that have it count.
    pub(super) required: bool,
}

impl Index {
    pub(super) fn build(tools: &[CatalogTool]) -> Self {
        let read: Vec<[Vec<String>; FIELDS.len()]> = tools.iter().map(fields).collect();
        let mut usual = [0.0_f32; FIELDS.len()];
        for fields in &read {
            for (sum, field) in usual.iter_mut().zip(fields) {
                *sum += count(field.len());
            }
        }
        for sum in &mut usual {
            *sum = (*sum / count(tools.len().max(1))).max(1.0);
        }
        let mut index = Self {
            terms: HashMap::new(),
            tools: tools.len(),
        };
        for (tool, fields) in (0_u32..).zip(read) {
            let mut weights: HashMap<String, (f32, bool)> = HashMap::new();
            for (place, words) in fields.into_iter().enumerate() {
                let (weight, length) = FIELDS[place];
                let share = 1.0 - length + length * count(words.len()) / usual[place];
                for word in words {
                    let entry = weights.entry(word).or_default();
                    entry.0 += weight / share;
                    entry.1 |= place == 0;
                }
            }
            for (word, (weight, names)) in weights {
                let term = index.terms.entry(word).or_default();
                term.names |= names;
                term.postings.push(Posting {
                    tool,
                    weight: weight / (DAMPING + weight),
                });
            }
        }
        index
    }

    /// The places of the tools that fit a query, best first, with their scores.
    pub(super) fn rank(&self, query: &[Wanted]) -> Vec<(usize, f32)> {
        let mut scores = vec![(0.0_f32, 0_u32, 0_u32); self.tools];
        let required = query.iter().filter(|wanted| wanted.required).count();
        for (place, wanted) in query.iter().enumerate() {
            let mut best: HashMap<u32, f32> = HashMap::new();
            for (term, share) in self.variants(wanted, query.get(place + 1)) {
                let value = share * self.rarity(term) * words::weight(&wanted.word);
                for posting in &term.postings {
                    let score = best.entry(posting.tool).or_default();
                    *score = score.max(value * posting.weight);
                }
            }
            for (tool, score) in best {
                let Some(total) = scores.get_mut(tool as usize) else {
                    continue;
                };
                total.0 += score;
                total.1 += 1;
                total.2 += u32::from(wanted.required);
            }
        }
        let asked = count(query.len().max(1));
        let mut ranked: Vec<(usize, f32)> = scores
            .into_iter()
            .enumerate()
            .filter(|(_, (_, found, had))| *found > 0 && *had as usize == required)
            .map(|(tool, (score, found, _))| {
                let covered = count(found as usize) / asked;
                (tool, score * (UNCOVERED + (1.0 - UNCOVERED) * covered))
            })
            .collect();
        // Stable: of equals, the catalogue's first comes first.
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranked
    }

    /// The terms that a word can mean, and how surely it means each.
    fn variants(&self, wanted: &Wanted, next: Option<&Wanted>) -> Vec<(&Term, f32)> {
        let stemmed = words::stem(wanted.word.clone());
        let mut found = Vec::new();
        if let Some(term) = self.terms.get(&stemmed) {
            found.push((term, 1.0));
        }
        if wanted.required {
            return found;
        }
        // `screen shot` for what servers call a screenshot.
        if let Some(next) = next
            && let Some(term) = self
                .terms
                .get(&words::stem(format!("{}{}", wanted.word, next.word)))
        {
            found.push((term, 1.0));
        }
        for other in words::alike(&stemmed) {
            if let Some(term) = self.terms.get(&other) {
                found.push((term, STANDS_FOR));
            }
        }
        if found.is_empty() && wanted.word.chars().count() >= SHORTEST_SLIP {
            let near = self
                .terms
                .iter()
                .filter(|(_, term)| term.names)
                .map(|(word, term)| (likeness(&stemmed, word), term))
                .filter(|(likeness, _)| *likeness >= NEAR);
            found.extend(near.map(|(_, term)| (term, MEANT)));
        }
        found
    }

    /// How much it tells that a tool has this term.
    fn rarity(&self, term: &Term) -> f32 {
        let (all, with) = (count(self.tools), count(term.postings.len()));
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }
}

/// How alike two words are, 0 to 1: one slip in a word counts little, another beginning much.
fn likeness(one: &str, other: &str) -> f64 {
    if one.len().abs_diff(other.len()) > 3 {
        return 0.0;
    }
    let slips = strsim::osa_distance(one, other);
    if slips <= 1 {
        return 1.0;
    }
    if slips > 2 {
        return 0.0;
    }
    strsim::jaro_winkler(one, other)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of words and tools are small"
)]
fn count(number: usize) -> f32 {
    number as f32
}

fn fields(tool: &CatalogTool) -> [Vec<String>; FIELDS.len()] {
    let of = |text: &str| {
        let mut found = Vec::new();
        words::terms(text, |term| {
            if found.len() < MAX_WORDS {
                found.push(term);
            }
        });
        found
    };
    let (first, rest) = first_sentence(&tool.description);
    let mut names = Vec::new();
    let mut purposes = Vec::new();
    if let Ok(schema) = serde_json::from_str::<Value>(tool.input_schema.get()) {
        arguments(&schema, DEPTH, &mut names, &mut purposes);
    }
    let mut name = of(&tool.key.tool);
    if tool.name != tool.key.exposed() {
        // It is shown under another name, which is the one its readers know.
        let shown = tool.name.rsplit("__").next().unwrap_or(&tool.name);
        name.extend(
            of(shown)
                .into_iter()
                .filter(|word| !name.contains(word))
                .collect::<Vec<_>>(),
        );
    }
    [
        name,
        of(tool.key.server.as_str()),
        of(tool.title.as_deref().unwrap_or_default()),
        of(tool.search_hint.as_deref().unwrap_or_default()),
        of(first),
        of(rest),
        of(&names.join(" ")),
        of(&purposes.join(" ")),
    ]
}

/// What a description says first, and the rest.
fn first_sentence(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = [". ", ".\n", "\n\n", "\n"]
        .iter()
        .filter_map(|end| text.find(end))
        .min()
        .unwrap_or(text.len());
    text.split_at(end)
}

fn arguments(schema: &Value, depth: usize, names: &mut Vec<String>, purposes: &mut Vec<String>) {
    if depth == 0 || names.len() > MAX_WORDS {
        return;
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            names.push(name.clone());
            if let Some(purpose) = property.get("description").and_then(Value::as_str) {
                purposes.push(purpose.to_owned());
            }
            arguments(property, depth - 1, names, purposes);
        }
    }
    if let Some(items) = schema.get("items") {
        arguments(items, depth, names, purposes);
    }
}
