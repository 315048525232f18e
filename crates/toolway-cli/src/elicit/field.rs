//! One field of a server's form: what is expected, and what was typed as a value.
//!
//! Owns reading a property of the schema and turning a line into a value of it. Whether the value
//! fits the schema in every respect is checked by the library; this adds the formats, which a
//! schema only mentions, and words that a person can act on.

use std::fmt::Write as _;

use serde_json::{Number, Value};
use toolway::client_handler::problems_of_field;
use toolway_types::text::{TextKind, clean_line, counted, cut, legible};
use url::Url;

use super::secret;
use crate::screen::{Sheet, words};

/// The most characters of a title or a choice.
const SHORT: usize = 200;
/// The most characters of a description.
const LONG: usize = 500;
/// The most choices that are listed; others can still be typed.
const LISTED: usize = 100;
/// The most rows of a description.
const DESCRIPTION_ROWS: usize = 12;
/// The longest default that stands in the prompt itself.
const OFFERED: usize = 40;

/// A field; what is shown of it is legible.
#[derive(Debug)]
pub(super) struct Field {
    /// The name under which the answer is sent, as received.
    pub(super) name: String,
    /// Its title, or else its name.
    pub(super) title: String,
    pub(super) description: Option<String>,
    pub(super) required: bool,
    pub(super) default: Option<Value>,
    /// Whether it asks for what servers must not ask for in a form.
    pub(super) secret: bool,
    kind: Kind,
    schema: Value,
}

#[derive(Debug)]
enum Kind {
    Text,
    Number,
    Integer,
    Boolean,
    One(Vec<Choice>),
    Several(Vec<Choice>),
    /// Nothing a form may hold by the protocol: typed as JSON.
    Other,
}

#[derive(Debug, PartialEq)]
struct Choice {
    value: Value,
    /// As it can be typed.
    title: String,
    /// As it is listed: no two that differ look the same.
    shown: String,
}

/// The fields of a form, in the server's order.
pub(super) fn fields(schema: &Value) -> Vec<Field> {
    let required: Vec<&str> = toolway_schema::required(schema).collect();
    toolway_schema::properties(schema)
        .map(|(name, property)| Field::read(name, property, required.contains(&name.as_str())))
        .collect()
}

impl Field {
    fn read(name: &str, property: &Value, required: bool) -> Self {
        let text = |key: &str| {
            property[key]
                .as_str()
                .filter(|text| !text.trim().is_empty())
        };
        let kind = match property["type"].as_str() {
            Some("boolean") => Kind::Boolean,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("array") => match choices(&property["items"]) {
                Some(choices) => Kind::Several(choices),
                None => Kind::Other,
            },
            Some("string") | None => match choices(property) {
                Some(choices) => Kind::One(choices),
                None if property["type"].is_null() => Kind::Other,
                None => Kind::Text,
            },
            Some(_) => Kind::Other,
        };
        let default = property
            .get("default")
            .filter(|default| problems_of_field(property, default).is_empty());
        Self {
            name: name.to_owned(),
            title: words(text("title").unwrap_or(name), SHORT),
            description: text("description").map(|text| cut(text, LONG).into_owned()),
            required,
            default: default.cloned(),
            secret: secret::is_field(name, property),
            kind,
            schema: property.clone(),
        }
    }

    /// The rows above the prompt.
    pub(super) fn question(&self, sheet: &mut Sheet) {
        let needed = if self.required {
            "required"
        } else {
            "optional"
        };
        sheet.row(&format!(
            "field `{}` ({needed}): {}",
            self.title,
            self.expected()
        ));
        if let Some(description) = &self.description {
            sheet.quote(description, TextKind::Prose, DESCRIPTION_ROWS);
        }
        if let Kind::One(choices) | Kind::Several(choices) = &self.kind {
            let numbered = numbered(choices);
            for (place, choice) in choices.iter().take(LISTED).enumerate() {
                let mark = if numbered {
                    format!("{:>3}  ", place + 1)
                } else {
                    "  - ".to_owned()
                };
                sheet.row(&format!("{mark}{}", choice.shown));
            }
            if choices.len() > LISTED {
                let more = counted(choices.len() - LISTED, "more choice");
                sheet.row(&format!("  and {more}"));
            }
        }
    }

    /// What Enter alone does, for the prompt; what is too long for it gets a row.
    pub(super) fn offer(&self, sheet: &mut Sheet) -> String {
        match self.default.as_ref().map(|default| self.show(default)) {
            Some(default) if default.is_ascii() && default.len() <= OFFERED => {
                format!("[{default}] ")
            }
            Some(default) => {
                sheet.row(&format!("  Enter alone answers: {default}"));
                "[as above] ".to_owned()
            }
            None if self.required => String::new(),
            None => "[left out] ".to_owned(),
        }
    }

