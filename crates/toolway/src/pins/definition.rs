//! What is pinned of a tool, a prompt, templates and instructions, and how two definitions differ.
//!
//! Owns the digest over what a server says of each, as it sent it (of a tool: name, title,
//! description, schemas and annotations), and the text in which a person sees a difference.
//! Members of objects are put in order first: a server that lists them in another order every time
//! has changed nothing.

use std::fmt;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolway_types::text::{LineChange, TextKind, counted, differences, legible, mark, spelled_out};
use toolway_wire::view;

/// How much of each part of a definition is kept to show differences, 16 KiB together: no part
/// can take the room of another.
const PARTS: [(&str, usize); 5] = [
    ("title", 1 << 10),
    ("description", 6 << 10),
    ("input schema", 6 << 10),
    ("output schema", 2 << 10),
    ("annotations", 1 << 10),
];

/// The same for a part of anything else than a tool.
const ROOM: usize = 4 << 10;

/// Lines are broken here, so that a change at the end of a long one is seen.
const WIDTH: usize = 100;

/// How much of all parts is known beyond that, while this definition counts.
const BEYOND: usize = 256 << 10;

/// What stands in the place of what is not kept.
const NOT_KEPT: &str = "not kept";

/// So many empty lines are counted.
const EMPTY: usize = 3;

/// The most lines of a part's difference where not all of them are wanted: of its beginning, and
/// of its end.
const MAX_LINES: (usize, usize) = (8, 4);

/// A definition, digested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(super) digest: String,
    pub(super) text: String,
    /// What had no room in it, as lines like those.
    beyond: String,
}

impl Definition {
    /// Of a tool as its server sent it: what cleaning takes away can be the very change.
    pub(crate) fn of(tool: &view::Tool) -> Self {
        let values = [
            tool.title.as_deref().map(Value::from),
            tool.description.as_deref().map(Value::from),
            Some(read(&tool.input_schema)),
            tool.output_schema.as_deref().map(read),
            tool.annotations.raw.as_deref().map(read),
        ];
        let parts = PARTS.into_iter().zip(values);
        let parts = parts.filter_map(|((name, room), value)| Some((name, room, value?)));
        Self::made(&tool.name, parts)
    }

    /// Of a prompt as its server sent it.
    pub(crate) fn of_prompt(prompt: &view::Prompt) -> Self {
        let arguments = prompt.arguments.iter().map(|argument| {
            serde_json::json!({
                "name": argument.name,
                "title": argument.title,
                "description": argument.description,
                "required": argument.required,
            })
        });
        let part = |what: &str| format!("prompt `{}`, {what}", prompt.name);
        let texts = [
            ("title", &prompt.title),
            ("description", &prompt.description),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(name, text)| Some((part(name), ROOM, Value::from(text.as_deref()?))));
        let parts = texts.chain([(part("arguments"), ROOM, Value::Array(arguments.collect()))]);
        Self::made(&prompt.name, parts)
    }

    /// Of all templates of a server, in their order.
    pub(crate) fn of_templates<'a>(
        templates: impl Iterator<Item = &'a view::ResourceTemplate>,
    ) -> Self {
        let parts = templates.flat_map(|template| {
            let part = |what: &str| format!("template `{}`, {what}", template.uri_template);
            let texts = [
                ("name", Some(template.name.as_str())),
                ("title", template.title.as_deref()),
                ("description", template.description.as_deref()),
                ("media type", template.mime_type.as_deref()),
            ];
            texts.map(|(name, text)| text.map(|text| (part(name), ROOM, Value::from(text))))
        });
        Self::made("", parts.flatten())
    }

    /// Of what a server says to models about itself.
    pub(crate) fn of_instructions(said: &str) -> Self {
        Self::made("", [("instructions", ROOM, Value::from(said))].into_iter())
    }

    /// Of named parts, in their order, each with the room that it has in the text.
    fn made<N: AsRef<str>>(whose: &str, parts: impl Iterator<Item = (N, usize, Value)>) -> Self {
        let mut digest = Sha256::new_with_prefix(Value::from(whose).to_string());
        let mut text = String::new();
        let mut beyond = String::new();
        for (name, room, value) in parts {
            // A name may hold a server's words, and must not pass for another part.
            let name = spelled_out(name.as_ref()).replace(": ", ":");
            digest.update(format!("\n{name}\n{value}"));
            let (words, nature) = words(&value);
            let rest = show(&mut text, &name, room, &words, nature);
            let room = BEYOND.saturating_sub(beyond.len());
            show(&mut beyond, &name, room, rest, nature);
        }
        Self {
            digest: hex::encode(digest.finalize()),
            text,
            beyond,
        }
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

fn read(raw: &RawValue) -> Value {
    ordered(serde_json::from_str(raw.get()).unwrap_or_else(|_| Value::from(raw.get())))
}

fn ordered(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            let members = members.into_iter().map(|(name, value)| {
                let mut value = ordered(value);
                if let ("required", Value::Array(names)) = (name.as_str(), &mut value)
                    && names.iter().all(Value::is_string)
                {
                    // A set.
                    names.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
                }
                (name, value)
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(ordered).collect()),
        scalar => scalar,
    }
}

/// A part as words, and what they are.
fn words(value: &Value) -> (String, TextKind) {
    match value {
        Value::String(words) => (words.clone(), TextKind::Prose),
        other => (
            serde_json::to_string_pretty(other).unwrap_or_default(),
            TextKind::Source,
        ),
    }
}

/// Adds a part to the text: its name, and behind it what it says, in lines that fit a terminal. Of
/// what has no room stands there how much it is, and its digest, so that a change of it is a
/// difference too. Gives what had none.
fn show<'a>(
    text: &mut String,
    name: &str,
    room: usize,
    words: &'a str,
    nature: TextKind,
) -> &'a str {
    let end = text.len() + room;
    let mut rest = words;
    while !rest.is_empty() {
        let empty = rest.len() - rest.trim_start_matches('\n').len();
        let (line, after) = if empty >= EMPTY {
            (mark(&counted(empty, "empty line")), &rest[empty..])
        } else {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            (legible(line, nature), after)
        };
        let mut lines = String::new();
        for piece in broken(&line) {
            lines.extend([name, ": ", &piece, "\n"]);
        }
        if text.len() + lines.len() > end {
            let digest = hex::encode(&Sha256::digest(rest)[..8]);
            let more = counted(rest.chars().count(), "character");
            let words = format!("{more} {NOT_KEPT}, with the digest {digest}");
            text.extend([name, ": ", &mark(&words), "\n"]);
            return rest;
        }
        text.push_str(&lines);
        rest = after;
    }
    rest
}

