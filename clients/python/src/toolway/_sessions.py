"""Servers that live in this program: who is connected to which, and how messages find them.

Owns the routing of ``toolway/servers/message``. What a server answers is the business of the
sessions: our own (``_own``) or those of other SDKs (``_adapters``).
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from ._errors import ToolwayError
from ._pipe import Pipe, Reply, as_error
from ._results import mapping

logger = logging.getLogger("toolway")

METHOD = "toolway/servers/message"
CANCELLED = {"code": -32005, "message": "taken back", "data": {"reason": "cancelled"}}

Message = Mapping[str, Any]


class Outlet:
    """What a session says to its client, which is Toolway."""

    def __init__(self, pipe: Pipe, address: Mapping[str, Any]) -> None:
        self._pipe = pipe
        self._address = address

    def notify(self, message: Message) -> None:
        """Send a notification, in the order of the calls."""
        try:
            self._pipe.post(METHOD, {**self._address, "message": message})
        except ToolwayError as error:
            logger.debug("a message of a server came too late: %s", error)

    async def request(self, message: Message) -> Message:
        """Send a request; its reply, which may be an error."""
        try:
            answer = await self._pipe.post(METHOD, {**self._address, "message": message})
        except ToolwayError as error:
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": as_error(error)}
        return mapping(mapping(answer).get("message"))


class Session(ABC):
    """One client's conversation with a server."""

    @abstractmethod
    async def request(self, message: Message) -> Message:
        """Answer a request. Cancelling the task takes it back."""

    @abstractmethod
    def take(self, message: Message) -> None:
        """Take a notification."""

    @abstractmethod
    async def close(self) -> None:
        """The client has gone."""


Connect = Callable[[Outlet], Session]


class Sessions:
    """All servers of this program and who is connected to them.

    Several may be connected to one: the program's own view, and each agent that has the server.
    """

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._connects: dict[str, Connect] = {}
        self._open: dict[tuple[str, int], Session] = {}
        #: Connections that are over, for each name: what comes late must not open one anew.
        self._over: dict[str, set[int]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        pipe.handlers[METHOD] = self._message
        pipe.notified["toolway/servers/closed"] = self._closed

    def offer(self, name: str, connect: Connect) -> None:
        """From now on new clients of this name meet this server."""
        self._connects[name] = connect

    def withdraw(self, name: str) -> None:
        """Nobody meets it any more."""
        self._connects.pop(name, None)
        for key in [key for key in self._open if key[0] == name]:
            self._end(key)

    async def close(self) -> None:
        """End everything."""
        for key in list(self._open):
            self._end(key)
        if self._closing:
            await asyncio.wait(list(self._closing))

    async def _message(self, params: dict[str, Any]) -> Mapping[str, Any]:
        message = mapping(params.get("message"))
        if "method" not in message:
            raise Reply(-32602, "a message without a method")
        session = self._session(str(params.get("server")), params.get("connection"))
        if "id" not in message:
            session.take(message)
            return {}
        return {"message": await session.request(message)}

    def _session(self, name: str, connection: object) -> Session:
        number = connection if isinstance(connection, int) else 1
        found = self._open.get((name, number))
        if found is not None:
            return found
        if number in self._over.get(name, ()):
            raise Reply(-32602, f"connection {number} to `{name}` is over")
        connect = self._connects.get(name)
        if connect is None:
            raise Reply(
                -32602, f"this program has no server `{name}`", {"reason": "unknown-server"}
            )
        session = connect(Outlet(self._pipe, {"server": name, "connection": number}))
        self._open[(name, number)] = session
        return session

    def _closed(self, params: Mapping[str, Any]) -> None:
        number = params.get("connection")
        if isinstance(number, int):
            self._end((str(params.get("server")), number))

    def _end(self, key: tuple[str, int]) -> None:
        found = self._open.pop(key, None)
        if found is not None:
            self._over.setdefault(key[0], set()).add(key[1])
            task = asyncio.get_running_loop().create_task(found.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