    /// What is expected, in words.
    pub(super) fn expected(&self) -> String {
        let number = |key: &str| self.schema[key].as_number().map(ToString::to_string);
        let between = |low: Option<String>, high: Option<String>, unit: &str| match (low, high) {
            (Some(low), Some(high)) if low == high => format!(", {low}{unit}"),
            (Some(low), Some(high)) => format!(", {low} to {high}{unit}"),
            (Some(low), None) => format!(", at least {low}{unit}"),
            (None, Some(high)) => format!(", at most {high}{unit}"),
            (None, None) => String::new(),
        };
        match &self.kind {
            Kind::Text => {
                let mut text = match self.schema["format"].as_str() {
                    Some("email") => "an e-mail address".to_owned(),
                    Some("uri") => "an address such as https://example.com".to_owned(),
                    Some("date") => "a date such as 2026-01-31".to_owned(),
                    Some("date-time") => "a time such as 2026-01-31T12:00:00Z".to_owned(),
                    _ => "text".to_owned(),
                };
                text += &between(number("minLength"), number("maxLength"), " characters");
                if let Some(pattern) = self.schema["pattern"].as_str() {
                    let _ = write!(text, ", matching {}", words(pattern, SHORT));
                }
                text
            }
            Kind::Number => format!(
                "a number{}",
                between(number("minimum"), number("maximum"), "")
            ),
            Kind::Integer => format!(
                "a whole number{}",
                between(number("minimum"), number("maximum"), "")
            ),
            Kind::Boolean => "yes or no".to_owned(),
            Kind::One(_) => "one of these".to_owned(),
            Kind::Several(_) => format!(
                "any of these, with commas between them{}",
                between(number("minItems"), number("maxItems"), " of them")
            ),
            Kind::Other => "a value in JSON".to_owned(),
        }
    }

    /// A value as a person reads it.
    pub(super) fn show(&self, value: &Value) -> String {
        let title = |choices: &[Choice], value: &Value| {
            let found = choices.iter().find(|choice| choice.value == *value);
            let title = found.map_or_else(|| shown(value), |choice| choice.title.clone());
            legible(&title, TextKind::Prose)
        };
        match (&self.kind, value) {
            (Kind::Boolean, Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
            (Kind::One(choices), value) => title(choices, value),
            (Kind::Several(_), Value::Array(values)) if values.is_empty() => "none".to_owned(),
            (Kind::Several(choices), Value::Array(values)) => {
                let titles: Vec<_> = values.iter().map(|value| title(choices, value)).collect();
                titles.join(", ")
            }
            (_, Value::String(text)) if text.is_empty() => "\"\"".to_owned(),
            (_, value) => legible(&shown(value), TextKind::Prose),
        }
    }

    /// What was typed as a value: `None` leaves the field out. The error says what is wrong.
    pub(super) fn read_line(&self, line: &str) -> Result<Option<Value>, String> {
        let typed = line.trim();
        if typed.is_empty() {
            return match &self.default {
                Some(default) => Ok(Some(default.clone())),
                None if self.required => Err("an answer is needed".to_owned()),
                None => Ok(None),
            };
        }
        let value = match &self.kind {
            // Only `""` says that empty text is meant.
            Kind::Text if typed == "\"\"" => Value::String(String::new()),
            Kind::Text => Value::String(typed.to_owned()),
            Kind::Number => number(typed).ok_or("that is no number")?,
            Kind::Integer => whole(typed).ok_or("that is no whole number")?,
            Kind::Boolean => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Value::Bool(true),
                "n" | "no" | "false" => Value::Bool(false),
                _ => return Err("that is neither yes nor no".to_owned()),
            },
            Kind::One(choices) => choose(choices, typed)?,
            Kind::Several(_) if matches!(typed, "none" | "\"\"") => Value::Array(Vec::new()),
            Kind::Several(choices) => several(choices, typed)?,
            Kind::Other => {
                serde_json::from_str(typed).map_err(|error| format!("that is no JSON: {error}"))?
            }
        };
        self.check(&value)?;
        Ok(Some(value))
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        let mut problems = problems_of_field(&self.schema, value);
        if let (Some(text), Some(format)) = (value.as_str(), self.schema["format"].as_str())
            && !has_format(text, format)
        {
            problems.push(format!("that is not {}", self.expected()));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("; "))
        }
    }
}

fn short(text: &str, most: usize) -> String {
    cut(&clean_line(text), most).into_owned()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => short(text, SHORT),
        other => short(&other.to_string(), SHORT),
    }
}

