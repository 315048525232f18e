//! Types, and what becomes of two of them: the one or the other, the one and the other.
//!
//! Owns that neither is narrower than both words together.

use serde_json::Value;
use toolway_schema::type_of;

/// The most alternatives of one place.
pub(crate) const MAX_FORMS: usize = 64;

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Unknown,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// Exactly this text, number, truth or null.
    Literal(Value),
    List(Box<Type>),
    /// A list with as many items as there are types.
    Tuple(Vec<Type>),
    /// An object with members of any name.
    Map(Box<Type>),
    /// One of `Shapes::structs`.
    Struct(usize),
    /// One of several, none of them unknown.
    Union(Vec<Type>),
}

/// The one or the other.
pub(crate) fn union(forms: impl IntoIterator<Item = Type>) -> Type {
    let mut kept: Vec<Type> = Vec::new();
    for form in forms {
        let parts = match form {
            Type::Unknown => return Type::Unknown,
            Type::Union(parts) => parts,
            one => vec![one],
        };
        for part in parts {
            if !kept.contains(&part) {
                kept.push(part);
            }
        }
    }
    // A number is any, and a text too.
    let all = kept.clone();
    kept.retain(|form| {
        !all.iter()
            .any(|wider| wider != form && includes(wider, form))
    });
    if kept.len() > MAX_FORMS && kept.iter().any(|form| !matches!(form, Type::Literal(_))) {
        return Type::Unknown;
    }
    match kept.len() {
        0 => Type::Unknown,
        1 => kept.remove(0),
        _ => Type::Union(kept),
    }
}

/// Whether whatever is the second is the first as well.
fn includes(wider: &Type, narrow: &Type) -> bool {
    match (wider, narrow) {
        (one, two) if one == two => true,
        (Type::Unknown, _) | (Type::Number, Type::Integer) => true,
        (wide, Type::Literal(value)) => match wide {
            Type::Null => value.is_null(),
            Type::Boolean => value.is_boolean(),
            Type::Integer => type_of(value) == "integer",
            Type::Number => value.is_number(),
            Type::String => value.is_string(),
            _ => false,
        },
        (Type::Union(forms), narrow) => forms.iter().any(|form| includes(form, narrow)),
        _ => false,
    }
}

/// What is both, or something wider.
pub(crate) fn meet(one: Type, two: Type) -> Type {
    if includes(&one, &two) {
        return two;
    }
    if includes(&two, &one) {
        return one;
    }
    let forms = |kind: Type| match kind {
        Type::Union(forms) => forms,
        kind => vec![kind],
    };
    let (ours, theirs) = (forms(one), forms(two));
    let mut both = Vec::new();
    for a in &ours {
        for b in &theirs {
            match (a, b) {
                (a, b) if includes(a, b) => both.push(b.clone()),
                (a, b) if includes(b, a) => both.push(a.clone()),
                (Type::Map(inner), kind @ Type::Struct(_))
                | (kind @ Type::Struct(_), Type::Map(inner))
                    if **inner == Type::Unknown =>
                {
                    both.push(kind.clone());
                }
                (Type::List(inner), kind @ (Type::List(_) | Type::Tuple(_)))
                | (kind @ (Type::List(_) | Type::Tuple(_)), Type::List(inner))
                    if **inner == Type::Unknown =>
                {
                    both.push(kind.clone());
                }
                (a, b) if family(a) != family(b) => {}
                _ => return Type::Unknown,
            }
        }
    }
    union(both)
}

/// Which kind of JSON value it is.
fn family(kind: &Type) -> u8 {
    match kind {
        Type::Unknown | Type::Union(_) => 0,
        Type::Null => 1,
        Type::Boolean => 2,
        Type::Integer | Type::Number => 3,
        Type::String => 4,
        Type::Literal(value) => match value {
            Value::Null => 1,
            Value::Bool(_) => 2,
            Value::Number(_) => 3,
            Value::String(_) => 4,
            Value::Array(_) => 5,
            Value::Object(_) => 6,
        },
        Type::List(_) | Type::Tuple(_) => 5,
        Type::Map(_) | Type::Struct(_) => 6,
    }
}

/// The type of one value: itself, where languages can say so.
pub(crate) fn literal(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Number(number) if number.is_f64() => Type::Number,
        Value::Array(_) => Type::List(Box::new(Type::Unknown)),
        Value::Object(_) => Type::Map(Box::new(Type::Unknown)),
        value => Type::Literal(value.clone()),
    }
}
