//! What of a schema is shown, where a part of it cannot be shown as it is.
//!
//! Owns the walk through the keywords. Arguments are checked against the schema as its server sent
//! it, and there a value, a pattern or a name is that value and no other: cleaned, it would ask for
//! something the server never listed. So these are left out of what is shown, never rewritten.
//! Everything else is said for people and models, and is cleaned.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolway_schema::{KeywordShape, NAMES, REFERENCES, escaped, shape};
use toolway_types::text;

use super::{UnfitJson, plain, read, seen, write};

/// The longest place that is told, in characters.
const MAX_PLACE: usize = 120;

/// What a schema is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaSide {
    /// What is sent: nothing is offered that could not be.
    Input,
    /// What comes back: nothing is promised that may be otherwise.
    Output,
}

/// A schema for showing.
#[derive(Debug)]
pub struct ShownSchema {
    /// The schema; the bytes of the server where nothing had to change.
    pub json: Box<RawValue>,
    /// The places that are left out of it.
    pub left_out: Vec<String>,
}

/// Cleans a schema for showing.
pub fn schema(raw: &RawValue, side: SchemaSide) -> Result<ShownSchema, UnfitJson> {
    let (mut value, twice) = read(raw)?;
    let mut walk = SchemaWalk {
        side,
        // Without one of its alternatives a list would be counted differently.
        counted: names_alternative(&value),
        place: String::new(),
        left_out: Vec::new(),
        changed: false,
    };
    walk.schema(&mut value)?;
    let changed = walk.changed || twice || !walk.left_out.is_empty();
    Ok(ShownSchema {
        json: write(raw, &value, changed)?,
        left_out: walk.left_out,
    })
}

struct SchemaWalk {
    side: SchemaSide,
    /// Whether a reference may count the alternatives of a list.
    counted: bool,
    /// Where the walk is: a JSON pointer.
    place: String,
    left_out: Vec<String>,
    changed: bool,
}

impl SchemaWalk {
    fn schema(&mut self, value: &mut Value) -> Result<(), UnfitJson> {
        let Value::Object(members) = value else {
            return self.plain(value);
        };
        let mut gone: Vec<String> = Vec::new();
        for (keyword, member) in members.iter_mut() {
            seen(keyword)?;
            let stays = self.at(keyword, |walk| walk.keyword(keyword, member))?;
            if !stays {
                gone.push(keyword.clone());
            }
        }
        for keyword in gone {
            members.shift_remove(&keyword);
        }
        Ok(())
    }

    /// Whether the keyword can be shown.
    fn keyword(&mut self, keyword: &str, member: &mut Value) -> Result<bool, UnfitJson> {
        match (keyword, &mut *member) {
            ("enum", Value::Array(choices)) => return self.choices(choices),
            ("const", value) if changes(value) => {
                return match self.side {
                    SchemaSide::Input => Err(UnfitJson::Unsayable(self.told())),
                    SchemaSide::Output => Ok(self.leave_out(None)),
                };
            }
            ("pattern", Value::String(pattern)) if *text::clean(pattern) != **pattern => {
                return Ok(self.leave_out(None));
            }
            // Weaker inside is stronger outside, so such a part is shown whole or not at all.
            ("not" | "if", part) => {
                let before = self.left_out.len();
                match self.schema(part) {
                    Ok(()) if self.left_out.len() == before => {}
                    Ok(()) | Err(UnfitJson::Unsayable(_)) => {
                        self.left_out.truncate(before);
                        return Ok(self.leave_out(None));
                    }
                    Err(unfit) => return Err(unfit),
                }
            }
            ("anyOf" | "oneOf", Value::Array(parts)) => self.alternatives(parts)?,
            ("patternProperties", Value::Object(parts)) => self.patterns(parts)?,
            ("required", Value::Array(names)) => self.names(names)?,
            (_, value) => self.by_shape(keyword, value)?,
        }
        Ok(true)
    }

