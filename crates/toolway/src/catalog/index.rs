//! The index: every word of every tool, weighed by the field it stands in.
//!
//! Owns the ranking: BM25F. A term counts in each field by that field's weight and length, the
//! sum is damped, and rare terms count more. The crates that offer BM25 score one text; a word
//! in a tool's name tells far more than the same word in the description of an argument, and
//! only fields can say so. What is read of a schema is `index/arguments.rs`. Does not own what is
//! done with a query (`search.rs`).

use std::collections::HashMap;

use self::arguments::IndexedArguments;
use crate::catalog::CatalogTool;

mod arguments;
pub(crate) mod words;

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
pub(crate) struct SearchIndex {
    /// The place in `terms` of each word.
    numbers: HashMap<String, u32>,
    terms: Vec<Term>,
    tools: usize,
}

/// One word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryWord {
    /// In lower case, as asked.
    pub(crate) word: String,
    /// Whether only tools that have it count.
    pub(crate) required: bool,
}

impl SearchIndex {
    pub(crate) fn build(tools: &[&CatalogTool]) -> Self {
        let mut reader = WordReader::default();
        let read: Vec<[WordRange; FIELDS.len()]> =
            tools.iter().map(|tool| reader.fields(tool)).collect();
        let mut usual = [0.0_f32; FIELDS.len()];
        for fields in &read {
            for (sum, field) in usual.iter_mut().zip(fields) {
                *sum += count(field.len());
            }
        }
        for sum in &mut usual {
            *sum = (*sum / count(tools.len().max(1))).max(1.0);
        }
        let mut terms: Vec<Term> = Vec::new();
        terms.resize_with(reader.numbers.len(), Term::default);
        // Of the tool at hand: what each term weighs there, by its number, and which it has.
        let mut weights = vec![0.0_f32; terms.len()];
        let mut had: Vec<u32> = Vec::new();
        for (tool, fields) in (0_u32..).zip(&read) {
            for (place, numbers) in fields.iter().enumerate() {
                let (weight, length) = FIELDS[place];
                let share = 1.0 - length + length * count(numbers.len()) / usual[place];
                for number in &reader.words[numbers.clone()] {
                    let sum = &mut weights[*number as usize];
                    // A weight is never zero, so this is the first time here.
                    if *sum == 0.0 {
                        had.push(*number);
                    }
                    *sum += weight / share;
                    terms[*number as usize].names |= place == 0;
                }
            }
            for number in had.drain(..) {
                let weight = std::mem::take(&mut weights[number as usize]);
                terms[number as usize].postings.push(Posting {
                    tool,
                    weight: weight / (DAMPING + weight),
                });
            }
        }
        Self {
            numbers: reader.numbers,
            terms,
            tools: tools.len(),
        }
    }

    fn term(&self, word: &str) -> Option<&Term> {
        self.terms.get(*self.numbers.get(word)? as usize)
    }

    /// The places of the tools that fit a query, best first, with their scores.
    pub(crate) fn rank(&self, query: &[QueryWord]) -> Vec<(usize, f32)> {
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
    fn variants(&self, wanted: &QueryWord, next: Option<&QueryWord>) -> Vec<(&Term, f32)> {
        let stemmed = words::stem(wanted.word.clone());
        let mut found = Vec::new();
        if let Some(term) = self.term(&stemmed) {
            found.push((term, 1.0));
        }
        if wanted.required {
            return found;
        }
        // `screen shot` for what servers call a screenshot.
        if let Some(next) = next
            && let Some(term) = self.term(&words::stem(format!("{}{}", wanted.word, next.word)))
        {
            found.push((term, 1.0));
        }
        for other in words::alike(&stemmed) {
            if let Some(term) = self.term(&other) {
                found.push((term, STANDS_FOR));
            }
        }
        if found.is_empty() && wanted.word.chars().count() >= SHORTEST_SLIP {
            let named = self
                .numbers
                .keys()
                .filter_map(|word| Some((word, self.term(word)?)));
            let near = named
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

/// The words of one field: a part of [`WordReader::words`].
type WordRange = std::ops::Range<usize>;

/// Reads the words of tools. Each word is kept once and has a number from then on: a thousand
/// tools have many words, and few different ones.
#[derive(Default)]
struct WordReader {
    numbers: HashMap<String, u32>,
    /// The words of all fields, one after the other.
    words: Vec<u32>,
}

impl WordReader {
    /// The words of all texts, as one field; at most [`MAX_WORDS`].
    fn field<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> WordRange {
        let begin = self.words.len();
        for text in texts {
            words::terms(text, |term| {
                if self.words.len() - begin < MAX_WORDS {
                    let number = self.number(term);
                    self.words.push(number);
                }
            });
        }
        begin..self.words.len()
    }

    fn number(&mut self, term: &str) -> u32 {
        if let Some(number) = self.numbers.get(term) {
            return *number;
        }
        // More words than that fit into no memory.
        let number = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        self.numbers.insert(term.to_owned(), number);
        number
    }

    fn fields(&mut self, tool: &CatalogTool) -> [WordRange; FIELDS.len()] {
        let (first, rest) = first_sentence(&tool.description);
        let arguments = IndexedArguments::of(&tool.input_schema);
        [
            self.name(tool),
            self.field([tool.key.server.as_str()]),
            self.field(tool.title.as_deref()),
            self.field(tool.search_hint.as_deref()),
            self.field([first]),
            self.field([rest]),
            self.field(arguments.names.iter().map(AsRef::as_ref)),
            self.field(arguments.purposes.iter().map(AsRef::as_ref)),
        ]
    }

    fn name(&mut self, tool: &CatalogTool) -> WordRange {
        let own = self.field([tool.key.tool.as_str()]);
        if tool.name == tool.key.exposed() || tool.name == tool.key.exposed_apart() {
            return own;
        }
        // It is shown under another name, which is the one its readers know.
        let shown = tool.name.rsplit("__").next().unwrap_or(&tool.name);
        let more = self.field([shown]);
        let new: Vec<u32> = self.words[more.clone()]
            .iter()
            .copied()
            .filter(|word| !self.words[own.clone()].contains(word))
            .collect();
        self.words.truncate(more.start);
        self.words.extend(new);
        own.start..self.words.len()
    }
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
