//! The table of keywords: what stands under each.
//!
//! Owns the words of 2020-12, and those of older drafts that servers still write.

/// Keywords that refer to another schema; the last two are rarer words for nearly the same.
pub const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that say what a schema is called, or in which dialect it is.
pub const NAMES: [&str; 5] = [
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
];
/// The words that `type` knows.
pub const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// What a keyword's value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywordShape {
    /// A schema.
    Schema,
    /// Schemas by names.
    SchemaMap,
    /// Schemas in a list.
    SchemaList,
    /// A schema; in older drafts also schemas in a list.
    Items,
    /// By names, each a schema or a list of names.
    Dependencies,
    /// Any value.
    Value,
    /// A list of any values.
    List,
    /// Text.
    Text,
    /// A number.
    Number,
    /// A number above zero.
    Factor,
    /// A whole number from zero.
    Count,
    /// True or false.
    Flag,
    /// A list of names.
    Names,
    /// Lists of names by names.
    NamesMap,
    /// One of [`TYPES`], or several.
    Type,
    /// A name within the document.
    Anchor,
    /// An address.
    Identifier,
    /// Older drafts know it, 2020-12 does not.
    Older,
}

/// What stands under a keyword; nothing for one that no draft knows.
pub fn shape(keyword: &str) -> Option<KeywordShape> {
    Some(match keyword {
        "additionalProperties"
        | "additionalItems"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => KeywordShape::Schema,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            KeywordShape::SchemaMap
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => KeywordShape::SchemaList,
        "items" => KeywordShape::Items,
        "dependencies" => KeywordShape::Dependencies,
        "const" | "default" => KeywordShape::Value,
        "enum" | "examples" => KeywordShape::List,
        "title" | "description" | "$comment" | "format" | "pattern" | "contentEncoding"
        | "contentMediaType" | "$schema" | "$ref" | "$dynamicRef" | "$recursiveRef" => {
            KeywordShape::Text
        }
        "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" => KeywordShape::Number,
        "multipleOf" => KeywordShape::Factor,
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxContains" | "minContains"
        | "maxProperties" | "minProperties" => KeywordShape::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => KeywordShape::Flag,
        "required" => KeywordShape::Names,
        "dependentRequired" => KeywordShape::NamesMap,
        "type" => KeywordShape::Type,
        "$anchor" | "$dynamicAnchor" => KeywordShape::Anchor,
        "$id" => KeywordShape::Identifier,
        "$vocabulary" | "$recursiveAnchor" => KeywordShape::Older,
        _ => return None,
    })
}
