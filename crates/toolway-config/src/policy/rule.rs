//! The rules of `allowedMcpServers`, `deniedMcpServers` and of the lists about instructions.
//!
//! Owns: reading a rule and asking whether it speaks of a server. A denial reads what it leaves
//! open widely, a permission narrowly, so a slip of the administrator fails on the safe side.
//! Does not own: how the lists of several files combine (`lists`).

use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use toolway_types::Origin;
use toolway_types::text::fold;
use url::Url;

use super::pattern;
use super::url::{Reading, UrlPattern};

/// One list of one file.
#[derive(Debug, Clone)]
pub(crate) struct RuleList {
    pub(crate) origin: Origin,
    pub(crate) rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// As written, for the person it refuses.
    pub(crate) text: String,
    pub(crate) origin: Origin,
    speaks_of: SpeaksOf,
}

#[derive(Debug, Clone)]
enum SpeaksOf {
    Name(String),
    Url(UrlPattern),
    /// Word by word; a last word `**` stands for any further ones.
    Command(Vec<String>),
}

/// What a rule is asked about.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a str,
    pub(crate) target: Target<'a>,
}

/// What the server is reached by.
#[derive(Debug)]
pub(crate) enum Target<'a> {
    /// Not known yet, or nothing outside the program.
    Nothing,
    Remote(&'a Url),
    Command {
        words: Vec<&'a str>,
        /// Where the program really lies, when it can be found.
        program: Option<PathBuf>,
    },
}

impl Rule {
    /// Reads a rule; the reason completes the sentence "`deniedMcpServers[0]` …".
    pub(crate) fn parse(value: &Value, origin: Origin) -> Result<Self, String> {
        let Value::Object(map) = value else {
            return Err("must be an object".to_owned());
        };
        let mut members = map.iter();
        let (Some((key, value)), None) = (members.next(), members.next()) else {
            return Err("must have exactly one key".to_owned());
        };
        let speaks_of = match (key.as_str(), value) {
            ("serverName", Value::String(name)) if !name.is_empty() => SpeaksOf::Name(name.clone()),
            ("serverUrl", Value::String(url)) => SpeaksOf::Url(UrlPattern::parse(url)?),
            ("serverCommand", Value::Array(words)) if !words.is_empty() => {
                let words = words.iter().map(|word| word.as_str().map(str::to_owned));
                let words: Option<_> = words.collect();
                SpeaksOf::Command(words.ok_or("`serverCommand` must hold strings only")?)
            }
            ("serverName" | "serverUrl", _) => return Err(format!("`{key}` must be a string")),
            ("serverCommand", _) => {
                return Err("`serverCommand` must be an array of strings".to_owned());
            }
            _ => return Err(format!("has the unknown key `{key}`")),
        };
        Ok(Self {
            text: value_text(map),
            origin,
            speaks_of,
        })
    }

    /// Whether the rule speaks of a server.
    pub(crate) fn matches(&self, subject: &Subject<'_>, reading: Reading) -> bool {
        match (&self.speaks_of, &subject.target) {
            (SpeaksOf::Name(pattern), _) => name_matches(pattern, subject.name, reading),
            (SpeaksOf::Url(pattern), Target::Remote(url)) => pattern.matches(url, reading),
            (SpeaksOf::Command(patterns), Target::Command { words, program }) => {
                command_matches(patterns, words, program.as_deref(), reading)
            }
            _ => false,
        }
    }

    /// Whether the rule is of the kind that knows this target better than its name does.
    pub(crate) fn is_about(&self, target: &Target<'_>) -> bool {
        matches!(
            (&self.speaks_of, target),
            (SpeaksOf::Url(_), Target::Remote(_)) | (SpeaksOf::Command(_), Target::Command { .. })
        )
    }
}

fn value_text(map: &serde_json::Map<String, Value>) -> String {
    serde_json::to_string(map).unwrap_or_default()
}

fn name_matches(pattern: &str, name: &str, reading: Reading) -> bool {
    if pattern::matches(pattern, name) {
        return true;
    }
    if reading == Reading::Narrow {
        return false;
    }
    // The same name in other letters, or as it appears in tool names, is still that name.
    let (pattern, name) = (fold(pattern), fold(name));
    let plain = |text: &str| {
        text.chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "_-*".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect::<String>()
    };
    pattern::matches(&pattern, &name) || pattern::matches(&plain(&pattern), &plain(&name))
}

fn command_matches(
    patterns: &[String],
    words: &[&str],
    program: Option<&Path>,
    reading: Reading,
) -> bool {
    // Alone, `**` has no program before it: it stands for every command.
    if patterns == ["**"] {
        return true;
    }
    let Some(((first, patterns), (command, words))) =
        patterns.split_first().zip(words.split_first())
    else {
        return false;
    };
    program_matches(first, command, program, reading) && words_match(patterns, words)
}

fn words_match(patterns: &[String], words: &[&str]) -> bool {
    let (patterns, words) = match patterns.split_last() {
        Some((last, before)) if last == "**" && words.len() >= before.len() => {
            (before, &words[..before.len()])
        }
        _ => (patterns, words),
    };
    patterns.len() == words.len()
        && patterns
            .iter()
            .zip(words)
            .all(|(pattern, word)| pattern::matches(pattern, word))
}

fn program_matches(pattern: &str, command: &str, real: Option<&Path>, reading: Reading) -> bool {
    let climbs = Path::new(command)
        .components()
        .any(|part| part == Component::ParentDir);
    let real_text = real.map(Path::to_string_lossy);
    match reading {
        // `/opt/tools/../../tmp/x` must not pass for something below `/opt/tools`.
        Reading::Narrow if climbs => real_text.is_some_and(|real| pattern::matches(pattern, &real)),
        Reading::Narrow => pattern::matches(pattern, command),
        Reading::Wide => {
            let last = |path: &Path| {
                path.file_name()
                    .map(|name| name.to_string_lossy().into_owned())
            };
            let names = [last(Path::new(command)), real.and_then(last)];
            pattern::matches(pattern, command)
                || real_text.is_some_and(|real| pattern::matches(pattern, &real))
                || names
                    .into_iter()
                    .flatten()
                    .any(|name| pattern::matches(pattern, &name))
        }
    }
}
