//! The outline of a JSON text: `{name: string, items: [{id: number, …}]}`.
//!
//! Owns reading the shape without keeping the values. The text is read once, from front to back;
//! depth, width and the number of elements looked at are bounded, so memory and the outline's own
//! length are too, whatever the text holds.

use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use toolway_types::text::{clean_line, cut};

#[cfg(test)]
mod tests;

/// How many levels are told apart.
const DEPTH: u8 = 5;
/// How many fields of an object are named.
const WIDTH: usize = 12;
/// How many elements of an array are looked at.
const SAMPLES: usize = 20;
/// How many characters of a field's name are shown.
const NAME_CHARS: usize = 40;
/// How many characters an outline has at most.
pub const MAX_CHARS: usize = 1_500;

/// The shape of a JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The shape, in one line.
    pub text: String,
    /// The longest array that can be named safely: its way as a `jq` filter, and its length.
    pub longest: Option<(String, usize)>,
}

/// The outline of a text, if it is JSON.
///
/// ```
/// use toolway::dispatch::result::outline::outline;
///
/// let found = outline(r#"{"name": "x", "items": [{"id": 1}, {"id": 2, "more": null}]}"#).unwrap();
/// assert_eq!(found.text, "{name: string, items: [{id: number, more?: null}]}");
/// assert_eq!(found.longest, Some((".items".to_owned(), 2)));
/// assert_eq!(outline("no JSON"), None);
/// ```
pub fn outline(json: &str) -> Option<Outline> {
    read(json).map(|shape| describe(&shape))
}

/// The outline of many JSON texts, one a line, if they all are; blank lines do not count.
pub(crate) fn outline_lines(text: &str) -> Option<Outline> {
    let mut merged: Option<JsonShape> = None;
    let mut count = 0_usize;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        count += 1;
        if count > SAMPLES {
            serde_json::from_str::<IgnoredAny>(line).ok()?;
            continue;
        }
        let shape = read(line)?;
        // A row of numbers or words is not what people call JSON lines.
        if !matches!(shape, JsonShape::Object { .. } | JsonShape::Array { .. }) {
            return None;
        }
        merged = Some(match merged {
            None => shape,
            Some(known) => merge(known, shape),
        });
    }
    let merged = merged.filter(|_| count > 1)?;
    Some(Outline {
        longest: None,
        ..describe(&merged)
    })
}

fn read(json: &str) -> Option<JsonShape> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let shape = Sketch { depth: DEPTH }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(shape)
}

#[derive(Debug, Clone, PartialEq)]
enum JsonShape {
    Null,
    Boolean,
    Number,
    Text,
    /// Something whose inside is too deep to tell.
    Deep,
    Array {
        element: Option<Box<JsonShape>>,
        len: usize,
    },
    Object {
        fields: Vec<OutlineField>,
        more: bool,
    },
    /// One of several kinds, no two of the same.
    Either(Vec<JsonShape>),
}

#[derive(Debug, Clone, PartialEq)]
struct OutlineField {
    name: String,
    shape: JsonShape,
    optional: bool,
}

fn same_kind(one: &JsonShape, other: &JsonShape) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

fn merge(one: JsonShape, other: JsonShape) -> JsonShape {
    match (one, other) {
        (
            JsonShape::Array { element, len },
            JsonShape::Array {
                element: other,
                len: other_len,
            },
        ) => JsonShape::Array {
            element: match (element, other) {
                (Some(one), Some(other)) => Some(Box::new(merge(*one, *other))),
                (one, other) => one.or(other),
            },
            len: len.max(other_len),
        },
        (
            JsonShape::Object { fields, more },
            JsonShape::Object {
                fields: others,
                more: more_others,
            },
        ) => merge_fields(fields, others, more || more_others),
        (JsonShape::Either(kinds), JsonShape::Either(others)) => {
            others.into_iter().fold(JsonShape::Either(kinds), merge)
        }
        (JsonShape::Either(mut kinds), other) | (other, JsonShape::Either(mut kinds)) => {
            match kinds.iter().position(|kind| same_kind(kind, &other)) {
                Some(at) => {
                    let known = std::mem::replace(&mut kinds[at], JsonShape::Null);
                    kinds[at] = merge(known, other);
                }
                None => kinds.push(other),
            }
            JsonShape::Either(kinds)
        }
        (one, other) if same_kind(&one, &other) => one,
        (one, other) => JsonShape::Either(vec![one, other]),
    }
}

fn merge_fields(
    mut fields: Vec<OutlineField>,
    others: Vec<OutlineField>,
    mut more: bool,
) -> JsonShape {
    for field in &mut fields {
        field.optional |= !others.iter().any(|other| other.name == field.name);
    }
    for other in others {
        if let Some(known) = fields.iter_mut().find(|field| field.name == other.name) {
            let shape = std::mem::replace(&mut known.shape, JsonShape::Null);
            known.shape = merge(shape, other.shape);
            known.optional |= other.optional;
        } else if fields.len() < WIDTH {
            fields.push(OutlineField {
                optional: true,
                ..other
            });
        } else {
            more = true;
        }
    }
    JsonShape::Object { fields, more }
}

