//! The rules of `allowedMcpServers`, `deniedMcpServers` and of the lists about instructions.
//!
//! Owns: reading a rule and whether it matches a server. What a rule leaves open is read widely in
//! a denial and narrowly in a permission, so an administrator's slip fails on the safe side.
//! Does not own: how the lists of several files combine (`policy`), or which programs there are
//! (`program`).

use std::path::Path;

use serde_json::{Map, Value};
use toolway_types::text::fold;
use toolway_types::url_rules::{PatternReading, UrlPattern};
use toolway_types::{Origin, wildcard};
use url::Url;

use crate::command_line::PossibleCommands;

pub(crate) mod cross_app;
pub(crate) mod program;

use program::{ProgramLocation, StartedProgram};

/// One list of one file.
#[derive(Debug, Clone)]
pub(crate) struct PolicyRuleList {
    pub(crate) origin: Origin,
    pub(crate) rules: Vec<PolicyRule>,
}

/// One rule.
#[derive(Debug, Clone)]
pub(crate) struct PolicyRule {
    /// As written, for messages.
    pub(crate) text: String,
    pub(crate) origin: Origin,
    speaks_of: PolicyRuleKind,
}

#[derive(Debug, Clone)]
enum PolicyRuleKind {
    Name(String),
    Url(UrlPattern),
    Command(CommandRule),
}

/// A rule about a command.
#[derive(Debug, Clone)]
pub(crate) struct CommandRule {
    /// Word by word; a last word `**` stands for any further ones.
    pub(crate) words: Vec<String>,
    /// The variables that an entry may set although they can decide what code runs.
    env: Vec<String>,
    /// The working directories that an entry may name.
    cwd: Vec<String>,
}

/// What a rule is asked about.
#[derive(Debug)]
pub(crate) struct PolicySubject<'a> {
    pub(crate) name: &'a str,
    pub(crate) target: PolicyTarget<'a>,
}

/// What the server is reached by.
#[derive(Debug)]
pub(crate) enum PolicyTarget<'a> {
    /// Not known yet, or nothing outside the program.
    Nothing,
    Remote(&'a Url),
    Command(&'a StartedProgram),
}

impl PolicyRule {
    /// Reads a rule of a list that is read so; the reason completes the sentence
    /// "`deniedMcpServers[0]` …".
    pub(crate) fn parse(
        value: &Value,
        origin: Origin,
        reading: PatternReading,
    ) -> Result<Self, String> {
        let Value::Object(map) = value else {
            return Err("must be an object".to_owned());
        };
        let mut members = map
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "env" | "cwd"));
        let (Some((key, value)), None) = (members.next(), members.next()) else {
            return Err(
                "must have exactly one of `serverName`, `serverUrl` and `serverCommand`".to_owned(),
            );
        };
        let speaks_of = match (key.as_str(), value) {
            ("serverName", Value::String(name)) if !name.is_empty() => {
                PolicyRuleKind::Name(name.clone())
            }
            ("serverUrl", Value::String(url)) => PolicyRuleKind::Url(UrlPattern::parse(url)?),
            ("serverCommand", Value::Array(words)) if !words.is_empty() => {
                PolicyRuleKind::Command(CommandRule {
                    words: texts("serverCommand", words)?,
                    env: permitted(map, "env", reading)?,
                    cwd: permitted(map, "cwd", reading)?,
                })
            }
            ("serverName" | "serverUrl", _) => return Err(format!("`{key}` must be a string")),
            ("serverCommand", _) => {
                return Err("`serverCommand` must be an array of strings".to_owned());
            }
            _ => return Err(format!("has the unknown key `{key}`")),
        };
        if !matches!(speaks_of, PolicyRuleKind::Command(_)) && map.len() > 1 {
            return Err("must have `env` and `cwd` beside `serverCommand` only".to_owned());
        }
        Ok(Self {
            text: serde_json::to_string(map).unwrap_or_default(),
            origin,
            speaks_of,
        })
    }

    /// Whether the rule speaks of a server.
    pub(crate) fn matches(&self, subject: &PolicySubject<'_>, reading: PatternReading) -> bool {
        match (&self.speaks_of, &subject.target) {
            (PolicyRuleKind::Name(pattern), _) => name_matches(pattern, subject.name, reading),
            (PolicyRuleKind::Url(pattern), PolicyTarget::Remote(url)) => {
                pattern.matches(url, reading)
            }
            (PolicyRuleKind::Command(rule), PolicyTarget::Command(started)) => {
                rule.matches(started, reading)
            }
            _ => false,
        }
    }

    /// What of the entry a rule that matches its command does not permit, and how it could.
    pub(crate) fn objects(&self, subject: &PolicySubject<'_>) -> Option<String> {
        match (&self.speaks_of, &subject.target) {
            (PolicyRuleKind::Command(rule), PolicyTarget::Command(started)) => {
                rule.objects(started)
            }
            _ => None,
        }
    }

    /// Whether the rule is about what the target is reached by, and not about its name.
    pub(crate) fn is_about(&self, target: &PolicyTarget<'_>) -> bool {
        matches!(
            (&self.speaks_of, target),
            (PolicyRuleKind::Url(_), PolicyTarget::Remote(_))
                | (PolicyRuleKind::Command(_), PolicyTarget::Command(_))
        )
    }

    pub(crate) fn command(&self) -> Option<&CommandRule> {
        match &self.speaks_of {
            PolicyRuleKind::Command(rule) => Some(rule),
            _ => None,
        }
    }

    pub(crate) fn url(&self) -> Option<&UrlPattern> {
        match &self.speaks_of {
            PolicyRuleKind::Url(pattern) => Some(pattern),
            _ => None,
        }
    }
}

