"""Agents: a part of what the program has, under rules that only narrow.

Owns the beginning and the end of one. What it can do in between is the :class:`View`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Union

from ._errors import ConnectionClosed, ToolwayError, UnknownAgent
from ._results import mapping, rows
from ._rows import ServerStatus, read_server
from ._view import View, given

AgentServers = Sequence[Union[str, Mapping[str, Mapping[str, Any]]]]


class Asker(Protocol):
    """Whoever can ask Toolway."""

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        doubtful: bool = False,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Mapping[str, Any]: ...


class Agent(View):
    """An agent of this program: ``async with host.agent("reader", servers=["files"]) as agent:``."""

    def __init__(
        self,
        asker: Asker,
        name: str,
        servers: AgentServers | None,
        required: Sequence[str] | None,
        tools: Sequence[str] | None,
        disallowed_tools: Sequence[str] | None,
        asks: Mapping[str, bool] | None,
    ) -> None:
        self.name = name
        #: What Toolway calls it, as long as it lives.
        self.id: str | None = None
        #: Servers that it asked for and that are not there.
        self.missing: Sequence[Any] = ()
        self.servers_at_start: Sequence[ServerStatus] = ()
        self._asker = asker
        self._params = given(
            {
                "name": name,
                "servers": None if servers is None else [_entry(one) for one in servers],
                "required": required,
                "tools": tools,
                "disallowedTools": disallowed_tools,
                "asks": asks,
            }
        )

    async def __aenter__(self) -> Agent:
        answer = await self._asker.ask("toolway/agents/start", self._params)
        self.id = str(answer.get("agent"))
        self.servers_at_start = [read_server(row) for row in rows(answer.get("servers"))]
        self.missing = answer.get("missing") or []
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.end()

    async def end(self) -> None:
        """End it, and servers of its own with it. What it still waits for is taken back."""
        ident, self.id = self.id, None
        if ident is not None:
            try:
                await self._asker.ask("toolway/agents/end", {"agent": ident})
            except (ConnectionClosed, UnknownAgent):
                # It ended with Toolway, or by itself.
                pass

    async def _ask(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        doubtful: bool = False,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Mapping[str, Any]:
        if self.id is None:
            raise UnknownAgent(f"the agent `{self.name}` has not begun, or has ended")
        whole = {**params, "agent": self.id}
        return await self._asker.ask(method, whole, doubtful=doubtful, progress=progress)


def _entry(one: str | Mapping[str, Any]) -> str | dict[str, Any]:
    if isinstance(one, str):
        return one
    for name, definition in one.items():
        if not isinstance(definition, Mapping) or mapping(definition).get("type") == "sdk":
            raise ToolwayError(
                f"server `{name}` lives in this program: put it into the servers of the program, "
                "and let the agent name it",
                reason="invalid",
            )
    return dict(one)
