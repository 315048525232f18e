//! A module in Rust, over the crate `toolway`.
//!
//! Owns its text: values with `serde`, which a crate beside `toolway` and `serde_json` has to have.

use std::fmt::Write as _;

use serde_json::Value;

use crate::kind::Type;
use crate::names::{RUST, TakenNames, pascal, snake};
use crate::shape::{Shapes, Struct, StructMember};
use crate::tools::ToolDefinition;
use crate::words::{self, in_rust_comment, rust as quoted};

/// What the module itself says, and what every module has.
const RESERVED: &[&str] = &[
    "Answer",
    "AsFnOnce",
    "AsyncFn",
    "AsyncFnMut",
    "AsyncFnOnce",
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Drop",
    "Eq",
    "Err",
    "Failure",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "Future",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Result",
    "Self",
    "Send",
    "Sized",
    "Some",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Vec",
];

const VALUE: &str = "::serde_json::Value";
const DERIVE: &str = "#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]";

pub(crate) fn module(server: &str, tools: &[&ToolDefinition]) -> String {
    let mut writer = Writer {
        shapes: Shapes::new(RESERVED),
        enums: Vec::new(),
    };
    let class = writer.shapes.names.take_type(pascal(server));
    let mut methods = TakenNames::without(RUST);
    methods.reserve(&["new", "run", "call", "crate", "self", "super"]);
    let mut calls = String::new();
    let mut roots = Vec::new();
    for tool in tools {
        let base = pascal(&tool.name);
        let name = format!("{base}Arguments");
        let takes = writer.shapes.arguments(&tool.input, &name);
        let result = format!("{base}Result");
        let gives = tool.output.as_ref();
        let gives = gives.map(|output| writer.shapes.result(output, &result));
        roots.push((tool, takes, gives, result));
    }
    let mut order: Vec<usize> = (0..writer.shapes.structs.len()).collect();
    order.sort_by(|one, two| {
        let structs = &writer.shapes.structs;
        structs[*one].name.cmp(&structs[*two].name)
    });
    let mut types = String::new();
    for place in order {
        writer.structure(&mut types, place);
    }
    for (tool, takes, gives, result) in roots {
        let takes = writer.spelled(&takes, "Arguments", None);
        let gives = gives.map_or_else(
            || VALUE.to_owned(),
            |kind| writer.spelled(&kind, &result, None),
        );
        let method = methods.take(snake(&tool.name));
        let said = match words::of_tool(&tool.description) {
            none if none.is_empty() => words::of_member(&format!("Calls `{}`.", tool.name)),
            said => said,
        };
        comment(&mut calls, "    ", &said);
        let _ = writeln!(
            calls,
            "    pub async fn {method}(\n        &self,\n        arguments: &{takes},\n        \
             options: ::toolway::CallOptions,\n    ) -> Result<Answer<{gives}>, Failure> {{\n        \
             call(self.host, {}, arguments, options).await\n    }}\n",
            quoted(&tool.name)
        );
    }
    let server = quoted(server);
    let calls = calls.strip_suffix('\n').unwrap_or(&calls);
    let mut text = HEAD.replace("SERVER", &server);
    text.push_str(&types);
    for one in &writer.enums {
        text.push_str(one);
    }
    let _ = write!(
        text,
        "/// The tools of server `{}`.\n\
         #[derive(Clone, Copy)]\npub struct {class}<'host> {{\n    \
         host: &'host ::toolway::Attached,\n}}\n\n\
         impl<'host> {class}<'host> {{\n    \
         /// Calls by way of this caller's host.\n    \
         pub fn new(host: &'host ::toolway::Attached) -> Self {{\n        Self {{ host }}\n    }}\n\n    \
         /// Starts a host with this server for as long as the work takes.\n    \
         pub async fn run<T>(work: impl AsyncFnOnce({class}<'_>) -> T) -> T {{\n        \
         let setup = ::toolway::UserSetup::new(\n            \
         ::toolway::config::Environment::capture(),\n            \
         ::toolway::config::Flags::default(),\n        );\n        \
         let (mut options, _) = setup.host_options();\n        \
         options.only = ::toolway::types::ServerName::new({server})\n            \
         .ok()\n            .map(|name| ::std::vec![name]);\n        \
         let host = ::toolway::Host::start(setup.plan(), options);\n        \
         host.settled().await;\n        let done = work({class}::new(&host)).await;\n        \
         host.shutdown().await;\n        done\n    }}\n\n{calls}}}\n",
        in_rust_comment(server.trim_matches('"')),
    );
    text
}

