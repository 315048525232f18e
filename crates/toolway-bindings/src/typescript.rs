//! A module in TypeScript, over the package `toolway`.
//!
//! Owns its text. It has no code of its own but what passes calls on, and needs no setting of the
//! compiler: types can be stripped from it.

use std::fmt::Write as _;

use serde_json::Value;

use crate::kind::Type;
use crate::names::{TYPESCRIPT, TakenNames, camel, pascal};
use crate::shape::{Shapes, Struct, StructMember};
use crate::tools::ToolDefinition;
use crate::words::{self, in_block_comment, typescript as quoted};

/// What the module itself says.
const RESERVED: &[&str] = &[
    "Answer",
    "Awaited",
    "CallOptions",
    "Host",
    "Omit",
    "Parameters",
    "Pick",
    "Promise",
    "ReturnType",
    "Toolway",
    "Record",
    "Array",
    "Object",
    "NonNullable",
];

pub(crate) fn module(server: &str, tools: &[&ToolDefinition]) -> String {
    let mut shapes = Shapes::new(RESERVED);
    let class = shapes.names.take_type(pascal(server));
    let mut methods = TakenNames::without(TYPESCRIPT);
    methods.reserve(&["host", "use"]);
    let mut calls = String::new();
    let mut aliases = String::new();
    for tool in tools {
        let base = pascal(&tool.name);
        let takes = shapes.arguments(&tool.input, &format!("{base}Arguments"));
        let may_be_empty = shapes.may_be_empty(&takes);
        let what = format!("What `{}` takes.", tool.name);
        let name = format!("{base}Arguments");
        let takes = named(&mut shapes, &mut aliases, &takes, &name, &what);
        let gives = tool.output.as_ref().map(|output| {
            let kind = shapes.result(output, &format!("{base}Result"));
            let what = format!("What `{}` gives.", tool.name);
            named(
                &mut shapes,
                &mut aliases,
                &kind,
                &format!("{base}Result"),
                &what,
            )
        });
        let gives = gives.unwrap_or_else(|| "unknown".to_owned());
        let method = methods.take(camel(&tool.name));
        let said = match words::of_tool(&tool.description) {
            none if none.is_empty() => words::of_member(&format!("Calls `{}`.", tool.name)),
            said => said,
        };
        comment(&mut calls, "  ", &said);
        let default = if may_be_empty { " = {}" } else { "" };
        let _ = writeln!(
            calls,
            "  async {method}(args: {takes}{default}, options?: CallOptions): \
             Promise<Answer<{gives}>> {{\n    \
             return (await this.host.call({}, {}, args as never, options)) as Answer<{gives}>;\n  \
             }}\n",
            quoted(server),
            quoted(&tool.name)
        );
    }
    let mut text = String::from(
        "import type { Toolway } from \"toolway\";\n\n\
         /** What calls tools: a `Toolway`, or what has its `call`. */\n\
         export type Host = Pick<Toolway, \"call\">;\n\n\
         /** What a call takes beside its arguments. */\n\
         export type CallOptions = Parameters<Toolway[\"call\"]>[3];\n\n\
         /** What a call gave. There is nothing structured where the tool failed. */\n\
         export type Answer<T> = Omit<Awaited<ReturnType<Toolway[\"call\"]>>, \"structured\"> & {\n  \
         readonly structured: T | undefined;\n};\n\n",
    );
    let mut order: Vec<&Struct> = shapes.structs.iter().collect();
    order.sort_by(|one, two| one.name.cmp(&two.name));
    for one in order {
        interface(&mut text, &shapes, one);
    }
    text.push_str(&aliases);
    let _ = write!(
        text,
        "/** The tools of server {server}. */\n\
         export class {class} {{\n  \
         readonly host: Host;\n\n  \
         constructor(host: Host) {{\n    this.host = host;\n  }}\n\n  \
         /** Starts a host for as long as the work takes. */\n  \
         static async use<T>(work: (tools: {class}) => Promise<T>): Promise<T> {{\n    \
         const {{ Toolway }} = await import(\"toolway\");\n    \
         const host = await Toolway.start();\n    \
         try {{\n      return await work(new {class}(host));\n    }} finally {{\n      \
         await host.close();\n    }}\n  }}\n\n{}}}\n",
        calls.strip_suffix('\n').unwrap_or(&calls),
        server = in_block_comment(&quoted(server)),
    );
    text
}

