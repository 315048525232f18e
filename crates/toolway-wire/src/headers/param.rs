//! `x-mcp-header`: which arguments of a tool are mirrored into `Mcp-Param-*` headers.
//!
//! Owns the validity rules of the 2026-07-28 text: only string, integer and boolean properties,
//! only reached through `properties`, names that are header tokens and differ whatever their
//! case. One invalid annotation makes the whole tool invalid (SEC-28).

use std::collections::HashSet;

use http::{HeaderName, HeaderValue};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{HeaderFault, encode};

const ANNOTATION: &str = "x-mcp-header";

/// One argument to mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParam {
    /// The header, `mcp-param-…`.
    pub header: HeaderName,
    /// The property names from the root of the arguments.
    pub path: Vec<String>,
    /// The property's type.
    pub kind: ParamKind,
}

/// The types that can be mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// `string`
    Text,
    /// `integer`
    Integer,
    /// `boolean`
    Boolean,
}

/// The arguments a tool's schema asks to mirror. An error makes the tool invalid.
pub fn header_params(schema: &RawValue) -> Result<Vec<HeaderParam>, HeaderFault> {
    // Nearly every schema has none, and then need not be parsed. An escaped spelling of the key
    // holds a backslash.
    let text = schema.get().as_bytes();
    if memchr::memmem::find(text, ANNOTATION.as_bytes()).is_none()
        && memchr::memchr(b'\\', text).is_none()
    {
        return Ok(Vec::new());
    }
    let Ok(Value::Object(schema)) = serde_json::from_str(schema.get()) else {
        return Err(HeaderFault::Unreadable("input schema"));
    };
    let mut walk = SchemaHeaderWalk::default();
    if schema.contains_key(ANNOTATION) {
        return Err(HeaderFault::Misplaced(
            "it stands on the schema itself".to_owned(),
        ));
    }
    walk.schema(&schema)?;
    Ok(walk.found)
}

#[derive(Default)]
struct SchemaHeaderWalk {
    path: Vec<String>,
    found: Vec<HeaderParam>,
    taken: HashSet<String>,
}

impl SchemaHeaderWalk {
    /// A schema on the `properties` chain.
    fn schema(&mut self, schema: &Map<String, Value>) -> Result<(), HeaderFault> {
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        self.path.push(name.clone());
                        if let Value::Object(property) = property {
                            self.property(property)?;
                            self.schema(property)?;
                        }
                        self.path.pop();
                    }
                }
                (ANNOTATION, _) => {}
                (keyword, value) => self.refuse_below(keyword, value)?,
            }
        }
        Ok(())
    }

    fn property(&mut self, property: &Map<String, Value>) -> Result<(), HeaderFault> {
        let Some(annotation) = property.get(ANNOTATION) else {
            return Ok(());
        };
        let dotted = self.path.join(".");
        let fault = || HeaderFault::Name {
            property: dotted.clone(),
        };
        let name = annotation
            .as_str()
            .filter(|name| !name.is_empty())
            .ok_or_else(fault)?;
        // `HeaderName` takes exactly the token characters.
        let header = HeaderName::try_from(format!("mcp-param-{name}")).map_err(|_| fault())?;
        let kind = match property.get("type").and_then(Value::as_str) {
            Some("string") => ParamKind::Text,
            Some("integer") => ParamKind::Integer,
            Some("boolean") => ParamKind::Boolean,
            _ => return Err(HeaderFault::Type { property: dotted }),
        };
        if !self.taken.insert(name.to_ascii_lowercase()) {
            return Err(HeaderFault::Taken {
                property: dotted,
                name: name.to_owned(),
            });
        }
        self.found.push(HeaderParam {
            header,
            path: self.path.clone(),
            kind,
        });
        Ok(())
    }

    /// Anything below another keyword may hold no annotation.
    fn refuse_below(&self, keyword: &str, value: &Value) -> Result<(), HeaderFault> {
        match (keyword, value) {
            // Data, not schemas: an equal key there means nothing.
            ("default" | "const" | "enum" | "examples", _) => Ok(()),
            // Maps from names to schemas: their keys are not keywords.
            (
                "properties" | "$defs" | "definitions" | "dependentSchemas" | "patternProperties",
                Value::Object(schemas),
            ) => schemas
                .values()
                .try_for_each(|schema| self.refuse_in(schema)),
            (_, value) => self.refuse_in(value),
        }
    }

    fn refuse_in(&self, value: &Value) -> Result<(), HeaderFault> {
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.refuse_in(item)),
            Value::Object(schema) if schema.contains_key(ANNOTATION) => {
                let place = if self.path.is_empty() {
                    "the root".into()
                } else {
                    self.path.join(".")
                };
                Err(HeaderFault::Misplaced(format!("found below `{place}`")))
            }
            Value::Object(schema) => schema
                .iter()
                .try_for_each(|(keyword, value)| self.refuse_below(keyword, value)),
            _ => Ok(()),
        }
    }
}

/// The headers for these arguments; an absent or null argument has none.
pub(super) fn mirror(
    wanted: &[HeaderParam],
    arguments: Option<&RawValue>,
) -> Result<Vec<(HeaderName, HeaderValue)>, HeaderFault> {
    let arguments: Value = arguments
        .map_or(Ok(Value::Null), |arguments| {
            serde_json::from_str(arguments.get())
        })
        .map_err(|_| HeaderFault::Unreadable("arguments"))?;
    let mut headers = Vec::new();
    for param in wanted {
        let found = param
            .path
            .iter()
            .try_fold(&arguments, |value, name| value.get(name));
        let Some(value) = found.filter(|value| !value.is_null()) else {
            continue;
        };
        let text = match (param.kind, value) {
            (ParamKind::Text, Value::String(text)) => text.clone(),
            (ParamKind::Boolean, Value::Bool(flag)) => flag.to_string(),
            (ParamKind::Integer, Value::Number(number)) => whole(number),
            _ => {
                return Err(HeaderFault::Argument {
                    property: param.path.join("."),
                });
            }
        };
        headers.push((param.header.clone(), encode(&text)));
    }
    Ok(headers)
}

/// An integer without a fraction, as JSON Schema counts `42.0` among the integers.
fn whole(number: &serde_json::Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0")
        .map_or(text.clone(), ToOwned::to_owned)
}
