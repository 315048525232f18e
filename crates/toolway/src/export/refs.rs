//! References: every one that is exported leads to a schema in the same export.
//!
//! Owns where `$ref` leads, before a schema is shaped for a target and after. Servers write
//! anchors, identifiers, pointers into anything and pointers to nothing; shaping takes away what
//! others point to. Here they all become pointers to schemas that are there: what is not there any
//! more, or was no schema's place, is copied below `$defs`. What leads nowhere, away from the
//! schema (nothing is ever fetched) or round in a circle is no constraint; what stands beside it is
//! kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use toolway_schema::{
    NAMES, REFERENCES, Reach, decoded, escaped, identifier, places, pointer_of, target, unescaped,
};

use super::form;

/// How many bytes are copied below `$defs`; what is beyond is any value.
const MAX_COPIED: usize = 256 * 1024;
/// The longest name of a copy.
const MAX_NAME: usize = 64;
/// A schema of 2020-12 whose references all are pointers to schemas inside it.
pub(super) fn settled(schema: &Value) -> Value {
    let repaired = form::repaired(schema);
    let index = SchemaIndex::of(&repaired);
    let mut whole = repaired.clone().into_owned();
    let mut copies = Copies::beside(&whole);
    let lead = |copies: &mut Copies, reference: &str, base: Option<&str>| {
        let pointer = index.pointer(reference, base)?;
        if index.places.contains(&pointer) {
            let plain = reference.starts_with('#') && pointer_of(reference)? == pointer;
            return Some(if plain {
                reference.to_owned()
            } else {
                format!("#{}", encoded(&pointer))
            });
        }
        // As it was written: an older draft's place may be gone.
        copies.place(&pointer, schema.pointer(&pointer)?)
    };
    redirect(&mut whole, |reference, base| {
        lead(&mut copies, reference, base)
    });
    while let Some((name, pointer)) = copies.next() {
        let mut copy = form::repair(schema.pointer(&pointer).unwrap_or(&Value::Null));
        redirect(&mut copy, |reference, base| {
            lead(&mut copies, reference, base)
        });
        define(&mut whole, name, copy);
    }
    cut_circles(&mut whole);
    whole
}

/// Mends the references of what was made from a settled schema by changing its root.
pub(super) fn mended(before: &Value, made: &Map<String, Value>) -> Value {
    let mut whole = Value::Object(made.clone());
    let mut copies = Copies::beside(&whole);
    let lead = |copies: &mut Copies, reference: &str| {
        let pointer = pointer_of(reference)?;
        if stays(before, made, &pointer) {
            return Some(reference.to_owned());
        }
        copies.place(&pointer, before.pointer(&pointer)?)
    };
    redirect(&mut whole, |reference, _| lead(&mut copies, reference));
    while let Some((name, pointer)) = copies.next() {
        let mut copy = before.pointer(&pointer).cloned().unwrap_or_default();
        redirect(&mut copy, |reference, _| lead(&mut copies, reference));
        define(&mut whole, name, copy);
    }
    cut_unknown(&mut whole);
    whole
}

/// Whether a schema is still where it was, and still itself. The root always is.
fn stays(before: &Value, made: &Map<String, Value>, pointer: &str) -> bool {
    let mut tokens = pointer.split('/').skip(1).map(unescaped);
    let Some(keyword) = tokens.next() else {
        return true;
    };
    match (keyword.as_str(), tokens.next()) {
        ("properties", Some(name)) => {
            let is = made.get("properties").and_then(|all| all.get(&name));
            let was = before.get("properties").and_then(|all| all.get(&name));
            is.is_some() && is == was
        }
        (keyword, _) => made.contains_key(keyword),
    }
}

fn define(whole: &mut Value, name: String, schema: Value) {
    if let Value::Object(members) = whole {
        let definitions = members.entry("$defs").or_insert_with(|| json!({}));
        if let Value::Object(definitions) = definitions {
            definitions.insert(name, schema);
        }
    }
}

/// Where schemas are, by all their names.
struct SchemaIndex {
    places: BTreeSet<String>,
    by_id: BTreeMap<String, String>,
    /// By the identifier around it, empty if there is none, and its own name.
    by_anchor: BTreeMap<(String, String), String>,
}

impl SchemaIndex {
    fn of(whole: &Value) -> Self {
        let mut index = Self {
            places: BTreeSet::new(),
            by_id: BTreeMap::new(),
            by_anchor: BTreeMap::new(),
        };
        for place in places(whole, Reach::Schemas) {
            let at = || place.pointer();
            if let Some(id) = identifier(place.schema) {
                index.by_id.entry(id.to_owned()).or_insert_with(at);
            }
            for keyword in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = place.schema.get(keyword).and_then(Value::as_str) {
                    let name = (place.base.unwrap_or_default().to_owned(), name.to_owned());
                    index.by_anchor.entry(name).or_insert_with(at);
                }
            }
            index.places.insert(place.pointer());
        }
        index
    }

    /// The place that a reference means, counted from the root. Whether anything is there is not
    /// said.
    fn pointer(&self, reference: &str, base: Option<&str>) -> Option<String> {
        let (id, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let id = if id.is_empty() {
            base.unwrap_or_default()
        } else {
            id
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            let start = match id {
                "" => "",
                id => self.by_id.get(id)?,
            };
            return Some(format!("{start}{}", decoded(fragment)?));
        }
        let name = (id.to_owned(), fragment.to_owned());
        self.by_anchor.get(&name).cloned()
    }
}

