"""What a program and its agents share: lists, calls and reads.

Owns how each is written and read. Which servers that meets is decided by whom it is asked of.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ._errors import ToolwayError
from ._results import (
    CallResult,
    Progress,
    PromptResult,
    ReadResult,
    expect,
    read_call,
    read_progress,
    read_prompt,
    read_read,
    rows,
)
from ._rows import (
    Prompt,
    Resource,
    ServerStatus,
    Tool,
    read_prompt_row,
    read_resource_row,
    read_server,
    read_tool,
)

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Call:
    """One call of :meth:`View.call_many`."""

    server: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class View(ABC):
    """Servers and their tools, as one caller sees them."""

    @abstractmethod
    async def _ask(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        doubtful: bool = False,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Mapping[str, Any]:
        """Ask Toolway, as whoever this view belongs to."""

    async def tools(
        self, server: str | None = None, *, search: str | None = None, limit: int | None = None
    ) -> list[Tool]:
        """All tools, once the servers on their way have arrived or failed."""
        params = {"server": server, "search": search, "limit": limit}
        answer = await self._ask("toolway/tools", given(params))
        return [read_tool(row) for row in rows(answer.get("tools"))]

    async def servers(
        self, server: str | None = None, *, tools: bool = False
    ) -> list[ServerStatus]:
        """All servers and where they stand, or one; with their tools where wanted."""
        params = given({"server": server, "tools": tools or None})
        answer = await self._ask("toolway/servers", params)
        return [read_server(row) for row in rows(answer.get("servers"))]

    async def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: OnProgress | None = None,
        timeout: float | None = None,
        check: bool = True,
        results: Literal["raw", "bounded"] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> CallResult:
        """Call a tool. Cancelling the task takes the call back.

        Rules, hooks and questions have their say; with ``check=False`` this program vouches for the
        call and nobody is asked. A tool that fails is a result with ``is_error``.
        """
        params = {"server": server, "tool": tool, "arguments": dict(arguments or {})}
        return await self._call(params, progress, timeout, check, results, meta)

    async def call_name(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: OnProgress | None = None,
        timeout: float | None = None,
        check: bool = True,
        results: Literal["raw", "bounded"] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> CallResult:
        """The same by the name that models see, ``mcp__files__read``."""
        params = {"name": name, "arguments": dict(arguments or {})}
        return await self._call(params, progress, timeout, check, results, meta)

    async def _call(
        self,
        params: dict[str, Any],
        progress: OnProgress | None,
        timeout: float | None,
        check: bool,
        results: str | None,
        meta: Mapping[str, Any] | None,
    ) -> CallResult:
        more = given({"timeout": timeout, "results": results, "_meta": meta})
        if not check:
            more["check"] = False
        listener = None if progress is None else (lambda raw: progress(read_progress(raw)))
        whole = {**params, **more}
        return read_call(await self._ask("toolway/call", whole, doubtful=True, progress=listener))

    async def call_many(
        self,
        calls: Iterable[Call | tuple[str, str, Mapping[str, Any]]],
        *,
        concurrency: int = 16,
        timeout: float | None = None,
        check: bool = True,
    ) -> list[CallResult | ToolwayError]:
        """Make many calls, some at a time. One outcome for each, in their order: none hides others."""
        room = asyncio.Semaphore(concurrency)

        async def one(wanted: Call) -> CallResult | ToolwayError:
            async with room:
                try:
                    return await self.call(
                        wanted.server, wanted.tool, wanted.arguments, timeout=timeout, check=check
                    )
                except ToolwayError as error:
                    return error

        wanted = [call if isinstance(call, Call) else Call(*call) for call in calls]
        tasks = [asyncio.ensure_future(one(call)) for call in wanted]
        return await together(tasks)

    async def resources(self, server: str | None = None) -> list[Resource]:
        """The resources that servers offer."""
        answer = await self._ask("toolway/resources", given({"server": server}))
        return [read_resource_row(row) for row in rows(answer.get("resources"))]

    async def read(self, server: str, uri: str) -> ReadResult:
        """Read a resource."""
        return read_read(await self._ask("toolway/read", {"server": server, "uri": uri}))

    async def prompts(self, server: str | None = None) -> list[Prompt]:
        """The prompts that servers offer."""
        answer = await self._ask("toolway/prompts", given({"server": server}))
        return [read_prompt_row(row) for row in rows(answer.get("prompts"))]

    async def prompt(
        self, server: str, prompt: str, arguments: Mapping[str, str] | None = None
    ) -> PromptResult:
        """A prompt with its arguments filled in."""
        params = {"server": server, "prompt": prompt, "arguments": dict(arguments or {})}
        return read_prompt(await self._ask("toolway/prompt", params))


def given(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that were given."""
    return {name: value for name, value in params.items() if value is not None}


def checked(answer: object, method: str) -> Mapping[str, Any]:
    """The answer, which is an object."""
    return expect(answer, method)


async def together(
    tasks: Sequence[asyncio.Future[CallResult | ToolwayError]],
) -> list[CallResult | ToolwayError]:
    """All outcomes; whoever cancels the whole cancels each."""
    outcome: Awaitable[list[CallResult | ToolwayError]] = asyncio.gather(*tasks)
    try:
        return list(await outcome)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