const HEAD: &str = r#"#![allow(dead_code, clippy::all, clippy::pedantic)]

/// What a call gave. There is nothing structured where the tool failed.
#[derive(Debug)]
pub struct Answer<T> {
    /// The structured content, read.
    pub structured: Option<T>,
    /// All of it.
    pub outcome: ::toolway::ToolOutcome,
}

/// Why a call gave nothing.
#[derive(Debug)]
pub enum Failure {
    /// The arguments are no JSON object.
    Arguments(::serde_json::Error),
    /// There is no answer.
    Call(::toolway::CallError),
    /// What came is other than the server says.
    Structured(::serde_json::Error, Box<::toolway::ToolOutcome>),
}

impl ::std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
        match self {
            Failure::Arguments(error) => write!(formatter, "the arguments are no object: {error}"),
            Failure::Call(error) => write!(formatter, "{error}"),
            Failure::Structured(error, _) => {
                write!(formatter, "the result is other than its schema: {error}")
            }
        }
    }
}

impl ::std::error::Error for Failure {}

async fn call<T: ::serde::de::DeserializeOwned>(
    host: &::toolway::Attached,
    tool: &str,
    arguments: &impl ::serde::Serialize,
    options: ::toolway::CallOptions,
) -> Result<Answer<T>, Failure> {
    let arguments: ::serde_json::Map<String, ::serde_json::Value> =
        ::serde_json::to_value(arguments)
            .and_then(::serde_json::from_value)
            .map_err(Failure::Arguments)?;
    let target = ::toolway::ToolTarget::Key(::toolway::types::ToolKey {
        server: ::toolway::types::ServerName::new(SERVER).map_err(|error| {
            Failure::Arguments(::serde::de::Error::custom(error))
        })?,
        tool: tool.to_owned(),
    });
    let request = ::toolway::ToolRequest::new(target, arguments);
    let outcome = host.call(request, options).await.map_err(Failure::Call)?;
    let structured = outcome.result().structured.as_deref();
    match structured.map(|text| ::serde_json::from_str(text.get())) {
        Some(Err(error)) if !outcome.is_error => Err(Failure::Structured(error, Box::new(outcome))),
        Some(Ok(structured)) => Ok(Answer { structured: Some(structured), outcome }),
        _ => Ok(Answer { structured: None, outcome }),
    }
}

"#;

pub(crate) fn index(servers: &[(String, String)]) -> String {
    let mut text = String::new();
    for (_, stem) in servers {
        let _ = writeln!(text, "pub mod {stem};");
    }
    text
}

struct Writer {
    shapes: Shapes,
    enums: Vec<String>,
}

impl Writer {
    fn structure(&mut self, text: &mut String, place: usize) {
        let Struct {
            name,
            members,
            is_open,
            ..
        } = self.shapes.structs[place].clone();
        let may_be_empty = members.iter().all(|member| !member.is_required);
        let _ = writeln!(text, "/// An object.");
        let derive = if may_be_empty {
            DERIVE.replace("Clone,", "Clone, Default,")
        } else {
            DERIVE.to_owned()
        };
        let _ = writeln!(text, "{derive}\npub struct {name} {{");
        let mut fields = TakenNames::without(RUST);
        if is_open {
            fields.reserve(&["others"]);
        }
        for member in &members {
            comment(text, "    ", &said(member));
            let field = fields.take(snake(&member.name));
            let _ = writeln!(text, "    #[serde(rename = {})]", quoted(&member.name));
            let below = format!("{name}{}", pascal(&member.name));
            let kind = self.spelled(&member.kind, &below, Some(place));
            if member.is_required {
                let _ = writeln!(text, "    pub {field}: {kind},");
                continue;
            }
            let kind = if kind.starts_with("Option<") {
                kind
            } else {
                format!("Option<{kind}>")
            };
            let _ = writeln!(
                text,
                "    #[serde(default, skip_serializing_if = \"Option::is_none\")]\n    \
                 pub {field}: {kind},"
            );
        }
        if is_open {
            let _ = writeln!(
                text,
                "    /// Members of other names.\n    #[serde(flatten)]\n    \
                 pub others: ::std::collections::BTreeMap<String, {VALUE}>,"
            );
        }
        text.push_str("}\n\n");
    }

