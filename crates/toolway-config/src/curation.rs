//! What an entry changes about a server's tools: which of them are offered, under which name, with
//! which description, and whether the server's own instructions count.
//!
//! Owns: the typed form of `includeTools`, `excludeTools`, `alias`, `tools` and `instructions`, and
//! what each means for one tool. The organisation's lists about instructions are in `policy`.
//! Whether an entry is well formed is checked in `raw::entry`; the catalogue applies it. A tool's
//! identity does not change: rules, audit and routing use the name its server gave it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolway_types::Origin;
use toolway_types::text::{self, is_hidden};
use toolway_types::wildcard as pattern;

use crate::json::{EntryMembers as _, ValueLines};
use crate::source::TextSource;

/// What one entry says about its server's tools. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Curation {
    include: Option<Include>,
    exclude: Vec<LocatedText>,
    alias: BTreeMap<String, LocatedText>,
    description: BTreeMap<String, LocatedText>,
    /// Why the server's instructions are dropped, if they are.
    pub instructions_dropped: Option<String>,
}

/// `includeTools`, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Include {
    origin: Origin,
    patterns: Vec<LocatedText>,
}

/// A text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedText {
    /// The text as written.
    pub text: String,
    /// Its file and line.
    pub origin: Origin,
}

/// Why a tool is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOutReason<'a> {
    /// A pattern of `excludeTools` matches it.
    Excluded(&'a LocatedText),
    /// No pattern of `includeTools`, which stands here, matches it.
    NotIncluded(&'a Origin),
}

impl std::fmt::Display for LeftOutReason<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LeftOutReason::Excluded(LocatedText { text, origin }) => {
                let text = text::spelled_out(text);
                write!(formatter, "`excludeTools` has `{text}` ({origin})")
            }
            LeftOutReason::NotIncluded(origin) => {
                write!(formatter, "`includeTools` does not have it ({origin})")
            }
        }
    }
}

impl Curation {
    /// Reads a checked entry. Malformed parts were diagnosed before and do not count here.
    pub(crate) fn read(
        definition: &Map<String, Value>,
        lines: &ValueLines,
        source: &TextSource,
    ) -> Self {
        let entry = CurationReader {
            definition,
            lines,
            source,
        };
        Self {
            include: definition.member("includeTools").map(|_| Include {
                origin: source.origin(lines.line_of(definition, "includeTools")),
                patterns: entry.texts("includeTools"),
            }),
            exclude: entry.texts("excludeTools"),
            alias: entry.members("alias", Value::as_str),
            description: entry.members("tools", |tool| tool.get("description")?.as_str()),
            instructions_dropped: (definition.member("instructions") == Some(&Value::Bool(false)))
                .then(|| {
                    let origin = source.origin(lines.line_of(definition, "instructions"));
                    format!("`instructions` is `false` ({origin})")
                }),
        }
    }

    /// Whether a tool is offered. Exclusion beats inclusion; both look at the tool's own name.
    pub fn admits(&self, tool: &str) -> Result<(), LeftOutReason<'_>> {
        if let Some(pattern) = self
            .exclude
            .iter()
            .find(|pattern| excludes(&pattern.text, tool))
        {
            return Err(LeftOutReason::Excluded(pattern));
        }
        match &self.include {
            Some(include)
                if !include
                    .patterns
                    .iter()
                    .any(|pattern| includes(&pattern.text, tool)) =>
            {
                Err(LeftOutReason::NotIncluded(&include.origin))
            }
            _ => Ok(()),
        }
    }

    /// The name a tool is shown by instead of its own.
    pub fn alias(&self, tool: &str) -> Option<&LocatedText> {
        self.alias.get(tool)
    }

    /// The tool that is shown by this name instead of its own.
    pub fn aliased(&self, alias: &str) -> Option<&str> {
        let mut all = self.alias.iter();
        let (tool, _) = all.find(|(_, placed)| placed.text == alias)?;
        Some(tool)
    }

    /// The description that replaces the server's.
    pub fn description(&self, tool: &str) -> Option<&LocatedText> {
        self.description.get(tool)
    }

    /// Everything in here that is about none of these tools, one sentence each: probably a slip.
    pub fn idle(&self, tools: &[&str]) -> Vec<String> {
        let included = self.include.iter().flat_map(|include| &include.patterns);
        let patterns = included
            .map(|pattern| ("includeTools", pattern, includes as fn(&str, &str) -> bool))
            .chain(
                self.exclude
                    .iter()
                    .map(|pattern| ("excludeTools", pattern, excludes as _)),
            );
        let mut idle: Vec<String> = patterns
            .filter(|(_, pattern, matches)| !tools.iter().any(|tool| matches(&pattern.text, tool)))
            .map(|(key, LocatedText { text, origin }, _)| {
                let text = text::spelled_out(text);
                format!("`{text}` in `{key}` matches none of its tools ({origin})")
            })
            .collect();
        for (key, named) in [("alias", &self.alias), ("tools", &self.description)] {
            idle.extend(
                named
                    .iter()
                    .filter(|(name, _)| !tools.contains(&name.as_str()))
                    .map(|(name, LocatedText { origin, .. })| {
                        let name = text::spelled_out(name);
                        format!("`{name}` in `{key}` is none of its tools ({origin})")
                    }),
            );
        }
        idle
    }
}

/// An include pattern matches what is visible: a star does not match a name with hidden characters.
fn includes(pattern: &str, tool: &str) -> bool {
    pattern == tool || (!tool.contains(is_hidden) && pattern::matches(pattern, tool))
}

/// An exclude pattern also matches a name with hidden characters.
fn excludes(pattern: &str, tool: &str) -> bool {
    pattern::matches(pattern, tool)
        || (tool.contains(is_hidden) && {
            // As a terminal shows it, and as it reads with nothing hidden in it.
            let bare: String = tool.chars().filter(|c| !is_hidden(*c)).collect();
            pattern::matches(pattern, &text::clean_line(tool)) || pattern::matches(pattern, &bare)
        })
}

struct CurationReader<'a> {
    definition: &'a Map<String, Value>,
    lines: &'a ValueLines,
    source: &'a TextSource,
}

impl CurationReader<'_> {
    fn texts(&self, key: &str) -> Vec<LocatedText> {
        let (Some(Value::Array(items)), Some(lines)) =
            (self.definition.member(key), self.lines_of(key))
        else {
            return Vec::new();
        };
        let placed = |(index, item): (usize, &Value)| {
            Some(LocatedText {
                text: item.as_str()?.to_owned(),
                origin: self.source.origin(lines.line_at(index)),
            })
        };
        items.iter().enumerate().filter_map(placed).collect()
    }

    fn members(
        &self,
        key: &str,
        text: impl Fn(&Value) -> Option<&str>,
    ) -> BTreeMap<String, LocatedText> {
        let (Some(Value::Object(members)), Some(lines)) =
            (self.definition.member(key), self.lines_of(key))
        else {
            return BTreeMap::new();
        };
        let placed = |(name, member): (&String, &Value)| {
            let placed = LocatedText {
                text: text(member)?.to_owned(),
                origin: self.source.origin(lines.line_of(members, name)),
            };
            Some((name.clone(), placed))
        };
        members.iter().filter_map(placed).collect()
    }

    /// An entry that comes from no file has no lines inside; its own is used.
    fn lines_of(&self, key: &str) -> Option<&ValueLines> {
        self.lines.member(self.definition, key).or(Some(self.lines))
    }
}

#[cfg(test)]
mod tests;