/// A line in pieces, broken at spaces where there are any.
fn broken(line: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut width = 0;
    for word in line.split_inclusive(' ') {
        if width > 0 && width + word.chars().count() > WIDTH {
            pieces.push(String::new());
            width = 0;
        }
        for character in word.chars() {
            if width == WIDTH {
                pieces.push(String::new());
                width = 0;
            }
            if let Some(last) = pieces.last_mut() {
                last.push(character);
            }
            width += 1;
        }
    }
    pieces
}

/// How a tool's definition differs from the one that was permitted: lines for a person, safe to
/// print. `- ` was there, `+ ` is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// A dozen of each part of the definition at most, and lines that count what is left out.
    /// Where nothing could be compared: why not, and how to mend it.
    pub lines: Vec<String>,
    /// All of them, for the user who decides: no change may hide among those that are left out.
    pub all: Vec<String>,
    /// What was compared.
    pub against: Against,
}

/// What a definition was held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The one that was permitted.
    Permitted,
    /// Nothing: how it was defined then is unknown. It may have changed.
    Nothing,
    /// Another tool: it is shown under a name under which that one was permitted.
    Namesake,
}

impl Difference {
    pub(super) fn between(old: &str, new: &Definition) -> Self {
        let compared = differences(old, &new.text);
        let mut all = Vec::new();
        let mut lines = Vec::new();
        for part in parts_of([old, &new.text]) {
            let mut of_part: Vec<String> = compared
                .iter()
                .filter_map(|line| match line {
                    LineChange::Kept(_) => None,
                    LineChange::Removed(line) => Some(('-', *line)),
                    LineChange::Added(line) => Some(('+', *line)),
                })
                .filter(|(_, line)| part_of(line) == Some(part))
                // The file may hold what we did not write.
                .map(|(sign, line)| format!("{sign} {}", spelled_out(line.trim_end())))
                .collect();
            let is_cut = |line: &String| line.starts_with('+') && line.contains(NOT_KEPT);
            if of_part.iter().any(is_cut) {
                // What it was is not known, so all that it is now may be the change.
                let now = new.beyond.lines();
                let now = now.filter(|line| part_of(line) == Some(part));
                of_part.extend(now.map(|line| format!("+ {line}")));
            }
            lines.extend(bounded(part, &of_part));
            all.extend(of_part);
        }
        if all.is_empty() {
            all.push("it differs in a way that was not kept".to_owned());
            lines.clone_from(&all);
        }
        Self {
            lines,
            all,
            against: Against::Permitted,
        }
    }

    /// Of a tool of which only the digest was kept: all that it is now may be the change.
    pub(super) fn untold(new: &Definition) -> Self {
        let told = Self::between("", new);
        let why = || ["how it was defined then was not kept: there was no room for it".to_owned()];
        Self {
            lines: why().into_iter().chain(told.lines).collect(),
            all: why().into_iter().chain(told.all).collect(),
            against: Against::Permitted,
        }
    }

    /// Of a tool whose permitted definition is unknown: why, and how to mend it.
    pub(super) fn unknown(lines: Vec<String>) -> Self {
        Self {
            all: lines.clone(),
            lines,
            against: Against::Nothing,
        }
    }

    /// Of a tool that comes under a name that was another's: which, and what follows.
    pub(super) fn namesake(lines: Vec<String>) -> Self {
        Self {
            against: Against::Namesake,
            ..Self::unknown(lines)
        }
    }
}

/// The part that a line of the text belongs to: no part's name has a colon before a blank.
fn part_of(line: &str) -> Option<&str> {
    line.split_once(": ").map(|(part, _)| part)
}

/// The parts of some texts, each once, as they come.
fn parts_of(texts: [&str; 2]) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in texts.into_iter().flat_map(str::lines).filter_map(part_of) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// The beginning and the end of a part's difference.
fn bounded(part: &str, lines: &[String]) -> Vec<String> {
    let (first, last) = MAX_LINES;
    let Some(more) = lines
        .len()
        .checked_sub(first + last)
        .filter(|more| *more > 0)
    else {
        return lines.to_vec();
    };
    let mut kept = lines[..first].to_vec();
    kept.push(format!(
        "… and {} of its {part}",
        counted(more, "more line")
    ));
    kept.extend_from_slice(&lines[lines.len() - last..]);
    kept
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines.join("\n"))
    }
}