    /// A type, where it stands in a struct; an enumeration that it needs gets this name.
    fn spelled(&mut self, kind: &Type, name: &str, within: Option<usize>) -> String {
        match kind {
            Type::Null => "()".to_owned(),
            Type::Boolean | Type::Literal(Value::Bool(_)) => "bool".to_owned(),
            Type::Integer => "i64".to_owned(),
            Type::Literal(Value::Number(number)) if number.is_i64() => "i64".to_owned(),
            Type::Number => "f64".to_owned(),
            Type::String => "String".to_owned(),
            Type::Literal(Value::String(text)) => self.enumeration(&[text], name),
            Type::Unknown | Type::Literal(_) => VALUE.to_owned(),
            Type::List(items) => format!("Vec<{}>", self.spelled(items, name, None)),
            Type::Tuple(items) => {
                let items: Vec<String> = items
                    .iter()
                    .map(|item| self.spelled(item, name, within))
                    .collect();
                format!("({},)", items.join(", "))
            }
            Type::Map(values) => {
                let values = self.spelled(values, name, None);
                format!("::std::collections::BTreeMap<String, {values}>")
            }
            Type::Struct(place) => {
                let own = self.shapes.structs[*place].name.clone();
                match within {
                    Some(within) if self.holds(*place, within) => format!("Box<{own}>"),
                    _ => own,
                }
            }
            Type::Union(forms) => self.union(forms, name, within),
        }
    }

    fn union(&mut self, forms: &[Type], name: &str, within: Option<usize>) -> String {
        let others: Vec<&Type> = forms.iter().filter(|form| **form != Type::Null).collect();
        let texts: Option<Vec<&String>> = others
            .iter()
            .map(|form| match form {
                Type::Literal(Value::String(text)) => Some(text),
                _ => None,
            })
            .collect();
        let spelled = match (others.as_slice(), texts) {
            ([only], _) => self.spelled(only, name, within),
            (_, Some(texts)) if !texts.is_empty() => self.enumeration(&texts, name),
            // Any of several: nothing better can be said that reads every value.
            _ => return VALUE.to_owned(),
        };
        if others.len() == forms.len() || spelled == VALUE {
            return spelled;
        }
        format!("Option<{spelled}>")
    }

    fn enumeration(&mut self, texts: &[&String], name: &str) -> String {
        let own = self.shapes.names.take_type(name.to_owned());
        let mut text = format!(
            "/// One of several texts.\n{}\npub enum {own} {{\n",
            DERIVE
                .replace("Clone,", "Clone, Copy,")
                .replace("PartialEq,", "PartialEq, Eq,")
        );
        let mut variants = TakenNames::without(&["Self"]);
        for value in texts {
            let variant = variants.take_type(pascal(value));
            let _ = writeln!(
                text,
                "    #[serde(rename = {})]\n    {variant},",
                quoted(value)
            );
        }
        text.push_str("}\n\n");
        self.enums.push(text);
        own
    }

    /// Whether a struct holds another right inside it, so that neither would have an end.
    fn holds(&self, outer: usize, inner: usize) -> bool {
        let mut seen = vec![outer];
        let mut next = 0;
        while let Some(place) = seen.get(next).copied() {
            if place == inner {
                return true;
            }
            next += 1;
            for member in &self.shapes.structs[place].members {
                direct(&member.kind, &mut seen);
            }
        }
        false
    }
}

/// The structs that lie in a value of this type, rather than behind it.
fn direct(kind: &Type, found: &mut Vec<usize>) {
    match kind {
        Type::Struct(place) if !found.contains(place) => found.push(*place),
        Type::Tuple(parts) | Type::Union(parts) => {
            for part in parts {
                direct(part, found);
            }
        }
        _ => {}
    }
}

fn said(member: &StructMember) -> Vec<String> {
    let mut said = words::of_member(&member.description);
    said.extend(member.remarks.iter().cloned());
    said
}

fn comment(text: &mut String, indent: &str, lines: &[String]) {
    for line in lines {
        let line = format!("{indent}/// {}", in_rust_comment(line));
        let _ = writeln!(text, "{}", line.trim_end());
    }
}
