//! JSON with comments as a tree that knows the offsets of every value.
//!
//! Owns the dialect: JSON plus comments and trailing commas, nothing looser. Does not own changing
//! a text; that is `edit/document.rs`.

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) message: String,
}

/// A value and the bytes it covers.
#[derive(Debug, Clone)]
pub(crate) struct SyntaxNode {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: SyntaxKind,
}

/// What a [`SyntaxNode`] holds.
#[derive(Debug, Clone)]
pub(crate) enum SyntaxKind {
    Scalar(Value),
    Array(Vec<SyntaxNode>),
    Object(Vec<SyntaxMember>),
}

/// A key and its value; `start` is where the key stands.
#[derive(Debug, Clone)]
pub(crate) struct SyntaxMember {
    pub(crate) start: usize,
    pub(crate) name: String,
    pub(crate) value: SyntaxNode,
}

impl SyntaxNode {
    /// The members of an object, nothing for anything else.
    pub(crate) fn members(&self) -> &[SyntaxMember] {
        match &self.kind {
            SyntaxKind::Object(members) => members,
            _ => &[],
        }
    }

    /// The member that counts under a name: as every JSON reader has it, the last one.
    pub(crate) fn member(&self, name: &str) -> Option<&SyntaxMember> {
        self.members()
            .iter()
            .rev()
            .find(|member| member.name == name)
    }

    /// The value without its places.
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            SyntaxKind::Scalar(value) => value.clone(),
            SyntaxKind::Array(elements) => elements.iter().map(SyntaxNode::to_value).collect(),
            SyntaxKind::Object(members) => members
                .iter()
                .map(|member| (member.name.clone(), member.value.to_value()))
                .collect::<Map<_, _>>()
                .into(),
        }
    }
}

/// JSON with comments and trailing commas. Looser forms are refused because other readers of the
/// same file would fail on them.
pub(crate) const STRICT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses a text; `None` when it holds nothing but white space and comments.
pub(crate) fn parse(text: &str) -> Result<Option<SyntaxNode>, SyntaxError> {
    match parse_to_ast(text, &CollectOptions::default(), &STRICT) {
        Ok(parsed) => Ok(parsed.value.map(convert)),
        Err(error) => Err(SyntaxError {
            line: number(error.line_display()),
            column: number(error.column_display()),
            message: lower_first(&error.kind().to_string()),
        }),
    }
}

/// The line (from 1) in which an offset stands.
pub(crate) fn line_at(text: &str, offset: usize) -> u32 {
    let breaks = text
        .as_bytes()
        .iter()
        .take(offset)
        .filter(|byte| **byte == b'\n')
        .count();
    number(breaks + 1)
}

/// Reads bytes as UTF-8, saying where they are not.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, SyntaxError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = before.rsplit('\n').next().unwrap_or_default();
        SyntaxError {
            line: line_at(&before, before.len()),
            column: number(line.chars().count() + 1),
            message: "the text is not UTF-8".to_owned(),
        }
    })
}

fn convert(value: ast::Value<'_>) -> SyntaxNode {
    let range = jsonc_parser::common::Ranged::range(&value);
    let kind = match value {
        ast::Value::StringLit(literal) => {
            SyntaxKind::Scalar(Value::String(literal.value.into_owned()))
        }
        // A number that no f64 holds is kept as its spelling rather than lost.
        ast::Value::NumberLit(literal) => SyntaxKind::Scalar(
            serde_json::from_str(literal.value)
                .unwrap_or_else(|_| Value::String(literal.value.to_owned())),
        ),
        ast::Value::BooleanLit(literal) => SyntaxKind::Scalar(Value::Bool(literal.value)),
        ast::Value::NullKeyword(_) => SyntaxKind::Scalar(Value::Null),
        ast::Value::Array(array) => {
            SyntaxKind::Array(array.elements.into_iter().map(convert).collect())
        }
        ast::Value::Object(object) => SyntaxKind::Object(
            object
                .properties
                .into_iter()
                .map(|property| SyntaxMember {
                    start: property.range.start,
                    name: property.name.into_string(),
                    value: convert(property.value),
                })
                .collect(),
        ),
    };
    SyntaxNode {
        start: range.start,
        end: range.end,
        kind,
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(super) fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map(|first| first.to_lowercase().chain(characters).collect())
        .unwrap_or_default()
}
