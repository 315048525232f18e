//! A module in Python, over the package `toolway`.
//!
//! Owns its text: dictionaries with types, for Python 3.10 and newer, strict for type checkers.

use std::fmt::Write as _;

use serde_json::Value;

use crate::kind::Type;
use crate::names::{PYTHON, TakenNames, pascal, snake};
use crate::shape::{Shapes, Struct, StructMember};
use crate::tools::ToolDefinition;
use crate::words::{self, in_docstring, python as quoted};

/// What the module itself says.
const RESERVED: &[&str] = &[
    "Any",
    "Answer",
    "AsyncIterator",
    "Callable",
    "False",
    "Generic",
    "Literal",
    "Mapping",
    "None",
    "NotRequired",
    "Protocol",
    "T",
    "Toolway",
    "True",
    "TypeAlias",
    "TypeVar",
    "TypedDict",
    "Union",
];

pub(crate) fn module(server: &str, tools: &[&ToolDefinition]) -> String {
    let mut shapes = Shapes::new(RESERVED);
    let class = shapes.names.take_type(pascal(server));
    let mut methods = TakenNames::without(PYTHON);
    methods.reserve(&["use", "host"]);
    let mut calls = String::new();
    let mut aliases = String::new();
    for tool in tools {
        let base = pascal(&tool.name);
        let takes = shapes.arguments(&tool.input, &format!("{base}Arguments"));
        let may_be_empty = shapes.may_be_empty(&takes);
        let name = format!("{base}Arguments");
        let takes = named(&mut shapes, &mut aliases, &takes, &name);
        let gives = tool.output.as_ref().map(|output| {
            let kind = shapes.result(output, &format!("{base}Result"));
            named(&mut shapes, &mut aliases, &kind, &format!("{base}Result"))
        });
        let gives = gives.unwrap_or_else(|| "Any".to_owned());
        let method = methods.take(snake(&tool.name));
        let (takes, passed) = if may_be_empty {
            (format!("{takes} | None = None"), "arguments or {}")
        } else {
            (takes, "arguments")
        };
        let _ = writeln!(
            calls,
            "\n    async def {method}(\n        self,\n        arguments: {takes},\n        *,\n        \
             timeout: float | None = None,\n        progress: Callable[..., Any] | None = None,\n        \
             check: bool = True,\n    \
             ) -> Answer[{gives}]:"
        );
        let said = match words::of_tool(&tool.description) {
            none if none.is_empty() => words::of_member(&format!("Calls `{}`.", tool.name)),
            said => said,
        };
        docstring(&mut calls, "        ", &said);
        let _ = writeln!(
            calls,
            "        return _answer(\n            await self._host.call(\n                {}, {}, \
             dict({passed}), timeout=timeout, progress=progress, check=check\n            )\n        )",
            quoted(server),
            quoted(&tool.name)
        );
    }
    let mut text = String::from(HEAD);
    let mut order: Vec<&Struct> = shapes.structs.iter().collect();
    order.sort_by(|one, two| one.name.cmp(&two.name));
    for one in order {
        dictionary(&mut text, &shapes, one);
    }
    text.push_str(&aliases);
    let _ = write!(
        text,
        "\n\nclass {class}:\n    \"\"\"The tools of server {server}.\"\"\"\n\n    \
         def __init__(self, host: Toolway) -> None:\n        self._host = host\n\n    \
         @classmethod\n    @asynccontextmanager\n    \
         async def use(cls) -> AsyncIterator[{class}]:\n        \
         \"\"\"Starts a host for as long as the block takes.\"\"\"\n        \
         async with Toolway() as host:\n            yield cls(host)\n{calls}",
        server = in_docstring(&quoted(server)),
    );
    text
}

const HEAD: &str = r#"from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypedDict, TypeVar, Union

from toolway import Toolway

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired

T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What a call gave. There is nothing structured where the tool failed."""

    structured: T | None
    text: str
    content: list[Any]
    is_error: bool
    raw: Any


def _answer(result: Any) -> Answer[Any]:
    return Answer(
        structured=result.structured,
        text=result.text,
        content=list(result.content),
        is_error=result.is_error,
        raw=result.raw,
    )
"#;

pub(crate) fn index(servers: &[(String, String)]) -> String {
    let mut text = String::new();
    let mut all = Vec::new();
    for (_, stem) in servers {
        let _ = writeln!(text, "from . import {stem} as {stem}");
        all.push(quoted(stem));
    }
    let _ = writeln!(text, "\n__all__ = [{}]", all.join(", "));
    text
}

fn named(shapes: &mut Shapes, aliases: &mut String, kind: &Type, name: &str) -> String {
    let spelled = spelled(shapes, kind);
    if let Type::Struct(place) = kind
        && spelled == shapes.structs[*place].name
    {
        return spelled;
    }
    let name = shapes.names.take_type(name.to_owned());
    let _ = writeln!(aliases, "\n{name}: TypeAlias = {}", quoted(&spelled));
    name
}

fn dictionary(text: &mut String, shapes: &Shapes, one: &Struct) {
    let kind = |member: &StructMember| {
        let kind = spelled(shapes, &member.kind);
        if member.is_required {
            kind
        } else {
            format!("NotRequired[{kind}]")
        }
    };
    // In a class, a member's name would hide a type's.
    if one.members.iter().all(|member| is_plain(&member.name)) {
        let _ = writeln!(text, "\n\nclass {}(TypedDict):", one.name);
        if one.members.is_empty() {
            text.push_str("    pass\n");
        }
        for member in &one.members {
            for line in said(member) {
                let _ = writeln!(text, "    {}", format!("#: {line}").trim_end());
            }
            let _ = writeln!(text, "    {}: {}", member.name, kind(member));
        }
        return;
    }
    let _ = writeln!(
        text,
        "\n\n{} = TypedDict(\n    {},\n    {{",
        one.name,
        quoted(&one.name)
    );
    for member in &one.members {
        for line in said(member) {
            let _ = writeln!(text, "        {}", format!("#: {line}").trim_end());
        }
        let _ = writeln!(
            text,
            "        {}: {},",
            quoted(&member.name),
            quoted(&kind(member))
        );
    }
    text.push_str("    },\n)\n");
}

fn said(member: &StructMember) -> Vec<String> {
    let mut said = words::of_member(&member.description);
    said.extend(member.remarks.iter().cloned());
    said
}

/// Whether it can name a member of a class without hiding a type.
fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_')
        && !PYTHON.contains(&name)
}

fn docstring(text: &mut String, indent: &str, lines: &[String]) {
    let mut lines = lines.iter().map(|line| in_docstring(line));
    let first = lines.next().unwrap_or_default();
    let _ = write!(text, "{indent}\"\"\"{first}");
    let mut is_long = false;
    for line in lines {
        is_long = true;
        let _ = write!(text, "\n{}", format!("{indent}{line}").trim_end());
    }
    if is_long {
        let _ = write!(text, "\n{indent}");
    }
    text.push_str("\"\"\"\n");
}

fn spelled(shapes: &Shapes, kind: &Type) -> String {
    match kind {
        Type::Unknown => "Any".to_owned(),
        Type::Null => "None".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Integer => "int".to_owned(),
        Type::Number => "float".to_owned(),
        Type::String => "str".to_owned(),
        Type::Literal(Value::String(text)) => format!("Literal[{}]", quoted(text)),
        Type::Literal(Value::Bool(true)) => "Literal[True]".to_owned(),
        Type::Literal(Value::Bool(false)) => "Literal[False]".to_owned(),
        Type::Literal(value) => format!("Literal[{value}]"),
        Type::List(items) => format!("list[{}]", spelled(shapes, items)),
        Type::Tuple(items) => {
            // Lists are what JSON is read as.
            let items: Vec<Type> = items.clone();
            format!("list[{}]", spelled(shapes, &crate::kind::union(items)))
        }
        Type::Map(values) => format!("dict[str, {}]", spelled(shapes, values)),
        Type::Struct(place) => {
            let one = &shapes.structs[*place];
            if one.is_open && one.is_taken {
                // A dictionary with types takes no members of other names.
                return format!("Union[{}, dict[str, Any]]", one.name);
            }
            one.name.clone()
        }
        Type::Union(forms) => {
            let forms: Vec<String> = forms.iter().map(|form| spelled(shapes, form)).collect();
            format!("Union[{}]", forms.join(", "))
        }
    }
}