/// Reads one value down to a depth.
struct Sketch {
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for Sketch {
    type Value = JsonShape;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonShape, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sketch {
    type Value = JsonShape;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<JsonShape, E> {
        Ok(JsonShape::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<JsonShape, E> {
        Ok(JsonShape::Boolean)
    }

    fn visit_i64<E>(self, _: i64) -> Result<JsonShape, E> {
        Ok(JsonShape::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<JsonShape, E> {
        Ok(JsonShape::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<JsonShape, E> {
        Ok(JsonShape::Number)
    }

    fn visit_str<E>(self, _: &str) -> Result<JsonShape, E> {
        Ok(JsonShape::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonShape, A::Error> {
        let mut element: Option<JsonShape> = None;
        let mut len = 0;
        if self.depth > 0 {
            while len < SAMPLES {
                let depth = self.depth - 1;
                let Some(shape) = items.next_element_seed(Sketch { depth })? else {
                    break;
                };
                len += 1;
                element = Some(match element {
                    None => shape,
                    Some(known) => merge(known, shape),
                });
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {
            len += 1;
        }
        Ok(if self.depth == 0 {
            JsonShape::Deep
        } else {
            JsonShape::Array {
                element: element.map(Box::new),
                len,
            }
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<JsonShape, A::Error> {
        if self.depth == 0 {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(JsonShape::Deep);
        }
        let mut fields: Vec<OutlineField> = Vec::new();
        let mut more = false;
        while let Some(name) = entries.next_key::<String>()? {
            let known = fields.iter().position(|field| field.name == name);
            if known.is_none() && fields.len() == WIDTH {
                more = true;
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            let depth = self.depth - 1;
            let shape = entries.next_value_seed(Sketch { depth })?;
            match known {
                // Of a field that is there twice the last one counts.
                Some(at) => fields[at].shape = shape,
                None => fields.push(OutlineField {
                    name,
                    shape,
                    optional: false,
                }),
            }
        }
        Ok(JsonShape::Object { fields, more })
    }
}

fn describe(shape: &JsonShape) -> Outline {
    let mut line = CappedLine {
        text: String::new(),
        left: MAX_CHARS,
    };
    // Full is not failed: what fits is the outline.
    let _ = write_shape(&mut line, shape);
    let mut longest = None;
    find_longest(shape, &mut String::new(), &mut longest);
    Outline {
        text: line.text,
        longest,
    }
}

/// Takes text until it is full, and then ends with `…`.
struct CappedLine {
    text: String,
    left: usize,
}

impl fmt::Write for CappedLine {
    fn write_str(&mut self, words: &str) -> fmt::Result {
        let chars = words.chars().count();
        // One is kept for the mark.
        if chars < self.left {
            self.left -= chars;
            self.text.push_str(words);
            return Ok(());
        }
        if self.left > 0 {
            self.left = 0;
            self.text.push('…');
        }
        Err(fmt::Error)
    }
}

fn write_shape(line: &mut CappedLine, shape: &JsonShape) -> fmt::Result {
    match shape {
        JsonShape::Null => line.write_str("null"),
        JsonShape::Boolean => line.write_str("boolean"),
        JsonShape::Number => line.write_str("number"),
        JsonShape::Text => line.write_str("string"),
        JsonShape::Deep => line.write_str("…"),
        JsonShape::Array { element, .. } => {
            line.write_char('[')?;
            if let Some(element) = element {
                write_shape(line, element)?;
            }
            line.write_char(']')
        }
        JsonShape::Object { fields, more } => {
            line.write_char('{')?;
            for (index, field) in fields.iter().enumerate() {
                if index > 0 {
                    line.write_str(", ")?;
                }
                line.write_str(&shown_name(&field.name))?;
                line.write_str(if field.optional { "?: " } else { ": " })?;
                write_shape(line, &field.shape)?;
            }
            if *more {
                line.write_str(if fields.is_empty() { "…" } else { ", …" })?;
            }
            line.write_char('}')
        }
        JsonShape::Either(kinds) => {
            for (index, kind) in kinds.iter().enumerate() {
                if index > 0 {
                    line.write_str(" | ")?;
                }
                write_shape(line, kind)?;
            }
            Ok(())
        }
    }
}

fn is_plain(name: &str) -> bool {
    name.len() <= NAME_CHARS
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A server's word: cleaned, cut, and in quotes unless it is plain.
fn shown_name(name: &str) -> String {
    if is_plain(name) {
        return name.to_owned();
    }
    // Cut first: cleaning is only worth its time on what is shown.
    let head = cut(name, NAME_CHARS);
    serde_json::Value::from(&*clean_line(&head)).to_string()
}

/// Only plain names enter the path: it becomes part of a command that may be run.
fn find_longest(shape: &JsonShape, way: &mut String, longest: &mut Option<(String, usize)>) {
    match shape {
        JsonShape::Array { len, .. } if longest.as_ref().is_none_or(|(_, known)| len > known) => {
            let way = if way.is_empty() { "." } else { way };
            *longest = Some((way.to_owned(), *len));
        }
        JsonShape::Object { fields, .. } => {
            for field in fields.iter().filter(|field| is_plain(&field.name)) {
                let len = way.len();
                way.push('.');
                way.push_str(&field.name);
                find_longest(&field.shape, way, longest);
                way.truncate(len);
            }
        }
        _ => {}
    }
}
