//! URI templates (RFC 6570): the addresses of families of resources.
//!
//! Owns reading a template, filling it in, and telling whether a URI could have come from it. All
//! four levels of expansion for text and for lists of text; associative arrays have no use here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The most expressions of one template.
const MAX_EXPRESSIONS: usize = 64;

/// A template, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<TemplatePart>,
}

/// The values of variables; more than one is a list.
pub type TemplateValues = BTreeMap<String, Vec<String>>;

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{template}` is not a URI template: {problem}")]
pub struct TemplateError {
    /// The text.
    pub template: String,
    /// What is wrong with it.
    pub problem: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Expression(TemplateExpression),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TemplateExpression {
    operator: Operator,
    variables: Vec<Variable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    explode: bool,
    prefix: Option<usize>,
}

/// How an expression is written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Operator {
    sign: Option<char>,
    first: &'static str,
    separator: &'static str,
    /// Whether each value carries its name.
    named: bool,
    /// What stands behind the name of an empty value.
    if_empty: &'static str,
    /// Whether reserved characters stay.
    reserved: bool,
}

const fn operator(
    sign: Option<char>,
    first: &'static str,
    separator: &'static str,
    named: bool,
    if_empty: &'static str,
    reserved: bool,
) -> Operator {
    Operator {
        sign,
        first,
        separator,
        named,
        if_empty,
        reserved,
    }
}

const OPERATORS: [Operator; 8] = [
    operator(None, "", ",", false, "", false),
    operator(Some('+'), "", ",", false, "", true),
    operator(Some('#'), "#", ",", false, "", true),
    operator(Some('.'), ".", ".", false, "", false),
    operator(Some('/'), "/", "/", false, "", false),
    operator(Some(';'), ";", ";", true, "", false),
    operator(Some('?'), "?", "&", true, "=", false),
    operator(Some('&'), "&", "&", true, "=", false),
];

impl UriTemplate {
    /// Reads a template.
    pub fn parse(template: &str) -> Result<Self, TemplateError> {
        let wrong = |problem: String| TemplateError {
            template: template.to_owned(),
            problem,
        };
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some(open) = rest.find(['{', '}']) {
            if rest[open..].starts_with('}') {
                return Err(wrong("a `}` without its `{`".to_owned()));
            }
            if open > 0 {
                parts.push(TemplatePart::Literal(rest[..open].to_owned()));
            }
            let inner = &rest[open + 1..];
            let close = inner
                .find('}')
                .ok_or_else(|| wrong("a `{` without its `}`".to_owned()))?;
            let expression = TemplateExpression::parse(&inner[..close]).map_err(wrong)?;
            parts.push(TemplatePart::Expression(expression));
            rest = &inner[close + 1..];
            if parts.len() > 2 * MAX_EXPRESSIONS {
                return Err(wrong(format!("over {MAX_EXPRESSIONS} expressions")));
            }
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    fn expressions(&self) -> impl Iterator<Item = &TemplateExpression> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Expression(expression) => Some(expression),
            TemplatePart::Literal(_) => None,
        })
    }

    /// Its variables, in order, each once.
    pub fn variables(&self) -> Vec<&str> {
        self.names(|_| true)
    }

    /// The variables without which the URI has a hole: all but those of a query and of `;`, which
    /// may be left out.
    pub fn required(&self) -> Vec<&str> {
        self.names(|expression| !expression.operator.named)
    }

    fn names(&self, of: impl Fn(&TemplateExpression) -> bool) -> Vec<&str> {
        let mut names = Vec::new();
        for expression in self.expressions().filter(|expression| of(expression)) {
            for variable in &expression.variables {
                if !names.contains(&variable.name.as_str()) {
                    names.push(variable.name.as_str());
                }
            }
        }
        names
    }

    /// Fills the template in. A variable without a value leaves nothing behind.
    pub fn expand(&self, values: &TemplateValues) -> String {
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => encode(&mut uri, text, true),
                TemplatePart::Expression(expression) => expression.expand(values, &mut uri),
            }
        }
        uri
    }

    /// Whether a URI could have come from this template. A plain variable is never empty and has
    /// no slash in it.
    pub fn could_be(&self, uri: &str) -> bool {
        matches(&self.parts, uri, &mut 10_000)
    }
}

/// The budget bounds the ways that are tried.
fn matches(parts: &[TemplatePart], uri: &str, budget: &mut u32) -> bool {
    *budget = budget.saturating_sub(1);
    if *budget == 0 {
        return false;
    }
    match parts.split_first() {
        None => uri.is_empty(),
        Some((TemplatePart::Literal(text), rest)) => {
            let mut literal = String::new();
            encode(&mut literal, text, true);
            let behind = uri.strip_prefix(literal.as_str());
            behind
                .or_else(|| uri.strip_prefix(text.as_str()))
                .is_some_and(|behind| matches(rest, behind, budget))
        }
        Some((TemplatePart::Expression(expression), rest)) => {
            let operator = expression.operator;
            let plain = operator.sign.is_none();
            let reach = if plain {
                uri.find(['/', '?', '#']).unwrap_or(uri.len())
            } else {
                uri.len()
            };
            let fits = |taken: &str| match operator.sign {
                None => !taken.is_empty(),
                Some('+') => true,
                Some(_) => taken.is_empty() || taken.starts_with(operator.first),
            };
            (0..=reach)
                .rev()
                .filter(|end| uri.is_char_boundary(*end))
                .any(|end| fits(&uri[..end]) && matches(rest, &uri[end..], budget))
        }
    }
}

impl TemplateExpression {
    fn parse(text: &str) -> Result<Self, String> {
        let sign = text.chars().next();
        let operator = OPERATORS
            .into_iter()
            .find(|operator| operator.sign.is_some() && operator.sign == sign);
        let (operator, names) = match operator {
            Some(operator) => (operator, &text[1..]),
            None => (OPERATORS[0], text),
        };
        let variables = names.split(',').map(Variable::parse);
        Ok(Self {
            operator,
            variables: variables.collect::<Result<_, _>>()?,
        })
    }

    fn expand(&self, values: &TemplateValues, uri: &mut String) {
        let operator = self.operator;
        let mut lead = operator.first;
        for variable in &self.variables {
            let Some(given) = values.get(&variable.name).filter(|given| !given.is_empty()) else {
                continue;
            };
            if variable.explode {
                for value in given {
                    uri.push_str(lead);
                    variable.write(operator, std::slice::from_ref(value), uri);
                    lead = operator.separator;
                }
            } else {
                uri.push_str(lead);
                variable.write(operator, given, uri);
                lead = operator.separator;
            }
        }
    }
}

impl Variable {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, explode) = match text.strip_suffix('*') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let (name, prefix) = match name.split_once(':') {
            Some((name, length)) => {
                let length = length
                    .parse()
                    .ok()
                    .filter(|length| (1..10_000).contains(length))
                    .ok_or_else(|| format!("`{text}` has no usable length"))?;
                (name, Some(length))
            }
            None => (name, None),
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '-');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!("`{text}` is no name of a variable"));
        }
        Ok(Self {
            name: name.to_owned(),
            explode,
            prefix,
        })
    }

    fn write(&self, operator: Operator, values: &[String], uri: &mut String) {
        if operator.named {
            uri.push_str(&self.name);
            if values.iter().all(String::is_empty) {
                uri.push_str(operator.if_empty);
                return;
            }
            uri.push('=');
        }
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                uri.push(',');
            }
            let end = self
                .prefix
                .and_then(|length| value.char_indices().nth(length))
                .map_or(value.len(), |(end, _)| end);
            encode(uri, &value[..end], operator.reserved);
        }
    }
}

/// Writes text with everything escaped that may not stand in a URI, or has a meaning there.
fn encode(uri: &mut String, text: &str, keep_reserved: bool) {
    let bytes = text.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        let escaped = *byte == b'%'
            && bytes
                .get(index + 1..index + 3)
                .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let keep = byte.is_ascii_alphanumeric()
            || b"-._~".contains(byte)
            || (keep_reserved && (b":/?#[]@!$&'()*+,;=".contains(byte) || escaped));
        if keep {
            uri.push(char::from(*byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests;
