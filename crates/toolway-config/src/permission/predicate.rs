//! Predicates: the part of a rule in parentheses.
//!
//! Owns their syntax and evaluation. `key:pattern` compares an argument as text, `@readOnly` and
//! the like look at what the server claims about the tool, `&&` joins several.
//! Does not own: what an argument means, and which forms a text has (`predicate/text_forms.rs`). A
//! pattern is no path or URL check; an allow rule therefore accepts no `..` and no hidden
//! characters.

use serde_json::{Map, Number, Value};
use toolway_types::text::{self, fold};

use self::text_forms::{climbs, text_forms};
use super::glob::Glob;

mod text_forms;

/// What a server claims about a tool (its annotations). Absent claims count as the protocol's
/// defaults: not read-only, destructive, not idempotent, open world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolHints {
    /// `readOnlyHint`
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
    /// `idempotentHint`
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    pub open_world: Option<bool>,
}

/// What a rule does, and so how widely it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleStance {
    /// allow
    Permit,
    /// ask, deny
    Restrict,
}

/// The outcome of a predicate when not everything is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PredicateResult {
    Yes,
    No,
    Unknown,
}

impl From<bool> for PredicateResult {
    fn from(value: bool) -> Self {
        if value {
            PredicateResult::Yes
        } else {
            PredicateResult::No
        }
    }
}

/// One condition on a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RulePredicate {
    Argument {
        key: String,
        pattern: Glob,
        folded: Glob,
    },
    Hint {
        hint: ToolHint,
        claimed: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ToolHint {
    ReadOnly,
    Destructive,
    Idempotent,
    OpenWorld,
}

impl RulePredicate {
    /// Reads what stands between the parentheses; an error is the reason why not.
    pub(super) fn parse_all(inside: &str) -> Result<Vec<RulePredicate>, String> {
        if inside.trim() == "*" {
            return Ok(Vec::new());
        }
        inside
            .split(" && ")
            .map(|part| Self::parse(part.trim()))
            .collect()
    }

    /// Whether a pattern holds what looks like another condition: `a:1&&b:2` without spaces. That
    /// could be part of the pattern, but was perhaps not meant so.
    fn hides_another(pattern: &str) -> bool {
        pattern.match_indices("&&").any(|(place, _)| {
            let next = pattern[place + 2..].trim_start();
            let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
            let end = next.find(|c| !word(c)).unwrap_or(next.len());
            next.starts_with(['@', '!']) || (end > 0 && next[end..].starts_with(':'))
        })
    }

    fn parse(part: &str) -> Result<RulePredicate, String> {
        let (claimed, word) = match part.strip_prefix('!') {
            Some(rest) if rest.starts_with('@') => (false, rest),
            _ => (true, part),
        };
        if let Some(word) = word.strip_prefix('@') {
            let hint = match word.to_ascii_lowercase().trim_end_matches("hint") {
                "readonly" => ToolHint::ReadOnly,
                "destructive" => ToolHint::Destructive,
                "idempotent" => ToolHint::Idempotent,
                "openworld" => ToolHint::OpenWorld,
                _ => return Err(format!("there is no annotation `@{word}`")),
            };
            return Ok(RulePredicate::Hint { hint, claimed });
        }
        let Some((key, pattern)) = part.split_once(':') else {
            return Err(format!(
                "`{part}` is neither `argument:pattern` nor `@annotation`"
            ));
        };
        let (key, pattern) = (key.trim(), pattern.trim());
        if key.is_empty() {
            return Err(format!("`{part}` names no argument"));
        }
        if Self::hides_another(pattern) {
            return Err(format!(
                "`{part}` holds a `&&` that may join two conditions; write it with spaces around it"
            ));
        }
        Ok(RulePredicate::Argument {
            key: key.to_owned(),
            pattern: Glob::new(pattern),
            folded: Glob::new(&fold(pattern)),
        })
    }

    pub(super) fn is_about_hints(&self) -> bool {
        matches!(self, RulePredicate::Hint { .. })
    }

    pub(super) fn holds(
        &self,
        arguments: Option<&Map<String, Value>>,
        hints: Option<ToolHints>,
        stance: RuleStance,
    ) -> PredicateResult {
        match self {
            RulePredicate::Hint { hint, claimed } => match hints {
                Some(hints) => (hint.of(hints) == *claimed).into(),
                None => PredicateResult::Unknown,
            },
            RulePredicate::Argument {
                key,
                pattern,
                folded,
            } => match (arguments, stance) {
                (None, _) => PredicateResult::Unknown,
                (Some(arguments), RuleStance::Restrict) => {
                    let mut values = Vec::new();
                    collect(arguments, key, &mut values);
                    if pattern.is_everything() {
                        // Whatever is there, an empty list too.
                        return (!values.is_empty()).into();
                    }
                    values
                        .into_iter()
                        .any(|value| any_leaf(value, pattern, folded))
                        .into()
                }
                (Some(arguments), RuleStance::Permit) => {
                    // A server may read `Repo` where the rule says `repo`, so every spelling of
                    // the key that is there must fit, and the exact one must be there.
                    let mut values = Vec::new();
                    collect(arguments, key, &mut values);
                    (exact(arguments, key).is_some()
                        && values.into_iter().all(|value| is_within(value, pattern)))
                    .into()
                }
            },
        }
    }
}

impl ToolHint {
    fn of(self, hints: ToolHints) -> bool {
        match self {
            ToolHint::ReadOnly => hints.read_only == Some(true),
            // The protocol gives the destructive hint a meaning only for tools that write.
            ToolHint::Destructive => {
                hints.read_only != Some(true) && hints.destructive.unwrap_or(true)
            }
            ToolHint::Idempotent => hints.idempotent == Some(true),
            ToolHint::OpenWorld => hints.open_world.unwrap_or(true),
        }
    }
}

/// The argument itself, or the one that a dotted key leads to.
fn exact<'a>(arguments: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    if let Some(value) = arguments.get(key) {
        return Some(value);
    }
    let (first, rest) = key.split_once('.')?;
    exact(arguments.get(first)?.as_object()?, rest)
}

