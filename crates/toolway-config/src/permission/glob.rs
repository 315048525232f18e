//! Patterns of names: `*` and nothing else.
//!
//! Owns the matching of one text. Which texts are tried is the business of rules and matchers.

use wildmatch::WildMatchPattern;

/// A pattern in which `*` stands for any run of characters and everything else for itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Glob {
    /// What every match begins with. Every call is compared with every rule, and most rules already
    /// differ in their first letters.
    start: String,
    rest: GlobRest,
}

/// What follows the beginning.
#[derive(Debug, Clone, PartialEq)]
enum GlobRest {
    Nothing,
    Anything,
    /// Whatever fits the whole pattern.
    Pattern(WildMatchPattern<'*', '\0'>),
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        let start = pattern.split('*').next().unwrap_or_default();
        Self {
            rest: match &pattern[start.len()..] {
                "" => GlobRest::Nothing,
                wild if wild.chars().all(|c| c == '*') => GlobRest::Anything,
                _ => GlobRest::Pattern(WildMatchPattern::new(pattern)),
            },
            start: start.to_owned(),
        }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        match (&self.rest, text.strip_prefix(&self.start)) {
            (_, None) => false,
            (GlobRest::Nothing, Some(rest)) => rest.is_empty(),
            (GlobRest::Anything, Some(_)) => true,
            (GlobRest::Pattern(whole), Some(_)) => whole.matches(text),
        }
    }

    pub(super) fn is_literal(&self) -> bool {
        self.rest == GlobRest::Nothing
    }

    /// The one text that it matches.
    pub(super) fn literal(&self) -> Option<&str> {
        self.is_literal().then_some(&self.start)
    }

    pub(super) fn is_everything(&self) -> bool {
        self.start.is_empty() && self.rest == GlobRest::Anything
    }
}