fn texts(key: &str, items: &[Value]) -> Result<Vec<String>, String> {
    let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
    let texts: Option<_> = texts.collect();
    texts.ok_or_else(|| format!("`{key}` must hold strings only"))
}

/// What a rule permits beside its command. A denial means the command, whatever is set beside it.
fn permitted(
    map: &Map<String, Value>,
    key: &str,
    reading: PatternReading,
) -> Result<Vec<String>, String> {
    match map.get(key) {
        None => Ok(Vec::new()),
        Some(_) if reading == PatternReading::Wide => Err(format!(
            "must not have `{key}`: it denies the command whatever is set"
        )),
        Some(Value::Array(items)) => texts(key, items),
        Some(_) => Err(format!("`{key}` must be an array of strings")),
    }
}

fn name_matches(pattern: &str, name: &str, reading: PatternReading) -> bool {
    if wildcard::matches(pattern, name) {
        return true;
    }
    if reading == PatternReading::Narrow {
        return false;
    }
    // The same name in other letters, or as it appears in tool names, is still that name.
    let (pattern, name) = (fold(pattern), fold(name));
    let plain = |text: &str| {
        let is_odd = |c: char| !c.is_ascii_alphanumeric() && !"_-*".contains(c);
        text.replace(is_odd, "_")
    };
    wildcard::matches(&pattern, &name) || wildcard::matches(&plain(&pattern), &plain(&name))
}

impl CommandRule {
    fn matches(&self, started: &StartedProgram, reading: PatternReading) -> bool {
        // Alone, `**` has no program before it: it stands for every command.
        if self.words == ["**"] {
            return true;
        }
        match reading {
            PatternReading::Narrow => {
                let plain = started.line.as_ref().and_then(|line| line.words.as_ref());
                let found = started.found.as_ref();
                let permits = |words: &[String]| {
                    self.has(words, |pattern, command| {
                        permits_program(pattern, command, found)
                    })
                };
                permits(&started.words) || plain.is_some_and(|words| permits(words))
            }
            PatternReading::Wide => {
                let (parts, hides) = started.may_run();
                let real = started.found.as_ref().map(|found| found.real.as_path());
                // Where the program was found is known of the first only, or of a plain line.
                let first = match &started.line {
                    None => Some(started.words.as_slice()),
                    Some(line) => line.words.as_deref(),
                };
                hides
                    || parts
                        .iter()
                        .flat_map(PossibleCommands::commands)
                        .any(|words| {
                            let real = real.filter(|_| Some(words) == first);
                            self.has(words, |pattern, command| {
                                could_be_program(pattern, command, real)
                            })
                        })
            }
        }
    }

    fn has(&self, words: &[String], program: impl Fn(&str, &str) -> bool) -> bool {
        let Some(((first, patterns), (command, words))) =
            self.words.split_first().zip(words.split_first())
        else {
            return false;
        };
        program(first, command) && words_match(patterns, words)
    }