/// What is to be copied below `$defs`.
struct Copies {
    names: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    /// By name and pointer, the next one last.
    waiting: Vec<(String, String)>,
    bytes: usize,
}

impl Copies {
    fn beside(whole: &Value) -> Self {
        let known = whole.get("$defs").and_then(Value::as_object);
        Self {
            names: BTreeMap::new(),
            taken: known.into_iter().flat_map(Map::keys).cloned().collect(),
            waiting: Vec::new(),
            bytes: 0,
        }
    }

    fn next(&mut self) -> Option<(String, String)> {
        self.waiting.pop()
    }

    /// The reference to a copy of what is here. None for what is no schema, or too much.
    fn place(&mut self, pointer: &str, schema: &Value) -> Option<String> {
        if let Some(name) = self.names.get(pointer) {
            return Some(format!("#/$defs/{name}"));
        }
        if !(schema.is_object() || schema.is_boolean()) || self.bytes > MAX_COPIED {
            return None;
        }
        self.bytes += schema.to_string().len();
        if self.bytes > MAX_COPIED {
            return None;
        }
        let name = self.free_name(pointer);
        self.taken.insert(name.clone());
        self.names.insert(pointer.to_owned(), name.clone());
        self.waiting.push((name.clone(), pointer.to_owned()));
        Some(format!("#/$defs/{name}"))
    }

    /// A name that tells where it comes from and needs no escapes.
    fn free_name(&self, pointer: &str) -> String {
        let mut tokens = pointer.rsplit('/').map(unescaped);
        let last = tokens.next().unwrap_or_default();
        let words = match tokens.next() {
            Some(keyword) if last.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("{keyword}_{last}")
            }
            _ => last,
        };
        let plain = |c: char| match c {
            c if c.is_ascii_alphanumeric() || c == '-' => c,
            _ => '_',
        };
        let words: String = words.chars().take(MAX_NAME).map(plain).collect();
        let mut name = words.clone();
        let mut count = 1;
        while self.taken.contains(&name) {
            count += 1;
            name = format!("{words}_{count}");
        }
        name
    }
}

/// Gives every reference of a schema, and of those inside it, the text that `lead` says, and takes
/// away the names.
fn redirect(whole: &mut Value, mut lead: impl FnMut(&str, Option<&str>) -> Option<String>) {
    let mut leads = Vec::new();
    for place in places(whole, Reach::Schemas) {
        let said = |keyword: &&str| place.schema.get(keyword)?.as_str();
        let reference = REFERENCES.iter().find_map(said);
        let reference = reference.and_then(|reference| lead(reference, place.base));
        leads.push((place.pointer(), reference));
    }
    for (pointer, reference) in leads {
        if let Some(Value::Object(members)) = whole.pointer_mut(&pointer) {
            if let Some(reference) = &reference {
                members.insert("$ref".to_owned(), json!(reference));
            }
            members.retain(|keyword, _| {
                let keyword = keyword.as_str();
                let is_kept = keyword == "$ref" && reference.is_some();
                is_kept || !(REFERENCES.contains(&keyword) || NAMES.contains(&keyword))
            });
        }
    }
}

/// Takes out the references that close a circle of nothing but references.
fn cut_circles(whole: &mut Value) {
    let mut next: BTreeMap<String, String> = BTreeMap::new();
    let mut order = Vec::new();
    for place in places(whole, Reach::Schemas) {
        let reference = place.schema.get("$ref").and_then(Value::as_str);
        if let Some(pointer) = reference.and_then(pointer_of) {
            next.insert(place.pointer(), pointer);
            order.push(place.pointer());
        }
    }
    let mut done: BTreeSet<String> = BTreeSet::new();
    for start in order {
        let mut path = vec![start];
        while let Some(last) = path.last() {
            match next.get(last) {
                Some(target) if path.contains(target) => {
                    if let Some(Value::Object(members)) = whole.pointer_mut(last) {
                        members.retain(|keyword, _| keyword != "$ref");
                    }
                    next.remove(&last.clone());
                    break;
                }
                Some(target) if !done.contains(target) => path.push(target.clone()),
                _ => break,
            }
        }
        done.extend(path);
    }
}

/// Takes the references that lead nowhere out of unknown keywords, for some validators look into
/// them. The values of an argument are left alone.
fn cut_unknown(whole: &mut Value) {
    let mut lost = Vec::new();
    for place in places(whole, Reach::Schemas) {
        let members = place.schema.as_object();
        for (keyword, value) in members.into_iter().flatten() {
            if form::is_unknown(keyword) {
                let at = format!("{}/{}", place.pointer(), escaped(keyword));
                find_lost(whole, value, at, &mut lost);
            }
        }
    }
    for pointer in lost {
        if let Some(Value::Object(members)) = whole.pointer_mut(&pointer) {
            members.retain(|keyword, _| keyword != "$ref");
        }
    }
}

fn find_lost(whole: &Value, value: &Value, at: String, lost: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                find_lost(whole, inner, format!("{at}/{}", escaped(name)), lost);
            }
            if members.contains_key("$ref") && target(whole, value).is_none() {
                lost.push(at);
            }
        }
        Value::Array(items) => {
            for (place, inner) in items.iter().enumerate() {
                find_lost(whole, inner, format!("{at}/{place}"), lost);
            }
        }
        _ => {}
    }
}

/// A pointer as a fragment of a URI has it.
fn encoded(pointer: &str) -> String {
    let mut text = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}
