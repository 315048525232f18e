"""Tools of the program's own, made of functions.

Owns the decorator, the server that such tools make, and what a tool can do while it runs. It speaks
MCP of 2025-11-25 and nothing beyond tools: a server with more is written with an SDK, and taken by
:class:`toolway.Toolway` as it is.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import functools
import inspect
import itertools
import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from . import _schema
from ._errors import ToolError, from_wire
from ._pipe import describe
from ._questions import Accept, Answer, Cancel, Decline
from ._results import CallResult, mapping
from ._sessions import CANCELLED, Message, Outlet, Session

logger = logging.getLogger("toolway")

P = ParamSpec("P")
R = TypeVar("R")
Policy = Literal["always_allow", "always_ask", "always_deny"]

_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


class Context:
    """What a tool can do while it runs. A parameter annotated with it is given one."""

    def __init__(
        self, session: OwnSession, token: str | int | None, meta: Mapping[str, Any]
    ) -> None:
        self._session = session
        self._token = token
        self.meta = meta

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the work is; nobody hears it unless the caller asked."""
        if self._token is not None:
            told = {"progressToken": self._token, "progress": progress}
            more = {"total": total, "message": message}
            self._session.notify(
                "notifications/progress",
                {**told, **{name: value for name, value in more.items() if value is not None}},
            )

    def log(self, level: str, data: Any) -> None:
        """Write to the server's log, which ``toolway logs`` shows."""
        self._session.notify("notifications/message", {"level": level, "data": data})

    async def elicit(self, message: str, schema: Mapping[str, Any]) -> Answer:
        """Ask the person by a form."""
        params = {"mode": "form", "message": message, "requestedSchema": dict(schema)}
        answer = await self.request("elicitation/create", params)
        if answer.get("action") == "accept":
            return Accept(mapping(answer.get("content")))
        return Decline() if answer.get("action") == "decline" else Cancel()

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Ask the client anything else that MCP has, such as ``roots/list``."""
        return await self._session.ask(method, params or {})


class FunctionTool(Generic[P, R]):
    """A function that is a tool. Calling it calls the function."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str,
        title: str | None,
        description: str,
        schema: Mapping[str, Any],
        output_schema: Mapping[str, Any] | None,
        annotations: Mapping[str, Any] | None,
        signature: _schema.Signature | None,
    ) -> None:
        self.function = function
        self.name = name
        self.title = title
        self.description = description
        self.schema = schema
        self.output_schema = output_schema
        self.annotations = annotations
        self._signature = signature
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def to_wire(self) -> dict[str, Any]:
        """As a list of tools has it."""
        row: dict[str, Any] = {"name": self.name, "description": self.description}
        row["inputSchema"] = dict(self.schema)
        more = {
            "title": self.title,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
        }
        return {
            **row,
            **{
                name: dict(v) if isinstance(v, Mapping) else v
                for name, v in more.items()
                if v is not None
            },
        }

    async def run(self, arguments: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Run it and write its result; whatever it raises is a result too."""
        try:
            return self._result(await self._call(arguments, context))
        except ToolError as error:
            return _failed(error.message)
        except Exception as error:
            logger.warning("the tool `%s` failed", self.name, exc_info=True)
            return _failed(str(error) or describe(error))

    async def _call(self, arguments: Mapping[str, Any], context: Context) -> Any:
        function: Callable[..., Any] = self.function
        if self._signature is None:
            call = functools.partial(function, dict(arguments))
        else:
            kinds = self._signature.kinds
            values = {name: _schema.value(kinds.get(name, Any), v) for name, v in arguments.items()}
            if self._signature.context is not None:
                values[self._signature.context] = context
            call = functools.partial(function, **values)
        # A plain function may take its time: it must not hold up everything else.
        value = call() if inspect.iscoroutinefunction(function) else await asyncio.to_thread(call)
        return await value if inspect.isawaitable(value) else value

    def _result(self, value: Any) -> dict[str, Any]:
        if isinstance(value, CallResult):
            return dict(value.raw)
        value = _plain(value)
        if self._signature is None and isinstance(value, dict) and "content" in value:
            if "is_error" in value:
                value["isError"] = value.pop("is_error")
            return value
        if value is None:
            return {"content": []}
        if isinstance(value, str):
            return {"content": [{"type": "text", "text": value}]}
        text = json.dumps(value, ensure_ascii=False)
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        if self._signature is not None and self._signature.wrapped:
            result["structuredContent"] = {"result": value}
        elif isinstance(value, dict):
            result["structuredContent"] = value
        return result


def _failed(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "isError": True}


def _plain(value: Any) -> Any:
    """What JSON can hold."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(one) for one in value]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return value


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    name: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
    *,
    title: str | None = None,
    output_schema: Mapping[str, Any] | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    name: Callable[..., Any] | str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
    *,
    title: str | None = None,
    output_schema: Mapping[str, Any] | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Any:
    """Make a tool of a function.

    ``@tool`` reads the signature and the docstring. ``@tool("add", "Add two numbers", {...})`` is
    the explicit form: the function takes one dict, and the schema is a JSON Schema or
    ``{"a": float, "b": float}``.
    """
    if callable(name):
        return _of_signature(name, None, None, None, None, None)

    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
        if schema is None:
            return _of_signature(function, name, description, title, output_schema, annotations)
        return FunctionTool(
            function,
            name=name or function.__name__,
            title=title,
            description=description or "",
            schema=_explicit(schema),
            output_schema=output_schema,
            annotations=annotations,
            signature=None,
        )

    return decorate


def _of_signature(
    function: Callable[P, R],
    name: str | None,
    description: str | None,
    title: str | None,
    output_schema: Mapping[str, Any] | None,
    annotations: Mapping[str, Any] | None,
) -> FunctionTool[P, R]:
    signature = _schema.of_function(function, Context)
    return FunctionTool(
        function,
        name=name or function.__name__,
        title=title,
        description=signature.description if description is None else description,
        schema=signature.schema,
        output_schema=output_schema if output_schema is not None else signature.output,
        annotations=annotations,
        signature=signature,
    )


def _explicit(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema and not isinstance(schema.get("type"), str):
        members = {name: _schema.of_type(kind) for name, kind in schema.items()}
        return _schema.of_members(members, list(members))
    return dict(schema) or {"type": "object"}


class Server:
    """Tools of this program under one name."""

    def __init__(
        self,
        name: str,
        tools: Iterable[FunctionTool[..., Any]] = (),
        *,
        version: str = "1.0.0",
        instructions: str | None = None,
        policies: Mapping[str, Policy] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.instructions = instructions
        self.policies = dict(policies or {})
        self.tools: dict[str, FunctionTool[..., Any]] = {}
        self._sessions: set[OwnSession] = set()
        for one in tools:
            if one.name in self.tools:
                raise ValueError(f"server `{name}` has two tools `{one.name}`")
            self.tools[one.name] = one

    def add(self, one: FunctionTool[..., Any]) -> None:
        """One tool more (or another in its place), also while clients are connected."""
        self.tools[one.name] = one
        self._changed()

    def remove(self, name: str) -> None:
        """One tool less."""
        del self.tools[name]
        self._changed()

    def entry(self) -> dict[str, Any]:
        """The definition that Toolway is given. What it would ask at the start is in it."""
        manifest = {"initialize": self.greeting(_VERSIONS[0]), "tools": self.rows()}
        entry: dict[str, Any] = {"type": "sdk", "manifest": manifest}
        if self.policies:
            entry["tools"] = [
                {"name": name, "permission_policy": policy}
                for name, policy in self.policies.items()
            ]
        return entry

    def greeting(self, version: str) -> dict[str, Any]:
        """The answer to ``initialize``."""
        words = {"instructions": self.instructions} if self.instructions else {}
        return {
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": self.name, "version": self.version},
            **words,
        }

    def rows(self) -> list[dict[str, Any]]:
        """All tools, as ``tools/list`` has them."""
        return [one.to_wire() for one in self.tools.values()]

    def connect(self, outlet: Outlet) -> Session:
        """A new client."""
        session = OwnSession(self, outlet)
        self._sessions.add(session)
        return session

    def forget(self, session: OwnSession) -> None:
        """A client has gone."""
        self._sessions.discard(session)

    def _changed(self) -> None:
        for session in self._sessions:
            session.notify("notifications/tools/list_changed", {})


def server(
    name: str,
    tools: Iterable[FunctionTool[..., Any]] = (),
    *,
    version: str = "1.0.0",
    instructions: str | None = None,
    policies: Mapping[str, Policy] | None = None,
) -> Server:
    """A server of this program's own: ``servers=[server("calc", [add])]``."""
    return Server(name, tools, version=version, instructions=instructions, policies=policies)


class OwnSession(Session):
    """One client of a :class:`Server`."""

    def __init__(self, own: Server, outlet: Outlet) -> None:
        self._own = own
        self._outlet = outlet
        self._ids = itertools.count(1)
        self._running: dict[Any, asyncio.Task[dict[str, Any]]] = {}
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    async def request(self, message: Message) -> Message:
        ident, method, params = message.get("id"), message["method"], mapping(message.get("params"))
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": ident}
        if method == "initialize":
            wanted = params.get("protocolVersion")
            version = wanted if wanted in _VERSIONS else _VERSIONS[0]
            return {**reply, "result": self._own.greeting(str(version))}
        if method == "tools/list":
            return {**reply, "result": {"tools": self._own.rows()}}
        if method in ("ping", "logging/setLevel"):
            return {**reply, "result": {}}
        if method != "tools/call":
            return {**reply, "error": {"code": -32601, "message": f"no method `{method}`"}}
        found = self._own.tools.get(str(params.get("name")))
        if found is None:
            error = {"code": -32602, "message": f"no tool `{params.get('name')}`"}
            return {**reply, "error": error}
        meta = mapping(params.get("_meta"))
        context = Context(self, meta.get("progressToken"), meta)
        arguments = mapping(params.get("arguments"))
        task = asyncio.get_running_loop().create_task(found.run(arguments, context))
        self._running[ident] = task
        try:
            await asyncio.wait({task})
        finally:
            self._running.pop(ident, None)
            task.cancel()
        if task.cancelled():
            return {**reply, "error": CANCELLED}
        return {**reply, "result": task.result()}

    def take(self, message: Message) -> None:
        if message.get("method") == "notifications/cancelled":
            task = self._running.get(mapping(message.get("params")).get("requestId"))
            if task is not None:
                task.cancel()

    async def close(self) -> None:
        self._own.forget(self)
        for task in list(self._running.values()):
            task.cancel()

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client something, also from the thread that a plain function runs in."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if threading.get_ident() == self._thread:
            self._outlet.notify(message)
        else:
            self._loop.call_soon_threadsafe(self._outlet.notify, message)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the client something."""
        request = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        reply = await self._outlet.request(request)
        if "error" in reply:
            raise from_wire(reply["error"])
        return mapping(reply.get("result"))
