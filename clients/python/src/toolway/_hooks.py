"""Hooks that are functions of this program.

Owns what such a function is shown and how its words are written; what they mean is Toolway's
(its page on hooks).
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from ._pipe import Reply
from ._questions import settle
from ._results import Json, mapping, text_of

HookEvent = Literal[
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "Elicitation", "ElicitationResult"
]


@dataclass(frozen=True)
class HookInput:
    """What a hook is told. ``raw`` is what a hook program reads on stdin."""

    event: str
    server: str | None
    tool: str | None
    tool_name: str | None
    arguments: Mapping[str, Json]
    result: Mapping[str, Json] | None
    message: str | None
    raw: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class HookReply:
    """What a hook says; everything that is left out is no opinion."""

    permission: Literal["allow", "ask", "deny"] | None = None
    reason: str | None = None
    arguments: Mapping[str, Json] | None = None
    context: str | None = None
    output: Json = None
    action: Literal["accept", "decline", "cancel"] | None = None
    content: Mapping[str, Json] | None = None
    message: str | None = None

    def to_wire(self, event: str) -> dict[str, Json]:
        """As a hook program would print it."""
        said = {
            "permissionDecision": self.permission,
            "permissionDecisionReason": self.reason,
            "updatedInput": self.arguments,
            "additionalContext": self.context,
            "updatedToolOutput": self.output,
            "action": self.action,
            "content": self.content,
        }
        said = {name: value for name, value in said.items() if value is not None}
        whole: dict[str, Json] = {}
        if said:
            whole["hookSpecificOutput"] = {"hookEventName": event, **said}
        if self.message is not None:
            whole["systemMessage"] = self.message
        return whole


HookAnswer = Union[HookReply, Mapping[str, Any], None]
HookCallback = Callable[[HookInput], Union[HookAnswer, Awaitable[HookAnswer]]]


@dataclass(frozen=True)
class Hook:
    """A function that has a say in calls. An exception in it refuses the call where it can."""

    event: HookEvent
    callback: HookCallback
    matcher: str | None = None
    timeout: float | None = None


class Hooks:
    """The hooks of a program, by the names they have on the wire."""

    def __init__(self, hooks: Sequence[Hook]) -> None:
        numbers = itertools.count(1)
        self._by_name = {f"h{next(numbers)}": hook for hook in hooks}

    def to_wire(self) -> list[dict[str, Json]]:
        """For the beginning."""
        entries = []
        for name, hook in self._by_name.items():
            entry: dict[str, Json] = {"event": hook.event, "callback": name}
            if hook.matcher is not None:
                entry["matcher"] = hook.matcher
            if hook.timeout is not None:
                entry["timeout"] = hook.timeout
            entries.append(entry)
        return entries

    async def run(self, params: dict[str, Json]) -> Mapping[str, Json]:
        """Run the one that is asked for."""
        hook = self._by_name.get(str(params.get("callback")))
        if hook is None:
            raise Reply(-32602, f"this program has no hook `{params.get('callback')}`")
        told = mapping(params.get("input"))
        event = str(params.get("event") or hook.event)
        result = told.get("tool_response")
        answer = await settle(
            hook.callback(
                HookInput(
                    event=event,
                    server=text_of(told.get("server")) or text_of(told.get("mcp_server_name")),
                    tool=text_of(told.get("tool")),
                    tool_name=text_of(told.get("tool_name")),
                    arguments=mapping(told.get("tool_input")),
                    result=result if isinstance(result, Mapping) else None,
                    message=text_of(told.get("message")),
                    raw=told,
                )
            )
        )
        if answer is None:
            return {}
        if isinstance(answer, HookReply):
            return answer.to_wire(event)
        if isinstance(answer, Mapping):
            return answer
        raise TypeError(f"a hook answered {answer!r}, which is no HookReply, dict or None")
