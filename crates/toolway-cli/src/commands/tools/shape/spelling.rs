//! How the shape of a value is written: `{id: integer, tags?: string[]} | null`.
//!
//! Owns the spelling of types, limits and signatures. All of it is made of a server's words, so it is
//! legible (SEC-52): one line, nothing hidden, nothing longer than a few rows.

use serde_json::Value;
use toolway_types::text::{TextKind, cut, legible};

use super::{Form, Member, Members, Shape};
use crate::screen::member_name;

/// The most values, or members, that are written out in one place.
const MANY: usize = 12;
/// The longest value that is written out.
const VALUE: usize = 48;
/// The longest pattern.
const PATTERN: usize = 60;
/// The longest type.
const TYPE: usize = 400;
/// The longest object that a signature writes out.
const INLINE: usize = 40;
/// The longest signature.
const SIGNATURE: usize = 2_000;

impl Shape {
    /// Its type, objects written out this deep.
    pub(in super::super) fn spelled(&self, depth: usize) -> String {
        cut(&self.alternatives(depth), TYPE).into_owned()
    }

    /// Its type with members where that is short.
    pub(in super::super) fn spelled_short(&self) -> String {
        let whole = self.alternatives(1);
        if whole.chars().count() <= INLINE {
            whole
        } else {
            self.spelled(0)
        }
    }

    /// What limits it, in words.
    pub(in super::super) fn limits(&self) -> Vec<String> {
        let limit = |name: &str| self.limits.get(name);
        let number = |name: &str| limit(name).filter(|it| it.is_number()).map(value);
        let range = |least: &str, most: &str, noun: &str| {
            let (words, last) = match (number(least), number(most)) {
                (Some(least), Some(most)) if least == most => (format!("exactly {most}"), most),
                (Some(least), Some(most)) => (format!("{least} to {most}"), most),
                (Some(least), None) => (format!("at least {least}"), least),
                (None, Some(most)) => (format!("at most {most}"), most),
                (None, None) => return None,
            };
            Some(match (noun, last.as_str()) {
                ("", _) => words,
                (noun, "1") => format!("{words} {noun}"),
                (noun, _) => format!("{words} {noun}s"),
            })
        };
        let text = |name: &str, most: usize| {
            let text = limit(name)?.as_str()?;
            Some(legible(&cut(text, most), TextKind::Code))
        };
        let all = [
            text("format", VALUE).map(|format| format!("format `{format}`")),
            range("minimum", "maximum", ""),
            number("exclusiveMinimum").map(|least| format!("more than {least}")),
            number("exclusiveMaximum").map(|most| format!("less than {most}")),
            number("multipleOf").map(|step| format!("a multiple of {step}")),
            range("minLength", "maxLength", "character"),
            range("minItems", "maxItems", "item"),
            text("pattern", PATTERN).map(|pattern| format!("matching `{pattern}`")),
        ];
        all.into_iter().flatten().collect()
    }

    fn alternatives(&self, depth: usize) -> String {
        if self.forms.is_empty() {
            return "any".to_owned();
        }
        let mut all: Vec<String> = Vec::new();
        for form in self.forms.iter().take(MANY) {
            let form = form.spelled(depth);
            if !all.contains(&form) {
                all.push(form);
            }
        }
        if self.forms.len() > MANY {
            all.push("…".to_owned());
        }
        all.join(" | ")
    }
}

impl Form {
    fn spelled(&self, depth: usize) -> String {
        match self {
            Self::Plain(kind) => (*kind).to_owned(),
            Self::Value(it) => value(it),
            Self::Again(name) => legible(&cut(name, VALUE), TextKind::Code),
            Self::List(items) => match items.alternatives(depth) {
                several if several.contains(" | ") => format!("({several})[]"),
                one => format!("{one}[]"),
            },
            Self::Places(places) => {
                let places = places.iter().take(MANY).map(|it| it.alternatives(depth));
                format!("[{}]", places.collect::<Vec<_>>().join(", "))
            }
            Self::Object(Members { named, others }) => {
                let others = others.as_ref().filter(|_| depth > 0 || named.is_empty());
                let others = others
                    .map(|it| format!("[name]: {}", it.alternatives(depth.saturating_sub(1))));
                if others.is_none() && (depth == 0 || named.is_empty()) {
                    return "object".to_owned();
                }
                let named = if depth == 0 { &[][..] } else { named };
                let mut all: Vec<String> = named
                    .iter()
                    .take(MANY)
                    .map(|member| {
                        let kind = member.shape.alternatives(depth.saturating_sub(1));
                        member.spelled(&kind)
                    })
                    .collect();
                if named.len() > MANY {
                    all.push("…".to_owned());
                }
                all.extend(others);
                format!("{{{}}}", all.join(", "))
            }
        }
    }
}

impl Member {
    /// `name?: kind = default`
    fn spelled(&self, kind: &str) -> String {
        let mark = if self.needed { "" } else { "?" };
        let default = self.shape.default.as_ref();
        let default = default.map(|it| format!(" = {}", value(it)));
        format!(
            "{}{mark}: {kind}{}",
            member_name(&cut(&self.name, VALUE)),
            default.unwrap_or_default()
        )
    }
}

/// What stands between the brackets of a signature.
pub(in super::super) fn signature(arguments: &[Member]) -> String {
    let all: Vec<String> = arguments
        .iter()
        .map(|argument| argument.spelled(&argument.shape.spelled_short()))
        .collect();
    cut(&all.join(", "), SIGNATURE).into_owned()
}

/// A value as JSON, cut where it is long.
pub(in super::super) fn value(value: &Value) -> String {
    legible(&cut(&value.to_string(), VALUE), TextKind::Code)
}
