"""Questions that Toolway asks this program, and the answers to them.

Owns what a callback is shown and how its answer is written. A callback that fails answers no:
what nobody decided must not happen.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from ._pipe import describe
from ._results import Json, mapping, rows, text_of

logger = logging.getLogger("toolway")

Remember = Literal["session", "always-tool", "always-server"]


@dataclass(frozen=True)
class Allow:
    """Yes, with other arguments or for longer where the question offers it (``choices``)."""

    arguments: Mapping[str, Json] | None = None
    remember: Remember | None = None


@dataclass(frozen=True)
class Deny:
    """No. The caller is told ``message``."""

    message: str | None = None


Decision = Union[Allow, Deny]


@dataclass(frozen=True)
class PermissionQuestion:
    """A call that somebody has to permit.

    Trust ``provenance`` (where the server's definition came from) rather than a name.
    """

    id: str
    server: str
    provenance: str | None
    tool: str
    name: str
    title: str | None
    description: str | None
    arguments: Mapping[str, Json]
    rule: str | None
    reason: str | None
    changed: Sequence[Json]
    destructive: bool
    default_to_no: bool
    agent: str | None
    choices: Sequence[str]
    suggestions: Sequence[Mapping[str, Json]]
    raw: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class Accept:
    """Yes, with the fields of the form."""

    content: Mapping[str, Json] | None = None


@dataclass(frozen=True)
class Decline:
    """No."""


@dataclass(frozen=True)
class Cancel:
    """Neither: the person went away."""


Answer = Union[Accept, Decline, Cancel]


@dataclass(frozen=True)
class ElicitationQuestion:
    """A server asks for input: a form (``schema``) or a page (``url``)."""

    id: str
    server: str
    mode: str
    message: str
    schema: Mapping[str, Json] | None
    url: str | None
    elicitation_id: str | None
    title: str | None
    agent: str | None
    raw: Mapping[str, Json] = field(repr=False)


CanUseTool = Callable[[PermissionQuestion], Union[Decision, Awaitable[Decision]]]
OnElicitation = Callable[[ElicitationQuestion], Union[Answer, Awaitable[Answer]]]


async def settle(value: Any) -> Any:
    """What a callback gave, awaited where it can be."""
    return await value if inspect.isawaitable(value) else value


async def ask_permission(callback: CanUseTool, raw: dict[str, Json]) -> Mapping[str, Json]:
    """Ask the program, and write what it says."""
    try:
        decision = await settle(callback(_read_permission(raw)))
        if isinstance(decision, Allow):
            answer: dict[str, Json] = {"behavior": "allow"}
            if decision.arguments is not None:
                answer["updatedArguments"] = dict(decision.arguments)
            if decision.remember is not None:
                answer["remember"] = decision.remember
            return answer
        if isinstance(decision, Deny):
            words = {} if decision.message is None else {"message": decision.message}
            return {"behavior": "deny", **words}
        raise TypeError(f"`can_use_tool` answered {decision!r}, which is neither Allow nor Deny")
    except Exception as error:
        logger.exception("can_use_tool failed; the call is refused")
        return {"behavior": "deny", "message": f"can_use_tool failed: {describe(error)}"}


async def ask_elicitation(callback: OnElicitation, raw: dict[str, Json]) -> Mapping[str, Json]:
    """Ask the program, and write what it says."""
    try:
        answer = await settle(callback(_read_elicitation(raw)))
        if isinstance(answer, Accept):
            content = {} if answer.content is None else {"content": dict(answer.content)}
            return {"action": "accept", **content}
        if isinstance(answer, Decline):
            return {"action": "decline"}
        if isinstance(answer, Cancel):
            return {"action": "cancel"}
        raise TypeError(
            f"`on_elicitation` answered {answer!r}, which is no Accept, Decline or Cancel"
        )
    except Exception:
        logger.exception("on_elicitation failed; the question is cancelled")
        return {"action": "cancel"}


def _read_permission(raw: Mapping[str, Json]) -> PermissionQuestion:
    server = mapping(raw.get("server"))
    return PermissionQuestion(
        id=str(raw.get("id", "")),
        server=str(server.get("name", "")),
        provenance=text_of(server.get("provenance")),
        tool=str(raw.get("tool", "")),
        name=str(raw.get("name", "")),
        title=text_of(raw.get("title")),
        description=text_of(raw.get("description")),
        arguments=mapping(raw.get("arguments")),
        rule=text_of(raw.get("rule")),
        reason=text_of(raw.get("reason")),
        changed=raw.get("changed") or [],
        destructive=raw.get("destructive") is True,
        default_to_no=raw.get("defaultToNo") is True,
        agent=text_of(raw.get("agent")),
        choices=[str(choice) for choice in raw.get("choices") or []],
        suggestions=rows(raw.get("suggestions")),
        raw=raw,
    )


def _read_elicitation(raw: Mapping[str, Json]) -> ElicitationQuestion:
    server = raw.get("server")
    schema = raw.get("schema")
    return ElicitationQuestion(
        id=str(raw.get("id", "")),
        server=str(server.get("name", "")) if isinstance(server, Mapping) else str(server or ""),
        mode=str(raw.get("mode") or "form"),
        message=str(raw.get("message", "")),
        schema=schema if isinstance(schema, Mapping) else None,
        url=text_of(raw.get("url")),
        elicitation_id=text_of(raw.get("elicitationId")),
        title=text_of(raw.get("title")),
        agent=text_of(raw.get("agent")),
        raw=raw,
    )
