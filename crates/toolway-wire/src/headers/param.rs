//! `x-mcp-header`: which arguments of a tool are mirrored into `Mcp-Param-*` headers.
//!
//! Owns the validity rules of the 2026-07-28 text: only string, integer and boolean properties,
//! only reached through `properties`, names that are header tokens and differ whatever their
//! case. One invalid annotation makes the whole tool invalid (SEC-28).

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use serde_json::value::RawValue;
use toolway_schema::{Reach, places, text};

use super::{HeaderFault, decode, encode};
use crate::scan::RareName;

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

/// False where it is certain that a tool's schema asks to mirror nothing.
pub fn asks_for_headers(schema: &RawValue) -> bool {
    static NAME: RareName = RareName::new(ANNOTATION);
    NAME.may_stand_in(schema.get())
}

/// The arguments a tool's schema asks to mirror. An error makes the tool invalid.
pub fn header_params(schema: &RawValue) -> Result<Vec<HeaderParam>, HeaderFault> {
    // Nearly every schema has none, and then need not be parsed. An escaped spelling of the key
    // holds a backslash.
    if !asks_for_headers(schema) {
        return Ok(Vec::new());
    }
    let Some(schema) = serde_json::from_str(schema.get())
        .ok()
        .filter(Value::is_object)
    else {
        return Err(HeaderFault::Unreadable("input schema"));
    };
    let mut found = Vec::new();
    let mut taken = HashSet::new();
    for place in places(&schema, Reach::Unknown) {
        let Some(annotation) = place.schema.get(ANNOTATION) else {
            continue;
        };
        // The property names as far as nothing but `properties` leads.
        let pairs = place.steps.chunks(2);
        let path: Vec<String> = pairs
            .map_while(|pair| match pair {
                [keyword, name] if keyword == "properties" => Some(name.to_string()),
                _ => None,
            })
            .collect();
        if path.len() * 2 < place.steps.len() {
            let around = if path.is_empty() {
                "the root".to_owned()
            } else {
                path.join(".")
            };
            return Err(HeaderFault::Misplaced(format!("found below `{around}`")));
        }
        if path.is_empty() {
            return Err(HeaderFault::Misplaced(
                "it stands on the schema itself".to_owned(),
            ));
        }
        let param = annotated(path, place.schema, annotation)?;
        if !taken.insert(param.header.clone()) {
            return Err(HeaderFault::Taken {
                property: param.path.join("."),
                name: annotation.as_str().unwrap_or_default().to_owned(),
            });
        }
        found.push(param);
    }
    Ok(found)
}

fn annotated(
    path: Vec<String>,
    property: &Value,
    annotation: &Value,
) -> Result<HeaderParam, HeaderFault> {
    let name = annotation.as_str().filter(|name| !name.is_empty());
    // `HeaderName` takes exactly the token characters.
    let header = name.and_then(|name| HeaderName::try_from(format!("mcp-param-{name}")).ok());
    let property_name = || path.join(".");
    let header = header.ok_or_else(|| HeaderFault::Name {
        property: property_name(),
    })?;
    let kind = match text(property, "type") {
        Some("string") => ParamKind::Text,
        Some("integer") => ParamKind::Integer,
        Some("boolean") => ParamKind::Boolean,
        _ => {
            return Err(HeaderFault::Type {
                property: property_name(),
            });
        }
    };
    Ok(HeaderParam { header, path, kind })
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

/// A header of a call that does not say what its arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderMismatch {
    /// Its name.
    pub header: HeaderName,
}

/// Checks the `Mcp-Param-*` headers of a call against its arguments. Headers that no argument asks
/// for are of no matter: they may be meant for somebody on the way.
pub fn check_params(
    schema: &RawValue,
    arguments: Option<&RawValue>,
    headers: &HeaderMap,
) -> Result<(), HeaderMismatch> {
    // A tool with invalid annotations is not offered.
    let wanted = header_params(schema).unwrap_or_default();
    if wanted.is_empty() {
        return Ok(());
    }
    let arguments: Value = arguments
        .and_then(|arguments| serde_json::from_str(arguments.get()).ok())
        .unwrap_or_default();
    for param in &wanted {
        let mut names = param.path.iter();
        let argument = names.try_fold(&arguments, |value, name| value.get(name));
        let argument = argument.filter(|value| !value.is_null());
        let mut sent = headers.get_all(&param.header).iter();
        let (first, second) = (sent.next(), sent.next());
        let fits = match (argument, first, second) {
            (None, None, _) => true,
            (Some(argument), Some(sent), None) => {
                let sent = sent.to_str().ok();
                let sent = sent.and_then(|sent| decode(sent.trim()).ok());
                sent.is_some_and(|sent| says(&sent, argument, param.kind))
            }
            _ => false,
        };
        if !fits {
            let header = param.header.clone();
            return Err(HeaderMismatch { header });
        }
    }
    Ok(())
}

/// Whether a header says what an argument says; integers are compared as numbers.
fn says(sent: &str, argument: &Value, kind: ParamKind) -> bool {
    match (kind, argument) {
        (ParamKind::Text, Value::String(text)) => sent == text,
        (ParamKind::Boolean, Value::Bool(flag)) => sent == flag.to_string(),
        (ParamKind::Integer, Value::Number(number)) => {
            let number = whole(number);
            let same_number = || Some(sent.parse::<f64>().ok()? - number.parse::<f64>().ok()?);
            sent == number || same_number().is_some_and(|apart| apart.abs() < f64::EPSILON)
        }
        // What is no such argument is refused by its schema, not for its header.
        _ => true,
    }
}

/// An integer without a fraction, as JSON Schema counts `42.0` among the integers.
fn whole(number: &serde_json::Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0")
        .map_or(text.clone(), ToOwned::to_owned)
}