pub(crate) fn index(servers: &[(String, String)]) -> String {
    let mut text = String::new();
    let mut names = TakenNames::default();
    for (server, stem) in servers {
        let class = pascal(server);
        let _ = writeln!(
            text,
            "export * as {} from \"./{stem}.js\";",
            names.take(class)
        );
    }
    text
}

/// The name of a type that stands for all of what a tool takes or gives.
fn named(shapes: &mut Shapes, aliases: &mut String, kind: &Type, name: &str, what: &str) -> String {
    let spelled = spelled(shapes, kind);
    if matches!(kind, Type::Struct(_)) {
        return spelled;
    }
    let name = shapes.names.take_type(name.to_owned());
    comment(aliases, "", &words::of_member(what));
    let _ = writeln!(aliases, "export type {name} = {spelled};\n");
    name
}

fn interface(text: &mut String, shapes: &Shapes, one: &Struct) {
    let _ = writeln!(text, "export interface {} {{", one.name);
    for member in &one.members {
        comment(text, "  ", &said(member));
        let optional = if member.is_required { "" } else { "?" };
        let kind = spelled(shapes, &member.kind);
        let _ = writeln!(text, "  {}{optional}: {kind};", key(&member.name));
    }
    if one.is_open {
        text.push_str("  [name: string]: unknown;\n");
    }
    text.push_str("}\n\n");
}

fn said(member: &StructMember) -> Vec<String> {
    let mut said = words::of_member(&member.description);
    said.extend(member.remarks.iter().cloned());
    said
}

fn comment(text: &mut String, indent: &str, lines: &[String]) {
    match lines {
        [] => {}
        [one] => {
            let _ = writeln!(text, "{indent}/** {} */", in_block_comment(one));
        }
        several => {
            let _ = writeln!(text, "{indent}/**");
            for line in several {
                let line = format!("{indent} * {}", in_block_comment(line));
                let _ = writeln!(text, "{}", line.trim_end());
            }
            let _ = writeln!(text, "{indent} */");
        }
    }
}

fn key(name: &str) -> String {
    let mut letters = name.bytes();
    let begins = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    if begins && letters.all(|it| it.is_ascii_alphanumeric() || it == b'_') && name != "constructor"
    {
        return name.to_owned();
    }
    quoted(name)
}

fn spelled(shapes: &Shapes, kind: &Type) -> String {
    match kind {
        Type::Unknown => "unknown".to_owned(),
        Type::Null => "null".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::Integer | Type::Number => "number".to_owned(),
        Type::String => "string".to_owned(),
        Type::Literal(Value::String(text)) => quoted(text),
        // Beyond this, a number of JavaScript is another.
        Type::Literal(Value::Number(number))
            if number.as_i64().is_none_or(|it| it.unsigned_abs() > 1 << 53) =>
        {
            "number".to_owned()
        }
        Type::Literal(value) => value.to_string(),
        Type::List(items) => match spelled(shapes, items) {
            plain if matches!(**items, Type::Union(_)) => format!("({plain})[]"),
            plain => format!("{plain}[]"),
        },
        Type::Tuple(items) => {
            let items: Vec<String> = items.iter().map(|item| spelled(shapes, item)).collect();
            format!("[{}]", items.join(", "))
        }
        Type::Map(values) => format!("{{ [name: string]: {} }}", spelled(shapes, values)),
        Type::Struct(place) => shapes.structs[*place].name.clone(),
        Type::Union(forms) => {
            let forms: Vec<String> = forms.iter().map(|form| spelled(shapes, form)).collect();
            forms.join(" | ")
        }
    }
}
