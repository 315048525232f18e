//! When tools are deferred: which of them a model sees only once it has searched for them.
//!
//! Owns the setting and how it is written. What it does to a catalogue is `toolway`'s.

use std::fmt;

use toolway_types::Diagnosis;

use crate::Environment;

/// The share of the context that tools may take before they are deferred, in percent.
const USUAL_PERCENT: u8 = 10;
/// The variable, last the one that wins. The first is another host's spelling.
const NAMES: [&str; 2] = ["ENABLE_TOOL_SEARCH", "TOOLWAY_TOOL_SEARCH"];

/// Which tools stay out of the list until a search finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSearch {
    /// `false`: none. There is nothing to search for.
    Off,
    /// `true`: all but those that are always loaded.
    On,
    /// `auto`, `auto:N`: those that ask for it; and all the others too, once the list would take
    /// more than this share of the context.
    Auto {
        /// From 0 to 100.
        percent: u8,
    },
}

impl Default for ToolSearch {
    fn default() -> Self {
        Self::Auto {
            percent: USUAL_PERCENT,
        }
    }
}

impl fmt::Display for ToolSearch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => formatter.write_str("false"),
            Self::On => formatter.write_str("true"),
            Self::Auto { percent } => write!(formatter, "auto:{percent}"),
        }
    }
}

impl ToolSearch {
    /// Reads `true`, `false`, `auto` or `auto:N`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "true" | "1" | "on" | "yes" => Some(Self::On),
            "false" | "0" | "off" | "no" => Some(Self::Off),
            "auto" => Some(Self::default()),
            other => {
                let percent = other.strip_prefix("auto:")?.trim_end_matches('%');
                let percent = percent.parse().ok().filter(|percent| *percent <= 100)?;
                Some(Self::Auto { percent })
            }
        }
    }

    /// What the environment says.
    pub(crate) fn read(environment: &Environment, found: &mut Vec<Diagnosis>) -> Option<Self> {
        let mut chosen = None;
        for name in NAMES {
            let Some(text) = environment.var(name).filter(|text| !text.trim().is_empty()) else {
                continue;
            };
            match Self::parse(text) {
                Some(search) => chosen = Some(search),
                None => found.push(
                    Diagnosis::warning(format!(
                        "`{name}` is none of `true`, `false`, `auto` and `auto:N`; it is not applied"
                    ))
                    .hint("N is the share of the context that tools may take, from 0 to 100"),
                ),
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read_and_everything_else_refused() {
        let auto = |percent| Some(ToolSearch::Auto { percent });
        for (text, expected) in [
            ("true", Some(ToolSearch::On)),
            (" FALSE ", Some(ToolSearch::Off)),
            ("auto", auto(10)),
            ("auto:0", auto(0)),
            ("auto:25", auto(25)),
            ("auto:100%", auto(100)),
            ("auto:101", None),
            ("auto:", None),
            ("auto:-1", None),
            ("sometimes", None),
        ] {
            assert_eq!(ToolSearch::parse(text), expected, "{text}");
        }
        for search in [ToolSearch::On, ToolSearch::Off, ToolSearch::default()] {
            assert_eq!(ToolSearch::parse(&search.to_string()), Some(search));
        }
    }
}
