//! Search: from a few words to the tools that are meant.
//!
//! Owns the syntax of a query and what is found by it. Splitting, stemming and ranking is
//! `catalog/index.rs`. Searching changes nothing: what a session has loaded is `pool.rs`.

use toolway_types::Untrusted;

use crate::call::{CallError, ToolTarget, brief};
use crate::catalog::index::{QueryWord, words};
use crate::catalog::{Catalog, CatalogTool};

#[cfg(test)]
mod tests;

/// How many tools a search gives by default.
pub const USUAL_RESULTS: usize = 5;
/// The most tools a search gives.
pub const MAX_RESULTS: usize = 50;
/// The longest query that is read, in characters; the rest is not looked at.
const MAX_QUERY: usize = 1_000;
/// The most words of a query.
const MAX_WORDS: usize = 32;
/// What begins a query that names its tools.
const SELECT: &str = "select:";
/// A tool this far below the best one is no answer.
const RELEVANT: f32 = 0.2;

/// What a search found.
#[derive(Debug, Default)]
pub struct SearchResult<'a> {
    /// The tools, best first.
    pub tools: Vec<&'a CatalogTool>,
    /// What was named and is not there.
    pub missing: Vec<MissingTool>,
}

/// A name that no tool has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTool {
    /// As it was asked for, cleaned.
    pub name: String,
    /// A name that was probably meant.
    pub suggestion: Option<String>,
}

impl Catalog {
    /// Finds tools. `select:one,two` takes those of that exposed or own name or alias, in that
    /// order; anything else is ranked by how well names, descriptions, arguments and search hints
    /// fit its words. A word with `+` before it must be there.
    pub fn search(&self, query: &str, max_results: usize) -> SearchResult<'_> {
        let query: String = query.chars().take(MAX_QUERY).collect();
        let query = query.trim();
        let max_results = max_results.clamp(1, MAX_RESULTS);
        let start = query.get(..SELECT.len()).unwrap_or_default();
        if start.eq_ignore_ascii_case(SELECT) {
            return self.select(query[SELECT.len()..].split(','));
        }
        // Who gives a name in full means that tool.
        if !query.contains(char::is_whitespace)
            && let Ok(tool) = self.find(&ToolTarget::Exposed(query.to_owned()))
            && self.is_found(tool)
        {
            return SearchResult {
                tools: vec![tool],
                missing: Vec::new(),
            };
        }
        let ranked = self.search_index().rank(&wanted(query));
        let least = ranked.first().map_or(0.0, |(_, best)| best * RELEVANT);
        SearchResult {
            tools: ranked
                .into_iter()
                .take_while(|(_, score)| *score >= least)
                .take(max_results)
                .filter_map(|(place, _)| self.searchable_at(place))
                .collect(),
            missing: Vec::new(),
        }
    }

    /// The tools of these exposed or own names or aliases, in this order. Where servers have tools
    /// of one such name, all of them are meant.
    pub fn select<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> SearchResult<'_> {
        let mut found = SearchResult::default();
        let names = names.into_iter().map(str::trim);
        for name in names.filter(|name| !name.is_empty()).take(MAX_RESULTS) {
            let mut tools: Vec<&CatalogTool> =
                match self.find(&ToolTarget::Exposed(name.to_owned())) {
                    Ok(tool) if self.is_found(tool) => vec![tool],
                    Err(CallError::Ambiguous { candidates, .. }) => self
                        .tools()
                        .filter(|tool| candidates.contains(&tool.name))
                        .collect(),
                    Ok(_) | Err(_) => Vec::new(),
                };
            if tools.is_empty() {
                let own = |tool: &&CatalogTool| {
                    let alias = self.alias(&tool.key);
                    tool.key.tool.eq_ignore_ascii_case(name)
                        || alias.is_some_and(|alias| alias.eq_ignore_ascii_case(name))
                };
                tools = self.tools().filter(own).take(MAX_RESULTS).collect();
            }
            if tools.is_empty() {
                found.missing.push(MissingTool {
                    name: brief(&Untrusted::new(name)),
                    suggestion: self.nearest(name),
                });
            }
            for tool in tools {
                if !found.tools.iter().any(|other| other.key == tool.key) {
                    found.tools.push(tool);
                }
            }
        }
        found.tools.truncate(MAX_RESULTS);
        found
    }

    fn nearest(&self, name: &str) -> Option<String> {
        match self.find(&ToolTarget::Exposed(name.to_owned())) {
            Err(CallError::Unknown { suggestions, .. }) => suggestions.into_iter().next(),
            _ => None,
        }
        .or_else(|| {
            let best = self.search_index().rank(&wanted(name)).first()?.0;
            let best = self.searchable_at(best)?;
            Some(best.name.clone())
        })
    }

    /// Whether a search may give this tool: those of the host's own that a session has anyway are no
    /// find.
    fn is_found(&self, tool: &CatalogTool) -> bool {
        !tool.is_built_in() || self.is_deferred(tool)
    }
}

/// The words of a query that say something; all of them, where none does.
fn wanted(query: &str) -> Vec<QueryWord> {
    let mut all = Vec::new();
    for part in query.split_whitespace() {
        let required = part.starts_with('+');
        words::pieces(part, |word| {
            let word = word.clone();
            let wanted = QueryWord { word, required };
            if !all.contains(&wanted) && all.len() < MAX_WORDS {
                all.push(wanted);
            }
        });
    }
    let telling: Vec<QueryWord> = all
        .iter()
        .filter(|wanted| wanted.required || !words::is_empty(&wanted.word))
        .cloned()
        .collect();
    if telling.is_empty() { all } else { telling }
}
