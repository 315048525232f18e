"""The schema of a function's arguments, from its signature and its docstring.

Owns the way from annotations to JSON Schema and back from JSON to what the function expects. An
annotation that has no schema is told where the tool is defined, not when it is called.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
}


def is_typed_dict(kind: Any) -> bool:
    """Whether a type is a TypedDict of ``typing`` or of ``typing_extensions``."""
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__required_keys__")


def of_type(kind: Any) -> dict[str, Any]:
    """The schema of values of a type."""
    if kind is Any or kind is inspect.Parameter.empty or kind is object:
        return {}
    origin, arguments = get_origin(kind), get_args(kind)
    # What stands in an annotation need not be hashable, so this comes first.
    if origin is Annotated:
        schema = of_type(arguments[0])
        for extra in arguments[1:]:
            if isinstance(extra, str):
                schema["description"] = extra
            elif isinstance(extra, Mapping):
                schema.update(extra)
        return schema
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [of_type(one) for one in arguments]}
    if kind in (list, tuple, set, frozenset) or origin in (list, set, frozenset):
        items = of_type(arguments[0]) if arguments else {}
        schema = {"type": "array", **({"items": items} if items else {})}
        if (origin or kind) in (set, frozenset):
            schema["uniqueItems"] = True
        return schema
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": of_type(arguments[0])}
        parts = [of_type(one) for one in arguments]
        return {
            "type": "array",
            "prefixItems": parts,
            "minItems": len(parts),
            "maxItems": len(parts),
        }
    if isinstance(origin, type) and issubclass(origin, typing.Sequence):
        return {"type": "array", "items": of_type(arguments[0])}
    if kind is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        schema = {"type": "object"}
        if len(arguments) == 2 and (values := of_type(arguments[1])):
            schema["additionalProperties"] = values
        return schema
    if is_typed_dict(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return of_members(
            {name: of_type(_bare(hint)) for name, hint in hints.items()},
            sorted(kind.__required_keys__, key=list(hints).index),
        )
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind, include_extras=True)
        fields = [one for one in dataclasses.fields(kind) if one.init]
        required = [one.name for one in fields if _is_required(one)]
        return of_members({one.name: of_type(hints[one.name]) for one in fields}, required)
    if hasattr(kind, "model_json_schema"):
        return dict(kind.model_json_schema())
    raise TypeError(f"no schema is known for {kind!r}")


def of_members(members: Mapping[str, Any], required: typing.Sequence[str]) -> dict[str, Any]:
    """The schema of an object."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(members)}
    if required:
        schema["required"] = list(required)
    return schema


def _bare(hint: Any) -> Any:
    """Without ``Required[…]`` and ``NotRequired[…]``."""
    name = getattr(get_origin(hint), "_name", None) or getattr(get_origin(hint), "__name__", None)
    return get_args(hint)[0] if name in ("Required", "NotRequired") else hint


def _is_required(one: dataclasses.Field[Any]) -> bool:
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