    fn objects(&self, started: &StartedProgram) -> Option<String> {
        // Where any program may run, nothing needs a permission.
        if self.words.first().is_some_and(|first| is_everything(first)) {
            return None;
        }
        let is_permitted = |name: &String| {
            let mut patterns = self.env.iter();
            patterns.any(|pattern| wildcard::matches(pattern, name))
        };
        if let Some(name) = started.steering.iter().find(|name| !is_permitted(name)) {
            return Some(format!(
                "its entry sets `{name}`, which can decide what code runs; the organisation can \
                 permit it with `\"env\": [\"{name}\"]` in that rule"
            ));
        }
        let directory = started.directory.as_ref()?;
        let is_permitted = self.cwd.iter().any(|pattern| {
            let written = directory.to_string_lossy();
            is_everything(pattern)
                || (is_plain(&written)
                    && wildcard::matches(pattern, &written)
                    && directory
                        .canonicalize()
                        .is_ok_and(|real| leads(pattern, &real)))
        });
        (!is_permitted).then(|| {
            "its entry sets `cwd` to a directory that the rule does not name; the organisation \
             can permit it with `\"cwd\": [\"…\"]` in that rule"
                .to_owned()
        })
    }
}

fn words_match(patterns: &[String], words: &[String]) -> bool {
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
            .all(|(pattern, word)| wildcard::matches(pattern, word))
}

fn is_everything(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.bytes().all(|byte| byte == b'*')
}

/// Whether a path is absolute and has no `.` or `..`.
fn is_plain(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|rest| {
        rest.is_empty() || rest.split('/').all(|part| !matches!(part, "" | "." | ".."))
    })
}

/// Whether a path without links is what a pattern means, whose own links are followed: a folder
/// is not left by a link in it, and a link that is named itself is meant.
fn leads(pattern: &str, real: &Path) -> bool {
    let text = real.to_string_lossy();
    if wildcard::matches(pattern, &text) {
        return true;
    }
    let Some(star) = pattern.find('*') else {
        return Path::new(pattern)
            .canonicalize()
            .is_ok_and(|meant| meant == real);
    };
    let folder = pattern[..star].rfind('/').unwrap_or_default();
    let meant = Path::new(&pattern[..folder]).canonicalize();
    meant.is_ok_and(|meant| {
        let meant = format!("{}{}", meant.display(), &pattern[folder..]);
        wildcard::matches(&meant, &text)
    })
}

/// Whether a permission for a program covers this one: as written, and where its links lead. A name
/// without a slash is what the user's own `PATH` finds, but nothing in a relative directory.
fn permits_program(pattern: &str, command: &str, found: Option<&ProgramLocation>) -> bool {
    if is_everything(pattern) {
        return true;
    }
    wildcard::matches(pattern, command)
        && found.is_none_or(|found| !found.is_relative)
        && (!command.contains('/')
            || (is_plain(command) && found.is_none_or(|found| leads(pattern, &found.real))))
}

/// What may be a program behind an option in the same word: `-Stouch`, `--split-string=touch`.
fn behind_options(word: &str) -> Vec<String> {
    /// More options than that stand in no one word before a value.
    const LETTERS: usize = 6;
    let Some(options) = word.strip_prefix('-') else {
        return Vec::new();
    };
    let letters = options.char_indices().skip(1).take(LETTERS);
    let mut values: Vec<&str> = letters.map(|(at, _)| &options[at..]).collect();
    values.extend(options.split_once('=').map(|(_, value)| value));
    let last = |value: &&str| value.rsplit('/').next().unwrap_or_default().to_owned();
    let names: Vec<String> = values.iter().map(last).collect();
    values.into_iter().map(str::to_owned).chain(names).collect()
}

/// Whether a denial of a program could mean this one, by any of its names.
fn could_be_program(pattern: &str, command: &str, real: Option<&Path>) -> bool {
    let last = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let names = [
        Some(command.to_owned()),
        last(Path::new(command)),
        real.map(|real| real.to_string_lossy().into_owned()),
        real.and_then(last),
    ];
    let folded = fold(pattern);
    let mut names = names.into_iter().flatten().chain(behind_options(command));
    names.any(|name| wildcard::matches(&folded, &fold(&name)))
        || real.is_some_and(|real| leads(pattern, real))
}
