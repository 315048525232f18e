"""Server objects of other SDKs, taken as they are.

Owns recognising them and speaking to them: the official Python SDK (versions 1 and 2), FastMCP, and
what the Claude Agent SDK's ``create_sdk_mcp_server`` makes. None of these is needed by this package;
whoever brings an object has its SDK installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Union

from ._own import Server
from ._pipe import describe
from ._results import mapping
from ._sessions import CANCELLED, Connect, Message, Outlet, Session

logger = logging.getLogger("toolway")

#: Servers as a program gives them: by name, a list of its own, or the path of a JSON file.
Servers = Union[Mapping[str, Any], Iterable[Server], str, "os.PathLike[str]"]


def read_servers(servers: Servers | None) -> dict[str, tuple[dict[str, Any], Connect | None, Any]]:
    """For each name the definition for Toolway, and how to connect to what lives in this program."""
    if servers is None:
        return {}
    if isinstance(servers, (str, os.PathLike)):
        whole = json.loads(Path(servers).read_text(encoding="utf-8"))
        servers = mapping(mapping(whole).get("mcpServers", whole))
    if not isinstance(servers, Mapping):
        listed: dict[str, Any] = {}
        for one in servers:
            if not isinstance(one, Server):
                raise TypeError(f"{one!r} has no name: give servers as a dict")
            if one.name in listed:
                raise ValueError(f"two servers are called `{one.name}`")
            listed[one.name] = one
        servers = listed
    return {name: _read(name, one) for name, one in servers.items()}


def _read(name: str, one: Any) -> tuple[dict[str, Any], Connect | None, Any]:
    if isinstance(one, Server):
        return one.entry(), one.connect, one
    if isinstance(one, Mapping):
        if one.get("type") != "sdk":
            return dict(one), None, None
        # As the Claude Agent SDK writes it. The server knows its own name; the key counts here.
        entry = {key: value for key, value in one.items() if key not in ("instance", "name")}
        instance = one.get("instance")
        if isinstance(instance, Server):
            return {**instance.entry(), **entry}, instance.connect, instance
        return {**_protocol(instance), **entry}, connector(name, instance), instance
    return {"type": "sdk", **_protocol(one)}, connector(name, one), one


def _protocol(instance: Any) -> dict[str, Any]:
    """What is known of how a server object speaks: version 1 of the SDK knows the older protocol
    alone, and writes a page about every question in the newer one."""
    inner = getattr(instance, "_mcp_server", instance)
    if not _is_lowlevel(inner):
        return {}
    kinds = importlib.import_module("mcp.types")
    return {} if hasattr(kinds, "jsonrpc_message_adapter") else {"protocol": "legacy"}


def connector(name: str, instance: Any) -> Connect:
    """How to connect to a server object."""
    for owner in ("_mcp_server", "_lowlevel_server"):
        inner = getattr(instance, owner, None)
        if _is_lowlevel(inner):
            return lambda outlet: StreamSession(instance, inner, outlet)
    if _is_lowlevel(instance):
        return lambda outlet: StreamSession(None, instance, outlet)
    raise TypeError(
        f"server `{name}` is {type(instance).__name__}, which is neither a definition (a dict with "
        "`command` or `url`), `toolway.server(…)`, nor a server of the MCP SDK, FastMCP or the "
        "Claude Agent SDK"
    )


def _is_lowlevel(instance: Any) -> bool:
    return (
        instance is not None
        and not isinstance(instance, type)
        and callable(getattr(instance, "create_initialization_options", None))
        and callable(getattr(instance, "run", None))
    )


class StreamSession(Session):
    """A server of the official SDK that reads and writes streams."""

    def __init__(self, owner: Any, server: Any, outlet: Outlet) -> None:
        anyio = importlib.import_module("anyio")
        self._owner = owner
        self._server = server
        self._outlet = outlet
        self._to_server, self._read_stream = anyio.create_memory_object_stream(math.inf)
        self._write_stream, self._from_server = anyio.create_memory_object_stream(math.inf)
        self._waiting: dict[Any, asyncio.Future[Message]] = {}
        self._ending = False
        self._asking: set[asyncio.Task[None]] = set()
        self._session_message = importlib.import_module("mcp.shared.message").SessionMessage
        kinds = importlib.import_module("mcp.types")
        # Version 2 has a union in the place of version 1's model.
        adapter = getattr(kinds, "jsonrpc_message_adapter", None)
        self._validate = adapter.validate_python if adapter else kinds.JSONRPCMessage.model_validate
        self._written = {"exclude_unset": True} if adapter else {"exclude_none": True}
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def request(self, message: Message) -> Message:
        ident = message.get("id")
        if self._task.done():
            return self._gone(ident, "the server has ended")
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[ident] = answer
        try:
            self._feed(message)
            return await answer
        except asyncio.CancelledError:
            self._cancel(ident)
            raise
        finally:
            self._waiting.pop(ident, None)

    def take(self, message: Message) -> None:
        if message.get("method") == "notifications/cancelled":
            ident = mapping(message.get("params")).get("requestId")
            answer = self._waiting.pop(ident, None)
            if answer is None:
                return
            if not answer.done():
                answer.set_result({"jsonrpc": "2.0", "id": ident, "error": CANCELLED})
        self._feed(message)

    async def close(self) -> None:
        self._ending = True
        # The end of what it reads is how a server ends in order.
        self._to_server.close()
        await asyncio.wait([self._task], timeout=2)
        self._task.cancel()
        await asyncio.wait([self._task, *self._asking], timeout=5)

    def _cancel(self, ident: Any) -> None:
        if self._waiting.pop(ident, None) is not None:
            params = {"requestId": ident}
            self._feed({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def _feed(self, message: Message) -> None:
        try:
            parsed = self._validate(dict(message))
        except ValueError as error:
            logger.warning("a message that the SDK does not take: %s", error)
            answer = self._waiting.get(message.get("id"))
            if answer is not None and not answer.done():
                answer.set_result(
                    self._gone(message.get("id"), "the SDK does not take this", -32600)
                )
            return
        # A stream whose other end has closed has nobody left to take the message.
        with contextlib.suppress(Exception):
            self._to_server.send_nowait(self._session_message(message=parsed))

    async def _run(self) -> None:
        pump = asyncio.get_running_loop().create_task(self._pump())
        words = "the server has ended"
        try:
            async with contextlib.AsyncExitStack() as stack:
                lifespan = getattr(self._owner, "_lifespan_manager", None)
                if callable(lifespan):
                    await stack.enter_async_context(lifespan())
                options = self._server.create_initialization_options()
                await self._server.run(self._read_stream, self._write_stream, options)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if self._ending:
                logger.debug("a server of this program failed while it ended", exc_info=True)
            else:
                logger.exception("a server of this program failed")
            words = f"the server failed: {describe(error)}"
        finally:
            pump.cancel()
            for task in list(self._asking):
                task.cancel()
            for ident, answer in list(self._waiting.items()):
                if not answer.done():
                    answer.set_result(self._gone(ident, words))
            for stream in (
                self._to_server,
                self._read_stream,
                self._write_stream,
                self._from_server,
            ):
                stream.close()

    async def _pump(self) -> None:
        async for item in self._from_server:
            raw = item.message.model_dump(by_alias=True, mode="json", **self._written)
            message: dict[str, Any] = {"jsonrpc": "2.0", **raw}
            if "method" not in message:
                answer = self._waiting.pop(message.get("id"), None)
                if answer is not None and not answer.done():
                    answer.set_result(message)
            elif "id" in message:
                task = asyncio.get_running_loop().create_task(self._ask(message))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)
            else:
                self._outlet.notify(message)

    async def _ask(self, message: Message) -> None:
        self._feed({"jsonrpc": "2.0", **await self._outlet.request(message)})

    @staticmethod
    def _gone(ident: Any, words: str, code: int = -32603) -> Message:
        return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": words}}