def value(kind: Any, given: Any) -> Any:
    """What a function with this annotation expects, from what came as JSON."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return value(arguments[0], given)
    if kind is float and isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    if kind is int and isinstance(given, float) and given.is_integer():
        return int(given)
    if origin in (Union, types.UnionType):
        return _of_union(arguments, given)
    if isinstance(given, list):
        if origin in (set, frozenset) or kind in (set, frozenset):
            return (origin or kind)(value(arguments[0] if arguments else Any, one) for one in given)
        if origin is tuple and len(arguments) == len(given) and Ellipsis not in arguments:
            return tuple(value(one, item) for one, item in zip(arguments, given))
        inner = arguments[0] if arguments else Any
        items = [value(inner, one) for one in given]
        return tuple(items) if origin is tuple or kind is tuple else items
    if isinstance(given, str):
        if kind is datetime.datetime:
            return datetime.datetime.fromisoformat(given.replace("Z", "+00:00"))
        if kind is datetime.date:
            return datetime.date.fromisoformat(given)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(given)
    if isinstance(given, Mapping):
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            hints = typing.get_type_hints(kind, include_extras=True)
            known = {name: value(hints[name], one) for name, one in given.items() if name in hints}
            return kind(**known)
        if hasattr(kind, "model_validate"):
            return kind.model_validate(given)
        if len(arguments) == 2 and isinstance(origin, type) and issubclass(origin, Mapping):
            return {name: value(arguments[1], one) for name, one in given.items()}
    return given


def _of_union(kinds: tuple[Any, ...], given: Any) -> Any:
    """The first kind whose values look like this one."""
    for kind in kinds:
        plain = get_origin(kind) or kind
        if plain is type(None):
            if given is None:
                return None
        elif isinstance(given, Mapping):
            if dataclasses.is_dataclass(plain) or hasattr(plain, "model_validate"):
                try:
                    return value(kind, given)
                except (TypeError, ValueError):
                    continue
        elif isinstance(plain, type) and type(given) is plain:
            return value(kind, given)
        elif isinstance(plain, type) and issubclass(plain, enum.Enum):
            try:
                return plain(given)
            except ValueError:
                continue
    for kind in kinds:
        if kind is not type(None):
            return value(kind, given)
    return given


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a function expects and gives, as a tool needs it."""

    description: str
    schema: dict[str, Any]
    output: dict[str, Any] | None
    #: Whether the result stands in an object under ``result``.
    wrapped: bool
    kinds: Mapping[str, Any]
    #: The parameter that takes the context of a call.
    context: str | None


def of_function(function: Callable[..., Any], context_type: type) -> Signature:
    """Read a function."""
    name = getattr(function, "__name__", repr(function))
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"an annotation of `{name}` cannot be resolved: {error}") from error
    summary, told = read_docstring(inspect.getdoc(function) or "")
    members: dict[str, Any] = {}
    required: list[str] = []
    context = None
    for parameter in inspect.signature(function).parameters.values():
        kind = hints.get(parameter.name, Any)
        if kind is context_type or context_type in get_args(kind):
            context = parameter.name
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"`{name}` takes `{parameter}`: arguments of tools come by name")
        try:
            schema = of_type(kind)
        except TypeError as error:
            raise TypeError(f"parameter `{parameter.name}` of `{name}`: {error}") from error
        if parameter.name in told:
            schema.setdefault("description", told[parameter.name])
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif _is_json(parameter.default):
            schema.setdefault("default", parameter.default)
        members[parameter.name] = schema
    output, wrapped = _output(hints.get("return", Any))
    whole = {**of_members(members, required), "additionalProperties": False}
    kinds = {parameter: hints.get(parameter, Any) for parameter in members}
    return Signature(summary, whole, output, wrapped, kinds, context)


def _is_json(default: Any) -> bool:
    return default is None or isinstance(default, (str, int, float, bool))


def _output(kind: Any) -> tuple[dict[str, Any] | None, bool]:
    """The schema of structured results, and whether they are wrapped."""
    if kind in (Any, str, type(None), None, dict, list) or hasattr(kind, "__toolway_result__"):
        return None, False
    try:
        schema = of_type(kind)
    except TypeError:
        return None, False
    if not schema:
        return None, False
    if schema.get("type") == "object":
        return schema, False
    return of_members({"result": schema}, ["result"]), True


_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Returns|Return|Raises|Yields|Examples?|Notes?):\s*$"
)
_ARGUMENT = re.compile(r"^\s+\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
_FIELD = re.compile(r"^:param(?:\s+[^:\s]+)?\s+(\w+):\s*(.*)$")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """What a docstring says of the function, and of each argument (Google's style, or Sphinx')."""
    summary: list[str] = []
    told: dict[str, str] = {}
    section = ""
    current: str | None = None
    for line in text.splitlines():
        if found := _SECTION.match(line):
            section, current = found[1], None
        elif found := _FIELD.match(line):
            section, current = "Args", found[1]
            told[current] = found[2]
        elif line.startswith((":return", ":raises", ":rtype")):
            section, current = "Returns", None
        elif not section:
            summary.append(line)
        elif section in ("Args", "Arguments", "Parameters"):
            if found := _ARGUMENT.match(line):
                current = found[1]
                told[current] = found[2]
            elif current is not None and line.strip():
                told[current] = f"{told[current]} {line.strip()}".strip()
    return "\n".join(summary).strip(), told