    fn by_shape(&mut self, keyword: &str, value: &mut Value) -> Result<(), UnfitJson> {
        match (shape(keyword), value) {
            (Some(KeywordShape::SchemaList | KeywordShape::Items), Value::Array(parts)) => {
                for (index, part) in parts.iter_mut().enumerate() {
                    self.at(&index.to_string(), |walk| walk.schema(part))?;
                }
            }
            (
                Some(KeywordShape::SchemaMap | KeywordShape::Dependencies | KeywordShape::NamesMap),
                Value::Object(parts),
            ) => {
                for (name, part) in parts {
                    seen(name)?;
                    self.at(name, |walk| match part {
                        Value::Array(names) => walk.names(names),
                        part => walk.schema(part),
                    })?;
                }
            }
            (Some(KeywordShape::Schema | KeywordShape::Items), part) => self.schema(part)?,
            // A spelling of a place, not a text; only what is not seen goes.
            (_, Value::String(text))
                if (REFERENCES.contains(&keyword) || NAMES.contains(&keyword))
                    && seen(text).is_ok() => {}
            (_, value) => self.plain(value)?,
        }
        Ok(())
    }

    fn plain(&mut self, value: &mut Value) -> Result<(), UnfitJson> {
        self.changed |= plain(value)?;
        Ok(())
    }

    fn choices(&mut self, choices: &mut Vec<Value>) -> Result<bool, UnfitJson> {
        let offered = choices.len();
        let sayable = choices.iter().filter(|choice| !changes(choice)).count();
        match self.side {
            _ if sayable == offered => Ok(true),
            SchemaSide::Output => Ok(self.leave_out(None)),
            SchemaSide::Input if sayable == 0 => Err(UnfitJson::Unsayable(self.told())),
            SchemaSide::Input => {
                choices.retain(|choice| !changes(choice));
                self.leave_out(Some(offered - sayable));
                Ok(true)
            }
        }
    }

    /// Alternatives that take nothing that can be shown go, while there are others.
    fn alternatives(&mut self, parts: &mut Vec<Value>) -> Result<(), UnfitJson> {
        let mut gone: Vec<usize> = Vec::new();
        let mut unfit = None;
        for (index, part) in parts.iter_mut().enumerate() {
            let before = self.left_out.len();
            match self.at(&index.to_string(), |walk| walk.schema(part)) {
                Ok(()) => {}
                Err(UnfitJson::Unsayable(place)) if !self.counted => {
                    self.left_out.truncate(before);
                    self.left_out.push(format!("`{place}`"));
                    gone.push(index);
                    unfit = Some(UnfitJson::Unsayable(place));
                }
                Err(unfit) => return Err(unfit),
            }
        }
        if let Some(unfit) = unfit
            && gone.len() == parts.len()
        {
            return Err(unfit);
        }
        for index in gone.into_iter().rev() {
            parts.remove(index);
        }
        Ok(())
    }

    fn patterns(&mut self, parts: &mut Map<String, Value>) -> Result<(), UnfitJson> {
        let all = parts.len();
        parts.retain(|pattern, _| seen(pattern).is_ok() && *text::clean(pattern) == **pattern);
        if parts.len() < all {
            self.leave_out(Some(all - parts.len()));
        }
        for (pattern, part) in parts {
            self.at(pattern, |walk| walk.schema(part))?;
        }
        Ok(())
    }

    /// Names of properties: seen whole, and left as they are spelt.
    fn names(&mut self, names: &mut [Value]) -> Result<(), UnfitJson> {
        names.iter_mut().try_for_each(|name| match name {
            Value::String(name) => seen(name),
            other => self.plain(other),
        })
    }

    /// Goes one step deeper for a while.
    fn at<T>(&mut self, step: &str, walk: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.place.len();
        self.place.push('/');
        self.place.push_str(&escaped(step));
        let result = walk(self);
        self.place.truncate(before);
        result
    }

    /// Notes that this place, or so many entries of it, is not shown; `false`, for the keyword
    /// does not stay.
    fn leave_out(&mut self, entries: Option<usize>) -> bool {
        let place = self.told();
        self.left_out.push(match entries {
            None => format!("`{place}`"),
            Some(1) => format!("one entry of `{place}`"),
            Some(entries) => format!("{entries} entries of `{place}`"),
        });
        false
    }

    fn told(&self) -> String {
        text::cut(&text::clean_line(&self.place), MAX_PLACE).into_owned()
    }
}

/// Whether a text in it may be a reference into a list of alternatives.
fn names_alternative(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("Of/"),
        Value::Array(items) => items.iter().any(names_alternative),
        Value::Object(members) => members.values().any(names_alternative),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether cleaning would make it another value.
fn changes(value: &Value) -> bool {
    match value {
        Value::String(text) => *text::clean(text) != **text,
        Value::Array(items) => items.iter().any(changes),
        Value::Object(members) => members
            .iter()
            .any(|(key, member)| seen(key).is_err() || changes(member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