/// Every argument that some reader could take for `key`: any case, hidden characters aside, and
/// through objects and arrays for a dotted key.
fn collect<'a>(arguments: &'a Map<String, Value>, key: &str, values: &mut Vec<&'a Value>) {
    let wanted = fold(key);
    for (name, value) in arguments {
        let name = fold(&text::clean_line(name));
        if name == wanted {
            values.push(value);
        } else if let Some(rest) = wanted
            .strip_prefix(&name)
            .and_then(|rest| rest.strip_prefix('.'))
        {
            match value {
                Value::Object(members) => collect(members, rest, values),
                Value::Array(items) => {
                    for members in items.iter().filter_map(Value::as_object) {
                        collect(members, rest, values);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether any scalar in the value fits: as given, as shown, as the path or address it leads to, or
/// as another spelling of the same number.
fn any_leaf(value: &Value, pattern: &Glob, folded: &Glob) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| any_leaf(item, pattern, folded)),
        Value::Object(members) => members
            .values()
            .any(|member| any_leaf(member, pattern, folded)),
        Value::Number(number) => {
            let spelled = spellings(number);
            spelled.iter().any(|text| pattern.matches(text))
                || pattern
                    .literal()
                    .is_some_and(|text| is_number(text, number))
        }
        scalar => {
            let given = scalar_text(scalar);
            let shown = text::clean_line(&given);
            pattern.matches(&given)
                || [&given, shown.as_ref()]
                    .iter()
                    .any(|text| folded.matches(&fold(text)))
                || text_forms(&shown)
                    .iter()
                    .any(|text| folded.matches(&fold(text)))
        }
    }
}

/// A number in every usual spelling: as given, and as a plain decimal with and without a
/// fraction. What a tool reads is the number, so `2` must be caught where it is written `2.0`.
fn spellings(number: &Number) -> Vec<String> {
    let mut all = vec![number.to_string()];
    let mut add = |text: String| {
        if !all.contains(&text) {
            all.push(text);
        }
    };
    match number.as_f64() {
        Some(value) if number.is_f64() => {
            // Without an exponent, and without a fraction where it is whole.
            add(value.to_string());
            if value == 0.0 {
                add("0".to_owned());
            }
            if value.fract() == 0.0 {
                add(format!("{value:.1}"));
            }
        }
        _ => add(format!("{number}.0")),
    }
    all
}

/// Whether a text is this number, however it is written.
fn is_number(text: &str, number: &Number) -> bool {
    match (text.parse::<i128>(), number.as_i128()) {
        (Ok(text), Some(number)) => text == number,
        _ => text
            .parse::<f64>()
            .is_ok_and(|text| number.as_f64() == Some(text)),
    }
}

/// Whether the value is a scalar, or a list of scalars, that fits entirely and hides nothing.
fn is_within(value: &Value, pattern: &Glob) -> bool {
    match value {
        Value::Array(items) => {
            !items.is_empty() && items.iter().all(|item| is_within(item, pattern))
        }
        Value::Object(_) => false,
        scalar => {
            let given = scalar_text(scalar);
            pattern.matches(&given)
                && (pattern.is_literal() || (text::clean(&given) == given && !climbs(&given)))
        }
    }
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