impl Choice {
    fn new(value: &Value, title: Option<&str>) -> Self {
        let sent = match value {
            Value::String(text) => words(text, SHORT),
            other => words(&other.to_string(), SHORT),
        };
        let listed = match title {
            Some(title) if short(title, SHORT) != shown(value) => {
                format!("{} ({sent})", words(title, SHORT))
            }
            _ => sent,
        };
        Self {
            title: title.map_or_else(|| shown(value), |title| short(title, SHORT)),
            value: value.clone(),
            shown: listed,
        }
    }
}

/// The choices of a property, in each of the shapes that the revisions of the protocol know.
fn choices(property: &Value) -> Option<Vec<Choice>> {
    let titled = property["oneOf"]
        .as_array()
        .or(property["anyOf"].as_array());
    if let Some(options) = titled {
        return options
            .iter()
            .map(|option| Some(Choice::new(option.get("const")?, option["title"].as_str())))
            .collect();
    }
    let values = property["enum"].as_array()?;
    let names = &property["enumNames"];
    let choices = values.iter().enumerate();
    Some(
        choices
            .map(|(place, value)| Choice::new(value, names[place].as_str()))
            .collect(),
    )
}

/// Whether choices can be chosen by their place: not where one of them could be meant by it.
fn numbered(choices: &[Choice]) -> bool {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    !choices
        .iter()
        .any(|choice| is_number(&choice.title) || is_number(&shown(&choice.value)))
}

fn choose(choices: &[Choice], typed: &str) -> Result<Value, String> {
    let fold = |text: &str| text.to_lowercase();
    let only = |is: &dyn Fn(&Choice) -> bool| {
        let mut found = choices.iter().filter(|choice| is(choice));
        found.next().filter(|_| found.next().is_none())
    };
    let place = typed.parse::<usize>().ok().filter(|_| numbered(choices));
    let found = choices
        .iter()
        .find(|choice| shown(&choice.value) == typed)
        .or_else(|| only(&|choice| choice.title == typed))
        .or_else(|| only(&|choice| fold(&choice.title) == fold(typed)))
        .or_else(|| place.and_then(|place| choices.get(place.checked_sub(1)?)));
    let found = found.ok_or_else(|| format!("`{}` is none of the choices", short(typed, 80)))?;
    Ok(found.value.clone())
}

fn several(choices: &[Choice], typed: &str) -> Result<Value, String> {
    // One choice may have a comma of its own.
    if let Ok(one) = choose(choices, typed) {
        return Ok(Value::Array(vec![one]));
    }
    let mut values: Vec<Value> = Vec::new();
    let words = typed.split(',').map(str::trim);
    for word in words.filter(|word| !word.is_empty()) {
        let value = choose(choices, word)?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(Value::Array(values))
}

fn number(typed: &str) -> Option<Value> {
    whole(typed).or_else(|| {
        let number = Number::from_f64(typed.parse().ok()?)?;
        Some(Value::Number(number))
    })
}

fn whole(typed: &str) -> Option<Value> {
    let signed = typed.parse::<i64>().map(Value::from);
    signed
        .or_else(|_| typed.parse::<u64>().map(Value::from))
        .ok()
}

/// Whether text has one of the formats that a form may ask for; others are not known here.
fn has_format(text: &str, format: &str) -> bool {
    match format {
        "email" => text.split_once('@').is_some_and(|(who, place)| {
            let plain = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
            plain(who) && plain(place) && !place.contains('@')
        }),
        "uri" => Url::parse(text).is_ok(),
        "date" => is_date(text),
        "date-time" => text
            .split_once(['T', 't', ' '])
            .is_some_and(|(date, time)| is_date(date) && is_time(time)),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = |width: usize| {
        let digits = parts
            .next()
            .filter(|part| part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse::<u32>().ok()
    };
    let (Some(year), Some(month), Some(day)) = (next(4), next(2), next(2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    parts.next().is_none() && (1..=days).contains(&day)
}

/// `12:00:00`, with parts of a second and the distance to UTC.
fn is_time(text: &str) -> bool {
    let (clock, zone) = match text.find(['Z', 'z', '+', '-']) {
        Some(place) => text.split_at(place),
        None => return false,
    };
    let (clock, parts) = clock.split_once('.').unwrap_or((clock, "0"));
    let pair = |text: &str, below: u32| {
        text.len() == 2 && text.parse::<u32>().is_ok_and(|number| number < below)
    };
    let zone_fits = matches!(zone, "Z" | "z")
        || zone[1..]
            .split_once(':')
            .is_some_and(|(hours, minutes)| pair(hours, 24) && pair(minutes, 60));
    let mut units = clock.split(':');
    let mut unit = |below| units.next().is_some_and(|text| pair(text, below));
    unit(24)
        && unit(60)
        && unit(61)
        && units.next().is_none()
        && !parts.is_empty()
        && parts.bytes().all(|byte| byte.is_ascii_digit())
        && zone_fits
}

#[cfg(test)]
mod tests;
