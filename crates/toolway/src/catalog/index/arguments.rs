//! What the index reads of a tool's input schema: the names of arguments, and what they are for.
//!
//! Owns that nothing else of a schema is kept while it is read: an index over thousands of tools
//! reads thousands of schemas, and most of each is types and limits.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::MAX_WORDS;

/// How deep arguments are looked at.
const DEPTH: usize = 3;

/// The arguments of one tool, those inside others included.
#[derive(Debug, Default)]
pub(super) struct IndexedArguments<'a> {
    pub(super) names: Vec<Cow<'a, str>>,
    pub(super) purposes: Vec<Cow<'a, str>>,
}

impl<'a> IndexedArguments<'a> {
    /// Of a schema; nothing of one that cannot be read.
    pub(super) fn of(schema: &'a RawValue) -> Self {
        let mut arguments = Self::default();
        let mut deserializer = serde_json::Deserializer::from_str(schema.get());
        if let Ok(schema) = (SchemaSeed { depth: DEPTH }).deserialize(&mut deserializer) {
            arguments.take(schema);
        }
        arguments
    }

    fn take(&mut self, schema: ArgumentSchema<'a>) {
        if self.names.len() > MAX_WORDS {
            return;
        }
        for (name, mut property) in schema.properties {
            self.names.push(name);
            self.purposes.extend(property.description.take());
            self.take(property);
        }
        if let Some(items) = schema.items {
            self.take(*items);
        }
    }
}

/// A schema as far as it is looked at.
#[derive(Default)]
struct ArgumentSchema<'a> {
    description: Option<Cow<'a, str>>,
    properties: Vec<(Cow<'a, str>, ArgumentSchema<'a>)>,
    items: Option<Box<ArgumentSchema<'a>>>,
}

/// Reads a schema whose arguments are looked at so many levels deep.
#[derive(Clone, Copy)]
struct SchemaSeed {
    depth: usize,
}

/// Reads the value of `properties`.
struct Properties(SchemaSeed);

/// A text, borrowed where it has no escapes; none for anything else.
struct Text<'a>(Option<Cow<'a, str>>);

/// A member's name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

/// What is done with a value that is not what was looked for: nothing, but it is read past.
macro_rules! scalars_are {
    ($nothing:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok($nothing)
        }
    };
}

impl<'de> DeserializeSeed<'de> for SchemaSeed {
    type Value = ArgumentSchema<'de>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<ArgumentSchema<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SchemaSeed {
    type Value = ArgumentSchema<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a schema")
    }

    scalars_are!(ArgumentSchema::default());

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(ArgumentSchema::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<ArgumentSchema<'de>, A::Error> {
        let mut schema = ArgumentSchema::default();
        while let Some(Name(name)) = members.next_key()? {
            match &*name {
                "description" => schema.description = members.next_value::<Text<'de>>()?.0,
                "properties" if self.depth > 0 => {
                    schema.properties = members.next_value_seed(Properties(self))?;
                }
                "items" if self.depth > 0 => {
                    schema.items = Some(Box::new(members.next_value_seed(self)?));
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(schema)
    }
}

impl<'de> DeserializeSeed<'de> for Properties {
    type Value = Vec<(Cow<'de, str>, ArgumentSchema<'de>)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Properties {
    type Value = Vec<(Cow<'de, str>, ArgumentSchema<'de>)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("properties")
    }

    scalars_are!(Vec::new());

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let inside = SchemaSeed {
            depth: self.0.depth - 1,
        };
        let mut properties = Vec::new();
        while let Some(Name(name)) = members.next_key()? {
            properties.push((name, members.next_value_seed(inside)?));
        }
        Ok(properties)
    }
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Text<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }

            scalars_are!(Text(None));

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Text<'de>, A::Error> {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Text(None))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }
        }
        deserializer.deserialize_any(Take)
    }
}

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Text::deserialize(deserializer)?.0 {
            Some(name) => Ok(Name(name)),
            None => Err(de::Error::custom("a name is a text")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(schema: &Value) -> (String, String) {
        let raw = serde_json::value::to_raw_value(schema).unwrap();
        let IndexedArguments { names, purposes } = IndexedArguments::of(&raw);
        (names.join(" "), purposes.join(" | "))
    }

    #[test]
    fn arguments_are_found_inside_others_down_to_a_depth() {
        let schema = json!({
            "description": "not of an argument",
            "properties": {
                "a": {
                    "type": "object",
                    "properties": {
                        "b": { "properties": { "c": {
                            "description": "the \"third\"",
                            "properties": { "too_deep": { "description": "unseen" } },
                        } } },
                    },
                    "description": "the first",
                },
                "d": { "items": { "items": { "properties": { "e": { "description": "one" } } } } },
            },
            "required": ["a"],
        });
        let (names, purposes) = read(&schema);
        assert_eq!(names, "a b c d e");
        assert_eq!(purposes, "the first | the \"third\" | one");
    }

    #[test]
    fn what_is_not_as_it_should_be_is_passed_over() {
        let schema = json!({
            "properties": {
                "a": true, "b": 7, "c": null, "d": "text", "e": [1, { "description": "no" }],
                "f": { "description": ["no"], "properties": "none", "items": 1.5 },
                "g": { "description": { "x": "no" }, "properties": [1], "items": [{}] },
                "h\"": { "description": "yes" },
            },
        });
        assert_eq!(read(&schema), ("a b c d e f g h\"".into(), "yes".into()));
        for schema in [json!(true), json!("properties"), json!([1]), json!({})] {
            assert_eq!(read(&schema), (String::new(), String::new()), "{schema}");
        }
    }
}
