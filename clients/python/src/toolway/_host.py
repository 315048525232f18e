"""The host: a running Toolway and everything that can be asked of it.

Owns its life: started by ``async with``, ended with it, and one clear outcome for whatever waited.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from . import _adapters, _program
from ._agent import Agent, AgentServers
from ._errors import ConnectionClosed, StartError, ToolwayError
from ._events import Events
from ._hooks import Hook, Hooks
from ._pipe import Pipe
from ._questions import CanUseTool, OnElicitation, ask_elicitation, ask_permission
from ._results import mapping, rows
from ._rows import (
    Approval,
    Login,
    ServerStatus,
    SetResult,
    read_approval,
    read_login,
    read_server,
    read_set,
)
from ._sessions import Sessions
from ._version import __version__
from ._view import View, checked, given

PROTOCOL = 1


class Toolway(View):
    """Toolway, as long as the ``async with`` block lasts.

    Args:
        servers: Servers of this program, beside those that the person has configured: definitions
            as in a configuration file, ``toolway.server(…)``, server objects of the MCP SDK, of
            FastMCP or of ``create_sdk_mcp_server``; or the path of a JSON file.
        strict: Only ``servers``; nothing from files.
        can_use_tool: Answers whether a call may run.
        on_elicitation: Answers what servers ask for.
        elicitation: Which kinds of such questions it answers.
        hooks: Functions that have a say in calls.
        roots: Directories that servers may know of.
        events: Whether :meth:`events` is told anything.
        cwd: The directory whose project files count.
        env: Variables to add to the environment, or (``None``) to take out of it.
        daemon: Whether to use a daemon (``auto``, ``attach``) or not (``off``).
        program: Where Toolway is; else ``TOOLWAY_BIN``, else ``toolway`` on ``PATH``.
        arguments: Further words for its command line.
        name, version: What this program is called in the audit.
        on_stderr: Told each line that Toolway writes for people; else the logger ``toolway`` is.
        start_timeout: How long the beginning may take, in seconds.
    """

    def __init__(
        self,
        *,
        servers: _adapters.Servers | None = None,
        strict: bool = False,
        can_use_tool: CanUseTool | None = None,
        on_elicitation: OnElicitation | None = None,
        elicitation: Sequence[Literal["form", "url"]] = ("form", "url"),
        hooks: Sequence[Hook] = (),
        roots: Sequence[str | os.PathLike[str]] | None = None,
        events: bool = True,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        daemon: Literal["auto", "attach", "off"] | None = None,
        program: str | os.PathLike[str] | None = None,
        arguments: Sequence[str] = (),
        name: str = "python",
        version: str = __version__,
        on_stderr: Callable[[str], None] | None = None,
        start_timeout: float = 30,
    ) -> None:
        self._servers = _adapters.read_servers(servers)
        self._can_use_tool = can_use_tool
        self._on_elicitation = on_elicitation
        self._hooks = Hooks(hooks)
        self._wants_events = events
        self._cwd = cwd
        self._env = dict(env or {})
        if daemon is not None:
            self._env["TOOLWAY_DAEMON"] = daemon
        self._given_program = program
        self._arguments = list(arguments)
        self._on_stderr = on_stderr
        self._start_timeout = start_timeout
        self._beginning: dict[str, Any] = given(
            {
                "client": {"name": name, "version": version},
                "asks": {
                    "permission": can_use_tool is not None,
                    "form": on_elicitation is not None and "form" in elicitation,
                    "url": on_elicitation is not None and "url" in elicitation,
                },
                "servers": {key: entry for key, (entry, _, _) in self._servers.items()},
                "strict": strict,
                "hooks": self._hooks.to_wire(),
                "roots": None if roots is None else [os.path.abspath(root) for root in roots],
                "events": events,
            }
        )
        self._listeners: set[Events] = set()
        self._pipe: Pipe | None = None
        self._program: _program.Program | None = None
        self._sessions: Sessions | None = None
        self._reading: asyncio.Task[None] | None = None
        self._closing = False
        #: The version of Toolway.
        self.version: str | None = None
        #: Servers that could not be, with the reason; they stopped no other.
        self.errors: Mapping[str, str] = {}

    async def __aenter__(self) -> Toolway:
        await self.start()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def start(self) -> None:
        """Start Toolway; ``async with`` does it."""
        if self._program is not None:
            raise RuntimeError("this Toolway was started before: make a new one")
        command = [_program.find(self._given_program), "control", *self._arguments]
        self._program = await _program.Program.start(
            command, cwd=self._cwd, env=self._env, on_line=self._on_stderr
        )
        self._pipe = pipe = Pipe(*self._program.streams())
        self._sessions = Sessions(pipe)
        for key, (_, connect, _) in self._servers.items():
            if connect is not None:
                self._sessions.offer(key, connect)
        pipe.handlers["toolway/hook"] = self._hooks.run
        if (can_use_tool := self._can_use_tool) is not None:
            pipe.handlers["toolway/ask/permission"] = lambda raw: ask_permission(can_use_tool, raw)
        if (on_elicitation := self._on_elicitation) is not None:
            pipe.handlers["toolway/ask/elicitation"] = lambda raw: ask_elicitation(
                on_elicitation, raw
            )
        pipe.notified["toolway/event"] = self._happened
        self._reading = asyncio.get_running_loop().create_task(self._read(pipe, self._program))
        try:
            answer = await self._begin(command[0])
        except BaseException:
            await asyncio.shield(self.close())
            raise
        self.version = str(answer.get("version"))
        self.errors = {str(k): str(v) for k, v in mapping(answer.get("errors")).items()}

    async def close(self) -> None:
        """End Toolway, and everything of this program with it; ``async with`` does it."""
        if self._program is None or self._pipe is None or self._closing:
            return
        self._closing = True
        try:
            self._pipe.end("this Toolway was closed")
            if self._sessions is not None:
                await self._sessions.close()
            await self._pipe.finished()
            self._pipe.close_writing()
            await self._program.ended()
            if self._reading is not None:
                await asyncio.wait([self._reading])
        finally:
            self._program.kill()
            self._end_listeners()

    @property
    def closed(self) -> bool:
        """Whether Toolway has ended, or was never started."""
        return self._pipe is None or self._pipe.closed

    @property
    def pid(self) -> int | None:
        """The process that this program talks to."""
        return None if self._program is None else self._program.pid

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Ask anything by its name on the wire: ``toolway/…``, or MCP."""
        return await self.ask(method, params or {}, doubtful=method == "tools/call")

    async def set_servers(self, servers: _adapters.Servers) -> SetResult:
        """Make these the servers of this program: the whole set.

        What is not in it ends, what is equal stays connected, what changed is connected anew.
        """
        sessions = self._running()
        before, wanted = self._servers, _adapters.read_servers(servers)
        for name, (_, connect, _) in wanted.items():
            if connect is not None:
                sessions.offer(name, connect)
        entries = {name: entry for name, (entry, _, _) in wanted.items()}
        result = read_set(await self.ask("toolway/servers/set", {"servers": entries}))
        self._servers = {name: one for name, one in wanted.items() if name not in result.errors}
        for name, (_, connect, _) in before.items():
            if connect is not None and (
                name not in self._servers or self._servers[name][1] is None
            ):
                sessions.withdraw(name)
        for name, (entry, connect, instance) in self._servers.items():
            was = before.get(name)
            # Toolway sees an equal entry; that another object stands behind it is known here alone.
            if (
                connect is not None
                and was is not None
                and was[0] == entry
                and was[2] is not instance
            ):
                await self.reconnect(name)
        return result

    async def reconnect(self, server: str) -> ServerStatus:
        """Connect anew; where the server stands once that is done or has failed."""
        return await self._server("toolway/servers/reconnect", {"server": server})

    async def enable(self, server: str) -> ServerStatus:
        """Let a server be used."""
        return await self._server("toolway/servers/enable", {"server": server})

    async def disable(self, server: str) -> ServerStatus:
        """Let a server be unused."""
        return await self._server("toolway/servers/disable", {"server": server})

    async def login(
        self,
        server: str,
        *,
        account: str | None = None,
        method: Literal["browser", "device"] | None = None,
    ) -> Login:
        """Log in. Where a page is to be visited, an event says when the login is there."""
        params = given({"server": server, "account": account, "method": method})
        return read_login(await self.ask("toolway/servers/login", params))

    async def logout(self, server: str, *, account: str | None = None) -> None:
        """Log out."""
        await self.ask("toolway/servers/logout", given({"server": server, "account": account}))

    async def approval(self, server: str) -> Approval:
        """What approving a repository's server would cover. Show it to the person."""
        return read_approval(await self.ask("toolway/servers/approve", {"server": server}))

    async def approve(self, server: str, digest: str) -> ServerStatus:
        """Yes to exactly what :meth:`approval` told."""
        return await self._server("toolway/servers/approve", {"server": server, "digest": digest})

    async def reject(self, server: str, digest: str) -> ServerStatus:
        """No to what :meth:`approval` told."""
        return await self._server("toolway/servers/reject", {"server": server, "digest": digest})

    def agent(
        self,
        name: str,
        *,
        servers: AgentServers | None = None,
        required: Sequence[str] | None = None,
        tools: Sequence[str] | None = None,
        disallowed_tools: Sequence[str] | None = None,
        asks: Mapping[str, bool] | None = None,
    ) -> Agent:
        """An agent, which begins with ``async with`` and sees ``servers`` (all, if left out)."""
        return Agent(self, name, servers, required, tools, disallowed_tools, asks)

    def events(self) -> Events:
        """What happens from now on: ``async for event in host.events():``."""
        if not self._wants_events:
            raise RuntimeError("this Toolway was made with `events=False`")
        listener = Events(self._listeners.discard, self.closed)
        self._listeners.add(listener)
        return listener

    async def questions(self) -> Mapping[str, Any]:
        """Questions that wait for the owner, as ``toolway approvals`` shows them."""
        return await self.ask("toolway/questions", {})

    async def answer(self, id: str, answer: str, reason: str | None = None) -> Mapping[str, Any]:
        """Answer one of them, by its ``id`` and one of its ``choices``."""
        return await self.ask(
            "toolway/answer", given({"id": id, "answer": answer, "reason": reason})
        )

    async def explain(self, server: str, tool: str | None = None) -> Mapping[str, Any]:
        """Why a server or a tool is as it is, as ``toolway explain --json`` prints it."""
        return await self.ask("toolway/explain", given({"server": server, "tool": tool}))

    async def logs(self, server: str, *, lines: int | None = None) -> Mapping[str, Any]:
        """What a server wrote, as ``toolway logs --json`` prints it."""
        return await self.ask("toolway/logs", given({"server": server, "lines": lines}))

    async def audit(
        self, *, since: str | None = None, server: str | None = None, limit: int | None = None
    ) -> Mapping[str, Any]:
        """Which calls were made, as ``toolway audit --json`` prints it."""
        return await self.ask(
            "toolway/audit", given({"since": since, "server": server, "limit": limit})
        )

    async def permissions(self) -> Sequence[Mapping[str, Any]]:
        """The rules that hold."""
        return rows((await self.ask("toolway/permissions", {})).get("rules"))

    async def hooks(self) -> Sequence[Mapping[str, Any]]:
        """The hooks that run."""
        return rows((await self.ask("toolway/hooks", {})).get("hooks"))

    async def context(self) -> Mapping[str, Any]:
        """An estimate of what each server costs a model's context."""
        return await self.ask("toolway/context", {})

    async def status(self) -> Mapping[str, Any]:
        """As ``toolway status --json`` prints it."""
        return await self.ask("toolway/status", {})

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        doubtful: bool = False,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Mapping[str, Any]:
        """One request, and its answer, which is an object."""
        if self._pipe is None:
            raise ConnectionClosed("this Toolway was not started: use `async with`")
        answer = await self._pipe.request(method, params, doubtful=doubtful, progress=progress)
        return checked(answer, method)

    _ask = ask

    async def _server(self, method: str, params: Mapping[str, Any]) -> ServerStatus:
        return read_server(mapping((await self.ask(method, params)).get("server")))

    async def _begin(self, program: str) -> Mapping[str, Any]:
        asked = self.ask("toolway/initialize", self._beginning)
        try:
            answer = await asyncio.wait_for(asked, self._start_timeout)
        except asyncio.TimeoutError as error:
            raise StartError(
                f"`{program} control` said nothing in {self._start_timeout} s"
            ) from error
        except ConnectionClosed as error:
            raise StartError(f"`{program} control` could not begin: {error.message}") from error
        except ToolwayError as error:
            if error.code == -32601:
                raise StartError(f"`{program} control` does not know this protocol") from error
            raise
        if answer.get("protocol") != PROTOCOL:
            raise StartError(
                f"`{program}` speaks version {answer.get('protocol')} of the protocol, and this "
                f"package version {PROTOCOL}: upgrade the older one"
            )
        return answer

    async def _read(self, pipe: Pipe, program: _program.Program) -> None:
        try:
            reading = asyncio.ensure_future(pipe.run())
            exited = asyncio.ensure_future(program.exited())
            await asyncio.wait({reading, exited}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                # What it wrote last may still be on its way; whoever else holds its pipes must not
                # keep us.
                await asyncio.wait({reading}, timeout=1)
            for task in (reading, exited):
                task.cancel()
        finally:
            if not pipe.closed:
                pipe.end(await program.how_it_ended())
            self._end_listeners()

    def _happened(self, raw: dict[str, Any]) -> None:
        for listener in self._listeners:
            listener.put(raw)

    def _end_listeners(self) -> None:
        for listener in list(self._listeners):
            listener.end()

    def _running(self) -> Sessions:
        if self._sessions is None:
            raise ConnectionClosed("this Toolway was not started: use `async with`")
        return self._sessions
