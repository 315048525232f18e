"""JSON-RPC over a pair of streams, in both directions.

Owns framing, ids, cancellation and what becomes of requests when the pipe ends. Knows no method by
name; who starts the program, and what is said to it, is the business of others.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ._errors import ConnectionClosed, InDoubt, InvalidRequest, ToolwayError, from_wire

logger = logging.getLogger("toolway")

Handler = Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]
Progress = Callable[[dict[str, Any]], None]

_CHUNK = 1 << 18


class Reply(Exception):
    """Raised by a handler to answer with this JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = dict(data)


class _Waiting:
    """A request of ours that has no answer yet."""

    __slots__ = ("answer", "doubtful", "progress")

    def __init__(self, doubtful: bool, progress: Progress | None) -> None:
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.doubtful = doubtful
        self.progress = progress


class Pipe:
    """One side of a conversation."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._serving: dict[str | int, asyncio.Task[None]] = {}
        self._room = asyncio.Lock()
        self._words: str | None = None
        self.handlers: dict[str, Handler] = {}
        self.notified: dict[str, Callable[[dict[str, Any]], None]] = {}

    @property
    def closed(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._words is not None

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        doubtful: bool = False,
        progress: Progress | None = None,
    ) -> Any:
        """Ask, and wait for the answer. Cancelling the task takes the request back.

        A ``doubtful`` one that was written when the pipe ended is in doubt.
        """
        ident, waiting = self._open(doubtful, progress)
        if progress is not None:
            meta = {**(params.get("_meta") or {}), "progressToken": ident}
            params = {**params, "_meta": meta}
        written = False
        try:
            line = _line({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
            # One at a time waits for room, so that a reader which is slow holds writers up and
            # not this program's memory.
            async with self._room:
                if self._words is not None:
                    raise ConnectionClosed(self._words)
                self._writer.write(line)
                written = True
                await self._drain()
            return await waiting.answer
        except asyncio.CancelledError:
            # Cancelling whoever waits cancels what is waited for.
            if written and (waiting.answer.cancelled() or not waiting.answer.done()):
                self.notify("notifications/cancelled", {"requestId": ident})
            raise
        finally:
            self._waiting.pop(ident, None)
            if waiting.answer.done() and not waiting.answer.cancelled():
                waiting.answer.exception()

    def post(self, method: str, params: Mapping[str, Any]) -> asyncio.Future[Any]:
        """Ask at once, in the order of the calls; the answer may be awaited or forgotten."""
        ident, waiting = self._open(False, None)
        self._write({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})

        def done(answer: asyncio.Future[Any]) -> None:
            self._waiting.pop(ident, None)
            if answer.cancelled():
                self.notify("notifications/cancelled", {"requestId": ident})
            else:
                answer.exception()

        waiting.answer.add_done_callback(done)
        return waiting.answer

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Say something that wants no answer."""
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    async def run(self) -> None:
        """Read until the other side ends. Whatever then waits is told so."""
        buffer = bytearray()
        searched = 0
        while chunk := await self._read():
            buffer += chunk
            while (end := buffer.find(b"\n", searched)) >= 0:
                line = bytes(buffer[:end])
                del buffer[: end + 1]
                searched = 0
                if line.strip():
                    self._take(line)
            searched = len(buffer)

    def end(self, words: str) -> None:
        """Nothing comes any more: every request has its outcome now."""
        if self._words is not None:
            return
        self._words = words
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(
                    InDoubt(f"{words}; the call may have been carried out, and was not sent again")
                    if waiting.doubtful
                    else ConnectionClosed(words)
                )
        for task in list(self._serving.values()):
            task.cancel()

    async def finished(self) -> None:
        """Wait for the handlers that still run."""
        if self._serving:
            await asyncio.wait(list(self._serving.values()))

    def close_writing(self) -> None:
        """The end of what we say, which ends everything that is ours."""
        self._writer.close()

    def _open(self, doubtful: bool, progress: Progress | None) -> tuple[int, _Waiting]:
        if self._words is not None:
            raise ConnectionClosed(self._words)
        ident = next(self._ids)
        waiting = _Waiting(doubtful, progress)
        self._waiting[ident] = waiting
        return ident, waiting

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(_CHUNK)
        except (ConnectionError, OSError):
            return b""

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except (ConnectionError, OSError):
            # The reading side sees the end too, and tells everybody who waits.
            pass

    def _write(self, message: Mapping[str, Any]) -> None:
        if self._words is None and not self._writer.is_closing():
            self._writer.write(_line(message))

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            logger.warning("toolway wrote a line that is no message: %.200r", line)
            return
        method = message.get("method")
        if isinstance(method, str):
            params = message.get("params")
            params = params if isinstance(params, dict) else {}
            if "id" in message:
                self._serve(message["id"], method, params)
            else:
                self._hear(method, params)
        elif (waiting := self._waiting.get(message.get("id", -1))) and not waiting.answer.done():
            if "error" in message:
                waiting.answer.set_exception(from_wire(message["error"]))
            else:
                waiting.answer.set_result(message.get("result"))

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/cancelled":
            task = self._serving.get(params.get("requestId", -1))
            if task is not None:
                task.cancel()
        elif method == "notifications/progress":
            waiting = self._waiting.get(params.get("progressToken", -1))
            if waiting is not None and waiting.progress is not None:
                guarded(waiting.progress, params)
        elif method in self.notified:
            guarded(self.notified[method], params)

    def _serve(self, ident: str | int, method: str, params: dict[str, Any]) -> None:
        handler = self.handlers.get(method)
        if handler is None:
            error = {"code": -32601, "message": f"this program knows no method `{method}`"}
            self._write({"jsonrpc": "2.0", "id": ident, "error": error})
            return
        task = asyncio.get_running_loop().create_task(self._answer(ident, handler, params))
        self._serving[ident] = task
        task.add_done_callback(lambda _: self._serving.pop(ident, None))

    async def _answer(self, ident: str | int, handler: Handler, params: dict[str, Any]) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": ident}
        try:
            message["result"] = await handler(params)
            line = _line(message)
        except Reply as reply:
            line = _line({"jsonrpc": "2.0", "id": ident, "error": reply.error})
        except ToolwayError as error:
            line = _line({"jsonrpc": "2.0", "id": ident, "error": as_error(error)})
        except Exception as error:
            logger.exception("a callback of this program failed")
            words = f"a callback of the program failed: {describe(error)}"
            error_object = {"code": -32603, "message": words}
            line = _line({"jsonrpc": "2.0", "id": ident, "error": error_object})
        if self._words is None and not self._writer.is_closing():
            self._writer.write(line)


def guarded(call: Callable[[dict[str, Any]], None], params: dict[str, Any]) -> None:
    """A callback that fails must not stop the reading."""
    try:
        call(params)
    except Exception:
        logger.exception("a callback of this program failed")


def describe(error: BaseException) -> str:
    """An exception in one line."""
    words = str(error)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def as_error(error: ToolwayError) -> dict[str, Any]:
    """An exception of ours as a JSON-RPC error."""
    code = error.code if error.code is not None else -32603
    return {"code": code, "message": error.message, "data": {**error.data, "reason": error.reason}}


def _line(message: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode() + b"\n"
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        words = f"this cannot be written as JSON: {error}"
        raise InvalidRequest(words, code=-32602) from error
